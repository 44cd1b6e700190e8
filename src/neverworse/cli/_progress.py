"""A progress bar of steps that have names."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Bar:
    """What is being done, and how much of it is done: on a terminal only.

    Parameters
    ----------
    quiet : bool
        Whether to show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            from tqdm import tqdm

            shape = "{desc:<32} {percentage:3.0f}% |{bar}| {elapsed}"
            self._bar = tqdm(total=1.0, leave=False, bar_format=shape, file=sys.stderr)
        return self

    def __call__(self, what: str, share: float) -> None:
        """Show a step.

        Parameters
        ----------
        what : str
        share : float
            Of the step that is done, from 0 to 1.
        """
        if self._bar is not None:
            self._bar.set_description_str(what, refresh=False)
            self._bar.n = share
            self._bar.refresh()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
