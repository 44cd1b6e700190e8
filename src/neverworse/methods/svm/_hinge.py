"""The squared hinge loss of rows that are pulled to either side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Vector


@dataclass(frozen=True)
class Margins:
    """Scores, as their distances from 1 and from -1.

    Where the penalty is tiny next to the squares of the columns, rows may be so close to the margin
    that the difference is less than the rounding error of a score; and yet this difference, times
    the row, is what balances the penalty. Distances have digits for it, scores have not.

    Attributes
    ----------
    up : array of shape (n_rows,)
        1 - score: how much is missing to the margin of positive rows.
    down : array of shape (n_rows,)
        1 + score: how much is missing to the margin of negative rows.
    """

    up: Vector
    down: Vector

    @classmethod
    def of(cls, scores: Vector) -> Margins:
        """Return the margins of scores."""
        return cls(1.0 - scores, 1.0 + scores)

    def moved(self, length: float, change: Vector) -> Margins:
        """Return the margins once the scores have changed."""
        moved = length * change
        return Margins(self.up - moved, self.down + moved)

    @property
    def scores(self) -> Vector:
        """The scores."""
        return 0.5 * (self.down - self.up)


@dataclass(frozen=True)
class Hinges:
    r"""The loss of scores f, of which each may be pulled up, down, or both ways.

    .. math:: \frac12 \sum_i p_i \max(0, 1 - f_i)^2 + n_i \max(0, 1 + f_i)^2

    Attributes
    ----------
    positive, negative : arrays of shape (n_rows,)
        The weights p and n. A row with a known label has one of them, and no weight if both are
        zero; a row with a soft label has both.
    """

    positive: Vector
    negative: Vector

    def value(self, margins: Margins) -> float:
        """Return the loss."""
        up, down = np.maximum(margins.up, 0.0), np.maximum(margins.down, 0.0)
        # A row without weight may have a score whose square overflows: multiply one by one.
        loss = np.vdot(self.positive * up, up) + np.vdot(self.negative * down, down)
        return 0.5 * float(loss)

    def slope(self, margins: Margins) -> Vector:
        """Return the derivative of the loss, for each score."""
        up, slope = np.maximum(margins.up, 0.0), np.maximum(margins.down, 0.0)
        up *= self.positive
        slope *= self.negative
        slope -= up
        return slope

    def curvature(self, margins: Margins) -> Vector:
        """Return the second derivative of the loss, for each score; zero beyond the margin."""
        return self.positive * (margins.up > 0.0) + self.negative * (margins.down > 0.0)
