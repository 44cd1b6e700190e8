"""The picture of ``neverworse demo``: a projection in two dimensions, and what it means."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse._typing import AnyArray, Vector
from neverworse.estimators import LinearClassifier, class_scores
from neverworse.plots import ConstraintSetDisplay
from neverworse.plots._constraint_set import equidistant
from neverworse.plots._drawing import BLUE, GREEN, GREY, ORANGE

N_LABELED, N_ROWS = 4, 40


def draw() -> Figure:
    """Draw three classifiers of one feature: their scores, and their weights."""
    x, y_true, y = _example()
    X = x[:, None]
    projected = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    oracle = LeastSquaresClassifier().fit(X, y_true)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    scores, weights = figure.subplots(1, 2)
    _draw_scores(scores, x, y, projected, oracle)
    scores.set_title("Three classifiers of one feature: score = weight · x1 + intercept", size=10.5)
    display = ConstraintSetDisplay.from_estimator(
        projected, X, y, y_true=y_true, ax=weights, legend=False
    )
    _name_parts(display)
    weights.set_title("Their weights, and all weights that some labeling gives", size=10.5)
    return figure


def _example() -> tuple[Vector, AnyArray, AnyArray]:
    """Return rows of one feature, their true labels, and the few labels that are known.

    Two overlapping classes, of which the labeled rows happen to be well apart: a line through them
    is so steep that no labeling of all rows could produce it.
    """
    rng = np.random.default_rng(327)
    y_true = np.tile([0, 1], N_ROWS // 2)
    x = rng.normal(size=N_ROWS) + 0.8 * (2 * y_true - 1)
    return x, y_true, np.where(np.arange(N_ROWS) < N_LABELED, y_true, -1)


def _draw_scores(
    ax: Axes,
    x: Vector,
    y: AnyArray,
    projected: ProjectedLeastSquaresClassifier,
    oracle: LinearClassifier,
) -> None:
    """Draw the labels, and each classifier's score as a line."""
    labeled = y >= 0
    ends = np.array([x.min() - 0.3, x.max() + 0.3])
    for label in (0.0, 1.0):
        ax.axhline(label, color=GREY, linewidth=0.6, zorder=0)
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 3)), zorder=0)
    lines = (
        (f"supervised: {N_LABELED} labels", projected.supervised_, ORANGE, (0, (6, 2))),
        (f"projected: {N_LABELED} labels, {N_ROWS} rows", projected, BLUE, "solid"),
        (f"oracle: all {N_ROWS} labels", oracle, GREEN, (0, (6, 2, 1, 2))),
    )
    for name, classifier, colour, style in lines:
        score = class_scores(classifier, ends[:, None])[:, 1]
        ax.plot(ends, score, color=colour, linestyle=style, linewidth=1.8, label=name)
    ax.plot(
        x[labeled],
        y[labeled],
        linestyle="none",
        marker="D",
        markersize=7,
        color="black",
        markeredgecolor="white",
        zorder=3,
        label=f"{labeled.sum()} labeled rows",
    )
    ax.plot(
        x[~labeled],
        np.full((~labeled).sum(), 0.03),
        transform=ax.get_xaxis_transform(),
        linestyle="none",
        marker="|",
        markersize=11,
        color="black",
        label=f"{(~labeled).sum()} unlabeled rows",
    )
    ax.set_xlim(*ends)
    ax.set_yticks([0.0, 0.5, 1.0], ["label 0", "0.5", "label 1"])
    ax.set_xlabel("x1")
    ax.set_ylabel("score")
    ax.legend(loc="upper left", framealpha=1.0, edgecolor="white")


def _name_parts(display: ConstraintSetDisplay) -> None:
    """Write the names beside what they name: there is room, and a legend is one look further."""
    ellipse = equidistant(display.supervised, display.projected, display.metric)
    assert display.oracle is not None
    assert ellipse is not None
    for name, point, offset, colour, align in (
        ("supervised", display.supervised, (9, 5), ORANGE, "left"),
        ("projected", display.projected, (-8, 6), BLUE, "right"),
        ("oracle", display.oracle, (0, -17), GREEN, "center"),
        ("constraint set", display.constraint_set.mean(axis=0), (-20, 0), BLUE, "center"),
        ("equally far from supervised", ellipse[ellipse[:, 1].argmin()], (8, -15), GREY, "center"),
    ):
        display.ax_.annotate(
            name,
            xy=(float(point[0]), float(point[1])),
            xytext=offset,
            textcoords="offset points",
            horizontalalignment=align,
            color=colour,
        )
