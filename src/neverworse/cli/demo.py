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
    add_seed,
    aligned,
    check_folder,
    number,
    out_path,
    without_convergence_warnings,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neverworse import ProjectedLeastSquaresClassifier
    from neverworse._typing import AnyArray, Matrix, Vector
    from neverworse.estimators import LinearClassifier

N_TRAIN = 398  # of the 569 rows; the others are for tests
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
    add = parser.add_argument
    add(
        "--out",
        type=out_path,
        default=Path("neverworse-demo"),
        metavar="DIR",
        help=f"folder for the picture {PICTURE} and the table {TABLE} (default: neverworse-demo)",
    )
    add(
        "--labels",
        type=number(int, 2, N_TRAIN - 1),
        default=40,
        metavar="N",
        help="number of training rows that keep their label (default: 40)",
    )
    add_seed(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the comparison and the certificate, and save the picture and a table to try."""
    from neverworse import ProjectedLeastSquaresClassifier

    check_folder(arguments.out)
    problem = hide_labels(arguments.labels, arguments.seed)
    with without_convergence_warnings():
        projected = ProjectedLeastSquaresClassifier().fit(problem.X_train, problem.y_known)
        _print_settings(problem, projected, arguments.labels, arguments.seed)
        _print_table(problem, projected, arguments.labels)
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
    """Split and standardise the data, and hide all but some labels of the training rows."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from neverworse.model_selection import mask_labels

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=N_TRAIN, stratify=y, random_state=seed
    )
    y_known = mask_labels(y_train, n_labeled=n_labels, stratify=True, random_state=seed)
    scaler = StandardScaler().fit(X_train)  # labeled and unlabeled rows; labels play no part
    return Problem(scaler.transform(X_train), y_train, y_known, scaler.transform(X_test), y_test)


def _print_settings(
    problem: Problem, projected: ProjectedLeastSquaresClassifier, n_labels: int, seed: int
) -> None:
    n_train, n_features = problem.X_train.shape
    print(f"neverworse {__version__}: breast cancer data of scikit-learn, seed {seed}\n")
    said = (
        f"Of the {n_train} training rows, {n_labels} keep their labels, and the other "
        f"{n_train - n_labels} are unlabeled. {len(problem.y_test)} test rows are held out. The "
        f"{n_features} features are standardised on the training rows. The supervised classifier "
        f"is least squares on the {n_labels} labels with the ridge penalty alpha = "
        f"{projected.certificate_.penalty:.4g}, chosen by leave-one-out; the constraint set and "
        "the loss of the guarantee have the same penalty."
    )
    print(f"{wrapped(said)}\n")


def _print_table(
    problem: Problem, projected: ProjectedLeastSquaresClassifier, n_labels: int
) -> None:
    from neverworse import ICLSClassifier, LeastSquaresClassifier

    X, y = problem.X_train, problem.y_train
    both = f"{n_labels} labels, {len(y)} rows"
    oracle = LeastSquaresClassifier(projected.certificate_.penalty)
    rows = []
    for name, trained_on, classifier in (
        ("supervised", f"{n_labels} labels", projected.supervised_),
        ("projected", both, projected),
        ("ICLS", both, ICLSClassifier().fit(X, problem.y_known)),
        ("oracle", f"{len(y)} labels", oracle.fit(X, y)),
    ):
        measured = []
        for part, truth in ((X, y), (problem.X_test, problem.y_test)):
            measured.append(f"{(classifier.predict(part) != truth).mean():.1%}")
            measured.append(f"{_total_loss(classifier, part, truth) / len(truth):.4f}")
        rows.append((name, trained_on, *measured))
    head = ("classifier", "trained on", "error", "loss", "test error", "test loss")
    print(aligned(head, rows, right=(2, 3, 4, 5)))
    print("\nerror  share of rows in the wrong class, on the training rows and on the test rows")
    print("loss   mean squared difference of score and label (0 or 1)\n")
    said = (
        "Both are measured with the true labels of all rows. Proved: on the training rows, the "
        "loss of projected plus its penalty is never above that of supervised, whatever the "
        "hidden labels are. Nothing is proved about errors, test rows or ICLS."
    )
    print(wrapped(said))


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
    said = (
        "With the true labels, which no classifier but the oracle saw, the loss plus its penalty "
        f"is {after:.4g} instead of {before:.4g}, lower by {before - after:.4g}."
    )
    print(f"\n{wrapped(said)}\n")


def _save_picture(path: Path) -> None:
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
    above: dict[str, Any] = {"size": 10.5, "pad": 42}  # the legend of the weights
    _draw_scores(scores, x, y, projected, oracle)
    scores.set_title("Three classifiers of one feature: score = weight · x1 + intercept", **above)
    ConstraintSetDisplay.from_estimator(projected, x[:, None], y, y_true=y_true, ax=weights)
    weights.set_title("Their weights, and all weights that some labeling gives", **above)
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
