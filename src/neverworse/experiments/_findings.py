"""The results in words, and whether the claims of the paper's text agree with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
)
from neverworse.experiments._experiments import MOST_QUESTIONS

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

MARKS = {"better": "better", "worse": "worse", "": "no different"}
COUNTED = {"robustness": "resamplings", "table": "folds of the cross-validation"}
NO_BREAK = "\N{NO-BREAK SPACE}"
TOTALS = "Win / draw / loss"
# On this data set, errors are known to be lower than published.
EXCEPTION = "Mammography"


def headline(results: Reproduction) -> Iterator[tuple[str, list[str], bool | None]]:
    """Yield the main results: a title, sentences, and whether the result is good (or None)."""
    if results.guarantees:
        holds = not any(counts["higher"] for counts in results.guarantees.values())
        title = "The guarantee holds." if holds else "The guarantee is violated."
        yield title, list(guarantee_sentences(results.guarantees)), holds
    cells = results.summaries.get("table")
    if cells is not None:
        far = _far(cells)
        known = is_known_exception(far).all() if len(far) else np.isnan(cells["z"]).all()
        yield "Table 1", [agreement_sentence(cells)], None if known else far.empty
        found, few = wins(cells), too_few_repeats(cells)
        counts = (f"{method} {ours} (published: {theirs})" for method, ours, theirs, _ in found)
        totals = ", ".join(text.replace(" ", NO_BREAK) for text in counts)
        same = not few and all(differ == "none" for *_, differ in found)
        yield TOTALS, [f"{totals}.", *([few] if few else [])], same or None
    if "curves" in results.measurements:
        yield "Learning curves", [claims_sentence(results.measurements["curves"])], None
    if "evidence" in results.measurements:
        pair = results.measurements["evidence"], results.summaries["evidence"]
        yield "Evidence", [evidence_sentence(*pair)], None


def guarantee_sentences(guarantees: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield how often the projection's loss on labeled and unlabeled rows was not higher."""
    for name, counts in guarantees.items():
        n_fits, paper = int(counts["fits"]), published()["guarantees"][name]
        own, other = (n_fits - int(counts[key]) for key in ("higher", "higher_than_supervised"))
        yield (
            f"{own} of {n_fits} {COUNTED[name]}: the loss of Projection on labeled and unlabeled "
            "rows is not higher than that of the supervised weights that it projects, which the "
            "theorem is about. Compared with the classifier Supervised, whose weights may differ "
            f"from those: {other} of {n_fits}; in the published run, "
            f"{paper['fits'] - paper['higher']} of {paper['fits']}."
        )


