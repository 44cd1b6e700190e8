"""The transductive support vector classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import Mask, Matrix
from neverworse.methods.svm._annealing import anneal
from neverworse.methods.svm._balance import label_like_svmlin, label_shares
from neverworse.methods.svm._partly import PartlyLabeled
from neverworse.methods.svm._semi import SemiSupervisedSVM
from neverworse.methods.svm._switching import Run, growing_weights, switch
from neverworse.projection import Weights


class TransductiveSVMClassifier(SemiSupervisedSVM):
    r"""Transductive support vector classifier: a wide margin on labeled and unlabeled rows.

    Minimises, over the weights *and* the labels :math:`y_j = \pm 1` of the unlabeled rows, of which
    a given share is positive,

    .. math::

        \frac{\alpha}{2} \lVert w \rVert^2
        + \frac{1}{2 S} \sum_{i\ \text{labeled}} s_i \max(0, 1 - y_i f(x_i))^2
        + \frac{v}{2 S_u} \sum_{j\ \text{unlabeled}} s_j \max(0, 1 - y_j f(x_j))^2

    with :math:`f(x) = x \cdot w + b`. The first class in sorted order is coded -1, the second
    (positive) one +1. S is the sum of the weights s of the labeled and :math:`S_u` that of the
    unlabeled rows with ``scaling="mean"``; both are 1 with ``scaling="sum"``. With
    ``penalise_intercept=True`` the first term is
    :math:`\frac{\alpha}{2} (\lVert w \rVert^2 + b^2)`.

    The classes are assumed to be clusters: no class boundary where there are many rows. Where they
    are not, the classifier may be much worse than its supervised counterpart, and nothing tells.
    There are many local minima, and one of them is found by

    - "switching": the supervised machine labels the unlabeled rows. Then their weight v grows from
      1e-5 by factors of 1.5. At each weight, the machine is trained and pairs of a positive and a
      negative row within the margin exchange their labels, as long as this lowers the loss. This
      is the multi-switch variant in SVMlin.
    - "annealing": labels are probabilities :math:`p_j`, and :math:`\frac{T}{2 n_u} \sum_j H(p_j)`
      is subtracted from the objective (without :math:`n_u` for sums), where H is the entropy. The
      temperature T falls from 10 v by factors of 1.5, until the labels are hard. They are then
      switched as above at the full weight.

    There are no probabilities. For calibrated ones, wrap the fitted classifier in scikit-learn's
    `FrozenEstimator` and `CalibratedClassifierCV`, and fit that to labeled rows (best to some that
    were held back): it knows no unlabeled ones, and takes their marker for a class.

    Parameters
    ----------
    alpha : float, default=0.1
        Penalty of the weights, positive.
    unlabeled_weight : float, default=1.0
        The weight v. With ``scaling="mean"`` and 1.0, the unlabeled rows count as much as the
        labeled ones, however many there are.
    positive_fraction : float or None, default=None
        The share of unlabeled rows of the second class; each row counts once, whatever its weight.
        None: the share among the labeled rows.
    positive_rounding : {"score", "svmlin"}, default="score"
        What happens where the share leaves no whole number of rows. "score": the row in question
        gets the label of its supervised score. "svmlin": it is positive, as in SVMlin. There the
        rows with a larger supervised score than the :math:`\lfloor (1 - r) n_u \rfloor`-th
        smallest one are positive, for a share r of :math:`n_u` unlabeled rows; none of those with
        the same score are, even if that leaves fewer than the share.
    method : {"switching", "annealing"}, default="switching"
        How the labels are found.
    max_switches : int, default=10000
        So many pairs may exchange their labels before the machine is trained again.
    scaling : {"mean", "sum"}, default="mean"
        Whether the losses are sums over rows, or means.
    fit_intercept, penalise_intercept, tol
        See `L2SVMClassifier`.
    max_iter : int, default=10000
        Newton steps at most, in total.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.
    verbose : int, default=0
        Whether to write a line to stderr for every stage.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The classes in sorted order.
    coef_ : array of shape (1, n_features)
        The weights w.
    intercept_ : array of shape (1,)
        b, zero without intercept.
    labels_ : array of shape (n_unlabeled,)
        Classes of the unlabeled rows, in their order. (The score of a row may be on the other side,
        because of the share.)
    objective_ : float
        The local minimum that was found.
    history_ : array of shape (n_trainings, 2)
        The weight of the unlabeled rows (or the temperature) and the objective after each training
        with it. Where the first is the same, the second never increases.
    n_switches_ : int
        Pairs of rows that exchanged their labels.
    supervised_ : L2SVMClassifier
        The supervised counterpart, with the same penalty and scaling.
    n_iter_ : int
        Newton steps in total.
    converged_ : bool
        Whether the last machine was trained to the end, and no switch of labels improves it.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    L2SVMClassifier : The supervised counterpart.
    SafeSVMClassifier : Chooses among many such machines with care.
    ProjectedLeastSquaresClassifier : Never worse than its supervised counterpart.

    References
    ----------
    T. Joachims, "Transductive inference for text classification using support vector machines",
    International Conference on Machine Learning (1999), 200-209.

    V. Sindhwani and S. S. Keerthi, "Large scale semi-supervised linear SVMs", ACM SIGIR (2006),
    477-484.

    V. Sindhwani, S. S. Keerthi and O. Chapelle, "Deterministic annealing for semi-supervised kernel
    machines", International Conference on Machine Learning (2006), 841-848.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import TransductiveSVMClassifier
    >>> X = np.array([[0.0], [3.0], [0.2], [0.4], [0.6], [2.7], [2.9], [3.2]])
    >>> y = [0, 1, -1, -1, -1, -1, -1, -1]
    >>> clf = TransductiveSVMClassifier().fit(X, y)
    >>> clf.labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SemiSupervisedSVM._parameter_constraints,
        "positive_rounding": [StrOptions({"score", "svmlin"})],
        "method": [StrOptions({"switching", "annealing"})],
        "max_switches": [Interval(Integral, 1, None, closed="left")],
    }

    objective_: float
    history_: Matrix
    n_switches_: int

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        unlabeled_weight: float = 1.0,
        positive_fraction: float | None = None,
        positive_rounding: str = "score",
        method: str = "switching",
        max_switches: int = 10_000,
        scaling: str = "mean",
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        tol: float = 1e-12,
        max_iter: int = 10_000,
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.unlabeled_weight = unlabeled_weight
        self.positive_fraction = positive_fraction
        self.positive_rounding = positive_rounding
        self.method = method
        self.max_switches = max_switches
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        weight = float(self.unlabeled_weight)
        scores = problem.scores(problem.start)
        if self.positive_rounding == "svmlin":
            positive = label_like_svmlin(scores, share)
            share = float(positive.mean())
        else:
            positive = label_shares(scores, share, share)
        run = Run(problem.start, positive)
        if self.method == "switching":
            stages = [(v, v) for v in growing_weights(weight)]
        else:
            per_row = 1.0 / len(problem.unlabeled) if self.scaling == "mean" else 1.0
            anneal(problem, run, share, weight, per_row)
            run.positive = label_shares(problem.scores(run.solution), share, share)
            stages = [(0.0, weight)]
        switch(problem, run, stages, int(self.max_switches))
        self.history_ = np.array(run.history).reshape(-1, 2)
        self.n_switches_ = run.n_switches
        self.objective_ = problem.value(run.solution, run.positive.astype(np.float64), weight)
        ended = run.solution.converged and not problem.budget.exhausted
        self._set_end(ended, problem.budget.n_iter, problem.budget)
        return problem.design.weights(run.solution.parameters), run.positive

    def _keep_supervised(self) -> None:
        self.history_ = np.empty((0, 2))
        self.n_switches_ = 0
        self.objective_ = self.supervised_.objective_
        self.converged_, self.n_iter_ = self.supervised_.converged_, self.supervised_.n_iter_
