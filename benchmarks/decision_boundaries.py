"""Draw the decision boundaries of docs/kernels.md: ``python benchmarks/decision_boundaries.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "kernels.png"
BLUE, ORANGE, GREY = "#2b6cb0", "#c05621", "#9ca3af"


def main():
    """Fit the supervised, the projected and the oracle classifier, and draw them side by side."""
    X, truth = make_moons(400, noise=0.2, random_state=3)
    y = np.where(np.arange(len(X)) < 16, truth, -1)
    projected = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=2.0, alpha=0.01).fit(X, y)
    oracle = LeastSquaresClassifier(0.01, kernel="rbf", gamma=2.0).fit(X, truth)
    models = {"supervised": projected.supervised_, "projected": projected, "oracle": oracle}
    fig, axes = plt.subplots(
        1, 3, figsize=(11, 3.9), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (name, clf) in zip(axes, models.items(), strict=True):
        settings = {"response_method": "decision_function", "ax": ax, "grid_resolution": 200}
        DecisionBoundaryDisplay.from_estimator(
            clf,
            X,
            plot_method="contourf",
            levels=[-9.0, 0.0, 9.0],
            colors=[BLUE, ORANGE],
            alpha=0.18,
            **settings,
        )
        DecisionBoundaryDisplay.from_estimator(
            clf,
            X,
            plot_method="contour",
            levels=[-0.5, 0.0, 0.5],
            colors="black",
            linestyles=[":", "-", ":"],
            linewidths=[0.8, 1.6, 0.8],
            **settings,
        )
        known = truth >= 0 if name == "oracle" else y >= 0
        ax.scatter(*X[~known].T, s=7, color=GREY, label="unlabeled")
        for code, colour in enumerate((BLUE, ORANGE)):
            mine = known & (truth == code)
            size = 9 if name == "oracle" else 42
            ax.scatter(*X[mine].T, s=size, color=colour, edgecolor="white", linewidth=0.4)
        error = 1.0 - clf.score(X, truth)
        ax.set_title(f"{name}: {100 * error:.1f} % of all rows wrong", fontsize=11)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    fig.savefig(PICTURE, dpi=110)
    print(projected.certificate_)


if __name__ == "__main__":
    main()
