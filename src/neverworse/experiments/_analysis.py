"""From the records of all repeats to the numbers of the paper's figures and table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from neverworse._typing import AnyArray, Vector
from neverworse.experiments._experiments import BASELINE
from neverworse.experiments._methods import METHODS, Protocol

BETTER, WORSE = "better", "worse"
LEVEL = 0.05  # family-wise
ROUNDING = 1e-9  # relative differences of losses below this are rounding errors
# Standard deviation of the rounding error of published means, which have two decimals.
PUBLISHED_ROUNDING = 0.005 / np.sqrt(3.0)
PUBLISHED_REPEATS = 20
WITHIN = 3.0  # standard errors


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

    The columns `by` identify a fit of a method; the result has these, "method" and "ratio".
    """
    counterpart = measurements["method"].map(lambda name: baseline or METHODS[name].counterpart)
    methods = measurements.assign(counterpart=counterpart)[counterpart != measurements["method"]]
    reference = measurements[[*by, "method", column]].rename(
        columns={"method": "counterpart", column: "reference"}
    )
    paired = methods.merge(reference, on=[*by, "counterpart"])
    paired["ratio"] = paired[column] / paired["reference"]
    return paired[[*by, "method", "ratio"]]


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
            # Without rounding errors of means of ten fractions.
            differences = np.round(errors[name] - errors[METHODS[name].counterpart], 12).to_numpy()
            cells.append(
                {
                    "dataset": dataset,
                    "method": name,
                    "mean": errors[name].mean(),
                    "sd": errors[name].std(),
                    "repeats": len(errors),
                    "p_less": signed_rank(differences, "less"),
                    "p_greater": signed_rank(differences, "greater"),
                }
            )
    found = pd.DataFrame(cells).assign(mark="")
    tested = found.index[found["method"].map(is_tested)]
    for column, mark in (("p_less", BETTER), ("p_greater", WORSE)):
        rejected = reject(found.loc[tested, column].to_list(), correction, n_tests())
        found.loc[tested[rejected], "mark"] = mark
    return found


def is_tested(method: str) -> bool:
    """Return whether Table 1 compares a method with its supervised counterpart."""
    return METHODS[method].counterpart != method and method != "Oracle"


@cache
def n_tests() -> int:
    """Return how many tests the published table has in each direction."""
    return sum(is_tested(method) for row in published()["table"].values() for method in row)


def compare_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Add to each published cell the published numbers and "z", the difference in standard errors.

    These are the standard errors of both means and of rounding; "agrees" is within three of them.
    """
    theirs = pd.DataFrame(
        [
            {"dataset": dataset, "method": method}
            | {f"published_{name}": value for name, value in cell.items()}
            for dataset, row in published()["table"].items()
            for method, cell in row.items()
        ]
    ).rename(columns={"published_mean": "published"})
    compared = cells.merge(theirs, on=["dataset", "method"])
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
    counts = {}
    tested = cells[cells["method"].map(is_tested)]
    for name, marks in tested.groupby("method", sort=False)[column]:
        won, lost = int((marks == BETTER).sum()), int((marks == WORSE).sum())
        counts[name] = (won, len(marks) - won - lost, lost)
    return counts


def timing(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the training time relative to the supervised counterpart, and in seconds."""
    by = ["dataset", "repeat", "n_unlabeled"]
    relative = ratios(measurements, "seconds", by)
    relative = relative.merge(measurements, on=[*by, "method"])
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
    chosen = measurements[measurements["method"] == "Projection"]
    found = ratios(measurements, "training_loss", by)
    other = found.loc[found["method"] == "Projection", "ratio"]
    return {
        "fits": len(chosen),
        "higher": int((chosen["training_loss"] > chosen["own_supervised_loss"]).sum()),
        "higher_than_supervised": int((other > 1.0 + ROUNDING).sum()),
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
    numbers = numbers.merge(measurements[[*by, "method", "asked"]], on=[*by, "method"])
    keys = ["n_labeled", "method", "dataset"]
    wanted = ["brier_ratio", "worse", "error_ratio", "more_errors", "asked"]
    each = numbers.groupby(keys, sort=False)[wanted].mean()
    means = each.groupby(keys[:2], sort=False).mean()
    means = pd.concat({"mean": means}, names=["dataset"]).reorder_levels(keys)
    return pd.concat([each, means]).reset_index()


def signed_rank(differences: Vector, alternative: Literal["less", "greater"]) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, as in the paper: asymptotic, no zeros."""
    differences = differences[differences != 0.0]
    if not len(differences):
        return 1.0
    return float(
        stats.wilcoxon(
            differences,
            alternative=alternative,
            zero_method="wilcox",
            correction=True,
            method="asymptotic",
        ).pvalue
    )


def reject(p_values: Sequence[float], correction: str, n_hypotheses: int) -> AnyArray:
    """Return which hypotheses are rejected at the family-wise level 0.05."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    # Holm, from the smallest p-value on: those that are rejected do not count any more.
    n_left = n_hypotheses - (np.arange(len(p)) if correction == "holm" else 0)
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(p[order] <= LEVEL / n_left)
    return rejected
