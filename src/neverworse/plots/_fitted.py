"""Draw what a fitted estimator has proved, and how unlabeled rows moved its coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from neverworse._palette import BLUE, GREY, LIGHT_GREY, ORANGE
from neverworse._typing import Vector
from neverworse._words import count, documented_like, number
from neverworse.estimators import Audit
from neverworse.plots._display import Display, ink, last_step, legend_above, names_of_features
from neverworse.projection import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.34  # height, of an axis from -1 to 1
POINT = 1e-3  # an interval narrower than this, as a share of the axis, is drawn as a point
TEXT: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": "small"}
LONGEST_NAME = 32  # characters


@documented_like(Display)
class CertificateDisplay(Display):
    """What is proved about a classifier against its baseline, whatever the unknown labels.

    A bar from the best to the worst case of the difference of the losses, over all labelings of the
    unlabeled rows; the true labels put it somewhere on the bar. To the left of the line at zero
    the classifier is better than its baseline: it is never worse if the whole bar is there.

    Create it with `from_estimator`, or with `from_certificate` for an audit.

    Parameters
    ----------
    certificate : Certificate or Audit

    Attributes
    ----------
    best_case, worst_case : float
        Ends of the bar.
    verdict : str
        What the bar means, in a few words; the title.
    {ax_, figure_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.plots import CertificateDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 5)) + y[:, None]
    >>> y[20:] = -1
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> display = CertificateDisplay.from_estimator(clf)
    >>> display.verdict
    'Never worse than the supervised classifier, whatever the labels'
    """

    def __init__(self, certificate: Certificate | Audit) -> None:
        if not isinstance(certificate, (Certificate, Audit)):
            raise TypeError(
                f"Expected a Certificate or an Audit, but got a {type(certificate).__name__}."
            )
        self.certificate = certificate
        self.best_case, self.worst_case = certificate.best_case, certificate.worst_case
        if not math.isfinite(self.worst_case - self.best_case):
            raise ValueError(
                f"A case is not finite, so it cannot be drawn: {certificate.summary()}"
            )
        self.verdict = self._verdict()

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **plot_params: Any
    ) -> CertificateDisplay:
        """Draw the certificate of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with a certificate
            Fitted: `ProjectedLeastSquaresClassifier` or any other with `certificate_`, also as the
            last step of a pipeline or the best estimator of a search.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **plot_params
            Passed to `plot`.
        """
        check_is_fitted(estimator)
        step, _ = last_step(estimator)
        if not hasattr(step, "certificate_"):
            raise TypeError(
                "CertificateDisplay needs an estimator with certificate_, which a "
                f"{type(step).__name__} does not have. Fit a ProjectedLeastSquaresClassifier, or "
                "compare any two classifiers with neverworse.audit and pass the result to "
                "CertificateDisplay.from_certificate."
            )
        return cls(step.certificate_).plot(ax=ax, **plot_params)

    @classmethod
    def from_certificate(
        cls, certificate: Certificate | Audit, *, ax: Axes | None = None, **plot_params: Any
    ) -> CertificateDisplay:
        """Draw a certificate, or what `neverworse.audit` returned; see `from_estimator`."""
        return cls(certificate).plot(ax=ax, **plot_params)

    def plot(
        self, ax: Axes | None = None, *, bar_kw: dict[str, Any] | None = None, title: bool = True
    ) -> CertificateDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        bar_kw : dict, optional
            What to draw differently: passed to matplotlib's `barh` for the bar.
        title : bool, default=True
            Whether to write the verdict above.
        """
        ax = self._axes(ax, (6.4, 2.8))
        self._draw_sides(ax)
        width = self.worst_case - self.best_case
        if width <= POINT * (ax.get_xlim()[1] - ax.get_xlim()[0]):
            ax.plot([(self.best_case + self.worst_case) / 2], [0], "o", color=GREY, markersize=10)
        else:
            colour = BLUE if self.certificate.holds else ORANGE
            bar = {"left": self.best_case, "height": BAR, "color": colour}
            ax.barh(0, width, **{**bar, **(bar_kw or {})})
        self._name_ends(ax)
        ax.set_xlabel(self._axis_name())
        if title:
            ax.set_title(self.verdict, fontsize="medium")
        return self

    @property
    def _is_same(self) -> bool:
        """Whether nothing can be told apart: no change, or one within rounding errors."""
        if isinstance(self.certificate, Certificate):
            return bool(self.certificate.reason)
        return self.certificate._is_same

    @property
    def _baseline(self) -> str:
        if isinstance(self.certificate, Audit):
            return "the baseline"
        return f"the supervised {self.certificate.assumptions.model}"

    def _verdict(self) -> str:
        baseline, assumed = self._baseline, self.certificate.assumptions
        if self._is_same:
            return f"The same as {baseline}"
        labels = assumed.labels
        if not self.certificate.n_unlabeled:
            better = "Better" if self.certificate.holds else "Worse"
            return f"{better} than {baseline} on these rows, whose {labels} are all known"
        whatever = (
            f"whatever the {labels}{' within what is assumed' if assumed.conditions() else ''}"
        )
        if self.certificate.holds:
            return f"Never worse than {baseline}, {whatever}"
        if self.best_case >= 0.0:
            return f"Never better than {baseline}, {whatever}"
        return f"Not guaranteed: it depends on the unknown {labels}"

    def _axis_name(self) -> str:
        claim = self.certificate
        n = claim.n_labeled + claim.n_unlabeled
        if isinstance(claim, Audit):
            ends, over = claim.baseline_loss, f"mean over {count(n, 'row')}"
        else:
            ends, over = claim.supervised_loss, f"sum over {count(n, 'row')}"
            if claim.rows == "unlabeled":
                over = f"sum over {count(claim.n_unlabeled, 'unlabeled row')}"
            if claim.penalty:
                over += f" plus {number(claim.penalty)} ||w||²"
        low, high = map(number, ends)
        size = low if low == high else f"between {low} and {high}"
        return f"change in the {claim._loss()}, {over}\n(that of {self._baseline} is {size})"

    def _draw_sides(self, ax: Axes) -> None:
        """Draw the line at zero, and say what is on either side of it."""
        low, high = min(self.best_case, 0.0), max(self.worst_case, 0.0)
        size = (high - low) or 1.0
        # Room for words on both sides of zero, also where the bar is on one side only.
        left = low - 0.15 * size if low < 0.0 else -0.35 * size
        right = max(high + 0.15 * size, 0.35 * size)
        ax.set(xlim=(left, right), ylim=(-1.0, 1.0))
        ax.axvline(0.0, color=ink(), linewidth=1.2, zorder=3)
        baseline = "baseline" if isinstance(self.certificate, Audit) else "supervised"
        ax.axvspan(left, 0.0, color=BLUE, alpha=0.06, linewidth=0.0)
        ax.axvspan(0.0, right, color=ORANGE, alpha=0.08, linewidth=0.0)
        better = f"← better than {baseline}"
        for text, shift, side in ((better, -6, "right"), ("worse →", 6, "left")):
            ax.annotate(text, (0.0, 0.96), (shift, 0), ha=side, alpha=0.7, **TEXT)
        ax.set_yticks([])
        ax.spines[["left", "right", "top"]].set_visible(False)

    def _name_ends(self, ax: Axes) -> None:
        from matplotlib.patheffects import withStroke

        left, right = ax.get_xlim()
        share = (self.worst_case - self.best_case) / (right - left)
        middle = (self.best_case + self.worst_case) / 2
        if self._is_same or share <= POINT:
            ends = [(middle, "no difference" if self._is_same else _change(middle), "center")]
        else:
            # The texts beside a short bar grow away from each other, so that they do not overlap.
            first, last = ("left", "right") if share > 0.5 else ("right", "left")
            ends = [
                (self.best_case, f"at best\n{_change(self.best_case)}", first),
                (self.worst_case, f"at worst\n{_change(self.worst_case)}", last),
            ]
        # The line at zero may run through the text.
        halo = [withStroke(linewidth=3.0, foreground=ax.get_facecolor())]
        look = {**TEXT, "linespacing": 1.3, "path_effects": halo, "zorder": 4}
        for x, text, side in ends:
            ax.annotate(text, (x, -BAR / 2), (0, -5), ha=side, **look)


