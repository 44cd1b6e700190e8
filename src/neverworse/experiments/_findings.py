"""What came out, in plain words; and whether the claims of the paper's text agree with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from neverworse._words import MINUS, count, percent
from neverworse.experiments._analysis import (
    LEVEL,
    WITHIN,
    count_marks,
    n_tests,
    published,
    signed_rank,
    standard_error,
)
from neverworse.experiments._experiments import MOST_QUESTIONS

MARKS = {"better": "better", "worse": "worse", "": "no different"}
COUNTED = {"robustness": "resamplings", "table": "folds of the cross-validation"}
ROUGH = 10  # fewer repeats than this give standard errors that are rough themselves
# Explained wherever it shows: errors on this data set that are lower than published.
EXCEPTION = "Mammography"


@dataclass(frozen=True)
class Total:
    """Wins, draws and losses of a method, ours and published, and the data sets that differ."""

    method: str
    ours: tuple[int, int, int]
    published: tuple[int, int, int]
    differences: list[str]


def guarantee_sentences(guarantees: dict[str, dict[str, float]]) -> list[str]:
    """Say how often the projection's loss on labeled and unlabeled rows was no higher."""
    sentences = []
    for name, counts in guarantees.items():
        n_fits, paper = int(counts["fits"]), published()["guarantees"][name]
        own = _not_higher(n_fits, COUNTED[name], counts["higher"], counts["largest_ratio"])
        other = _not_higher(
            n_fits, "", counts["higher_than_supervised"], counts["largest_ratio_to_supervised"]
        )
        held = paper["fits"] - paper["higher"]
        sentence = (
            f"{own}: the loss of Projection on labeled and unlabeled rows is not higher than that "
            "of the supervised weights that it projects, of which the theorem speaks. Compared "
            f"with the classifier Supervised: {other}; in the published run, {held} of "
            f"{paper['fits']}."
        )
        if counts["higher_than_supervised"] and not counts["higher"]:
            sentence += " Where it is higher, Supervised has other weights than the projected ones."
        sentences.append(sentence)
    return sentences


def _not_higher(n_fits: int, what: str, n_higher: float, largest: float) -> str:
    said = f"{n_fits - n_higher:.0f} of {n_fits} {what}".rstrip()
    return f"{said} (largest ratio: 1 + {largest - 1.0:.1e})" if n_higher else said


def guarantee_holds(guarantees: dict[str, dict[str, float]]) -> bool | None:
    """Return whether the projection was never worse than the weights that it projects, if known."""
    return all(not counts["higher"] for counts in guarantees.values()) if guarantees else None


