"""From the records of all repeats to the numbers of the paper's figures and table, and to words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from neverworse._typing import AnyArray, Vector
from neverworse._words import count, number
from neverworse.experiments._experiments import BASELINE, MOST_QUESTIONS
from neverworse.experiments._methods import Protocol, counterpart

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

BETTER, WORSE = "better", "worse"
LEVEL = 0.05  # family-wise
ROUNDING = 1e-9  # relative differences of losses below this are rounding errors
# Standard deviation of the rounding error of published means, which have two decimals.
PUBLISHED_ROUNDING = 0.005 / np.sqrt(3.0)
PUBLISHED_REPEATS = 20
WITHIN = 3.0  # standard errors
COUNTED = {"robustness": "resamplings", "table": "folds of the cross-validation"}
TOTALS = "Win / draw / loss"
MIN_REPEATS = 11  # with fewer, no p-value is small enough, even of equal differences
ABOUT_EVIDENCE = """\
The labels of each data set are hidden at random, except for 40, 100 or 200 of them, and all methods
are compared on the unlabeled rows with a baseline: least squares with a penalty chosen by
leave-one-out. Ratios are those of Brier scores and errors to the baseline's. “Worse” is the share
of repeats in which the Brier score is higher than the baseline's, “more errors” the share in which
the error is; “asked” are new labels. All numbers are means over {repeats}, and then over data sets.
A sequential audit compares the candidate that cross-validation picks with the baseline, with at
most {most} new labels."""


@cache
def published() -> dict[str, Any]:
    """Return Table 1 and other numbers of the paper, with their source."""
    content = files("neverworse.experiments").joinpath("published.json").read_text("utf-8")
    return json.loads(content)


def tidy(results: dict[str, Any]) -> pd.DataFrame:
    """Return the records of an experiment as a table: a row for each measurement."""
    return pd.DataFrame(
        [
            {"dataset": dataset, "repeat": repeat, **record}
            for dataset, repeats in results.items()
            for repeat, records in repeats.items()
            for record in records
        ]
    )


def ratios(
    measurements: pd.DataFrame, column: str, by: list[str], baseline: str | None = None
) -> pd.DataFrame:
    """Return a column relative to that of the supervised counterpart, or of one baseline for all.

    The columns `by` identify a fit of a method. The result is in a new column, "ratio".
    """
    other = measurements["method"].map(lambda name: baseline or counterpart(name))
    reference = measurements.set_index([*by, "method"])[column].rename("reference")
    paired = measurements.assign(counterpart=other)[other != measurements["method"]]
    paired = paired.join(reference, on=[*by, "counterpart"])
    return paired.assign(ratio=paired[column] / paired["reference"])


def robustness(measurements: pd.DataFrame) -> pd.DataFrame:
    """Summarise losses relative to the supervised counterparts, for training and for test "rows".

    "higher" is the number of repeats in which the ratio exceeds 1 by more than rounding errors.
    """
    parts = []
    for rows in ("training", "test"):
        found = ratios(measurements, f"{rows}_loss", ["dataset", "repeat"])
        summary = found.groupby(["dataset", "method"], sort=False)["ratio"].agg(
            median="median",
            worst="max",
            higher=lambda ratio: int((ratio > 1.0 + ROUNDING).sum()),
            repeats="count",
        )
        parts.append(summary.reset_index().assign(rows=rows))
    return pd.concat(parts, ignore_index=True)


def curves(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error over repeats of error and loss, for each size and method."""
    long = measurements.melt(
        ["dataset", "repeat", "method", "n_unlabeled"], ["error", "test_loss"], "measure"
    )
    grouped = long.groupby(["dataset", "measure", "method", "n_unlabeled"], sort=False)["value"]
    return grouped.agg(mean="mean", standard_error="sem").reset_index()