def _far(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of Table 1 that differ from the published ones."""
    return cells[cells["z"].abs() > WITHIN]


def agreement_sentence(cells: pd.DataFrame) -> str:
    """Count the cells of Table 1 that agree with the published ones, and name the others."""
    n_compared, far = int(cells["z"].notna().sum()), _far(cells)
    if not n_compared:
        return "With a single repeat there are no standard errors to compare Table 1 by."
    names = [
        f"{dataset} ({', '.join(part['method'])})"
        for dataset, part in far.groupby("dataset", sort=False)
    ]
    return (
        f"{n_compared - len(far)} of {n_compared} cells of Table 1 are within three standard "
        f"errors of the published ones{'; not those of ' if names else ''}{', '.join(names)}."
    )


def is_known_exception(cells: pd.DataFrame) -> pd.Series:
    """Return for each cell whether it differs in the one way that is known."""
    return (cells["dataset"] == EXCEPTION) & (cells["z"] < -WITHIN)


def wins(cells: pd.DataFrame) -> list[list[str]]:
    """Return for each method its wins, draws and losses, those published, and what differs."""
    theirs = count_marks(cells, "published_mark")
    differ = cells[cells["mark"] != cells["published_mark"]]
    found = []
    for method, ours in count_marks(cells).items():
        named = [
            f"{cell['dataset']} (ours: {MARKS[cell['mark']]}, "
            f"published: {MARKS[cell['published_mark']]})"
            for cell in differ[differ["method"] == method].to_dict(orient="records")
        ]
        found.append([method, as_text(ours), as_text(theirs[method]), ", ".join(named) or "none"])
    return found


def as_text(counts: tuple[int, int, int]) -> str:
    """Return wins, draws and losses as the paper writes them."""
    return " / ".join(map(str, counts))


def too_few_repeats(cells: pd.DataFrame) -> str | None:
    """Return a warning if no test could reject anything, whatever was measured."""
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
RESOLUTION = 0.01  # effects of this size must be detectable before none is confirmed
LITTLE = 0.25  # losses differ little: by less than this share of what is gained on Supervised
MEASURES = {"error": "error", "loss": "test_loss"}
METHODS = ("Self-Learning", "ICLS", "Projection")
# The sign of the claimed change, and whether there is such a change or none.
VERBS = {
    "rises again for many unlabeled rows": (+1, True),
    "keeps falling": (-1, True),
    "does not rise": (+1, False),
    "is lower than that of": (-1, True),
    "is not lower than that of": (-1, False),
}
# Data set, measure, method, verb, and the other method at the largest number of unlabeled rows, or
# none to compare the method with itself at the size from which on its error no longer falls.
CLAIMS = (
    ("Ionosphere", "error", "Self-Learning", "rises again for many unlabeled rows", ""),
    ("Ionosphere", "loss", "Self-Learning", "keeps falling", ""),
    ("Ionosphere", "error", "ICLS", "does not rise", ""),
    ("Ionosphere", "error", "Projection", "does not rise", ""),
    ("SPECT", "error", "Self-Learning", "is not lower than that of", "Supervised"),
    ("SPECT", "error", "Projection", "is not lower than that of", "Supervised"),
    ("SPECT", "error", "ICLS", "is lower than that of", "Supervised"),
    *(("USPS", m, one, "is lower than that of", "Supervised") for m in MEASURES for one in METHODS),
    *(
        ("USPS", m, "Self-Learning", "is lower than that of", one)
        for m in MEASURES
        for one in METHODS[1:]
    ),
)


@dataclass(frozen=True)
class Claim:
    """A claim, the numbers that it is checked by, and the outcome."""

    dataset: str
    text: str
    evidence: object
    verdict: Verdict


class Change:
    """The difference of two means over the same repeats.

    Its standard error is that of paired differences; it is NaN for a single repeat, which decides
    nothing. The ribbons of the figure do not overlap if the means differ by more than `ribbons`.
    """

    def __init__(self, before: pd.Series, after: pd.Series, where: str = "") -> None:
        self.before, self.after = before.mean(), after.mean()
        self.difference = self.after - self.before
        self.standard_error = (after - before).sem()
        self.ribbons = BAND * (before.sem() + after.sem())
        self.where = where

    def is_effect(self, sign: int) -> Verdict:
        """Judge the claim that the difference has a sign."""
        distance, margin = sign * self.difference, SURE * self.standard_error
        return "agrees" if distance > margin else "differs" if distance < -margin else "undecided"

    def is_none(self, sign: int) -> Verdict:
        """Judge the claim that the figure shows no difference of that sign."""
        if sign * self.difference > self.ribbons and self.is_effect(sign) == "agrees":
            return "differs"
        would_be_seen = SURE * self.standard_error <= RESOLUTION
        return "agrees" if would_be_seen or self.is_effect(-sign) == "agrees" else "undecided"

    def __str__(self) -> str:
        text = f"{self.before:.4f} → {self.after:.4f}, by {self.difference:+.4f}"
        if np.isfinite(self.standard_error):
            text += f" ± {self.standard_error:.4f}"
        return self.where + text.replace("-", MINUS)


def check(measurements: pd.DataFrame) -> list[Claim]:
    """Check all claims about data sets whose learning curves were measured."""
    checked = []
    for dataset, part in measurements.groupby("dataset", sort=False):
        by = ["method", "n_unlabeled"]
        curves = part.pivot(index="repeat", columns=by, values=list(MEASURES.values()))
        curves = curves.sort_index(axis="columns")
        for _, measure, method, verb, other in (claim for claim in CLAIMS if claim[0] == dataset):
            sign, is_effect = VERBS[verb]
            change = _change(curves, MEASURES[measure], method, other)
            verdict = change.is_effect(sign) if is_effect else change.is_none(sign)
            text = f"The {measure} of {method} {verb} {other}".strip()
            checked.append(Claim(str(dataset), f"{text}.", change, verdict))
        if dataset == "Ionosphere":
            checked.append(_little_difference(curves))
    return checked


def _change(curves: pd.DataFrame, column: str, method: str, other: str) -> Change:
    """Compare a method with another one, or with itself from where its error is lowest.

    Choosing that size by the error favours a rise; three standard errors allow for a choice among
    ten sizes.
    """
    last = curves.columns.get_level_values("n_unlabeled").max()
    after = curves[column, method, last]
    if not other:
        lowest = curves["error", method].mean().drop(last).idxmin()
        return Change(curves[column, method, lowest], after, f"{lowest} → {last} unlabeled rows: ")
    names = "" if other == "Supervised" else f", {other} → {method}"
    return Change(curves[column, other, last], after, f"{last} unlabeled rows{names}: ")


def _little_difference(curves: pd.DataFrame) -> Claim:
    """Judge whether losses differ little, compared with what they gain on Supervised."""
    changes = {one: _change(curves, "test_loss", one, "Supervised") for one in METHODS}
    gains = {one: -change.difference for one, change in changes.items()}
    most, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    spread = _change(curves, "test_loss", least, most)
    margin, little = SURE * spread.standard_error, LITTLE * gains[most]
    verdict: Verdict = "undecided"
    if spread.difference + margin <= little:
        verdict = "agrees"
    elif spread.difference - margin > little:
        verdict = "differs"
    where = changes[most].where.removesuffix(": ")
    lower = ", ".join(f"{gain:.4f} ({one})" for one, gain in gains.items())
    text = "In the loss there is little difference between the three."
    return Claim("Ionosphere", text, f"{where}, lower than Supervised by {lower}", verdict)


def claims_sentence(measurements: pd.DataFrame) -> str:
    """Count the claims about learning curves that agree, and quote those that differ."""
    claims = check(measurements)
    found = Counter(claim.verdict for claim in claims)
    sentence = (
        f"{len(claims)} statements of the paper about learning curves were checked. Agree: "
        f"{found['agrees']}, differ: {found['differs']}, undecided: {found['undecided']}."
    )
    differ = [f"{c.dataset}: “{c.text}”" for c in claims if c.verdict == "differs"]
    return f"{sentence} Those that differ: {' '.join(differ)}" if differ else sentence


# The evidence experiment, beyond the paper

ABOUT = """\
The labels of each data set are hidden at random, except for 40, 100 or 200 of them, and all methods
are compared on the unlabeled rows with a baseline: least squares with a penalty chosen by
leave-one-out. Ratios are those of Brier scores and errors to the baseline's. “Worse” is the share
of repeats in which the Brier score is higher than the baseline's, “more errors” the share in which
the error is. All numbers are means over {repeats}, and then over data sets. A sequential audit
compares the candidate that cross-validation picks with the baseline, with at most {most} new
labels."""
EVIDENCE = {
    "Brier score, relative": "{0.brier_ratio:.3f}",
    "worse": "{0.worse:.1%}",
    "errors, relative": "{0.error_ratio:.3f}",
    "more errors": "{0.more_errors:.1%}",
    "new labels": "{0.asked:.0f}",
}
Table = tuple[str, list[str], list[list[str]]]  # a caption, the head, and the rows


def about_evidence(measurements: pd.DataFrame) -> str:
    repeats = count(measurements["repeat"].nunique(), "repeat")
    return ABOUT.format(repeats=repeats, most=MOST_QUESTIONS)


def evidence_tables(
    measurements: pd.DataFrame, summary: pd.DataFrame
) -> Iterator[tuple[str, list[Table]]]:
    """Yield for each number of labels a title, and the tables of means and of all data sets."""
    for n, part in summary.groupby("n_labeled", sort=False):
        drawn = measurements[measurements["n_labeled"] == n]
        n_draws = len(drawn[["dataset", "repeat"]].drop_duplicates())
        known = percent(1.96 * float(np.sqrt(0.05 * 0.95 / n_draws)))
        n_sets = count(drawn["dataset"].nunique(), "data set")
        means = [
            [one.method, *(form.format(one) for form in EVIDENCE.values())]
            for one in part[part["dataset"] == "mean"].itertuples()
        ]
        each = [
            [name, *(f"{one.brier_ratio:.3f} ({percent(one.worse)})" for one in cells.itertuples())]
            for name, cells in part.groupby("dataset", sort=False)
        ]
        draws = f"Means over {count(n_draws, 'draw')} on {n_sets}"
        ratios = "Relative Brier score on each data set (share of repeats in which it is worse)"
        tables = [
            (f"{draws} (a share of 5 % is known to ±{known})", ["method", *EVIDENCE], means),
            (ratios, ["data set", *part["method"].unique()], each),
        ]
        yield f"{n} labels", tables


def evidence_sentence(measurements: pd.DataFrame, summary: pd.DataFrame) -> str:
    means = summary[(summary["dataset"] == "mean") & (summary["method"] == "safe stacking")]
    parts = [
        f"with {one.n_labeled} labels {one.brier_ratio:.3f} of the baseline's, and higher in "
        f"{one.worse:.1%} of the repeats"
        for one in means.itertuples()
    ]
    repeats = count(measurements["repeat"].nunique(), "repeat")
    n_sets = count(measurements["dataset"].nunique(), "data set")
    return f"Brier score of safe stacking, {repeats} on {n_sets}: {'; '.join(parts)}."


def evidence_page(measurements: pd.DataFrame, summary: pd.DataFrame, made: dict[str, Any]) -> str:
    """Return all tables as a page of Markdown, with what they depend on."""
    parts = [
        "# What evidence is worth",
        about_evidence(measurements),
        "Written by `neverworse reproduce evidence`:",
        "\n".join(f"- {title}: {text}" for title, text in made.items()),
    ]
    for title, tables in evidence_tables(measurements, summary):
        parts.append(f"## {title}")
        for caption, head, rows in tables:
            parts += [f"{caption}:", markdown_table(head, rows, numbers_from=1)]
    return "\n\n".join(parts) + "\n"


def markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return a table; columns from `numbers_from` on are aligned to the right."""
    n_left = len(head) if numbers_from is None else numbers_from
    rule = ["---"] * n_left + ["---:"] * (len(head) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