def _change(difference: float) -> str:
    if difference == 0.0:
        return "no change"
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"


@documented_like(Display)
@dataclass(eq=False, repr=False)
class CoefficientShiftDisplay(Display):
    """Coefficients of the supervised and of the projected model, side by side.

    One line for each feature, from its supervised to its projected coefficient; those that moved
    most are at the top. Coefficients are in the units of the features: scale these first if you
    want to compare them. Create it with `from_estimator`.

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
            Fitted: `ProjectedLeastSquaresClassifier` or any other with a supervised counterpart,
            also as the last step of a pipeline or the best estimator of a search.
        target_class : class, optional
            Of more than two classes, the one whose coefficients are drawn; by default the one
            whose coefficients moved most. Two classes have one score, for the second.
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
        """Return the names of the (at most 20) features that moved most, the first one most."""
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
        names = [self.feature_names[k] for k in order]
        shown = [k if len(k) <= LONGEST_NAME else k[: LONGEST_NAME - 1] + "…" for k in names]
        ax.set_yticks(places, shown)
        ax.set_ylim(len(order) - 0.5, -0.5)
        of_class = "" if self.class_name is None else f" in the score of class {self.class_name}"
        n, n_shown = len(self.feature_names), len(order)
        some = f"\n({n_shown:,} of {n:,} features: those that moved most)" if n_shown < n else ""
        ax.set_xlabel(f"coefficient{of_class}{some}")
        if legend:
            legend_above(ax)
        ax.spines[["left", "right", "top"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self

    def _order(self, max_features: int | None) -> Any:
        return np.argsort(-np.abs(self.projected - self.supervised), kind="stable")[:max_features]


def _chosen_class(step: Any, target_class: Any, shifts: Vector) -> tuple[int, str | None]:
    """Return the row of the coefficients of a class, and its name; regressions have none."""
    classes = getattr(step, "classes_", np.empty(0)).tolist()
    scored = classes[-len(shifts) :]  # of two classes, the second
    if target_class is None:
        row = int(shifts.argmax())
    elif target_class in scored:
        row = scored.index(target_class)
    else:
        raise ValueError(
            f"target_class={target_class!r} must be one of {scored}, which have coefficients (two "
            "classes have one score, for the second: those of the first are their negatives)."
        )
    return row, str(scored[row]) if scored else None