def ends(summary: pd.DataFrame) -> pd.DataFrame:
    """Return for each learning curve its lowest mean and its last one, with numbers of rows."""
    keys = ["dataset", "measure", "method"]
    curves = summary.groupby(keys, sort=False)
    lowest = summary.loc[curves["mean"].idxmin(), [*keys, "n_unlabeled", "mean"]]
    last = summary.loc[curves["n_unlabeled"].idxmax()]
    return last.merge(lowest, on=keys, suffixes=("", "_lowest"))


def errors_of_repeats(measurements: pd.DataFrame, protocol: Protocol) -> pd.DataFrame:
    """Return the cross-validation error of each repeat, with a column for each method."""
    weights = measurements["n_test"] if protocol.pooled_folds else 1.0
    weighted = measurements.assign(error=measurements["error"] * weights, weight=weights)
    sums = weighted.groupby(["dataset", "repeat", "method"], sort=False)[["error", "weight"]].sum()
    return (sums["error"] / sums["weight"]).unstack("method")


def table(
    measurements: pd.DataFrame, protocol: Protocol, correction: str = "bonferroni"
) -> pd.DataFrame:
    """Return the cells of Table 1, with p-values and a "mark": "better", "worse" or "".

    Tests are corrected for all data sets and methods of the paper, whichever of them were run,
    since marks are compared with published ones. Better and worse are one family each.
    """
    cells = []
    for dataset, errors in errors_of_repeats(measurements, protocol).groupby("dataset", sort=False):
        for name in measurements["method"].unique():
            own = errors[name]
            # Without rounding errors of means of ten fractions.
            differences = np.round(own - errors[counterpart(name)], 12).to_numpy()
            less, greater = (signed_rank(differences, side) for side in ("less", "greater"))
            cells.append((dataset, name, own.mean(), own.std(), len(own), less, greater))
    columns = ["dataset", "method", "mean", "sd", "repeats", "p_less", "p_greater"]
    found = pd.DataFrame(cells, columns=columns).assign(mark="")
    tested = found.index[found["method"].map(is_tested)]
    for column, mark in (("p_less", BETTER), ("p_greater", WORSE)):
        rejected = reject(found.loc[tested, column].to_list(), correction, n_tests())
        found.loc[tested[rejected], "mark"] = mark
    return found


def is_tested(method: str) -> bool:
    """Return whether Table 1 compares a method with its supervised counterpart."""
    return method not in (counterpart(method), "Oracle")


def n_tests() -> int:
    """Return how many tests the published table has in each direction."""
    return sum(is_tested(method) for row in published()["table"].values() for method in row)


def compare_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Add to each published cell the published numbers and "z", the difference in standard errors.

    These are the standard errors of both means and of rounding; "agrees" is within three of them.
    """
    rows = {name: pd.DataFrame(row).T for name, row in published()["table"].items()}
    theirs = pd.concat(rows, names=["dataset", "method"]).infer_objects().add_prefix("published_")
    compared = cells.join(theirs, on=["dataset", "method"], how="inner")
    compared = compared.rename(columns={"published_mean": "published"})
    compared["difference"] = compared["mean"] - compared["published"]
    variance = (
        compared["sd"] ** 2 / compared["repeats"]
        + compared["published_sd"] ** 2 / PUBLISHED_REPEATS
        + PUBLISHED_ROUNDING**2
    )
    compared["z"] = compared["difference"] / np.sqrt(variance)
    compared["agrees"] = compared["z"].abs() <= WITHIN
    return compared


def count_marks(cells: pd.DataFrame, column: str = "mark") -> dict[str, tuple[int, int, int]]:
    """Return for each method on how many data sets it is better, no different, and worse."""
    tested = cells[cells["method"].map(is_tested)]
    places = {"index": tested["method"].unique(), "columns": [BETTER, "", WORSE]}
    counts = pd.crosstab(tested["method"], tested[column]).reindex(**places, fill_value=0)
    return dict(zip(counts.index, counts.itertuples(index=False, name=None), strict=True))


def timing(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the training time relative to the supervised counterpart, and in seconds."""
    relative = ratios(measurements, "seconds", ["dataset", "repeat", "n_unlabeled"])
    grouped = relative.groupby(["method", "n_unlabeled"], sort=False)
    return grouped.agg(
        ratio=("ratio", "mean"),
        standard_error=("ratio", "sem"),
        seconds=("seconds", "median"),
        repeats=("ratio", "count"),
    ).reset_index()


