"""``neverworse demo``: what the package does, on data that everybody has, in seconds."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neverworse import __version__
from neverworse._files import write_whole
from neverworse._words import install
from neverworse.cli._common import (
    UsageError,
    check_folder,
    check_seed,
    out_path,
    parse_penalty,
    without_convergence_warnings,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neverworse import ProjectedLeastSquaresClassifier
    from neverworse._typing import AnyArray, Matrix, Vector
    from neverworse.estimators import LinearClassifier
    from neverworse.plots import ConstraintSetDisplay

TEST_SHARE = 0.3
PICTURE, N_LABELED, N_ROWS = "constraint-set.png", 4, 40
TABLE, CLINICS = "patients.csv", ("north", "south", "east")
FIRST_DAY, N_DAYS = (2024, 1, 1), 400
HOLES = 0.03  # share of cells that are empty


class Problem(NamedTuple):
    """Standardised rows, of which the training rows keep some of their labels."""

    X_train: Matrix
    y_train: AnyArray  # the true labels
    y_known: AnyArray  # what a classifier may see of them: -1 where the label is hidden
    X_test: Matrix
    y_test: AnyArray


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Hide most labels of scikit-learn's breast cancer data, compare what the classifiers make "
        "of the rest, and draw how the projection works."
    )
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    add = parser.add_argument
    add(
        "--out",
        type=out_path,
        default=Path("neverworse-demo"),
        metavar="DIR",
        help=f"where to save the picture {PICTURE} and the table {TABLE}",
    )
    add("--labels", type=int, default=40, metavar="N", help="how many training rows keep a label")
    add(
        "--alpha",
        default="loo",
        metavar="A",
        help="ridge penalty of the supervised classifier: a number (0 is the setting of the "
        "paper), or loo to choose it by exact leave-one-out",
    )
    add("--seed", type=int, default=0, metavar="N", help="random seed of the split and the labels")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the comparison and the certificate, and save the picture and a table to try."""
    from neverworse import ProjectedLeastSquaresClassifier

    check_seed(arguments.seed)
    alpha = parse_penalty("--alpha", arguments.alpha, "loo")
    problem = hide_labels(arguments.labels, arguments.seed)
    check_folder(arguments.out)
    with without_convergence_warnings():
        projected = ProjectedLeastSquaresClassifier(alpha=alpha)
        projected.fit(problem.X_train, problem.y_known)
        _print_settings(problem, projected, arguments.seed)
        _print_table(problem, projected)
        _print_certificate(problem, projected)
    arguments.out.mkdir(parents=True, exist_ok=True)
    _save_picture(arguments.out / PICTURE)
    path, content = arguments.out / TABLE, patients(arguments.labels, arguments.seed)
    write_whole(path, lambda file: file.write(content))
    print(f"The same data as a table, to try next: {path}")
    # Shells of Windows take slashes as well, and not all of them the quotes of others.
    words = ["fit", path.as_posix(), "--target", "diagnosis", "--id", "patient"]
    print(f"\n  {_program()} {shlex.join(words)}")


def _program() -> str:
    """Return what to type: ``make demo`` runs this program from an environment of its own."""
    called = Path(sys.argv[0])
    hidden = called.stem == "neverworse" and shutil.which("neverworse") is None
    if not hidden:
        return "neverworse"
    # In the name of a program, cmd.exe takes no slashes.
    return str(called) if sys.platform == "win32" else shlex.quote(str(called))


def hide_labels(n_labels: int, seed: int) -> Problem:
    """Split and standardise the data, and hide all but some labels of the training rows.

    One label of each class stays, and others at random.
    """
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    if not 2 <= n_labels < len(y_train):
        raise UsageError(
            f"--labels must be between 2 (one of each class) and {len(y_train) - 1} (of the "
            f"{len(y_train)} training rows, at least one is unlabeled), not {n_labels}."
        )
    order = np.random.default_rng(seed).permutation(len(y_train))
    first_of_class = np.unique(y_train[order], return_index=True)[1]
    order = np.concatenate([order[first_of_class], np.delete(order, first_of_class)])
    y_known = np.full_like(y_train, -1)
    kept = order[:n_labels]
    y_known[kept] = y_train[kept]
    scaler = StandardScaler().fit(X_train)  # labeled and unlabeled rows; labels play no part
    return Problem(scaler.transform(X_train), y_train, y_known, scaler.transform(X_test), y_test)


