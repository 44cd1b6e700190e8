"""Passes over all rows, seen from where the solver is."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection.coordinates.gram import Whitening
from neverworse.projection.labels import Changes
from neverworse.projection.solver.hinge_pass import Band, hinge_pass
from neverworse.projection.solver.hinges import LoadedHinges, StreamedHinges
from neverworse.projection.solver.imputed import ImputedThere
from neverworse.projection.solver.pass_state import PassSums, corners_of, soft_of, sums_of
from neverworse.projection.solver.undecided import (
    RowNumbers,
    Undecided,
    counts_within,
    nearest,
    undecided,
    undecided_copies,
    undecided_rows,
)
from neverworse.rows._kept import Kept

TINY = 1e-100  # instead of nothing, where that would be divided by


@dataclass(frozen=True)
class TypicalScores:
    """What scores of rows are like.

    Attributes
    ----------
    size : float
    density : float
        At zero, relative to the number of rows.
    """

    size: float
    density: float


@dataclass
class Pass:
    """A pass over all rows at a dual point.

    Attributes
    ----------
    hinges : StreamedHinges
    placed, kept : Kept
        What is known about the labels of rows, and what the pass has left of them.
    changes : Changes
        Of the corners of the soft labels that the dual point belongs to.
    band : Band
        Which rows were copied.
    seed : int
        Of samples.
    exact : bool
        Whether the dual point belongs to soft labels of all rows.
    sums : PassSums
    near : float
        How far from their kink rows were counted.
    length : float
        Of the dual point that margins are measured at, in units of the one of the pass.
    """

    hinges: StreamedHinges
    placed: Kept
    kept: Kept
    changes: Changes
    band: Band
    seed: int
    exact: bool
    sums: PassSums
    near: float
    length: float = 1.0
    _counts: dict[float, list[int]] = field(default_factory=dict)

    @property
    def pulled(self) -> Vector:
        """Σ s q k for labels q in the corners of the pass."""
        return self.hinges.whitening.pull(self.sums.summed, self.sums.total)

    @property
    def soft_total(self) -> Vector:
        """Σ s q for the soft labels that the dual point belongs to, as a last coordinate."""
        total: Vector = self.sums.soft_total * self.hinges.whitening.offset[-1]
        return total

    def scores(self, total: float, n_rows: int) -> TypicalScores:
        """Return what scores are like, for so many unlabeled rows of that total weight."""
        room = 2.0 * self.length * self.near * n_rows
        typical = self.length * float(np.sqrt(self.sums.square / total))
        return TypicalScores(typical, max(1, self.sums.near) / max(room, TINY))

    def imputed(self) -> ImputedThere:
        """Return the soft labels that belong to the dual point, or else those of its corners."""
        if self.exact:
            return ImputedThere(self.placed, self.kept.shed(soft_of), soft_of, self.changes)
        none = Changes(self.changes.indices[:0], self.changes.values[..., :0])
        return ImputedThere(self.placed, self.kept.shed(corners_of), corners_of, none)

    def corners(self) -> Kept:
        """Return the corners of the pass, where the rows are, without what else it has left."""
        return self.kept.shed(corners_of)

    def count(self, widths: list[float]) -> None:
        """Count rows at most so far from their kink, for widths that will be asked for."""
        scaled = [width / self.length for width in widths]
        found = self.kept.map(counts_within, scaled, also=(self.placed,))
        for width, counts in zip(widths, zip(*found, strict=True), strict=True):
            self._counts[width] = list(counts)

    def count_within(self, width: float) -> int:
        """Return how many rows are at most so far from their kink."""
        return sum(self._count(width))

    def undecided(self, width: float, most: int, exact: bool) -> tuple[list[Undecided], float]:
        """Return rows at most `width` from their kink, and how many rows each stands for.

        Parameters
        ----------
        width : float
        most : int
            If there are more rows, about so many of them.
        exact : bool
            Whether these shall be the nearest ones, which stand for themselves only; otherwise they
            are a sample.
        """
        counts = self._count(width)
        total = sum(counts)
        share = most / max(total, most)
        if exact and share < 1.0:
            # Every chunk has its share.
            limits = np.diff(np.floor(share * np.cumsum([0, *counts])).astype(int)).tolist()
            own = [(changes, limit) for changes, limit in zip(self._changes(), limits, strict=True)]
            found = self.kept.map(nearest, width / self.length, also=(self.placed,), own=own)
            return self._numbered(found), 1.0
        own = list(zip(self._changes(), map(RowNumbers().at, self.kept.slices), strict=True))
        common = (width / self.length, share, self.seed)
        copied = self.band.width > 0.0 and width <= self.length * self.band.width
        if copied and share <= self.band.share:
            found = self.kept.map(undecided_copies, *common, own=own)
        elif self.hinges.whitening.rows.far and isinstance(self.hinges.whitening, Whitening):
            known = (self.kept, self.placed)
            found = self.hinges.whitening.rows.ask(undecided_rows, *common, own=own, kept=known)
        else:
            found = self.kept.map(undecided, *common, also=(self.placed,), own=own)
        n_found = sum(len(one.indices) for one in found)
        return self._numbered(found), 1.0 if share == 1.0 else total / max(n_found, 1)

    def _count(self, width: float) -> list[int]:
        if width not in self._counts:
            self.count([width])
        return self._counts[width]

    def _changes(self) -> list[Changes]:
        return [self.changes.at(rows) for rows in self.kept.slices]

    def _numbered(self, found: list[Undecided]) -> list[Undecided]:
        """Return rows with their numbers among all rows."""
        starts = self.kept.edges[:-1]
        return [
            replace(one, indices=one.indices + start)
            for one, start in zip(found, starts, strict=True)
        ]


@dataclass(frozen=True)
class WorkingSet:
    """Rows near their kink, in memory.

    Attributes
    ----------
    indices : array of int
    corner, soft : arrays of shape (n,) or (n_classes, n)
        See `Undecided`.
    hinges : LoadedHinges
    """

    indices: Indices
    corner: Vector
    soft: Vector
    hinges: LoadedHinges


def load_undecided(hinges: StreamedHinges, found: list[Undecided], factor: float) -> WorkingSet:
    """Load rows near their kink: those that were copied, or else by taking them."""
    indices = np.concatenate([one.indices for one in found])
    if all(one.rows is not None for one in found):
        loaded = hinges.load_copies(
            indices, [one.rows for one in found if one.rows is not None], factor
        )
    else:
        loaded = hinges.load(indices, factor)
    return WorkingSet(
        indices,
        np.concatenate([one.corner for one in found], axis=-1),
        np.concatenate([one.soft for one in found], axis=-1),
        loaded,
    )


def pass_over(
    hinges: StreamedHinges,
    placed: Kept,
    z: Vector,
    before: Kept | None,
    changes: Changes,
    near: float,
    band: Band,
    seed: int,
) -> Pass:
    """Make a pass over all rows at the dual point z.

    Parameters
    ----------
    hinges : StreamedHinges
    placed : Kept
        What is known about the labels, see `RowLabels`.
    z : array
    before : Kept or None
        The pass before, or corners: where the soft labels are that z belongs to.
    changes : Changes
        Of these corners.
    near : float
        How far from their kink rows are counted.
    band : Band
        Rows to copy.
    seed : int
        Of samples.
    """
    whitening = hinges.whitening
    direction = whitening.push(z)
    kept = whitening.rows.keep(
        hinge_pass,
        direction.coef,
        direction.intercept,
        near,
        band,
        seed,
        known=(changes, RowNumbers()),
        kept=(placed,) if before is None else (placed, before),
    )
    sums = kept.reduce(sums_of, operator.add)
    return Pass(hinges, placed, kept, changes, band, seed, before is not None, sums, near)
