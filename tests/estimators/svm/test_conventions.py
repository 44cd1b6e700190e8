"""What all classifiers of neverworse have in common, for the support vector classifiers."""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import L2SVMClassifier, SafeSVMClassifier, TransductiveSVMClassifier

VARIANTS = [
    (L2SVMClassifier, {}),
    (TransductiveSVMClassifier, {}),
    (TransductiveSVMClassifier, {"method": "annealing"}),
    (SafeSVMClassifier, {"n_samples": 5}),
]
DEFAULT_FAILURES = {
    "check_classifiers_classes": "uses the classes -1 and +1, which the default refuses to guess"
}


@parametrize_with_checks([cls(missing_label=np.nan, **options) for cls, options in VARIANTS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [cls(**options) for cls, options in VARIANTS],
    expected_failed_checks=lambda _: DEFAULT_FAILURES,
)
def test_scikit_learn_checks_with_default_parameters(estimator, check):
    check(estimator)
