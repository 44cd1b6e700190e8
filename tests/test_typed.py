"""The package is typed: what a type checker tells somebody who uses it."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PROGRAM = '''
"""A program as people write it, under mypy --strict."""

from typing import Any

import numpy as np

from neverworse import (
    Audit,
    Certificate,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
    SequentialAudit,
    audit,
    suggest_labels,
)
from neverworse.model_selection import StratifiedLabeledKFold, mask_labels
from neverworse.plots import CertificateDisplay


def certified(X: Any, y: Any) -> Certificate:
    clf: ProjectedLeastSquaresClassifier = ProjectedLeastSquaresClassifier(alpha="loo").fit(X, y)
    return clf.certificate_


def least(certificate: Certificate) -> float:
    return certificate.guaranteed_improvement if certificate.holds else 0.0


def compared(X: Any, y: Any) -> tuple[Audit, str]:
    clf = ProjectedLeastSquaresClassifier().fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    question = SequentialAudit(LeastSquaresClassifierCV().fit(X, y), clf, X)
    return found, found.summary() + question.summary()


X = np.zeros((4, 1))
y = mask_labels([0, 1, 0, 1], n_labeled=2)
rows = suggest_labels(X, y, 1).rows
folds = StratifiedLabeledKFold(2).split(X, y)
display: CertificateDisplay = CertificateDisplay(certified(X, y))
least("no certificate")
certified(X, y).no_such_attribute
ProjectedLeastSquaresClassifier(alhpa=0.0)
'''


def test_a_strict_checker_knows_the_types_and_finds_the_mistakes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    checked = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--config-file=", "--no-error-summary"),
            *("--no-pretty", "--hide-error-context", f"--cache-dir={tmp_path / 'cache'}"),
            str(program),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    lines = PROGRAM.splitlines()
    found = [each.split(":", 2)[1:] for each in checked.stdout.splitlines() if ": error:" in each]
    wrong = [(lines[int(line) - 1], said.rsplit("[", 1)[1].rstrip("]")) for line, said in found]
    assert wrong == [
        ('least("no certificate")', "arg-type"),
        ("certified(X, y).no_such_attribute", "attr-defined"),
        ("ProjectedLeastSquaresClassifier(alhpa=0.0)", "call-arg"),
    ], checked.stdout + checked.stderr
