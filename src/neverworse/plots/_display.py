"""What the displays share, and the display of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils._plotting import _validate_score_name

from neverworse._palette import BLUE, ORANGE
from neverworse._typing import Indices, Matrix
from neverworse._words import documented_like, install
from neverworse.model_selection import (
    LearningCurve,
    labeled_learning_curve,
    unlabeled_learning_curve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("fill_between", "errorbar", None)
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


@documented_like(Display)
@dataclass(eq=False, repr=False, kw_only=True)
class UnlabeledLearningCurveDisplay(Display):
    """Scores on labeled rows that were held out, over the number of training rows that grow.

    Shows whether it is worth collecting more unlabeled rows or, with ``rows="labeled"``, labels.

    Create it with `from_estimator`.

    Parameters
    ----------
    sizes : array of shape (n_sizes,)
        Numbers of unlabeled (or labeled) training rows.
    test_scores : array of shape (n_sizes, n_splits)
        Scores on held-out rows.
    baseline_scores : array of shape (n_sizes, n_splits), optional
        Those of a baseline, on the same splits.
    score_name : str, optional
        Name of the score, for the axis.
    rows : {"unlabeled", "labeled"}, default="unlabeled"
        Which rows grow in number.
    estimator_name, baseline_name : str
        Names of the two, for the legend.

    Attributes
    ----------
    {ax_, figure_}
    lines_ : list of matplotlib Line2D
        The curve, and that of the baseline if there is one.

    See Also
    --------
    neverworse.model_selection.unlabeled_learning_curve : Computes it.
    neverworse.model_selection.labeled_learning_curve : The same for labeled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
    >>> from neverworse.plots import UnlabeledLearningCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 60)) + 0.3 * y[:, None]
    >>> y[100:] = -1
    >>> display = UnlabeledLearningCurveDisplay.from_estimator(
    ...     ProjectedLeastSquaresClassifier(),
    ...     X,
    ...     y,
    ...     baseline=LeastSquaresClassifier(),
    ...     scoring="neg_brier_score",
    ...     negate_score=True,
    ...     random_state=0,
    ... )
    >>> display.sizes
    array([ 28,  56, 112, 225, 450, 900])
    """

    sizes: Indices
    test_scores: Matrix
    baseline_scores: Matrix | None = None
    score_name: str | None = None
    rows: Literal["unlabeled", "labeled"] = "unlabeled"
    estimator_name: str = "estimator"
    baseline_name: str = "baseline"
    lines_: list[Any] = field(default_factory=list, init=False)

    @classmethod
    @documented_like(unlabeled_learning_curve)
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        rows: str = "unlabeled",
        sizes: Any = None,
        baseline: Any = None,
        cv: Any = None,
        n_repeats: int = 5,
        groups: Any = None,
        scoring: Any = None,
        sample_weight: Any = None,
        missing_label: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        ax: Axes | None = None,
        negate_score: bool = False,
        score_name: str | None = None,
        std_display_style: str | None = "fill_between",
        **plot_params: Any,
    ) -> UnlabeledLearningCurveDisplay:
        """Compute a learning curve, and draw it.

        Parameters
        ----------
        estimator : classifier or regressor
            Cloned and fitted; it need not be fitted before.
        X, y : array-likes
            Labeled and unlabeled rows, as in `unlabeled_learning_curve`.
        rows : {"unlabeled", "labeled"}, default="unlabeled"
            Which training rows grow in number.
        sizes : array-like, optional
            How many there are: the `unlabeled_sizes` of `unlabeled_learning_curve`, or the
            `labeled_sizes` of `labeled_learning_curve`.
        baseline : classifier or regressor, optional
            Scored on the same splits and drawn beside it, for example the supervised counterpart.
        {cv, n_repeats, groups}
        scoring : str, callable or None, default=None
            One score, as in `neverworse.model_selection.labeled_scorer`.
        {sample_weight, missing_label, n_jobs}
        random_state : int, RandomState or None, default=None
            Seed. None draws one, which the baseline shares.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        negate_score : bool, default=False
            Whether to draw the negative score, for those whose name starts with ``neg_``.
        score_name : str, optional
            Name of the score; made from `scoring` if not given.
        std_display_style : {"fill_between", "errorbar"} or None, default="fill_between"
            How to show one standard deviation over the splits.
        **plot_params
            Passed to `plot`.
        """
        curves: dict[str, Any] = {
            "unlabeled": unlabeled_learning_curve,
            "labeled": labeled_learning_curve,
        }
        if rows not in curves:
            raise ValueError(f"rows={rows!r} must be 'unlabeled' or 'labeled'.")
        check_style(std_display_style)
        if random_state is None:
            random_state = int(np.random.default_rng().integers(2**31))
        elif not isinstance(random_state, (int, np.integer)):
            random_state = random_state.randint(2**31 - 1)

        options = {"cv": cv, "n_repeats": n_repeats, "groups": groups, "scoring": scoring}
        options |= {"sample_weight": sample_weight, "missing_label": missing_label}
        options |= {"random_state": random_state, "n_jobs": n_jobs, f"{rows}_sizes": sizes}

        def curve_of(each: Any) -> LearningCurve:
            curve: LearningCurve = curves[rows](each, X, y, **options)
            return curve

        curve = curve_of(estimator)
        if isinstance(curve.test_scores, dict):
            raise ValueError(
                "UnlabeledLearningCurveDisplay draws one score. Pass the name of one in scoring, "
                "or use neverworse.model_selection.unlabeled_learning_curve for several."
            )
        display = cls(
            sizes=curve.sizes,
            test_scores=curve.test_scores,
            baseline_scores=None if baseline is None else curve_of(baseline).test_scores,
            score_name=_validate_score_name(score_name, scoring, negate_score),
            rows=curve.rows,
            estimator_name=_name(estimator),
            baseline_name=_name(baseline),
        )
        return display.plot(
            ax=ax, negate_score=negate_score, std_display_style=std_display_style, **plot_params
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        negate_score: bool = False,
        score_name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        legend: bool = True,
    ) -> UnlabeledLearningCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        negate_score : bool, default=False
            Whether to draw the negative score.
        score_name : str, optional
            Another name for the score.
        std_display_style : {"fill_between", "errorbar"} or None, default="fill_between"
            How to show one standard deviation over the splits.
        line_kw, fill_between_kw, errorbar_kw : dict, optional
            What to draw differently: passed to matplotlib's functions of these names.
        legend : bool, default=True
            Whether to name the lines if there are two.
        """
        check_style(std_display_style)
        ax = self._axes(ax)
        sign = -1.0 if negate_score else 1.0
        lines = [(self.estimator_name, self.test_scores, BLUE, "o", "-")]
        if self.baseline_scores is not None:
            lines.append((self.baseline_name, self.baseline_scores, ORANGE, "s", "--"))
        self.lines_ = []
        for label, scores, colour, marker, style in lines:
            mean, spread = sign * scores.mean(axis=1), scores.std(axis=1)
            look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": style}
            look |= {"label": label, **(line_kw or {})}
            if std_display_style == "errorbar":
                look = {"capsize": 3, **look, **(errorbar_kw or {})}
                self.lines_.append(ax.errorbar(self.sizes, mean, spread, **look).lines[0])
                continue
            self.lines_ += ax.plot(self.sizes, mean, **look)
            if std_display_style == "fill_between":
                band = {"color": colour, "alpha": 0.12, "linewidth": 0.0, **(fill_between_kw or {})}
                ax.fill_between(self.sizes, mean - spread, mean + spread, **band)
        self._label_axes(ax, score_name)
        if legend and len(lines) > 1:
            legend_above(ax)
        return self

    def _label_axes(self, ax: Axes, score_name: str | None) -> None:
        from matplotlib.ticker import NullLocator

        if self.sizes[0] > 0 and self.sizes[-1] > LOGARITHMIC * self.sizes[0]:
            ax.set_xscale("log")
            ax.set_xticks(self.sizes, [f"{size:,}" for size in self.sizes])
            ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel(f"{self.rows} training rows")
        ax.set_ylabel(f"{score_name or self.score_name or 'Score'} on held-out rows")


def _name(estimator: Any) -> str:
    return type(last_step(estimator)[0]).__name__


def check_style(style: Any) -> None:
    if style not in STYLES:
        raise ValueError(f"std_display_style={style!r} must be 'fill_between', 'errorbar' or None.")
