"""``neverworse demo``: what the package does, on data that everybody has, in seconds."""

from __future__ import annotations

import argparse
import csv
import io
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    __version__,
)
from neverworse._files import write_whole
from neverworse._palette import BLUE, GREEN, GREY, ORANGE
from neverworse._typing import AnyArray, Matrix
from neverworse._words import install
from neverworse.cli import _common as common
from neverworse.cli._options import N_DEMO
from neverworse.estimators import LinearClassifier, class_scores
from neverworse.model_selection import mask_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE, N_LABELED, N_ROWS = "constraint-set.png", 4, 40
TABLE, CLINICS = "patients.csv", ("north", "south", "east")
FIRST_DAY, N_DAYS = "2024-01-01", 400
EMPTY_SHARE = 0.03  # of the cells
Rows = tuple[Matrix, AnyArray]  # with their true labels


def run(arguments: argparse.Namespace) -> None:
    """Print the comparison and the certificate, and save the picture and a table to try."""
    common.check_folder(arguments.out)
    train, test, y_known = hide_labels(arguments.labels, arguments.seed)
    print(f"neverworse {__version__}: breast cancer data of scikit-learn, seed {arguments.seed}\n")
    with common.without_convergence_warnings():
        projected = ProjectedLeastSquaresClassifier().fit(train[0], y_known)
        icls = ICLSClassifier().fit(train[0], y_known)
    _print_comparison(projected, icls, train, test, arguments.labels)
    _print_certificate(projected, *train)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if find_spec("matplotlib") is None:
        print(f"No picture: matplotlib is missing. {install('plots')}")
    else:
        path, figure = arguments.out / PICTURE, draw()
        write_whole(path, lambda file: figure.savefig(file, format="png", dpi=160))
        print(f"Picture of a projection in two dimensions: {path}")
    path, content = arguments.out / TABLE, patients(arguments.labels, arguments.seed)
    write_whole(path, lambda file: file.write(content))
    print(f"The same data as a table, to try next: {path}")
    # Shells of Windows take slashes as well, and not all of them the quotes of others.
    words = ["fit", path.as_posix(), "--target", "diagnosis", "--id", "patient"]
    print(f"\n  {_program()} {shlex.join(words)}")


def _program() -> str:
    """Return what to type to run this program: its path if shells do not find it by its name."""
    called = Path(sys.argv[0])
    if called.stem != "neverworse" or shutil.which("neverworse") is not None:
        return "neverworse"
    # In the name of a program, cmd.exe takes no slashes.
    return str(called) if sys.platform == "win32" else shlex.quote(str(called))


