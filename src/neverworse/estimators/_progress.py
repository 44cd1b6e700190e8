"""Tell people and callbacks how a fit is getting on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neverworse.projection import Observer, Progress

__all__ = ["CallbackSupportMixin", "observed_fit"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for the support of callbacks where scikit-learn has none."""


@contextmanager
def observed_fit(
    estimator: Any, X: Any, y: Any, metadata: dict[str, Any], verbose: int
) -> Iterator[Observer | None]:
    """Announce a fit to the callbacks of the estimator; yield what the solver reports to.

    Every stage of the solver is a task of scikit-learn's callback protocol; a callback that asks
    to stop ends the solver early, and what it has found so far is certified.
    """
    context = None
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=metadata)

    def observe(progress: Progress) -> bool:
        if verbose:
            sys.stderr.write(f"[{type(estimator).__name__}] {progress}\n")
        if context is None:
            return False
        task = context.subcontext(task_name=progress.stage)
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=metadata)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X, y=y, metadata=metadata))

    yield observe if verbose or context is not None else None
    if context is not None:
        context.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, metadata=metadata, reconstruction_attributes={}
        )
