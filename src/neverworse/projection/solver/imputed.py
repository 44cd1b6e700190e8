"""Soft labels of all rows: here, or where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from neverworse._typing import Vector
from neverworse.projection.label_sets import Simplex
from neverworse.projection.labels import Changes, Corners, RowLabels, soft_labels
from neverworse.projection.solver.hinges import StreamedHinges
from neverworse.projection.solver.sparsify_labels import share_few
from neverworse.rows import Rows
from neverworse.rows._kept import Kept, add_pairs


class Imputed(Protocol):
    """Soft labels of all rows."""

    def unlabeled(self) -> Vector:
        """Return those of the unlabeled rows, in their order."""

    def pulled(self, hinges: StreamedHinges) -> Vector:
        """Return Σ s q k."""

    def sharing_few(self, hinges: StreamedHinges, shape: Simplex) -> Imputed:
        """Return soft labels with the same Σ s q k, of which few are shared by two classes."""


@dataclass(frozen=True)
class ImputedHere:
    """Soft labels in the memory of this process.

    Attributes
    ----------
    q : array of shape (n_rows,) or (n_classes, n_rows)
    seen : boolean array of shape (n_rows,)
        The unlabeled rows.
    """

    q: Vector
    seen: Any

    def unlabeled(self) -> Vector:
        """See `Imputed`."""
        return self.q[..., self.seen]

    def pulled(self, hinges: StreamedHinges) -> Vector:
        """See `Imputed`."""
        return hinges.pull(hinges.weights * self.q)

    def sharing_few(self, hinges: StreamedHinges, shape: Simplex) -> ImputedHere:
        """See `Imputed`."""
        return replace(self, q=share_few(hinges, shape, self.q))


@dataclass(frozen=True)
class ImputedThere:
    """Soft labels where the rows are: corners, but for a few changes.

    Attributes
    ----------
    placed : Kept
        What is known about the labels, see `RowLabels`.
    kept : Kept
        Corners, or what has them.
    corners : callable
        ``corners(object)`` returns the corners of what is kept.
    changes : Changes
    """

    placed: Kept
    kept: Kept
    corners: Callable[[Any], Corners]
    changes: Changes

    def unlabeled(self) -> Vector:
        """See `Imputed`."""
        own = [(self.changes.at(rows),) for rows in self.kept.slices]
        found = self.kept.map(_of_unlabeled, self.corners, also=(self.placed,), own=own)
        codes = np.concatenate([corners.codes for corners, _ in found], axis=-1)
        q = Corners(codes, found[0][0].n_classes).labels()
        start = 0
        for corners, changes in found:
            changes.apply(q[..., start : start + corners.codes.shape[-1]])
            start += corners.codes.shape[-1]
        return q

    def pulled(self, hinges: StreamedHinges) -> Vector:
        """See `Imputed`."""
        rows = hinges.whitening.rows
        summed, total = rows.fold(
            _weighted_sum,
            add_pairs,
            self.corners,
            known=(self.changes,),
            kept=(self.placed, self.kept),
        )
        return hinges.whitening.pull(summed, total)

    def sharing_few(self, hinges: StreamedHinges, shape: Simplex) -> ImputedThere:
        """See `Imputed`; labels in a corner share nothing."""
        changes = self.changes
        inner = shape.at(changes.indices).inner(changes.values)
        shared = np.flatnonzero(np.count_nonzero(inner, axis=0) == 2)
        if len(shared) <= hinges.rank:
            return self
        rows, values = changes.indices[shared], changes.values.copy()
        values[:, shared] = share_few(hinges.load(rows), shape.at(rows), values[:, shared])
        return replace(self, changes=Changes(changes.indices, values))


def _corners(kept: Any, corners: Callable[[Any], Corners]) -> Corners:
    return kept if isinstance(kept, Corners) else corners(kept)


def _of_unlabeled(
    kept: Any, labels: RowLabels, corners: Callable[[Any], Corners], changes: Changes
) -> tuple[Corners, Changes]:
    """Return corners of the unlabeled rows, and changes among these."""
    found, seen = _corners(kept, corners), labels.width > 0.0
    if seen.all():
        return found, changes
    kept_changes = seen[changes.indices]
    positions = np.cumsum(seen)[changes.indices[kept_changes]] - 1
    values = changes.values[..., kept_changes]
    return Corners(found.codes[..., seen], found.n_classes), Changes(positions, values)


def _weighted_sum(
    rows: Rows, corners: Callable[[Any], Corners], changes: Changes, labels: RowLabels, kept: Any
) -> tuple[Vector, Vector]:
    x = labels.hinge * soft_labels(_corners(kept, corners), changes, slice(0, rows.n_rows))
    return rows.weighted_sum(x), x.sum(axis=-1)