def _print_settings(
    problem: Problem, projected: ProjectedLeastSquaresClassifier, seed: int
) -> None:
    n_labels = int((problem.y_known >= 0).sum())
    n_train, n_features = problem.X_train.shape
    print(f"neverworse {__version__}: breast cancer data of scikit-learn, seed {seed}\n")
    penalty = "no penalty (alpha = 0)"
    if projected.certificate_.penalty:
        chosen = ", chosen by leave-one-out" if projected.alpha == "loo" else ""
        penalty = (
            f"the ridge penalty alpha = {projected.certificate_.penalty:.4g}{chosen}; the "
            "constraint set and the loss of the guarantee have the same penalty"
        )
    said = (
        f"Of the {n_train} training rows, {n_labels} keep their labels, and the other "
        f"{n_train - n_labels} are unlabeled. {len(problem.y_test)} test rows are held out. The "
        f"{n_features} features are standardised on the training rows. The supervised classifier "
        f"is least squares on the {n_labels} labels with {penalty}."
    )
    print(wrapped(said))


def _print_table(problem: Problem, projected: ProjectedLeastSquaresClassifier) -> None:
    from neverworse import ICLSClassifier, LeastSquaresClassifier

    X, y = problem.X_train, problem.y_train
    icls = ICLSClassifier(alpha=projected.alpha).fit(X, problem.y_known)
    oracle = LeastSquaresClassifier(projected.certificate_.penalty).fit(X, y)
    n_labels = int((problem.y_known >= 0).sum())
    both = f"{n_labels} labels, {len(y)} rows"
    train, test = f"{len(y)} training rows", f"{len(problem.y_test)} test rows"
    print(f"\n{'':10}  {'':20}  {train:>17}  {test:>17}")
    print(f"{'classifier':10}  {'trained on':20}" + f"  {'error':>8} {'loss':>8}" * 2)
    for name, trained_on, classifier in (
        ("supervised", f"{n_labels} labels", projected.supervised_),
        ("projected", both, projected),
        ("ICLS", both, icls),
        ("oracle", f"{len(y)} labels", oracle),
    ):
        measured = (
            _measures(classifier, *rows) for rows in ((X, y), (problem.X_test, problem.y_test))
        )
        print(f"{name:10}  {trained_on:20}  {'  '.join(measured)}")
    print("\nerror  share of rows in the wrong class")
    print("loss   mean squared difference of score and label (0 or 1)\n")
    said = (
        "Both are measured with the true labels of all rows. Proved: on the training rows, the "
        f"loss of projected{_plus_penalty(projected)} is never above that of supervised, "
        "whatever the hidden labels are. Nothing is proved about errors, test rows or ICLS."
    )
    print(wrapped(said))


def _measures(classifier: LinearClassifier, X: Matrix, y: AnyArray) -> str:
    error = (classifier.predict(X) != y).mean()
    return f"{error:>8.1%} {_total_loss(classifier, X, y) / len(y):>8.4f}"


def _total_loss(classifier: LinearClassifier, X: Matrix, y: AnyArray) -> float:
    from neverworse.estimators import class_scores

    return float(((class_scores(classifier, X)[:, 1] - y) ** 2).sum())


def _print_certificate(problem: Problem, projected: ProjectedLeastSquaresClassifier) -> None:
    print("\nCertificate of projected (here, losses are sums over the training rows)\n")
    print(wrapped(projected.certificate_.summary(), indent="  "))
    before, after = (
        _total_loss(model, problem.X_train, problem.y_train)
        + projected.certificate_.penalty * float((model.coef_**2).sum())
        for model in (projected.supervised_, projected)
    )
    outcome = f"{after:.4g} instead of {before:.4g}, lower by {before - after:.4g}"
    said = (
        "With the true labels, which no classifier but the oracle saw, the loss"
        f"{_plus_penalty(projected)} is {'the same' if after == before else outcome}."
    )
    print(f"\n{wrapped(said)}")


def _plus_penalty(projected: ProjectedLeastSquaresClassifier) -> str:
    return " plus its penalty" if projected.certificate_.penalty else ""


def _save_picture(path: Path) -> None:
    print()
    if find_spec("matplotlib") is None:
        print(f"No picture: matplotlib is missing. {install('plots')}")
        return
    figure = draw()
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=160))
    print(f"Picture of a projection in two dimensions: {path}")


