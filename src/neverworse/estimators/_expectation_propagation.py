"""Expectation propagation for a Gaussian process with likelihoods of one latent value each."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from neverworse._typing import Vector

EPS = float(np.finfo(np.float64).eps)
# Steps are damped from the start, and more so where they lead away from the fixed point.
STEP, SMALLEST_STEP = 0.9, 1e-3


class Likelihood(Protocol):
    """What is known about one latent value of each row."""

    def evidence(self, sign: Vector, mean: Vector, variance: Vector) -> object:
        """Return the normaliser and its derivatives."""
