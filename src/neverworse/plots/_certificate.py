"""Draw what is proved: the interval of loss differences over all labelings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from neverworse._palette import BLUE, GREY, ORANGE
from neverworse._words import count, documented_like, number
from neverworse.estimators import Audit
from neverworse.plots._drawing import Display, ink, last_step
from neverworse.projection import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.34  # height, of an axis from -1 to 1
POINT = 1e-3  # an interval narrower than this, as a share of the axis, is drawn as a point


@documented_like(Display)
class CertificateDisplay(Display):
    """What is proved about a classifier against its baseline, whatever the unknown labels.

    A bar from the best to the worst case of the difference of the losses, over all labelings of the
    unlabeled rows. The true labels put the difference somewhere on the bar, nobody knows where. To
    the left of the line at zero the classifier is better than its baseline: it is never worse if
    the whole bar is there.

    The two losses themselves are not drawn as bars: a labeling that is bad for one is bad for
    the other too, so that their ranges overlap even where one is always below the other.

    Create it with `from_estimator`, or with `from_certificate` for an audit.

    Parameters
    ----------
    certificate : Certificate or Audit

    Attributes
    ----------
    certificate : Certificate or Audit
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
                "CertificateDisplay shows the certificate_ of a fitted estimator, or what audit "
                f"returns, but got a {type(certificate).__name__}."
            )
        self.certificate = certificate
        self.best_case, self.worst_case = certificate.best_case, certificate.worst_case
        if not (math.isfinite(self.best_case) and math.isfinite(self.worst_case)):
            raise ValueError(
                "The worst or the best case is not finite, so that there is no bar to draw: "
                f"{certificate.summary()}"
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
        """Draw a certificate, or what `neverworse.audit` returned.

        Parameters
        ----------
        certificate : Certificate or Audit
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **plot_params
            Passed to `plot`.
        """
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

    def _verdict(self) -> str:
        if isinstance(self.certificate, Audit):
            baseline = "the baseline"
        else:
            baseline = f"the supervised {self.certificate.assumptions.model}"
        if self._is_same:
            return f"The same as {baseline}"
        known = self.certificate.assumptions.conditions() != ""
        labels = self.certificate.assumptions.labels
        if not self.certificate.n_unlabeled:
            better = "Better" if self.certificate.holds else "Worse"
            return f"{better} than {baseline} on these rows, whose {labels} are all known"
        whatever = f"whatever the {labels}" + (" within what is assumed" if known else "")
        if self.certificate.holds:
            return f"Never worse than {baseline}, {whatever}"
        if self.best_case >= 0.0:
            return f"Never better than {baseline}, {whatever}"
        return f"Not guaranteed: it depends on the unknown {labels}"

    def _axis_name(self) -> str:
        claim = self.certificate
        n = claim.n_labeled + claim.n_unlabeled
        loss = claim._loss()
        if isinstance(claim, Audit):
            low, high = claim.baseline_loss
            over, whose = f"mean over {count(n, 'row')}", "the baseline"
        else:
            low, high = claim.supervised_loss
            only = claim.rows == "unlabeled"
            n = claim.n_unlabeled if only else n
            over = f"sum over {count(n, 'unlabeled row' if only else 'row')}"
            if claim.penalty:
                over += f" plus {number(claim.penalty)} ||w||²"
            whose = f"the supervised {claim.assumptions.model}"
        size = f"between {number(low)} and {number(high)}"
        if number(low) == number(high):
            size = number(low)
        return f"change in the {loss}, {over}\n(that of {whose} is {size})"

    def _draw_sides(self, ax: Axes) -> None:
        """Draw the line at zero, and say what is on either side of it."""
        low, high = min(self.best_case, 0.0), max(self.worst_case, 0.0)
        size = (high - low) or 1.0
        # Room for words on both sides of zero, also where the bar is on one side only.
        ax.set_xlim(low - 0.15 * size, max(high + 0.15 * size, 0.35 * size))
        if low == 0.0:
            ax.set_xlim(-0.35 * size, high + 0.15 * size)
        ax.set_ylim(-1.0, 1.0)
        ax.axvline(0.0, color=ink(), linewidth=1.2, zorder=3)
        baseline = "baseline" if isinstance(self.certificate, Audit) else "supervised"
        left, right = ax.get_xlim()
        ax.axvspan(left, 0.0, color=BLUE, alpha=0.06, linewidth=0.0)
        ax.axvspan(0.0, right, color=ORANGE, alpha=0.08, linewidth=0.0)
        look: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": "small"}
        for text, shift, side in (
            (f"← better than {baseline}", -6, "right"),
            ("worse →", 6, "left"),
        ):
            ax.annotate(text, (0.0, 0.96), (shift, 0), ha=side, alpha=0.7, **look)
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
        look: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": "small"}
        look |= {"linespacing": 1.3, "path_effects": halo, "zorder": 4}
        for x, text, side in ends:
            ax.annotate(text, (x, -BAR / 2), (0, -5), ha=side, **look)


def _change(difference: float) -> str:
    if difference == 0.0:
        return "no change"
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"
