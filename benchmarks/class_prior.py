"""What a class prior adds to the projection: ``python benchmarks/class_prior.py --help``.

The experiment is the one on robustness of Krijthe and Loog (2017), see docs/class_prior.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.experiments import (
    GINV_CUTOFF,
    PROTOCOLS,
    draw_labeled,
    principal_components,
)
from pages import table
from studies import load_all, parser_of

SEED = 2017
N_UNLABELED = 1000
MARGIN = 0.05
ROUNDING = 1e-12  # relative: losses that differ by less may be equal
NOTICEABLE = 1e-6  # smaller differences of means are left to the tolerance of the solver

# Seeds follow this order.
NAMES = (
    *("Haberman", "Ionosphere", "Parkinsons", "Diabetes", "Sonar", "SPECT", "SPECTF"),
    *("Transfusion", "WDBC", "Mammography", "Digit1", "USPS", "COIL2", "BCI", "g241c", "g241d"),
)

PROJECTION, CONFIDENCE, INTERVAL, SHARE, ICLS = METHODS = (
    "Projection",
    "+ confidence",
    f"+ share ± {MARGIN:g}",
    "+ share",
    "ICLS",
)


@dataclass(frozen=True)
class Fit:
    """A classifier against the supervised one, for one draw of the rows."""

    loss: float  # on labeled and unlabeled rows, relative to that of the supervised classifier
    error: float  # on the unlabeled rows
    worst_case: float  # loss less the supervised one for the worst labeling; relative as well
    converged: bool

    @property
    def is_worse(self):
        """Whether the loss is higher than that of the supervised classifier."""
        return self.loss > 1.0 + ROUNDING


@dataclass(frozen=True)
class Repeat:
    """All classifiers for one draw of the rows, and the confidence interval for the share."""

    supervised_error: float
    fits: dict[str, Fit]
    share: float  # true, of the unlabeled rows
    imputed: float  # by Projection
    interval: tuple[float, float]

    @property
    def width(self):
        """Width of the confidence interval."""
        return self.interval[1] - self.interval[0]

    @property
    def covers(self):
        """Whether the interval contains the true share."""
        low, high = self.interval
        return low - ROUNDING <= self.share <= high + ROUNDING

    @property
    def binds(self):
        """Whether the interval excludes what Projection imputes, so that it makes a difference."""
        low, high = self.interval
        return not low <= self.imputed <= high

    def promises(self, method):
        """Whether the classifier must not be worse than the supervised one."""
        return {CONFIDENCE: self.covers, ICLS: False}.get(method, True)


@dataclass(frozen=True)
class Study:
    """All draws from one data set."""

    name: str
    n_labeled: int
    repeats: list[Repeat]

    def mean(self, what):
        """Return the mean of a number of the draws."""
        return float(np.mean([getattr(repeat, what) for repeat in self.repeats]))

    def values(self, method, what):
        """Return a number of the fits, for all draws."""
        return np.array([getattr(repeat.fits[method], what) for repeat in self.repeats])

    def means(self, what):
        """Return the means of a number of the fits, for all methods."""
        return [float(self.values(method, what).mean()) for method in METHODS]

    def n_worse(self, method, promised):
        """Return how often a classifier was worse, of the draws in which it must not, or may."""
        chosen = [r.fits[method] for r in self.repeats if r.promises(method) == promised]
        return sum(fit.is_worse for fit in chosen)

    def sign(self, method, what):
        """Return the sign of the mean difference to Projection, 0 within two standard errors."""
        difference = self.values(method, what) - self.values(PROJECTION, what)
        mean, n = difference.mean(), len(difference)
        if n < 2 or abs(mean) <= max(2.0 * difference.std(ddof=1) / np.sqrt(n), NOTICEABLE):
            return 0
        return int(np.sign(mean))


def main(argv=None):
    """Run the study, print tables in Markdown, and return 1 if a guarantee was broken."""
    parser = parser_of("What a class prior adds to the projection.", NAMES, repeats=100)
    parser.add_argument("--level", type=_level, default=0.95, help="prior_level (default: 0.95)")
    parser.add_argument("--out", type=Path, help="save the tables in this file as well")
    parser.add_argument("--picture", type=Path, help="draw the losses in this file")
    arguments = parser.parse_args(argv)
    for path in (arguments.out, arguments.picture):
        if path and not path.resolve().parent.is_dir():
            parser.error(f"there is no folder {path.parent} to save {path.name} in")
    # 1 is the class that the paper codes 1, the first one.
    data = {name: (X, 1 - y) for name, (X, y) in load_all(parser, arguments).items()}
    studies = [study(name, *data[name], arguments.repeats, arguments.level) for name in data]
    text = _report(studies)
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    if arguments.picture:
        draw(studies).savefig(arguments.picture, dpi=150)
    return int(_n_broken(studies) > 0)


def study(name, X, truth, repeats, level=0.95):
    """Run the experiment on one data set."""
    X = principal_components(X, PROTOCOLS["code"])
    n_labeled = PROTOCOLS["code"].n_labeled(X.shape[1])
    found = []
    for k in range(repeats):
        _say(f"{name}: {k + 1} of {repeats}")
        rng = np.random.default_rng([SEED, NAMES.index(name), k])
        found.append(one_repeat(X, truth, n_labeled, level, rng))
    _say("")
    return Study(name, n_labeled, found)


def one_repeat(X, truth, n_labeled, level, rng):
    """Draw rows, hide labels, fit and measure everything."""
    labeled, _ = draw_labeled(truth, np.arange(len(truth)), n_labeled, rng)
    rows = np.concatenate([labeled, rng.integers(len(truth), size=N_UNLABELED)])
    X, truth = X[rows], truth[rows]
    y = np.where(np.arange(len(rows)) < n_labeled, truth, -1)
    share = float(truth[n_labeled:].mean())
    about = (max(share - MARGIN, 0.0), min(share + MARGIN, 1.0))
    projected = partial(ProjectedLeastSquaresClassifier, alpha=0.0, rcond=GINV_CUTOFF)
    classifiers = {
        PROJECTION: projected(),
        CONFIDENCE: projected(class_prior="confidence", prior_level=level),
        INTERVAL: projected(class_prior=about),
        SHARE: projected(class_prior=share),
        ICLS: ICLSClassifier(alpha=0.0, rcond=GINV_CUTOFF),
    }
    for clf in classifiers.values():
        clf.fit(X, y)
    baseline, supervised_error = _measure(classifiers[PROJECTION].supervised_, X, truth, n_labeled)
    fits = {}
    for method, clf in classifiers.items():
        loss, error = _measure(clf, X, truth, n_labeled)
        proved = clf.certificate_
        fits[method] = Fit(loss / baseline, error, proved.worst_case / baseline, proved.converged)
    imputed = float(classifiers[PROJECTION].soft_labels_.mean())
    interval = _interval(classifiers[CONFIDENCE])
    return Repeat(supervised_error, fits, share, imputed, interval)


def _measure(clf, X, truth, n_labeled):
    """Return the quadratic loss on all rows, and the error on the unlabeled ones."""
    score = clf.decision_function(X) + 0.5
    wrong = (score >= 0.5) != (truth == 1)
    return float(np.sum((score - truth) ** 2)), float(wrong[n_labeled:].mean())


def _interval(clf):
    """Return the interval for the share of the class that is coded 1."""
    prior = clf.certificate_.assumptions.class_prior
    return prior[0][1:] if prior else (0.0, 1.0)  # nothing is said where all is possible


def _report(studies):
    def rows(numbers):
        return [[s.name, s.n_labeled, *numbers(s)] for s in studies]

    columns = ["data set", "labels", *METHODS]
    worse = [f"worse: {name}" for name in WORSE]
    signs = ["loss: lower", "loss: higher", "error: lower", "error: higher"]
    parts = {
        LOSS: table(columns, _with_mean(rows(lambda s: s.means("loss"))), ".3f"),
        ERROR: table([*columns[:2], "supervised", *METHODS], _with_mean(rows(_errors)), ".1f"),
        GUARANTEED: table(columns, _with_mean(rows(_guaranteed)), ".1f"),
        CONFIDENT: table([*columns[:2], *OF_INTERVAL], rows(_of_interval), ".0f"),
        HARM: table([*columns[:2], *worse], rows(_counts), "d"),
        COMPARED: table(["", *signs], [[m, *_signs(studies, m)] for m in METHODS[1:]], "d"),
    }
    texts = [f"{title}:\n\n{part}" for title, part in parts.items()]
    return "\n\n".join([*texts, _in_words(studies)]) + "\n"


LOSS = "Loss on labeled and unlabeled rows, divided by that of the supervised classifier"
ERROR = "Error on the unlabeled rows, in percent"
GUARANTEED = (
    "Guaranteed improvement, in percent of the supervised loss (negative: harm that is possible)"
)
CONFIDENT = (
    "The true share of the class coded 1, the share that Projection imputes, and the confidence "
    "interval: its mean width, how often it contains the true share, and how often it excludes the "
    "imputed one, in percent"
)
HARM = "Draws in which the loss was higher than that of the supervised classifier"
COMPARED = (
    "Data sets on which the mean is lower or higher than that of Projection, by more than two "
    "standard errors"
)


def _errors(s):
    return [100.0 * value for value in (s.mean("supervised_error"), *s.means("error"))]


def _guaranteed(s):
    return [0.0 - 100.0 * value for value in s.means("worst_case")]


def _of_interval(s):
    return [100.0 * s.mean(what) for what in OF_INTERVAL.values()]


OF_INTERVAL = {
    "true share": "share",
    "imputed share": "imputed",
    "width": "width",
    "covers": "covers",
    "binds": "binds",
}
WORSE = {
    PROJECTION: (PROJECTION, True),
    f"{CONFIDENCE}, covered": (CONFIDENCE, True),
    f"{CONFIDENCE}, not covered": (CONFIDENCE, False),
    INTERVAL: (INTERVAL, True),
    SHARE: (SHARE, True),
    ICLS: (ICLS, False),
}


def _counts(s):
    return [s.n_worse(*which) for which in WORSE.values()]


def _signs(studies, method):
    signs = {what: [s.sign(method, what) for s in studies] for what in ("loss", "error")}
    return [signs[what].count(sign) for what in signs for sign in (-1, 1)]


def _n_broken(studies):
    return sum(s.n_worse(method, promised=True) for s in studies for method in METHODS)


def _in_words(studies):
    fits = [fit for s in studies for r in s.repeats for fit in r.fits.values()]
    stopped = sum(not fit.converged for fit in fits)
    return f"Guarantees broken: {_n_broken(studies)}. Not converged: {stopped} of {len(fits)} fits."


def _with_mean(rows):
    if len(rows) < 2:
        return rows
    values = np.array([row[2:] for row in rows])
    return [*rows, ["mean", "", *values.mean(axis=0).tolist()]]


STYLES = {  # colours of Okabe and Ito; shapes differ as well
    PROJECTION: {"marker": "o", "color": "#0072B2"},
    CONFIDENCE: {"marker": "o", "facecolor": "white", "edgecolor": "#0072B2"},
    INTERVAL: {"marker": "D", "facecolor": "white", "edgecolor": "#D55E00"},
    SHARE: {"marker": "D", "color": "#D55E00"},
    ICLS: {"marker": "x", "color": "#595959"},
}
APART = 0.16  # of the lines of one data set, which are 1 from those of the next


def draw(studies):
    """Draw the mean losses, in a band for each data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 1.2 + 0.42 * len(studies)), layout="constrained")
    ax = figure.subplots()
    bands = np.arange(len(studies))
    for band in bands[::2]:
        ax.axhspan(band - 0.5, band + 0.5, color="#f2f2f2", zorder=0)
    losses = np.array([s.means("loss") for s in studies])
    for k, method in enumerate(METHODS):
        heights = bands + APART * (k - (len(METHODS) - 1) / 2)
        ax.scatter(losses[:, k], heights, s=26, linewidth=1.3, label=method, **STYLES[method])
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set_ylim(len(studies) - 0.5, -0.5)
    ax.set_yticks(bands, [f"{s.name}, {s.n_labeled} labels" for s in studies])
    ax.set_xlabel("mean loss on labeled and unlabeled rows, divided by the supervised one")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=len(METHODS), frameon=False)
    return figure


def _level(text):
    value = float(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError("must lie between 0 and 1")
    return value


def _say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
