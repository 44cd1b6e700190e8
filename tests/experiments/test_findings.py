"""Claims about learning curves are judged by what was measured."""

import numpy as np
import pandas as pd
import pytest

from neverworse.experiments import _findings


@pytest.mark.parametrize(
    ("change", "error", "there", "none"),
    [
        (-0.05, 0.0005, "agrees", "differs"),
        (+0.05, 0.0005, "differs", "agrees"),
        (0.0, 0.0005, "undecided", "agrees"),
        (0.0, 0.01, "undecided", "undecided"),  # too noisy to say that there is nothing
        (-0.0005, 0.0001, "agrees", "agrees"),  # there, but not to be seen in the figure
        (-0.05, np.nan, "undecided", "undecided"),  # a single repeat
    ],
)
def test_judging_claims(change, error, there, none):
    assert _findings.judge(change, error, -1, True) == there
    assert _findings.judge(change, error, -1, False) == none


def made_up_curves(errors, n=200):
    """Ionosphere with these mean errors of Self-Learning, and others that fall."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "dataset": "Ionosphere",
                "repeat": repeat,
                "method": method,
                "n_unlabeled": 2 ** (k + 1),
                "error": (error if method == "Self-Learning" else 0.3 - 0.02 * k) + noise,
                "test_loss": (0.5 if method == "Supervised" else 0.4 - 0.03 * k) + noise,
            }
            for repeat in range(n)
            for method in ("Supervised", "Self-Learning", "ICLS", "Projection")
            for k, error in enumerate(errors)
            for noise in [0.01 * rng.standard_normal()]
        ]
    )


@pytest.mark.parametrize(
    ("errors", "n", "verdict"),
    [
        ([0.3, 0.2, 0.25], 200, "agrees"),
        ([0.3, 0.25, 0.2], 200, "differs"),
        ([0.3, 0.2, 0.2], 200, "undecided"),
        ([0.3, 0.2, 0.25], 1, "undecided"),
    ],
)
def test_claims_about_curves_that_turn(errors, n, verdict):
    claims = _findings.check(made_up_curves(errors, n))
    assert claims[0].verdict == verdict
    others = {claim.verdict for claim in claims[2:]}
    assert others == ({"undecided"} if n == 1 else {"agrees"})