def draw() -> Figure:
    """Draw three classifiers of one feature: their scores, and their weights.

    The rows are of two overlapping classes, and those with a label happen to be well apart: a line
    through them is so steep that no labeling of all rows could produce it.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
    from neverworse.plots import ConstraintSetDisplay

    rng = np.random.default_rng(327)
    y_true = np.tile([0, 1], N_ROWS // 2)
    x = rng.normal(size=N_ROWS) + 0.8 * (2 * y_true - 1)
    y = np.where(np.arange(N_ROWS) < N_LABELED, y_true, -1)
    projected = ProjectedLeastSquaresClassifier(alpha=0.0).fit(x[:, None], y)
    oracle = LeastSquaresClassifier().fit(x[:, None], y_true)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    scores, weights = figure.subplots(1, 2)
    _draw_scores(scores, x, y, projected, oracle)
    scores.set_title("Three classifiers of one feature: score = weight · x1 + intercept", size=10.5)
    display = ConstraintSetDisplay.from_estimator(
        projected, x[:, None], y, y_true=y_true, ax=weights, legend=False
    )
    _name_parts(display)
    weights.set_title("Their weights, and all weights that some labeling gives", size=10.5)
    return figure


def _draw_scores(
    ax: Axes,
    x: Vector,
    y: AnyArray,
    projected: ProjectedLeastSquaresClassifier,
    oracle: LinearClassifier,
) -> None:
    """Draw the labels, and each classifier's score as a line."""
    import numpy as np

    from neverworse._palette import BLUE, GREEN, GREY, ORANGE
    from neverworse.estimators import class_scores

    labeled = y >= 0
    ends = np.array([x.min() - 0.3, x.max() + 0.3])
    for label in (0.0, 1.0):
        ax.axhline(label, color=GREY, linewidth=0.6, zorder=0)
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 3)), zorder=0)
    for name, classifier, colour, style in (
        (f"supervised: {N_LABELED} labels", projected.supervised_, ORANGE, (0, (6, 2))),
        (f"projected: {N_LABELED} labels, {N_ROWS} rows", projected, BLUE, "solid"),
        (f"oracle: all {N_ROWS} labels", oracle, GREEN, (0, (6, 2, 1, 2))),
    ):
        score = class_scores(classifier, ends[:, None])[:, 1]
        ax.plot(ends, score, color=colour, linestyle=style, linewidth=1.8, label=name)
    marks: dict[str, Any] = {"linestyle": "none", "color": "black"}
    diamonds = marks | {"marker": "D", "markersize": 7, "markeredgecolor": "white", "zorder": 3}
    ax.plot(x[labeled], y[labeled], **diamonds, label=f"{labeled.sum()} labeled rows")
    ticks = marks | {"marker": "|", "markersize": 11, "transform": ax.get_xaxis_transform()}
    away = x[~labeled]
    ax.plot(away, np.full(len(away), 0.03), **ticks, label=f"{len(away)} unlabeled rows")
    ax.set_xlim(*ends)
    ax.set_yticks([0.0, 0.5, 1.0], ["label 0", "0.5", "label 1"])
    ax.set_xlabel("x1")
    ax.set_ylabel("score")
    ax.legend(loc="upper left", framealpha=1.0, edgecolor="white")


def _name_parts(display: ConstraintSetDisplay) -> None:
    """Write the names beside what they name: there is room, and a legend is one look further."""
    from neverworse._palette import BLUE, GREEN, GREY, ORANGE
    from neverworse.plots import equidistant

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
        look: dict[str, Any] = {"textcoords": "offset points", "ha": align, "color": colour}
        display.ax_.annotate(name, (float(point[0]), float(point[1])), offset, **look)


def patients(n_labels: int, seed: int) -> bytes:
    """Return the breast cancer data as CSV: few diagnoses, ids, and columns that mean nothing."""
    import csv
    import datetime as dt
    import io

    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    rng = np.random.default_rng(seed)
    n_rows, n_features = data.data.shape
    kept = set(rng.permutation(n_rows)[:n_labels].tolist())
    empty = rng.random((n_rows, n_features)) < HOLES
    clinics = rng.integers(0, len(CLINICS), n_rows)
    days = rng.integers(0, N_DAYS, n_rows)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["patient", *data.feature_names, "clinic", "seen", "diagnosis"])
    for k, row in enumerate(data.data):
        numbers = ["" if hole else f"{x:g}" for x, hole in zip(row, empty[k], strict=True)]
        seen = dt.date(*FIRST_DAY) + dt.timedelta(days=int(days[k]))
        diagnosis = data.target_names[data.target[k]] if k in kept else ""
        table.writerow([f"P{k + 1:03d}", *numbers, CLINICS[clinics[k]], seen, diagnosis])
    return text.getvalue().encode()