def guarantee(measurements: pd.DataFrame) -> dict[str, int]:
    """Count the fits in which the projection has a higher loss on training rows.

    "higher" compares it with the weights that were projected, as the theorem does, and exactly;
    "higher_than_supervised" with the classifier Supervised, beyond rounding errors: that has other
    weights if a pseudo-inverse with a cut-off is centred on other rows.
    """
    by = [name for name in ("dataset", "repeat", "fold") if name in measurements]
    found = ratios(measurements, "training_loss", by).query("method == 'Projection'")
    return {
        "fits": len(found),
        "higher": int((found["training_loss"] > found["own_supervised_loss"]).sum()),
        "higher_than_supervised": int((found["ratio"] > 1.0 + ROUNDING).sum()),
    }


def evidence(measurements: pd.DataFrame) -> pd.DataFrame:
    """Compare every method with the baseline, for each number of labels and data set.

    The result has means over repeats of the ratios, and the shares of repeats in which Brier score
    ("worse") and error ("more_errors") are higher. The data set "mean" is the mean over all others.
    """
    by = ["dataset", "repeat", "n_labeled"]
    # If neither has errors, the ratio is 1.
    measured = measurements.assign(error=measurements["error"] + 1e-12)
    numbers = ratios(measured, "brier", by, BASELINE).rename(columns={"ratio": "brier_ratio"})
    numbers["error_ratio"] = ratios(measured, "error", by, BASELINE)["ratio"]
    numbers["worse"] = numbers["brier_ratio"] > 1.0 + ROUNDING
    numbers["more_errors"] = numbers["error_ratio"] > 1.0
    keys = ["n_labeled", "method", "dataset"]
    wanted = ["brier_ratio", "worse", "error_ratio", "more_errors", "asked"]
    each = numbers.groupby(keys, sort=False)[wanted].mean()
    means = each.groupby(keys[:2], sort=False).mean()
    means = pd.concat({"mean": means}, names=["dataset"]).reorder_levels(keys)
    return pd.concat([each, means]).reset_index()


def signed_rank(differences: Vector, side: str) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, as in the paper: asymptotic, no zeros."""
    if not differences.any():
        return 1.0
    found = stats.wilcoxon(differences, correction=True, alternative=side, method="asymptotic")
    return float(found.pvalue)


def reject(p_values: Sequence[float], correction: str, n_hypotheses: int) -> AnyArray:
    """Return which hypotheses are rejected at the family-wise level 0.05."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    # Holm, from the smallest p-value on: those that are rejected do not count any more.
    n_left = n_hypotheses - (np.arange(len(p)) if correction == "holm" else 0)
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(p[order] <= LEVEL / n_left)
    return rejected


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
    theirs, same = count_marks(cells, "published_mark"), "no different"
    differ = cells[cells["mark"] != cells["published_mark"]]
    found = []
    for method, ours in count_marks(cells).items():
        named = [
            f"{cell.dataset} (ours: {cell.mark or same}, published: {cell.published_mark or same})"
            for cell in differ[differ["method"] == method].itertuples()
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


def about_evidence(measurements: pd.DataFrame) -> str:
    return ABOUT_EVIDENCE.format(repeats=n_repeats(measurements), most=MOST_QUESTIONS)


def evidence_tables(summary: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield captions and tables: for each number of labels, means, and ratios on each data set."""
    for n, part in summary.groupby("n_labeled", sort=False):
        is_mean = part["dataset"] == "mean"
        means = part[is_mean].drop(columns=["dataset", "n_labeled"])
        n_sets = part.loc[~is_mean, "dataset"].nunique()
        yield f"{n} labels: means over {count(n_sets, 'data set')}", means
        each = part.set_index(["dataset", "method"])["brier_ratio"].unstack(sort=False)
        yield f"{n} labels: ratio of Brier scores on each data set", each.reset_index()


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
