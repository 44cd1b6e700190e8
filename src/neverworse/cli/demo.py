"""``neverworse demo``: what the package does, on data that everybody has, in seconds."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from neverworse import __version__
from neverworse._extras import install
from neverworse._files import write_whole
from neverworse.cli._arguments import parse_penalty
from neverworse.cli._common import (
    UsageError,
    check_seed,
    make_folder,
    out_path,
    without_convergence_warnings,
    wrapped,
)

if TYPE_CHECKING:
    from neverworse import ProjectedLeastSquaresClassifier
    from neverworse._typing import AnyArray, Matrix
    from neverworse.estimators import LinearClassifier

TEST_SHARE = 0.3
PICTURE = "constraint-set.png"
TABLE = "patients.csv"


@dataclass(frozen=True)
class Problem:
    """Standardised rows, of which the training rows keep some of their labels.

    Attributes
    ----------
    X_train, y_train : arrays
        Training rows, and the true labels of all of them.
    y_known : array
        What a classifier may see of `y_train`: -1 where the label is hidden.
    X_test, y_test : arrays
        Rows that no classifier sees.
    """

    X_train: Matrix
    y_train: AnyArray
    y_known: AnyArray
    X_test: Matrix
    y_test: AnyArray


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of the command line."""
    parser = commands.add_parser(
        "demo",
        help="compare supervised, projected, ICLS and oracle on a small data set",
        description="Hide most labels of scikit-learn's breast cancer data, compare what the "
        "classifiers make of the rest, and draw how the projection works.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--out",
        type=out_path,
        default=Path("neverworse-demo"),
        metavar="DIR",
        help=f"where to save the picture {PICTURE} and the table {TABLE}",
    )
    parser.add_argument(
        "--labels", type=int, default=40, metavar="N", help="how many training rows keep a label"
    )
    parser.add_argument(
        "--alpha",
        default="loo",
        metavar="A",
        help="ridge penalty of the supervised classifier: a number (0 is the setting of the "
        "paper), or loo to choose it by exact leave-one-out",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="for the split and the choice of labels"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the comparison and the certificate, and save the picture and a table to try."""
    from neverworse import ProjectedLeastSquaresClassifier

    check_seed(arguments.seed)
    alpha = parse_penalty("--alpha", arguments.alpha, "loo")
    problem = hide_labels(arguments.labels, arguments.seed)
    # Made now, so that a folder that cannot be used is known before anything is printed.
    make_folder(arguments.out)
    with without_convergence_warnings():
        projected = ProjectedLeastSquaresClassifier(alpha=alpha)
        projected.fit(problem.X_train, problem.y_known)
        _print_settings(problem, projected, arguments.seed)
        _print_table(problem, projected)
        _print_certificate(problem, projected)
    _save_picture(arguments.out / PICTURE)
    _save_table(arguments.out / TABLE, arguments.labels, arguments.seed)


def hide_labels(n_labels: int, seed: int) -> Problem:
    """Split and standardise the data, and hide all but some labels of the training rows.

    Parameters
    ----------
    n_labels : int
        How many labels stay: one of each class, and the others at random.
    seed : int
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
            "constraint set and the loss of the guarantee have the same one"
        )
    print(
        wrapped(
            f"Of {n_train} training rows {n_labels} keep their label; those without: "
            f"{n_train - n_labels}. {len(problem.y_test)} test rows are held out. {n_features} "
            "features, standardised on the training rows. The supervised classifier is least "
            f"squares on the {n_labels} labels with {penalty}."
        )
    )


def _print_table(problem: Problem, projected: ProjectedLeastSquaresClassifier) -> None:
    from neverworse import ICLSClassifier, LeastSquaresClassifier

    icls = ICLSClassifier(alpha=projected.alpha).fit(problem.X_train, problem.y_known)
    oracle = LeastSquaresClassifier(projected.certificate_.penalty)
    oracle.fit(problem.X_train, problem.y_train)
    n_train = len(problem.y_train)
    n_labels = int((problem.y_known >= 0).sum())
    both = f"{n_labels} labels, {n_train} rows"
    lines = [
        ("supervised", f"{n_labels} labels", projected.supervised_),
        ("projected", both, projected),
        ("ICLS", both, icls),
        ("oracle", f"{n_train} labels", oracle),
    ]
    print()
    train, test = f"{n_train} training rows", f"{len(problem.y_test)} test rows"
    print(f"{'':10}  {'':20}  {train:>17}  {test:>17}")
    print(f"{'classifier':10}  {'trained on':20}" + f"  {'error':>8} {'loss':>8}" * 2)
    for name, trained_on, classifier in lines:
        print(
            f"{name:10}  {trained_on:20}  "
            f"{_measures(classifier, problem.X_train, problem.y_train)}  "
            f"{_measures(classifier, problem.X_test, problem.y_test)}"
        )
    print()
    print("error  share of rows in the wrong class")
    print("loss   mean squared difference of score and label (0 or 1)")
    print()
    print(
        wrapped(
            "Both are measured with the true labels of all rows. Proved: on the training rows, the "
            f"loss of projected{_plus_penalty(projected)} is never above that of supervised, "
            "whatever the hidden labels are. Nothing is proved about errors, test rows or ICLS."
        )
    )


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
    outcome = f"the loss{_plus_penalty(projected)} is the same"
    if after != before:
        outcome = (
            f"the loss{_plus_penalty(projected)} is {after:.4g} instead of {before:.4g}, lower by "
            f"{before - after:.4g}"
        )
    print()
    print(wrapped(f"With the true labels, which no classifier but the oracle saw, {outcome}."))


def _plus_penalty(projected: ProjectedLeastSquaresClassifier) -> str:
    return " plus its penalty" if projected.certificate_.penalty else ""


def _save_picture(path: Path) -> None:
    print()
    if find_spec("matplotlib") is None:
        print(f"No picture: matplotlib is missing. {install('plots')}")
        return
    from neverworse.cli._demo_picture import draw

    figure = draw()
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=160))
    print(f"Picture of a projection in two dimensions: {path}")


def _save_table(path: Path, n_labels: int, seed: int) -> None:
    from neverworse.cli._demo_table import patients

    content = patients(n_labels, seed)
    write_whole(path, lambda file: file.write(content))
    print(f"The same data as a table, to go on with: {path}")
    command = ["neverworse", "fit", str(path), "--target", "diagnosis", "--id", "patient"]
    print(f"\n  {shlex.join(command)}")
