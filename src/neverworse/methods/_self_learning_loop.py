"""Label, retrain, and again, until the labels stop changing or repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from neverworse._typing import AnyArray
from neverworse.methods._stages import Stages
from neverworse.projection import Observer

StopReason = Literal["converged", "cycle", "max_iter", "callback"]


class Trainer(Protocol):
    """A classifier that is fitted to labels of its own."""

    def label(self) -> AnyArray:
        """Label the unlabeled rows by the present classifier; return the codes of their classes."""

    def retrain(self) -> None:
        """Fit the classifier to all rows, with the labels that `label` has last given."""


@dataclass(frozen=True)
class Learned:
    """How self-learning ended.

    Attributes
    ----------
    codes : array of int, of shape (n_unlabeled,)
        The labels to which the classifier was last fitted.
    n_iter : int
        How often it was retrained.
    stop_reason : {"converged", "cycle", "max_iter", "callback"}
    cycle_length : int or None
        How many labelings repeat for ever: one if the labels have converged. None if unknown.
    """

    codes: AnyArray
    n_iter: int
    stop_reason: StopReason
    cycle_length: int | None = None


# Without unlabeled rows the first fit is the fit to all rows.
NOTHING_TO_LEARN = Learned(np.zeros(0, np.uint8), 1, "converged", 1)


def learn_from_itself(trainer: Trainer, max_iter: int, observer: Observer | None) -> Learned:
    """Alternate labels and retraining until they agree, repeat, or `max_iter` retrainings are done.

    Of former labelings only hashes are kept.
    """
    stages = Stages(observer)
    new = trainer.label()
    seen = {_digest(new): 0}
    for n_iter in range(1, max_iter + 1):
        codes = new
        trainer.retrain()
        new = trainer.label()
        n_changed = int(np.count_nonzero(new != codes))
        stages.report(f"retraining, then {n_changed:,} labels changed", n_iter, len(codes))
        if not n_changed:
            return Learned(codes, n_iter, "converged", 1)
        before = seen.setdefault(_digest(new), n_iter)
        if before < n_iter:
            return Learned(codes, n_iter, "cycle", n_iter - before)
        if stages.stopped:
            return Learned(codes, n_iter, "callback")
    return Learned(codes, max_iter, "max_iter")


def _digest(codes: AnyArray) -> bytes:
    return hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
