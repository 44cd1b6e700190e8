"""How a fit tells people where it is, and fits that do not come to an end."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from neverworse.methods import NullCategoryNoiseModel
from tests.estimators.callbacks import Callback
from tests.methods.null_category.problems import fixed, make


def test_verbose_writes_a_line_for_every_step(capsys):
    X, y, _ = make()
    clf = NullCategoryNoiseModel(verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert any("(12 rows)" in line for line in lines)
    assert f"log marginal likelihood {clf.log_marginal_likelihood_:.6g} (60 rows)" in "".join(lines)


def test_callback_may_stop_the_search():
    pytest.importorskip("sklearn.callback")
    X, y, _ = make()
    seen = []
    stop = Callback(lambda stage: seen.append(stage) or True)
    kernel = RBF(20.0)
    clf = NullCategoryNoiseModel(kernel).set_callbacks(stop).fit(X, y)
    whole = NullCategoryNoiseModel(kernel).fit(X, y)
    assert clf.log_marginal_likelihood_ < whole.log_marginal_likelihood_
    assert clf.predict_proba(X).shape == (60, 2)


def test_too_few_iterations():
    X, y, _ = make()
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations.*Raise max_iter"):
        clf = fixed(max_iter=2).fit(X, y)
    assert not clf.converged_
    assert clf.residual_ > clf.tol
    assert np.isfinite(clf.predict_proba(X)).all()
