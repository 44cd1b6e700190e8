"""Integers that no floating point number can hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def explains_overflow(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a `fit` say what is wrong where Python cannot turn an integer into a float."""

    @wraps(fit)
    def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            return fit(*args, **kwargs)
        except OverflowError:
            raise ValueError(
                "X, y, sample_weight, bounds or a parameter has an integer that is too large for a "
                "floating point number (beyond 1.8e308). Rescale it, or turn labels into strings."
            ) from None

    return explained
