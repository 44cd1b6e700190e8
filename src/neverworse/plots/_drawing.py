"""What the displays share: a place to draw on, legends, and estimators inside of pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline

from neverworse._words import install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    def _axes(self, ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
        """Return where to draw; a new figure, of a size in inches, if nothing is given."""
        if ax is None:
            try:
                from matplotlib import pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__} draws with matplotlib, which is not installed. "
                    f"{install('plots')}"
                ) from error
            ax = plt.figure(layout="constrained", figsize=size).add_subplot()
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]  # a subfigure has all that matters
        return ax


def ink() -> str:
    """Return the colour of text in the style that is in use, light or dark."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def legend_above(ax: Axes, **changes: Any) -> None:
    """Explain the parts above the axes: inside, there is no place that never hides a point."""
    look = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "frameon": False}
    look |= {"columnspacing": 1.2, "handlelength": 1.6, "fontsize": "small"}
    ax.legend(**{**look, **changes})


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


def names_of_features(estimator: Any, before: Sequence[Any]) -> list[str]:
    """Return the names of the features that an estimator sees, as far as they are known."""
    names = getattr(estimator, "feature_names_in_", None)
    for step in before:
        if step in (None, "passthrough"):
            continue
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            names = None
    if names is None or len(names) != estimator.n_features_in_:
        return [f"x{k + 1}" for k in range(estimator.n_features_in_)]
    return [str(name) for name in names]
