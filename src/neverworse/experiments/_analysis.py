"""From the records of all repeats to the numbers of the paper's figures and table."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from neverworse.experiments._methods import METHODS
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._published import published
from neverworse.experiments._statistics import reject, signed_rank, standard_error

BETTER, WORSE = "better", "worse"
# Losses of models that were fitted apart are equal if they differ by less than this fraction.
ROUNDING = 1e-9


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


def ratios(measurements: pd.DataFrame, column: str, by: list[str]) -> pd.DataFrame:
    """Return a measured column of each method relative to its supervised counterpart.

    Parameters
    ----------
    measurements : DataFrame
        As `tidy` returns it.
    column : str
    by : list of str
        Columns that tell one fit of a method from the others.

    Returns
    -------
    ratios : DataFrame
        The columns `by`, "method" and "ratio", without the counterparts themselves.
    """
    counterpart = measurements["method"].map(lambda name: METHODS[name].counterpart)
    methods = measurements.assign(counterpart=counterpart)[counterpart != measurements["method"]]
    reference = measurements[[*by, "method", column]].rename(
        columns={"method": "counterpart", column: "reference"}
    )
    paired = methods.merge(reference, on=[*by, "counterpart"])
    paired["ratio"] = paired[column] / paired["reference"]
    return paired[[*by, "method", "ratio"]]


def robustness(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return for each data set and method how the loss compares with the supervised counterpart's.

    Returns
    -------
    summary : DataFrame
        Columns "dataset", "method", "rows" (training or test), "median", "worst" and "higher": the
        median and the largest ratio of losses, and the number of repeats in which it exceeds 1 by
        more than rounding errors. "repeats" says of how many.
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
    return grouped.agg(
        mean="mean", standard_error=lambda values: standard_error(values.to_numpy())
    ).reset_index()


def errors_of_repeats(measurements: pd.DataFrame, protocol: Protocol) -> pd.DataFrame:
    """Return the cross-validation error of each repeat, with a column for each method."""
    weights = measurements["n_test"] if protocol.pooled_folds else 1.0
    weighted = measurements.assign(error=measurements["error"] * weights, weight=weights)
    sums = weighted.groupby(["dataset", "repeat", "method"], sort=False)[["error", "weight"]].sum()
    return (sums["error"] / sums["weight"]).unstack("method")


def table(
    measurements: pd.DataFrame, protocol: Protocol, correction: str = "bonferroni"
) -> pd.DataFrame:
    """Return the cells of Table 1.

    Parameters
    ----------
    measurements : DataFrame
        As `tidy` returns it.
    protocol : Protocol
    correction : {"bonferroni", "holm"}
        For testing all data sets and methods of the paper, whatever is measured here: marks are
        compared with published ones. Better and worse are one family each, as in the paper.

    Returns
    -------
    cells : DataFrame
        Columns "dataset", "method", "mean", "sd", "repeats", "p_less", "p_greater" and "mark":
        "better" or "worse" than the supervised counterpart, or "".
    """
    values = errors_of_repeats(measurements, protocol)
    cells = []
    for dataset in measurements["dataset"].unique():
        errors = values.loc[dataset]
        for name in measurements["method"].unique():
            column, reference = errors[name], errors[METHODS[name].counterpart]
            # Means of ten fractions that are equal but for rounding are equal.
            differences = np.round(column - reference, 12).to_numpy()
            cells.append(
                {
                    "dataset": dataset,
                    "method": name,
                    "mean": column.mean(),
                    "sd": column.std(ddof=1),
                    "repeats": len(column),
                    "p_less": signed_rank(differences, "less"),
                    "p_greater": signed_rank(differences, "greater"),
                }
            )
    return _with_marks(pd.DataFrame(cells), correction)


def _with_marks(cells: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Add the outcomes of the tests."""
    tested = cells["method"].map(is_tested)
    cells["mark"] = ""
    for column, mark in (("p_less", BETTER), ("p_greater", WORSE)):
        rejected = reject(cells.loc[tested, column].to_list(), correction, n_tests())
        cells.loc[cells.index[tested][rejected], "mark"] = mark
    return cells


def is_tested(method: str) -> bool:
    """Return whether Table 1 compares a method with its supervised counterpart."""
    return METHODS[method].counterpart != method and method != "Oracle"


@cache
def n_tests() -> int:
    """Return how many tests the published table has in each direction."""
    return sum(is_tested(method) for row in published()["table"].values() for method in row)


def totals(cells: pd.DataFrame) -> dict[str, tuple[int, int, int]]:
    """Return for each method on how many data sets it is better, no different, and worse."""
    counts = {}
    for name in cells["method"].unique():
        if is_tested(name):
            marks = cells.loc[cells["method"] == name, "mark"]
            won, lost = int((marks == BETTER).sum()), int((marks == WORSE).sum())
            counts[name] = (won, len(marks) - won - lost, lost)
    return counts


def timing(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error of the training time relative to the supervised counterpart.

    Also the median of the seconds that it took.
    """
    by = ["dataset", "repeat", "n_unlabeled"]
    relative = ratios(measurements, "seconds", by)
    relative = relative.merge(measurements, on=[*by, "method"])
    grouped = relative.groupby(["method", "n_unlabeled"], sort=False)
    return grouped.agg(
        ratio=("ratio", "mean"),
        standard_error=("ratio", lambda ratio: standard_error(ratio.to_numpy())),
        seconds=("seconds", "median"),
        repeats=("ratio", "count"),
    ).reset_index()


def guarantee(measurements: pd.DataFrame) -> dict[str, Any]:
    """Return how often the projection has a higher loss on training rows than supervised weights.

    Returns
    -------
    counts : dict
        "fits"; "higher" and "largest_ratio" are about the supervised weights that were projected,
        of which the theorem speaks, and count every bit; "higher_than_supervised" and
        "largest_ratio_to_supervised" are about the classifier Supervised, beyond rounding errors.
        That has other weights where a pseudo-inverse with a cut-off is centred on other rows.
    """
    by = [name for name in ("dataset", "repeat", "fold") if name in measurements]
    chosen = measurements[measurements["method"] == "Projection"]
    own = chosen["training_loss"] / chosen["own_supervised_loss"]
    found = ratios(measurements, "training_loss", by)
    other = found.loc[found["method"] == "Projection", "ratio"]
    return {
        "fits": len(own),
        "higher": int((own > 1.0).sum()),
        "largest_ratio": float(own.max()),
        "higher_than_supervised": int((other > 1.0 + ROUNDING).sum()),
        "largest_ratio_to_supervised": float(other.max()),
    }
