"""Draw how unlabeled rows moved the coefficients of a linear model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from neverworse._palette import BLUE, LIGHT_GREY, ORANGE
from neverworse._typing import Vector
from neverworse._words import documented_like
from neverworse.plots._drawing import Display, ink, last_step, legend_above, names_of_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 32  # characters


@documented_like(Display)
@dataclass(eq=False, repr=False)
class CoefficientShiftDisplay(Display):
    """Coefficients of the supervised and of the projected model, side by side.

    One line for each feature, from its supervised to its projected coefficient; those that moved
    most are at the top. Coefficients are in the units of the features that the estimator was fitted
    to: scale features first if you want to compare them.

    Create it with `from_estimator`.

    Parameters
    ----------
    supervised, projected : arrays of shape (n_features,)
        Coefficients before and after.
    feature_names : sequence of str
    class_name : str, optional
        The class whose score they make up.

    Attributes
    ----------
    {ax_, figure_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.plots import CoefficientShiftDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 5)) + y[:, None]
    >>> y[20:] = -1
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> display = CoefficientShiftDisplay.from_estimator(clf, max_features=3)
    >>> display.shown(3)
    ['x4', 'x3', 'x2']
    """

    supervised: Vector
    projected: Vector
    feature_names: Sequence[str]
    _: KW_ONLY
    class_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target_class: Any = None,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_params: Any,
    ) -> CoefficientShiftDisplay:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with coef_ and supervised_
            Fitted: `ProjectedLeastSquaresClassifier`, `ICLSClassifier` and others that keep their
            supervised counterpart, also as the last step of a pipeline or the best estimator of
            a search.
        target_class : class, optional
            With more than two classes, the one whose coefficients are drawn; the one whose
            coefficients moved most if not given. Two classes have one score, for the second.
        feature_names : sequence of str, optional
            Names of the features that the (last) estimator sees. If not given, those that it was
            fitted with or that the pipeline gives them, and otherwise x1, x2, ...
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **plot_params
            Passed to `plot`.
        """
        check_is_fitted(estimator)
        step, before = last_step(estimator)
        if not (hasattr(step, "coef_") and hasattr(getattr(step, "supervised_", None), "coef_")):
            raise TypeError(
                "CoefficientShiftDisplay needs an estimator with coef_ and supervised_.coef_, such "
                "as ProjectedLeastSquaresClassifier without a kernel, but got a "
                f"{type(step).__name__}."
            )
        projected = np.atleast_2d(step.coef_)
        supervised = np.atleast_2d(step.supervised_.coef_)
        row, name = _chosen_class(step, target_class, np.abs(projected - supervised).max(axis=1))
        names = names_of_features(step, before) if feature_names is None else list(feature_names)
        if len(names) != projected.shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} names, but the estimator has "
                f"{projected.shape[1]} features."
            )
        return cls(supervised[row], projected[row], names, class_name=name).plot(
            ax=ax, **plot_params
        )

    def shown(self, max_features: int | None = 20) -> list[str]:
        """Return the names of the features that moved most, the first one most.

        Parameters
        ----------
        max_features : int or None, default=20
            How many at most.
        """
        return [self.feature_names[k] for k in self._order(max_features)]

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_features: int | None = 20,
        point_kw: dict[str, Any] | None = None,
        line_kw: dict[str, Any] | None = None,
        legend: bool = True,
    ) -> CoefficientShiftDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        max_features : int or None, default=20
            Number of features to show, those that moved most; None for all.
        point_kw, line_kw : dict, optional
            What to draw differently: passed to matplotlib's `plot` for the points, and to `hlines`
            for the lines between them.
        legend : bool, default=True
            Whether to explain the points.
        """
        if max_features is not None and max_features < 1:
            raise ValueError(f"max_features={max_features} must be at least 1, or None for all.")
        order = self._order(max_features)
        ax = self._axes(ax, (6.4, 1.4 + 0.28 * len(order)))
        places = np.arange(len(order))
        before, after = self.supervised[order], self.projected[order]
        ax.axvline(0.0, color=ink(), linewidth=0.8)
        ax.hlines(
            places, before, after, **{"color": LIGHT_GREY, "linewidth": 2.5, **(line_kw or {})}
        )
        # The first is larger, to be seen where the second covers it.
        for label, values, marker, colour, size in (
            ("supervised", before, "s", ORANGE, 7.5),
            ("projected", after, "o", BLUE, 5.5),
        ):
            look = {"marker": marker, "markersize": size, "color": colour, "linestyle": "none"}
            ax.plot(values, places, **{**look, "label": label, "zorder": 3, **(point_kw or {})})
        ax.set_yticks(places, [_short(self.feature_names[k]) for k in order])
        ax.set_ylim(len(order) - 0.5, -0.5)
        self._say(ax, len(order))
        if legend:
            legend_above(ax)
        ax.spines[["left", "right", "top"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self

    def _order(self, max_features: int | None) -> Any:
        shift = np.abs(self.projected - self.supervised)
        return np.argsort(-shift, kind="stable")[:max_features]

    def _say(self, ax: Axes, n_shown: int) -> None:
        of_class = "" if self.class_name is None else f" in the score of class {self.class_name}"
        n = len(self.feature_names)
        some = f"\n({n_shown:,} of {n:,} features: those that moved most)" if n_shown < n else ""
        ax.set_xlabel(f"coefficient{of_class}{some}")


def _chosen_class(step: Any, target_class: Any, shifts: Vector) -> tuple[int, str | None]:
    """Return the row of the coefficients of a class, and its name; regressions have none."""
    classes = getattr(step, "classes_", None)
    if classes is None:
        return 0, None
    known = classes.tolist()
    if target_class is None:
        row = int(shifts.argmax())
        return row, str(known[row] if len(shifts) > 1 else known[1])
    if target_class not in known:
        raise ValueError(f"target_class={target_class!r} is not one of the classes: {known}.")
    if len(shifts) > 1:
        return known.index(target_class), str(target_class)
    if target_class != known[1]:
        raise ValueError(
            f"Two classes have one score, for {known[1]!r}; the coefficients of {target_class!r} "
            "are their negatives. Leave target_class out."
        )
    return 0, str(known[1])


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