def comparable(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of Table 1 with a standard error: there is none for a single repeat."""
    return cells[np.isfinite(cells["z"])]


def agreement_sentence(cells: pd.DataFrame) -> str:
    """Say how many cells of Table 1 agree with the published ones, and name the others."""
    compared = comparable(cells)
    if compared.empty:
        return "With a single repeat there are no standard errors to compare Table 1 by."
    far = compared[~compared["agrees"].astype(bool)]
    sentence = (
        f"{len(compared) - len(far)} of {len(compared)} cells of Table 1 are within three standard "
        "errors of the published ones"
    )
    if far.empty:
        return f"{sentence}."
    names = [
        f"{dataset} ({', '.join(part['method'])})"
        for dataset, part in far.groupby("dataset", sort=False)
    ]
    sentence = f"{sentence}; not those of {', '.join(names)}."
    n_repeats = int(cells["repeats"].max())
    if n_repeats < ROUGH:
        sentence += f" Standard errors of {n_repeats} repeats are rough, though."
    return sentence


def is_known_exception(cells: pd.DataFrame) -> pd.Series:
    """Return for each cell whether it disagrees in the one way of which that is known."""
    return (cells["dataset"] == EXCEPTION) & (cells["z"] < -WITHIN)


def claims_sentence(measurements: pd.DataFrame) -> str:
    """Say how many claims about learning curves agree, and quote those that do not."""
    claims = check(measurements)
    count = Counter(claim.verdict for claim in claims)
    sentence = (
        f"{len(claims)} statements of the paper about learning curves were checked. Agree: "
        f"{count['agrees']}, differ: {count['differs']}, undecided: {count['undecided']}."
    )
    differ = [f"{c.dataset}: “{c.text}”" for c in claims if c.verdict == "differs"]
    return f"{sentence} Those that differ: {' '.join(differ)}" if differ else sentence


def totals(cells: pd.DataFrame) -> list[Total]:
    """Return wins, draws and losses of each method beside the published ones."""
    theirs = count_marks(cells, "published_mark")
    differ = cells[cells["mark"] != cells["published_mark"]]
    found = []
    for method, ours in count_marks(cells).items():
        named = [
            f"{cell['dataset']} (ours: {MARKS[cell['mark']]}, "
            f"published: {MARKS[cell['published_mark']]})"
            for cell in differ[differ["method"] == method].to_dict(orient="records")
        ]
        found.append(Total(method, ours, theirs[method], named))
    return found


def as_text(counts: tuple[int, int, int]) -> str:
    """Return wins, draws and losses as the paper writes them."""
    return " / ".join(map(str, counts))


def too_few_repeats(cells: pd.DataFrame) -> str | None:
    """Say so if no test could reject anything, whatever was measured."""
    n_repeats, threshold = int(cells["repeats"].max()), LEVEL / n_tests()
    smallest = signed_rank(-np.arange(1.0, n_repeats + 1.0), "less")
    if smallest <= threshold:
        return None
    return (
        f"With {count(n_repeats, 'repeat')} and the {n_tests()} tests of the paper no difference "
        f"can be significant (the smallest possible p-value is {smallest:.2g}, the threshold "
        f"{threshold:.2g}), so all are draws."
    )


# The claims of the paper's text about its learning curves

Verdict = Literal["agrees", "differs", "undecided"]

SURE = 3.0  # standard errors of a paired difference, for an effect to be there
BAND = 2.0  # standard errors of the ribbons in the figure
RESOLUTION = 0.01  # an effect of this size would be seen, where none is said to be
# Losses differ little if by less than this share of what any of them gains on the supervised one.
LITTLE = 0.25
MEASURES = {"error": "error", "test_loss": "loss"}


@dataclass(frozen=True)
class Claim:
    """A claim, the numbers that it is checked by, and the outcome."""

    dataset: str
    text: str
    evidence: str
    verdict: Verdict


class Change:
    """A difference of two means over the same repeats, a later or other one less the first.

    The standard error is that of their difference, repeat by repeat; NaN for a single repeat. The
    ribbons of the figure do not overlap where the means differ by more than `ribbons`.
    """

    def __init__(self, before: pd.Series, after: pd.Series, where: str = "") -> None:
        both = pd.DataFrame({"before": before, "after": after}).dropna()
        self.before, self.after = both["before"].mean(), both["after"].mean()
        self.difference = self.after - self.before
        self.standard_error = standard_error((both["after"] - both["before"]).to_numpy())
        self.ribbons = BAND * sum(standard_error(both[name].to_numpy()) for name in both)
        self.where = where

    def is_effect(self, sign: int) -> Verdict:
        """Judge the claim that the difference has a sign."""
        if not np.isfinite(self.standard_error):
            return "undecided"
        distance = sign * self.difference
        if distance > SURE * self.standard_error:
            return "agrees"
        return "differs" if distance < -SURE * self.standard_error else "undecided"

    def is_none(self, sign: int) -> Verdict:
        """Judge the claim that there is no difference of that sign to be seen in the figure."""
        if not np.isfinite(self.standard_error):
            return "undecided"
        seen = sign * self.difference > self.ribbons
        if seen and self.is_effect(sign) == "agrees":
            return "differs"
        would_be_seen = SURE * self.standard_error <= RESOLUTION
        return "agrees" if would_be_seen or self.is_effect(-sign) == "agrees" else "undecided"

    def __str__(self) -> str:
        said = f"{self.before:.4f} → {self.after:.4f}, by {self.difference:+.4f}"
        if np.isfinite(self.standard_error):
            said += f" ± {self.standard_error:.4f}"
        return self.where + said.replace("-", MINUS)


class Curves:
    """The learning curves of one data set, repeat by repeat."""

    def __init__(self, measurements: pd.DataFrame) -> None:
        self._measured = measurements
        self.sizes = sorted(int(size) for size in measurements["n_unlabeled"].unique())
        self.last = self.sizes[-1]

    def values(self, method: str, measure: str, size: int) -> pd.Series:
        chosen = (self._measured["method"] == method) & (self._measured["n_unlabeled"] == size)
        return self._measured[chosen].set_index("repeat")[measure]

    def since_turn(self, method: str, measure: str) -> Change:
        """Compare the largest size with the earlier one at which the mean error is lowest.

        It is chosen by what it is used to judge, which makes a rise look larger than it is. Three
        standard errors leave room for a choice among ten sizes.
        """
        earlier = self.sizes[:-1] or self.sizes
        turn = min(earlier, key=lambda size: float(self.values(method, "error", size).mean()))
        before, after = (self.values(method, measure, size) for size in (turn, self.last))
        return Change(before, after, f"{turn} → {self.last} unlabeled rows: ")

    def against(self, reference: str, method: str, measure: str) -> Change:
        """Compare a method with another one, at the largest size."""
        before, after = (self.values(name, measure, self.last) for name in (reference, method))
        named = "" if reference == "Supervised" else f", {reference} → {method}"
        return Change(before, after, f"{self.last} unlabeled rows{named}: ")


def check(measurements: pd.DataFrame) -> list[Claim]:
    """Check all claims about data sets whose learning curves were measured."""
    return [
        Claim(dataset, text, str(evidence), verdict)
        for dataset, claims in CLAIMS.items()
        if (measurements["dataset"] == dataset).any()
        for text, evidence, verdict in claims(
            Curves(measurements[measurements["dataset"] == dataset])
        )
    ]


Found = Iterator[tuple[str, object, Verdict]]


def _ionosphere(curves: Curves) -> Found:
    rise, fall = (curves.since_turn("Self-Learning", measure) for measure in MEASURES)
    text = "The error of Self-Learning rises again for many unlabeled rows."
    yield text, rise, rise.is_effect(+1)
    yield "Meanwhile its loss keeps falling.", fall, fall.is_effect(-1)
    for method in ("ICLS", "Projection"):
        change = curves.since_turn(method, "error")
        yield f"The error of {method} does not rise.", change, change.is_none(+1)
    text = "In the loss there is little difference between the three."
    yield text, *_little_difference(curves)


def _little_difference(curves: Curves) -> tuple[str, Verdict]:
    """Judge whether losses differ little, compared with what they gain on the supervised one."""
    methods = ("Self-Learning", "ICLS", "Projection")
    gains = {m: -curves.against("Supervised", m, "test_loss").difference for m in methods}
    most, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    spread = curves.against(most, least, "test_loss")
    margin, little = SURE * spread.standard_error, LITTLE * gains[most]
    verdict: Verdict = "undecided"
    if spread.difference + margin <= little:
        verdict = "agrees"
    elif spread.difference - margin > little:
        verdict = "differs"
    said = ", ".join(f"{gain:.4f} ({method})" for method, gain in gains.items())
    return f"{curves.last} unlabeled rows, lower than Supervised by {said}", verdict


def _spect(curves: Curves) -> Found:
    for method in ("Self-Learning", "Projection"):
        change = curves.against("Supervised", method, "error")
        text = f"{method} does not improve the error of Supervised."
        yield text, change, change.is_none(-1)
    change = curves.against("Supervised", "ICLS", "error")
    yield "ICLS improves it.", change, change.is_effect(-1)


def _usps(curves: Curves) -> Found:
    for measure, name in MEASURES.items():
        for method in ("Self-Learning", "ICLS", "Projection"):
            change = curves.against("Supervised", method, measure)
            text = f"{method} improves the {name} of Supervised."
            yield text, change, change.is_effect(-1)
        for method in ("ICLS", "Projection"):
            change = curves.against(method, "Self-Learning", measure)
            text = f"Self-Learning improves the {name} more than {method}."
            yield text, change, change.is_effect(-1)


CLAIMS = {"Ionosphere": _ionosphere, "SPECT": _spect, "USPS": _usps}


# What evidence is worth, beyond the paper

EACH_DATASET = (
    "Brier score of each data set, relative, and the share of repeats in which it is worse"
)
ABOUT = """\
Labels of data sets are hidden at random, but for 40, 100 or 200 of them, and all methods are
compared on the rows without label with a baseline: least squares with a penalty by leave-one-out.
Ratios are those of Brier scores and errors to the baseline's. “Worse” is the share of repeats in
which the Brier score is higher than the baseline's, “more errors” the share in which the error
is. All numbers are means over {repeats}, and then over data sets. A sequential audit compares the
candidate that cross-validation picks with the baseline, with at most {most} new labels."""


def evidence_table(summary: pd.DataFrame, n_labeled: int) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the means over data sets, for a number of labels."""
    part = summary[(summary["dataset"] == "mean") & (summary["n_labeled"] == n_labeled)]
    rows = [
        [
            one.method,
            f"{one.brier_ratio:.3f}",
            f"{one.worse:.1%}",
            f"{one.error_ratio:.3f}",
            f"{one.more_errors:.1%}",
            f"{one.asked:.0f}" if one.asked else "",
        ]
        for one in part.itertuples()
    ]
    head = ["Brier score, relative", "worse", "errors, relative", "more errors", "new labels"]
    return ["method", *head], rows


def evidence_by_dataset(summary: pd.DataFrame, n_labeled: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of each data set: ratios of Brier scores, and how often it is worse."""
    part = summary[summary["n_labeled"] == n_labeled]
    head = ["data set", *dict.fromkeys(part["method"])]
    return head, [
        [name, *(f"{one.brier_ratio:.3f} ({percent(one.worse)})" for one in cells.itertuples())]
        for name, cells in part.groupby("dataset", sort=False)
    ]


def evidence_sentence(measurements: pd.DataFrame, summary: pd.DataFrame) -> str:
    means = summary[(summary["dataset"] == "mean") & (summary["method"] == "safe stacking")]
    said = [
        f"with {one.n_labeled} labels {one.brier_ratio:.3f} of the baseline's, and higher in "
        f"{one.worse:.1%} of the repeats"
        for one in means.itertuples()
    ]
    repeats = count(measurements["repeat"].nunique(), "repeat")
    n_sets = count(measurements["dataset"].nunique(), "data set")
    return f"Brier score of safe stacking, {repeats} on {n_sets}: {'; '.join(said)}."


def about_evidence(measurements: pd.DataFrame) -> str:
    repeats = count(measurements["repeat"].nunique(), "repeat")
    return ABOUT.format(repeats=repeats, most=MOST_QUESTIONS)


def evidence_page(measurements: pd.DataFrame, summary: pd.DataFrame, made: dict[str, Any]) -> str:
    """Return all tables as a page of Markdown, with what they depend on."""
    parts = [
        "# What evidence is worth",
        about_evidence(measurements),
        "Written by `neverworse reproduce evidence`:",
        "\n".join(f"- {title}: {text}" for title, text in made.items() if text),
    ]
    for n in summary["n_labeled"].unique():
        part = measurements[measurements["n_labeled"] == n]
        n_draws = len(part[["dataset", "repeat"]].drop_duplicates())
        n_sets = count(part["dataset"].nunique(), "data set")
        known = percent(1.96 * float(np.sqrt(0.05 * 0.95 / n_draws)))
        parts += [
            f"## {n} labels",
            f"{count(n_draws, 'draw')} on {n_sets}: a share of 5 % is known to about ±{known}.",
            markdown_table(*evidence_table(summary, n), numbers_from=1),
            f"{EACH_DATASET}:",
            markdown_table(*evidence_by_dataset(summary, n), numbers_from=1),
        ]
    return "\n\n".join(parts) + "\n"


def markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return a table; columns from `numbers_from` on are aligned to the right."""
    n_left = len(head) if numbers_from is None else numbers_from
    rule = ["---"] * n_left + ["---:"] * (len(head) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
