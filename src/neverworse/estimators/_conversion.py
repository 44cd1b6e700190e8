"""What users pass that is no array of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_ARGUMENTS = "X, y, sample_weight, bounds or a parameter"
# How NumPy and Python begin to say that something is no number, or that rows differ in length.
_NOT_NUMBERS = ("could not convert", "setting an array element", "float() argument must be")


def explains_conversion(method: Method) -> Method:
    """Let a method say what is wrong where NumPy or Python cannot turn something into floats."""

    @wraps(method)
    def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except OverflowError:
            raise ValueError(
                f"{_ARGUMENTS} has an integer that is too large for a floating point number "
                "(beyond 1.8e308). Rescale it, or turn labels into strings."
            ) from None
        except (ValueError, TypeError) as error:
            if not str(error).startswith(_NOT_NUMBERS):
                raise
            raise type(error)(
                f"{_ARGUMENTS} is no array of numbers: {str(error).rstrip('.')}. Encode text as "
                "numbers, and give all rows the same columns."
            ) from None

    return explained  # type: ignore[return-value]
