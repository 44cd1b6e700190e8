"""The results in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from neverworse._words import count, number
from neverworse.experiments._analysis import WITHIN, count_marks, n_tests, published
from neverworse.experiments._experiments import MOST_QUESTIONS

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

MARKS = {"better": "better", "worse": "worse", "": "no different"}
COUNTED = {"robustness": "resamplings", "table": "folds of the cross-validation"}
TOTALS = "Win / draw / loss"
MIN_REPEATS = 11  # with fewer, no p-value is small enough, even of equal differences


def headline(results: Reproduction) -> Iterator[tuple[str, list[str], bool | None]]:
    """Yield the main results: a title, sentences, and whether the result is good (or None)."""
    if results.guarantees:
        holds = not any(counts["higher"] for counts in results.guarantees.values())
        title = "The guarantee holds." if holds else "The guarantee is violated."
        yield title, list(guarantee_sentences(results.guarantees)), holds
    cells = results.summaries.get("table")
    if cells is not None:
        yield "Table 1", [agreement_sentence(cells)], None
        totals = ", ".join(
            f"{name} {ours} (published: {paper})" for name, ours, paper, _ in wins(cells)
        )
        yield TOTALS, [f"{totals}.", *filter(None, [too_few_repeats(cells)])], None
    if "evidence" in results.measurements:
        pair = results.measurements["evidence"], results.summaries["evidence"]
        yield "Evidence", [evidence_sentence(*pair)], None


def guarantee_sentences(guarantees: dict[str, dict[str, int]]) -> Iterator[str]:
    """Yield how often the projection's loss on labeled and unlabeled rows was not higher."""
    for name, counts in guarantees.items():
        n_fits, paper = counts["fits"], published()["guarantees"][name]
        own, other = (n_fits - counts[key] for key in ("higher", "higher_than_supervised"))
        yield (
            f"{own} of {n_fits} {COUNTED[name]}: the loss of Projection on labeled and unlabeled "
            "rows is not higher than that of the supervised weights that it projects, which the "
            "theorem is about. Compared with the classifier Supervised, whose weights may differ "
            f"from those: {other} of {n_fits}; in the published run, "
            f"{paper['fits'] - paper['higher']} of {paper['fits']}."
        )


def agreement_sentence(cells: pd.DataFrame) -> str:
    """Count the cells of Table 1 that agree with the published ones, and name the others."""
    n_compared, far = int(cells["z"].notna().sum()), cells[cells["z"].abs() > WITHIN]
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


def too_few_repeats(cells: pd.DataFrame) -> str:
    """Return a warning if no test could reject anything, whatever was measured, or else nothing."""
    if cells["repeats"].min() >= MIN_REPEATS:
        return ""
    return (
        f"With fewer than {MIN_REPEATS} repeats and the {n_tests()} tests of the paper no "
        "difference can be significant: all are draws."
    )


def n_repeats(found: pd.DataFrame) -> str:
    """Return how many repeats measurements, or the cells of Table 1, have on each data set."""
    is_table = "repeats" in found
    counts = found["repeats"] if is_table else found.groupby("dataset")["repeat"].nunique()
    fewest, most = counts.min(), counts.max()
    return count(most, "repeat") if fewest == most else f"{fewest} to {most} repeats"


# The evidence experiment, beyond the paper

ABOUT = """\
The labels of each data set are hidden at random, except for 40, 100 or 200 of them, and all methods
are compared on the unlabeled rows with a baseline: least squares with a penalty chosen by
leave-one-out. Ratios are those of Brier scores and errors to the baseline's. “Worse” is the share
of repeats in which the Brier score is higher than the baseline's, “more errors” the share in which
the error is; “asked” are new labels. All numbers are means over {repeats}, and then over data sets.
A sequential audit compares the candidate that cross-validation picks with the baseline, with at
most {most} new labels."""


def about_evidence(measurements: pd.DataFrame) -> str:
    return ABOUT.format(repeats=n_repeats(measurements), most=MOST_QUESTIONS)


def evidence_tables(summary: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield captions and tables: for each number of labels, means, and ratios on each data set."""
    for n, part in summary.groupby("n_labeled", sort=False):
        is_mean = part["dataset"] == "mean"
        means = part[is_mean].drop(columns=["dataset", "n_labeled"])
        n_sets = part.loc[~is_mean, "dataset"].nunique()
        yield f"{n} labels: means over {count(n_sets, 'data set')}", means
        ratios = part.set_index(["dataset", "method"])["brier_ratio"].unstack(sort=False)
        yield f"{n} labels: ratio of Brier scores on each data set", ratios.reset_index()


def evidence_sentence(measurements: pd.DataFrame, summary: pd.DataFrame) -> str:
    means = summary[(summary["dataset"] == "mean") & (summary["method"] == "safe stacking")]
    parts = [
        f"with {one.n_labeled} labels {one.brier_ratio:.3f} of the baseline's, and higher in "
        f"{one.worse:.1%} of the repeats"
        for one in means.itertuples()
    ]
    return f"Brier score of safe stacking, {n_repeats(measurements)}: {'; '.join(parts)}."


def evidence_page(measurements: pd.DataFrame, summary: pd.DataFrame, made: dict[str, Any]) -> str:
    """Return all tables as a page of Markdown, with what they depend on."""
    parts = [
        "# What evidence is worth",
        about_evidence(measurements),
        "Written by `neverworse reproduce evidence`:",
        "\n".join(f"- {title}: {text}" for title, text in made.items()),
    ]
    for caption, table in evidence_tables(summary):
        parts += [f"## {caption}", markdown_table(list(table), list(numbers(table)))]
    return "\n\n".join(parts) + "\n"


def numbers(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the rows of a summary as text."""
    for row in summary.itertuples(index=False):
        yield [number(each) if isinstance(each, float) else str(each) for each in row]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