def hide_labels(n_labels: int, seed: int) -> tuple[Rows, Rows, AnyArray]:
    """Return standardised training and test rows, and training labels of which most are -1."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=N_DEMO, stratify=y, random_state=seed
    )
    y_known = mask_labels(y_train, n_labeled=n_labels, stratify=True, random_state=seed)
    scaler = StandardScaler().fit(X_train)  # on labeled and unlabeled rows
    return (scaler.transform(X_train), y_train), (scaler.transform(X_test), y_test), y_known


def _print_comparison(
    projected: ProjectedLeastSquaresClassifier,
    icls: ICLSClassifier,
    train: Rows,
    test: Rows,
    n_labels: int,
) -> None:
    X, y = train
    alpha = projected.certificate_.penalty
    text = (
        f"Of the {len(y)} training rows, {n_labels} keep their labels, and the other "
        f"{len(y) - n_labels} are unlabeled. {len(test[1])} test rows are held out. The "
        f"{X.shape[1]} features are standardised on the training rows. The supervised classifier "
        f"is least squares on the {n_labels} labels with the ridge penalty alpha = {alpha:.4g}, "
        "chosen by leave-one-out; the constraint set and the loss of the guarantee have the same "
        "penalty."
    )
    print(f"{common.wrapped(text)}\n")
    both = f"{n_labels} labels, {len(y)} rows"
    rows = []
    for name, trained_on, classifier in (
        ("supervised", f"{n_labels} labels", projected.supervised_),
        ("projected", both, projected),
        ("ICLS", both, icls),
        ("oracle", f"{len(y)} labels", LeastSquaresClassifier(alpha).fit(X, y)),
    ):
        row = [name, trained_on]
        for part, truth in (train, test):
            row.append(f"{(classifier.predict(part) != truth).mean():.1%}")
            row.append(f"{_total_loss(classifier, part, truth) / len(truth):.4f}")
        rows.append(row)
    head = ("classifier", "trained on", "error", "loss", "test error", "test loss")
    print(common.aligned(head, rows, right=(2, 3, 4, 5)))
    print("\nerror  share of rows in the wrong class, on the training rows and on the test rows")
    print("loss   mean squared difference of score and label (0 or 1)\n")
    text = (
        "Both are measured with the true labels of all rows. Proved: on the training rows, the "
        "loss of projected plus its penalty is never above that of supervised, whatever the "
        "hidden labels are. Nothing is proved about errors, test rows or ICLS."
    )
    print(common.wrapped(text))


def _total_loss(classifier: LinearClassifier, X: Matrix, y: AnyArray) -> float:
    return float(((class_scores(classifier, X)[:, 1] - y) ** 2).sum())


def _print_certificate(projected: ProjectedLeastSquaresClassifier, X: Matrix, y: AnyArray) -> None:
    print("\nCertificate of projected (here, losses are sums over the training rows)\n")
    print(common.wrapped(projected.certificate_.summary(), "  "))
    before, after = (
        _total_loss(model, X, y) + projected.certificate_.penalty * float((model.coef_**2).sum())
        for model in (projected.supervised_, projected)
    )
    text = (
        "With the true labels, which no classifier but the oracle saw, the loss plus its penalty "
        f"is {after:.4g} instead of {before:.4g}, lower by {before - after:.4g}."
    )
    print(f"\n{common.wrapped(text)}\n")


def draw() -> Figure:
    """Draw three classifiers of one feature: their scores, and their weights.

    The two classes overlap, but the rows with a label happen to be far apart: a line through them
    is so steep that no labeling of all rows gives it.
    """
    from matplotlib.figure import Figure

    from neverworse.plots import ConstraintSetDisplay

    rng = np.random.default_rng(327)
    y_true = np.tile([0, 1], N_ROWS // 2)
    x = rng.normal(size=N_ROWS) + 0.8 * (2 * y_true - 1)
    y = np.where(np.arange(N_ROWS) < N_LABELED, y_true, -1)
    labeled, unlabeled = x[y >= 0], x[y < 0]
    projected = ProjectedLeastSquaresClassifier(alpha=0.0).fit(x[:, None], y)
    oracle = LeastSquaresClassifier().fit(x[:, None], y_true)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    scores, weights = figure.subplots(1, 2)
    title: dict[str, Any] = {"size": 10.5, "pad": 42}  # above the legend of the weights

    for label, style in ((0.0, "solid"), (0.5, "dotted"), (1.0, "solid")):
        scores.axhline(label, color=GREY, linewidth=0.6, linestyle=style)
    ends = np.array([x.min() - 0.3, x.max() + 0.3])
    for name, classifier, colour, dashes in (
        (f"supervised: {N_LABELED} labels", projected.supervised_, ORANGE, (6, 2)),
        (f"projected: {N_LABELED} labels, {N_ROWS} rows", projected, BLUE, ()),
        (f"oracle: all {N_ROWS} labels", oracle, GREEN, (6, 2, 1, 2)),
    ):
        score = class_scores(classifier, ends[:, None])[:, 1]
        scores.plot(ends, score, color=colour, dashes=dashes, linewidth=1.8, label=name)
    name = f"{len(labeled)} labeled rows"
    diamonds: dict[str, Any] = {"markersize": 7, "markeredgecolor": "white", "zorder": 3}
    scores.plot(labeled, y[y >= 0], "kD", label=name, **diamonds)
    name, at = f"{len(unlabeled)} unlabeled rows", scores.get_xaxis_transform()
    scores.plot(unlabeled, 0.03 + 0 * unlabeled, "k|", markersize=11, label=name, transform=at)
    scores.set(xlim=ends, xlabel="x1", ylabel="score")
    scores.set_yticks([0.0, 0.5, 1.0], ["label 0", "0.5", "label 1"])
    scores.legend(loc="upper left", framealpha=1.0, edgecolor="white")
    scores.set_title("Three classifiers of one feature: score = weight · x1 + intercept", **title)

    ConstraintSetDisplay.from_estimator(projected, x[:, None], y, y_true=y_true, ax=weights)
    weights.set_title("Their weights, and all weights that some labeling gives", **title)
    return figure


def patients(n_labels: int, seed: int) -> bytes:
    """Return the breast cancer data as CSV: few diagnoses, ids, and two irrelevant columns."""
    data = load_breast_cancer()
    rng = np.random.default_rng(seed)
    n_rows = len(data.data)
    labeled = np.isin(np.arange(n_rows), rng.permutation(n_rows)[:n_labels])
    numbers = np.where(rng.random(data.data.shape) < EMPTY_SHARE, "", np.char.mod("%g", data.data))
    clinics = np.array(CLINICS)[rng.integers(0, len(CLINICS), n_rows)]
    days = np.datetime64(FIRST_DAY) + rng.integers(0, N_DAYS, n_rows)
    diagnoses = np.where(labeled, data.target_names[data.target], "")
    ids = np.char.mod("P%03d", np.arange(1, n_rows + 1))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["patient", *data.feature_names, "clinic", "seen", "diagnosis"])
    table.writerows(np.column_stack([ids, numbers, clinics, days.astype(str), diagnoses]))
    return text.getvalue().encode()
