"""``neverworse demo``: what the package does, on data that everybody has, in seconds."""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
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
from neverworse.estimators import class_scores
from neverworse.model_selection import mask_labels

N_LABELS, N_TRAIN = 40, 398
PICTURE, TABLE = "constraint-set.png", "patients.csv"
CLINICS, FIRST_DAY, N_DAYS = ("north", "south", "east"), "2024-01-01", 400
EMPTY_SHARE = 0.03  # of the cells of the table
Rows = tuple[Matrix, AnyArray]  # with their true labels


def run(arguments: argparse.Namespace) -> None:
    """Print the comparison and the certificate, and save the picture and a table to try."""
    common.check_folder(arguments.out)
    print(f"neverworse {__version__}: breast cancer data of scikit-learn, seed {arguments.seed}\n")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        _compare(*hide_labels(arguments.seed))
    arguments.out.mkdir(parents=True, exist_ok=True)
    if find_spec("matplotlib") is None:
        print(f"No picture: matplotlib is missing. {install('plots')}")
    else:
        draw(arguments.out / PICTURE)
        print(f"Picture of a projection in two dimensions: {arguments.out / PICTURE}")
    path, table = arguments.out / TABLE, patients(arguments.seed)
    write_whole(path, lambda file: np.savetxt(file, table, fmt="%s", delimiter=","))
    print(f"The same data as a table, to try next: {path}")
    program = sys.argv[0] if Path(sys.argv[0]).stem == "neverworse" else "neverworse"
    # Shells of Windows take slashes as well, and not all of them the quotes of others.
    words = ["fit", path.as_posix(), "--target", "diagnosis", "--id", "patient"]
    print(f"\n  {program} {shlex.join(words)}")


def hide_labels(seed: int) -> tuple[Rows, Rows, AnyArray]:
    """Return standardised training and test rows, and training labels of which most are -1."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=N_TRAIN, stratify=y, random_state=seed
    )
    y_known = mask_labels(y_train, n_labeled=N_LABELS, stratify=True, random_state=seed)
    scaler = StandardScaler().fit(X_train)  # on labeled and unlabeled rows
    return (scaler.transform(X_train), y_train), (scaler.transform(X_test), y_test), y_known


def _compare(train: Rows, test: Rows, y_known: AnyArray) -> None:
    """Fit four classifiers; print a table, and the certificate of the projected one."""
    X, y = train
    projected = ProjectedLeastSquaresClassifier().fit(X, y_known)
    certificate, supervised = projected.certificate_, projected.supervised_
    alpha = certificate.penalty
    text = (
        f"Of the {len(y)} training rows, {N_LABELS} keep their labels, and the other "
        f"{len(y) - N_LABELS} are unlabeled. {len(test[1])} test rows are held out. The supervised "
        f"classifier is least squares with the ridge penalty alpha = {alpha:.4g}, chosen by "
        "leave-one-out; the constraint set and the loss of the guarantee have the same penalty."
    )
    print(f"{common.wrapped(text)}\n")

    def loss(classifier: Any, part: Matrix, truth: AnyArray) -> float:
        return float(((class_scores(classifier, part)[:, 1] - truth) ** 2).sum())

    both = f"{N_LABELS} labels, {len(y)} rows"
    rows = []
    for name, trained_on, classifier in (
        ("supervised", f"{N_LABELS} labels", supervised),
        ("projected", both, projected),
        ("ICLS", both, ICLSClassifier().fit(X, y_known)),
        ("oracle", f"{len(y)} labels", LeastSquaresClassifier(alpha).fit(X, y)),
    ):
        row = [name, trained_on]
        for part, truth in (train, test):
            row.append(f"{(classifier.predict(part) != truth).mean():.1%}")
            row.append(f"{loss(classifier, part, truth) / len(truth):.4f}")
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
    print("\nCertificate of projected (here, losses are sums over the training rows)\n")
    print(common.wrapped(certificate.summary(), "  "))
    before, after = (
        loss(model, X, y) + alpha * float((model.coef_**2).sum())
        for model in (supervised, projected)
    )
    text = (
        "With the true labels, which no classifier but the oracle saw, the loss plus its penalty "
        f"is {after:.4g} instead of {before:.4g}, lower by {before - after:.4g}."
    )
    print(f"\n{common.wrapped(text)}\n")


def draw(path: Path, n_labeled: int = 4, n_rows: int = 40) -> None:
    """Draw three classifiers of one feature: their scores, and their weights.

    The two classes overlap, but the rows with a label happen to be far apart: a line through them
    is so steep that no labeling of all rows gives it.
    """
    from matplotlib.figure import Figure

    from neverworse.plots import ConstraintSetDisplay

    rng = np.random.default_rng(327)
    y_true = np.tile([0, 1], n_rows // 2)
    x = rng.normal(size=n_rows) + 0.8 * (2 * y_true - 1)
    X, y = x[:, None], np.where(np.arange(n_rows) < n_labeled, y_true, -1)
    projected = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    oracle = LeastSquaresClassifier().fit(X, y_true)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    scores, weights = figure.subplots(1, 2)
    ends = np.array([x.min() - 0.3, x.max() + 0.3])
    for name, classifier, colour, style in (
        (f"supervised: {n_labeled} labels", projected.supervised_, ORANGE, "dashed"),
        (f"projected: {n_labeled} labels, {n_rows} rows", projected, BLUE, "solid"),
        (f"oracle: all {n_rows} labels", oracle, GREEN, "dashdot"),
    ):
        score = class_scores(classifier, ends[:, None])[:, 1]
        scores.plot(ends, score, color=colour, linestyle=style, label=name)
    scores.plot(x[y >= 0], y[y >= 0], "kD", label=f"{n_labeled} labeled rows")
    rest = x[y < 0]
    scores.plot(rest, 0 * rest + 0.5, "|", color=GREY, label=f"{len(rest)} unlabeled rows")
    scores.set(xlim=ends, xlabel="x1", ylabel="score")
    scores.set_yticks([0.0, 0.5, 1.0], ["label 0", "0.5", "label 1"])
    scores.legend(loc="upper left")
    title: dict[str, Any] = {"size": 10.5, "pad": 42}  # above the legend of the weights
    scores.set_title("Three classifiers of one feature: score = weight · x1 + intercept", **title)
    ConstraintSetDisplay.from_estimator(projected, X, y, y_true=y_true, ax=weights)
    weights.set_title("Their weights, and all weights that some labeling gives", **title)
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=160))


def patients(seed: int) -> AnyArray:
    """Return the breast cancer data as text: few diagnoses, ids, and two irrelevant columns."""
    data = load_breast_cancer()
    rng = np.random.default_rng(seed)
    n_rows = len(data.data)
    labeled = np.isin(np.arange(n_rows), rng.permutation(n_rows)[:N_LABELS])
    numbers = np.where(rng.random(data.data.shape) < EMPTY_SHARE, "", np.char.mod("%g", data.data))
    clinics = np.array(CLINICS)[rng.integers(0, len(CLINICS), n_rows)]
    days = np.datetime64(FIRST_DAY) + rng.integers(0, N_DAYS, n_rows)
    diagnoses = np.where(labeled, data.target_names[data.target], "")
    ids = np.char.mod("P%03d", np.arange(1, n_rows + 1))
    head = ["patient", *data.feature_names, "clinic", "seen", "diagnosis"]
    return np.vstack([head, np.column_stack([ids, numbers, clinics, days.astype(str), diagnoses])])
