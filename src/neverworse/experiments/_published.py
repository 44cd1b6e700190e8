"""What was published, and how far our numbers are from it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

# Published means have two decimals: a uniform error of half a unit in the last place.
ROUNDING = 0.005 / np.sqrt(3.0)
PUBLISHED_REPEATS = 20
WITHIN = 3.0  # standard errors


@cache
def published() -> dict[str, Any]:
    """Return Table 1 and other numbers of the paper, with their source."""
    content = files("neverworse.experiments").joinpath("published.json").read_text("utf-8")
    numbers: dict[str, Any] = json.loads(content)
    return numbers


def compare_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Put the published mean beside each cell, and the difference in standard errors.

    Parameters
    ----------
    cells : DataFrame
        As `neverworse.experiments._analysis.table` returns it.

    Returns
    -------
    compared : DataFrame
        The cells that were published, with the columns "published", "published_sd",
        "published_mark", "difference", "z" and "agrees": whether the difference is within three
        standard errors, of both means and of rounding.
    """
    rows = published()["table"]
    kept = [
        cell["method"] in rows.get(cell["dataset"], {}) for cell in cells.to_dict(orient="records")
    ]
    compared = cells[kept].copy()
    theirs = [
        rows[dataset][method]
        for dataset, method in zip(compared["dataset"], compared["method"], strict=True)
    ]
    compared["published"] = [cell["mean"] for cell in theirs]
    compared["published_sd"] = [cell["sd"] for cell in theirs]
    compared["published_mark"] = [cell["mark"] for cell in theirs]
    compared["difference"] = compared["mean"] - compared["published"]
    variance = (
        compared["sd"] ** 2 / compared["repeats"]
        + compared["published_sd"] ** 2 / PUBLISHED_REPEATS
        + ROUNDING**2
    )
    compared["z"] = compared["difference"] / np.sqrt(variance)
    compared["agrees"] = compared["z"].abs() <= WITHIN
    return compared.reset_index(drop=True)
