"""What the displays share, and the display of learning curves."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._plotting import _validate_score_name

from neverworse._words import documented_like
from neverworse.model_selection import learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOGARITHMIC = 8  # sizes that differ by more than this factor


class Display:
    """Base of the displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    """

    ax_: Axes
    figure_: Figure
    _size: tuple[float, float] | None = None  # of a new figure, in inches

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        """
        if ax is None:
            check_matplotlib_support(f"{type(self).__name__}.plot")
            from matplotlib import pyplot as plt

            ax = plt.figure(layout="constrained", figsize=self._size).add_subplot()
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]  # a subfigure has all that matters
        self._draw(ax)
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None: ...


def legend_above(ax: Axes) -> None:
    """Add a legend above the axes: inside, it might hide a point."""
    where = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    ax.legend(**where, frameon=False, fontsize="small")


def last_step(estimator: Any) -> tuple[Any, list[Any]]:
    """Return the estimator at the end of searches and pipelines, and the steps before it."""
    before: list[Any] = []
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            before += [step for _, step in estimator.steps[:-1]]
            estimator = estimator.steps[-1][1]
        else:
            return estimator, before


def names_of_features(estimator: Any, before: list[Any]) -> list[str]:
    """Return the names of the features that an estimator sees, as far as they are known."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and before:
        with suppress(AttributeError, ValueError):
            names = make_pipeline(*before).get_feature_names_out()
    if names is None:
        return [f"x{k + 1}" for k in range(estimator.n_features_in_)]
    return list(map(str, names))


@documented_like(Display)
@dataclass(eq=False, repr=False)
class UnlabeledLearningCurveDisplay(Display):
    """Scores on held-out labeled rows, over the number of unlabeled (or labeled) training rows.

    The line is the mean score over the splits, with a band of one standard deviation. It shows
    whether it is worth collecting more unlabeled rows or, with ``rows="labeled"``, labels. Create
    it with `from_estimator`; for a second curve, such as that of the supervised counterpart, do so
    again with the same `random_state` and ``ax=display.ax_``.

    Parameters
    ----------
    curve : LearningCurve
        What `learning_curve` returned; its scores are negated if they are to be.
    estimator_name, score_name : str
        Names for the legend and for the axis.

    Attributes
    ----------
    {ax_, figure_}
    line_ : matplotlib Line2D
        The curve.

    See Also
    --------
    neverworse.model_selection.learning_curve : Computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.plots import UnlabeledLearningCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 60)) + 0.3 * y[:, None]
    >>> y[100:] = -1
    >>> display = UnlabeledLearningCurveDisplay.from_estimator(
    ...     ProjectedLeastSquaresClassifier(), X, y, scoring="neg_brier_score", negate_score=True
    ... )
    >>> display.curve.sizes
    array([ 28,  56, 112, 225, 450, 900])
    """

    curve: Any
    estimator_name: str = "estimator"
    score_name: str = "Score"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any = None,
        negate_score: bool = False,
        ax: Axes | None = None,
        **options: Any,
    ) -> UnlabeledLearningCurveDisplay:
        """Compute a learning curve, and draw it.

        Parameters
        ----------
        estimator : classifier or regressor
            Cloned and fitted; it need not be fitted before.
        X, y : array-likes
            Labeled and unlabeled rows, as in `learning_curve`.
        scoring : str, callable or None, default=None
            One score, as in `neverworse.model_selection.labeled_scorer`.
        negate_score : bool, default=False
            Whether to negate the score, for scores whose names start with ``neg_``.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **options
            Passed to `neverworse.model_selection.learning_curve`: `rows`, `sizes`, `cv` and others.
        """
        curve = learning_curve(estimator, X, y, scoring=scoring, **options)
        if isinstance(curve.test_scores, dict):
            raise ValueError(f"scoring={scoring!r} must be one score, not several.")
        if negate_score:
            curve = replace(curve, test_scores=-curve.test_scores)
        name = type(last_step(estimator)[0]).__name__
        score_name = _validate_score_name(None, scoring, negate_score) or "Score"
        return cls(curve, name, score_name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        sizes, scores = self.curve.sizes, self.curve.test_scores
        mean, spread = scores.mean(axis=1), scores.std(axis=1)
        (self.line_,) = ax.plot(sizes, mean, "o-", label=self.estimator_name)
        look = {"color": self.line_.get_color(), "alpha": 0.12, "linewidth": 0.0}
        ax.fill_between(sizes, mean - spread, mean + spread, **look)
        if sizes[0] > 0 and sizes[-1] > LOGARITHMIC * sizes[0]:
            ax.set_xscale("log")
            ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
            ax.set_xticks([], minor=True)
        ax.set_xlabel(f"{self.curve.rows} training rows")
        ax.set_ylabel(f"{self.score_name} on held-out rows")
        legend_above(ax)
