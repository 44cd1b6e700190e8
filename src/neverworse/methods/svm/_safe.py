"""The safe support vector classifier, known as S4VM."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from neverworse._typing import AnyArray, Mask
from neverworse.estimators import stored_weights
from neverworse.methods.svm._partly import PartlyLabeled
from neverworse.methods.svm._semi import SemiSupervisedSVM
from neverworse.methods.svm._separators import sample_separators
from neverworse.methods.svm._worst_case import improvements, safest_labels
from neverworse.projection import Weights


class SafeSVMClassifier(SemiSupervisedSVM):
    r"""Safe semi-supervised support vector classifier (S4VM): the worst case over separators.

    There are many separators of low density that a transductive machine might find. Here several
    of them are found, and the labels :math:`y` of the unlabeled rows are chosen such that they gain
    as much as possible on the supervised machine, whichever separator :math:`y^t` is right:

    .. math:: \max_{y} \min_t \; \text{gain}(y, y^t) - \lambda\, \text{loss}(y, y^t)

    where the gain is the share of unlabeled rows that y has right and the supervised machine has
    wrong, and the loss the share that it has wrong and the supervised machine has right.

    1. Many local minima of the objective of `TransductiveSVMClassifier` are found, from the labels
       of the supervised machine and from random ones, by training and labeling in turns.
    2. They are grouped into clusters, and the one with the smallest objective of each is kept.
    3. The labels are found by linear programming, and rounded. If the supervised labels are as
       good, they are kept.

    The labels of the unlabeled rows are in `labels_`. For other rows, a machine is trained on the
    labeled and the unlabeled rows, with these labels. Where the supervised labels are kept, it is
    the supervised machine.

    The choice is safe if one of the separators is right. If none is, because the classes are no
    clusters or because it was not among those that were found, the classifier may be worse than its
    supervised counterpart: this is no guarantee of the kind that `ProjectedLeastSquaresClassifier`
    has.

    Training takes about `n_samples` times as long as that of a `TransductiveSVMClassifier` at its
    full weight.

    Parameters
    ----------
    alpha : float, default=0.1
        Penalty of the weights, positive.
    unlabeled_weight : float, default=1.0
        The weight of the unlabeled rows, as in `TransductiveSVMClassifier`.
    positive_fraction : float or None, default=None
        The share of unlabeled rows of the second class. None: the share among the labeled rows.
    fraction_tolerance : float, default=0.05
        How much the share of separators may differ from it.
    n_samples : int, default=100
        How many local minima are looked for.
    n_separators : int, default=10
        How many of them are kept.
    risk : float, default=3.0
        The factor :math:`\lambda`: how much worse it is to lose a row than it is good to gain one.
    scaling : {"mean", "sum"}, default="mean"
        Whether the losses are sums over rows, or means.
    fit_intercept, penalise_intercept, tol
        See `L2SVMClassifier`.
    max_iter : int, default=100000
        Newton steps at most, in total.
    random_state : int, RandomState or None, default=None
        For the random labels and the clusters.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.
    verbose : int, default=0
        Whether to write a line to stderr for every separator.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The classes in sorted order.
    coef_ : array of shape (1, n_features)
        Weights of the machine for other rows.
    intercept_ : array of shape (1,)
        Its intercept, zero without one.
    labels_ : array of shape (n_unlabeled,)
        The chosen classes of the unlabeled rows, in their order.
    candidates_ : array of shape (n_candidates, n_unlabeled)
        Classes of the unlabeled rows by the separators that were kept, the one with the smallest
        objective first.
    candidate_objectives_ : array of shape (n_candidates,)
        Their objectives.
    worst_case_improvement_ : float
        The value of the chosen labels, as a share of the (weighted) unlabeled rows. Never negative.
    supervised_ : L2SVMClassifier
        The supervised counterpart, with the same penalty and scaling.
    n_iter_ : int
        Newton steps in total.
    converged_ : bool
        Whether all separators were found, and the last machine was trained to the end.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    TransductiveSVMClassifier : Takes the first separator that it finds.
    ProjectedLeastSquaresClassifier : Safe whatever the labels are.

    References
    ----------
    Y.-F. Li and Z.-H. Zhou, "Towards making unlabeled data never hurt", International Conference on
    Machine Learning (2011), 1081-1088; IEEE Transactions on Pattern Analysis and Machine
    Intelligence 37 (2015), 175-188.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import SafeSVMClassifier
    >>> X = np.array([[0.0], [3.0], [0.2], [0.4], [0.6], [2.7], [2.9], [3.2]])
    >>> y = [0, 1, -1, -1, -1, -1, -1, -1]
    >>> clf = SafeSVMClassifier(random_state=0).fit(X, y)
    >>> clf.labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SemiSupervisedSVM._parameter_constraints,
        "fraction_tolerance": [Interval(Real, 0, 1, closed="both")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_separators": [Interval(Integral, 1, None, closed="left")],
        "risk": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    candidates_: AnyArray
    worst_case_improvement_: float

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        unlabeled_weight: float = 1.0,
        positive_fraction: float | None = None,
        fraction_tolerance: float = 0.05,
        n_samples: int = 100,
        n_separators: int = 10,
        risk: float = 3.0,
        scaling: str = "mean",
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        tol: float = 1e-12,
        max_iter: int = 100_000,
        random_state: Any = None,
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.positive_fraction = positive_fraction
        self.fraction_tolerance = fraction_tolerance
        self.n_samples = n_samples
        self.n_separators = n_separators
        self.risk = risk
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        random = check_random_state(self.random_state)
        weight, risk = float(self.unlabeled_weight), float(self.risk)
        shares = share - self.fraction_tolerance, share + self.fraction_tolerance
        sampled = sample_separators(problem, shares, weight, self.n_samples, random)
        kept = sampled.diverse(self.n_separators, random)

        scores = problem.scores(problem.start)
        counts = problem.costs / problem.costs.sum()
        supervised = scores > 0.0
        positive = safest_labels(kept.labels, supervised, counts, risk, scores)
        improvement = improvements(positive, kept.labels, supervised, counts, risk).min()
        self.candidates_ = self.classes_[kept.labels.astype(np.intp)]
        self.candidate_objectives_ = kept.objectives
        self.worst_case_improvement_ = max(0.0, float(improvement))
        weights, converged = stored_weights(self.supervised_), self.supervised_.converged_
        if improvement > 0.0:
            last = problem.solve(positive.astype(np.float64), weight, problem.start)
            weights, converged = problem.design.weights(last.parameters), last.converged
        else:
            positive = supervised
        converged = converged and not problem.budget.exhausted
        self._set_end(converged, problem.budget.n_iter, problem.budget)
        return weights, positive

    def _keep_supervised(self) -> None:
        self.candidates_ = np.empty((0, 0), self.classes_.dtype)
        self.candidate_objectives_ = np.empty(0)
        self.worst_case_improvement_ = 0.0
        self.converged_, self.n_iter_ = self.supervised_.converged_, self.supervised_.n_iter_
