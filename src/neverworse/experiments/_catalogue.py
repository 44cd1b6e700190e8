"""All experiments by name."""

from __future__ import annotations

from neverworse.experiments._curves import CURVES
from neverworse.experiments._robustness import ROBUSTNESS
from neverworse.experiments._table import TABLE
from neverworse.experiments._timing import TIMING

EXPERIMENTS = {experiment.name: experiment for experiment in (ROBUSTNESS, CURVES, TABLE, TIMING)}
