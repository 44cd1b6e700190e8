"""Draw what a fitted estimator has proved, and how unlabeled rows moved its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from neverworse._palette import BLUE, GREY, LIGHT_GREY, ORANGE
from neverworse._typing import Vector
from neverworse._words import count, cropped, documented_like, number
from neverworse.estimators import Audit
from neverworse.plots._display import Display, last_step, legend_above, names_of_features
from neverworse.projection import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.34  # height, of an axis from -1 to 1
TEXT: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": "small"}
LONGEST_NAME = 32  # characters


@documented_like(Display)
class CertificateDisplay(Display):
    """Best and worst case of a classifier against its baseline, over all possible labels.

    A bar from the best to the worst case of the loss difference over all labelings of the unlabeled
    rows; the true difference lies on the bar. Left of zero, the classifier is better than its
    baseline: it is never worse if the whole bar lies there.

    Create it with `from_estimator`; for what `neverworse.audit` returned, with
    ``CertificateDisplay(found).plot()``.

    Parameters
    ----------
    certificate : Certificate or Audit

    Attributes
    ----------
    verdict : str
        The meaning of the bar in a few words, used as the title.
    {ax_, figure_}

    Examples
    --------
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.datasets import make_two_gaussians
    >>> from neverworse.plots import CertificateDisplay
    >>> X, y = make_two_gaussians(500, 20, random_state=0)
    >>> y[20:] = -1
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> display = CertificateDisplay.from_estimator(clf)
    >>> display.verdict
    'Never worse than the supervised classifier, whatever the labels'
    """

    _size = (6.4, 2.8)

    def __init__(self, certificate: Certificate | Audit) -> None:
        if not isinstance(certificate, (Certificate, Audit)):
            raise TypeError(f"{certificate!r} is no Certificate or Audit.")
        self.certificate = certificate
        rows = count(certificate.n_labeled + certificate.n_unlabeled, "row")
        if isinstance(certificate, Audit):
            self._is_same, baseline = certificate._is_same, "the baseline"
            losses, over = certificate.baseline_loss, f"mean over {rows}"
        else:
            self._is_same = bool(certificate.reason)
            baseline = f"the supervised {certificate.assumptions.model}"
            if certificate.rows == "unlabeled":
                rows = count(certificate.n_unlabeled, "unlabeled row")
            losses, over = certificate.supervised_loss, f"sum over {rows}"
            if certificate.penalty:
                over += f" plus {number(certificate.penalty)} ||w||²"
        low, high = map(number, losses)
        size = low if low == high else f"between {low} and {high}"
        self._axis_name = (
            f"change in the {certificate._loss()}, {over}\n(that of {baseline} is {size})"
        )
        labels = certificate.assumptions.labels
        within = " within what is assumed" if certificate.assumptions.conditions() else ""
        if self._is_same:
            self.verdict = f"The same as {baseline}"
        elif certificate.holds or certificate.best_case >= 0.0:
            never = "Never worse" if certificate.holds else "Never better"
            self.verdict = f"{never} than {baseline}, whatever the {labels}{within}"
        else:
            self.verdict = f"Not guaranteed: it depends on the unknown {labels}"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> CertificateDisplay:
        """Draw the certificate of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with a certificate
            Fitted: `ProjectedLeastSquaresClassifier` or any other with `certificate_`, also as the
            last step of a pipeline or the best estimator of a search.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        """
        check_is_fitted(estimator)
        step, _ = last_step(estimator)
        if not hasattr(step, "certificate_"):
            raise TypeError(
                f"A {type(step).__name__} does not have certificate_. Compare it with another "
                "classifier by neverworse.audit, and pass the result to CertificateDisplay."
            )
        return cls(step.certificate_).plot(ax)

    def _draw(self, ax: Axes) -> None:
        best, worst = self.certificate.best_case, self.certificate.worst_case
        low, high = min(best, 0.0), max(worst, 0.0)
        size = (high - low) or 1.0
        # With room for the names of both sides of zero.
        left, right = min(low - 0.15 * size, -0.35 * size), max(high + 0.15 * size, 0.35 * size)
        ax.set(xlim=(left, right), ylim=(-1.0, 1.0), yticks=[])
        ax.axvline(0.0, color=GREY, linewidth=1.2, zorder=3)
        ax.axvspan(left, 0.0, color=BLUE, alpha=0.06, linewidth=0.0)
        ax.axvspan(0.0, right, color=ORANGE, alpha=0.08, linewidth=0.0)
        for text, shift, side in (("← better", -6, "right"), ("worse →", 6, "left")):
            ax.annotate(text, (0.0, 0.96), (shift, 0), ha=side, alpha=0.7, **TEXT)
        ax.spines[["left", "right", "top"]].set_visible(False)
        width = worst - best
        if self._is_same:
            ax.plot([best + width / 2], [0], "o", color=GREY, markersize=10)
            ends = [(best + width / 2, "no difference", "center")]
        else:
            colour = BLUE if self.certificate.holds else ORANGE
            ax.barh(0, width, left=best, height=BAR, color=colour, edgecolor=colour)
            # The texts beside a short bar grow away from each other, so that they do not overlap.
            is_long = width > 0.5 * (right - left)
            first, last = ("left", "right") if is_long else ("right", "left")
            ends = [
                (best, f"at best\n{_change(best)}", first),
                (worst, f"at worst\n{_change(worst)}", last),
            ]
        for x, text, side in ends:
            shift = {"left": 3, "center": 0, "right": -3}[side]
            ax.annotate(text, (x, -BAR / 2), (shift, -5), ha=side, zorder=4, **TEXT)
        ax.set_xlabel(self._axis_name)
        ax.set_title(self.verdict, fontsize="medium")


def _change(difference: float) -> str:
    if difference == 0.0:
        return "no change"
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"


@documented_like(Display)
@dataclass(eq=False, repr=False)
class CoefficientShiftDisplay(Display):
    """Coefficients of the supervised and of the projected model, side by side.

    One line for each feature, from its supervised to its projected coefficient; those that moved
    most are at the top. Coefficients depend on the units of the features: scale the features first
    to compare them. Create it with `from_estimator`.

    Parameters
    ----------
    supervised, projected : arrays of shape (n_features,)
        Coefficients before and after.
    feature_names : sequence of str
    class_name : str, optional
        The class whose score they make up.
    max_features : int or None, default=20
        Number of features to show, those that moved most; None for all.

    {Attributes}

    Examples
    --------
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.datasets import make_two_gaussians
    >>> from neverworse.plots import CoefficientShiftDisplay
    >>> X, y = make_two_gaussians(500, 20, random_state=0)
    >>> y[20:] = -1
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> display = CoefficientShiftDisplay.from_estimator(clf, max_features=3)
    >>> [name.get_text() for name in display.ax_.get_yticklabels()]
    ['x4', 'x2', 'x18']
    """

    supervised: Vector
    projected: Vector
    feature_names: Sequence[str]
    _: KW_ONLY
    class_name: str | None = None
    max_features: int | None = 20

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target_class: Any = None,
        max_features: int | None = 20,
        ax: Axes | None = None,
    ) -> CoefficientShiftDisplay:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with coef_ and supervised_
            Fitted: `ProjectedLeastSquaresClassifier` or any other with a supervised counterpart,
            also as the last step of a pipeline or the best estimator of a search.
        target_class : class, optional
            With more than two classes, the class whose coefficients are drawn; by default the one
            whose coefficients moved most.
        max_features : int or None, default=20
            Number of features to show, those that moved most; None for all.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        """
        check_is_fitted(estimator)
        step, before = last_step(estimator)
        if not (hasattr(step, "coef_") and hasattr(getattr(step, "supervised_", None), "coef_")):
            raise TypeError(
                "CoefficientShiftDisplay needs an estimator with coef_ and supervised_.coef_, such "
                "as ProjectedLeastSquaresClassifier without a kernel, but got a "
                f"{type(step).__name__}."
            )
        projected, supervised = map(np.atleast_2d, (step.coef_, step.supervised_.coef_))
        # Of two classes, the second has a score; a regression has no classes.
        scored = getattr(step, "classes_", np.empty(0)).tolist()[-len(projected) :]
        row = int(np.abs(projected - supervised).max(axis=1).argmax())
        if target_class is not None:
            if target_class not in scored:
                raise ValueError(
                    f"target_class={target_class!r} must be one of {scored}, which have "
                    "coefficients (two classes have one score, for the second)."
                )
            row = scored.index(target_class)
        names, name = names_of_features(step, before), str(scored[row]) if scored else None
        display = cls(supervised[row], projected[row], names, class_name=name)
        display.max_features = max_features
        return display.plot(ax)

    @property
    def _order(self) -> Any:
        if self.max_features is not None and self.max_features < 1:
            raise ValueError(f"max_features={self.max_features} must be positive, or None for all.")
        moved = np.abs(self.projected - self.supervised)
        return np.argsort(-moved, kind="stable")[: self.max_features]

    @property
    def _size(self) -> tuple[float, float]:  # type: ignore[override]
        return 6.4, 1.4 + 0.28 * len(self._order)

    def _draw(self, ax: Axes) -> None:
        order = self._order
        places = np.arange(len(order))
        before, after = self.supervised[order], self.projected[order]
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.hlines(places, before, after, color=LIGHT_GREY, linewidth=2.5)
        # The first is larger, to be seen where the second covers it.
        ax.plot(before, places, "s", color=ORANGE, markersize=7.5, label="supervised", zorder=3)
        ax.plot(after, places, "o", color=BLUE, markersize=5.5, label="projected", zorder=3)
        names = [cropped(self.feature_names[k], LONGEST_NAME) for k in order]
        ax.set_yticks(places, names)
        ax.set_ylim(len(order) - 0.5, -0.5)
        of_class = "" if self.class_name is None else f" in the score of class {self.class_name}"
        n, n_shown = len(self.feature_names), len(order)
        some = f"\n({n_shown:,} of {n:,} features: those that moved most)" if n_shown < n else ""
        ax.set_xlabel(f"coefficient{of_class}{some}")
        legend_above(ax)
        ax.spines[["left", "right", "top"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
