"""How a fit tells people and callbacks where it is, and how it is stopped."""

import re
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold

sklearn_callback = pytest.importorskip("sklearn.callback")  # scikit-learn 1.9 or newer

projected = pytest.mark.parametrize("classifier", [ProjectedLeastSquaresClassifier, ICLSClassifier])


def make(n=200, n_classes=2, n_labeled=12, d=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    truth[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1)


class Recorder:
    """Keeps what it is told; stops or raises where it shall."""

    def __init__(self, stop=lambda name: False, error=None, at=None):
        self.stop = stop
        self.error = error
        self.at = at
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.calls.append(("end", context.task_name))
        if self.error is not None and context.task_name == self.at:
            raise self.error
        return self.stop(context.task_name)

    def ended(self):
        return [name for what, name in self.calls if what == "end"]


class Propagated(Recorder):
    """The same for an estimator and those inside of it."""

    @property
    def max_propagation_depth(self):
        return None


def test_the_recorder_follows_the_protocol():
    assert isinstance(Recorder(), sklearn_callback.FitCallback)
    assert isinstance(Propagated(), sklearn_callback.AutoPropagatedCallback)


# Callbacks


@projected
@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_are_seen(classifier, n_classes):
    X, y = make(n_classes=n_classes)
    recorder = Recorder()
    clf = classifier().set_callbacks(recorder).fit(X, y)
    assert recorder.calls[0] == ("setup", "fit")
    assert recorder.calls[1] == ("begin", "fit")
    assert recorder.calls[-2:] == [("end", "fit"), ("teardown", "fit")]
    stages = recorder.ended()[:-1]
    assert stages[0] == "Gram matrix"
    assert stages[-1] == "certificate"
    assert set(stages[1:-1]) == {"working set"}
    inner = recorder.calls[2:-2]  # every stage begins and ends
    assert [name for what, name in inner if what == "begin"] == stages
    expected = classifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)  # watching changes nothing
    assert clf.certificate_ == expected.certificate_


def test_stages_of_a_large_fit():
    X, y = make(n=20_000)
    recorder = Recorder()
    ProjectedLeastSquaresClassifier(alpha=0.0).set_callbacks(recorder).fit(X, y)
    assert "pass over all rows" in recorder.ended()


def test_the_supervised_classifier_has_one_task():
    X, y = make()
    recorder = Recorder()
    LeastSquaresClassifier().set_callbacks(recorder).fit(X, y)
    assert recorder.calls == [
        ("setup", "fit"),
        ("begin", "fit"),
        ("end", "fit"),
        ("teardown", "fit"),
    ]


def test_tasks_of_a_fit_form_a_tree():
    X, y = make()
    seen = []

    class Tree(Recorder):
        def on_fit_task_end(self, estimator, context):
            seen.append(context)

    ProjectedLeastSquaresClassifier().set_callbacks(Tree()).fit(X, y)
    *stages, root = seen
    assert root.parent is None
    assert all(stage.parent is root for stage in stages)
    assert [stage.task_id for stage in stages] == list(range(len(stages)))
    assert len({context.root_uuid for context in seen}) == 1


def test_what_callbacks_are_given():
    X, y = make()
    given = []

    class Curious(Recorder):
        def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
            given.append((context.task_name, X, y, metadata, fitted_estimator))

    s = np.linspace(1, 2, len(y))
    clf = ProjectedLeastSquaresClassifier().set_callbacks(Curious()).fit(X, y, sample_weight=s)
    for _, rows, labels, metadata, _ in given:
        np.testing.assert_array_equal(rows, X)
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(metadata["sample_weight"], s)
    assert all(fitted is None for *_, fitted in given[:-1])
    name, *_, fitted = given[-1]
    assert name == "fit"
    np.testing.assert_array_equal(fitted.predict(X), clf.predict(X))


@pytest.mark.parametrize("more", [{}, {"sample_weight": True}, {"label_bounds": True}])
def test_scoring_monitor(more):
    X, y = make()
    given = {
        "sample_weight": np.linspace(1, 2, len(y)),
        "label_bounds": np.full((len(y), 2), np.nan),
    }
    monitor = sklearn_callback.ScoringMonitor(scoring="accuracy")
    clf = ProjectedLeastSquaresClassifier().set_callbacks(monitor)
    clf.fit(X, y, **{name: given[name] for name in more})
    check_is_fitted(clf)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:  # scores come through another thread
        try:
            data = monitor.get_logs().data
            break
        except ValueError:
            time.sleep(0.05)
    assert data[-1]["task_name"] == "fit"
    assert 0 <= data[-1]["accuracy"] <= 1


@projected
def test_through_a_pipeline(classifier):
    X, y = make(n_classes=3)
    recorder = Propagated()
    pipeline = make_pipeline(StandardScaler(), classifier()).set_callbacks(recorder)
    pipeline.fit(X, y)
    names = recorder.ended()
    assert "Gram matrix" in names
    assert "certificate" in names
    assert recorder.calls.count(("setup", "fit")) == 1
    assert recorder.calls.count(("teardown", "fit")) == 1


@projected
def test_through_grid_search(classifier):
    X, y = make(n=120, n_labeled=30)
    recorder = Propagated()
    search = GridSearchCV(classifier(), {"alpha": [0.0, 1.0]}, cv=StratifiedLabeledKFold(3))
    search.set_callbacks(recorder).fit(X, y)
    assert recorder.ended().count("certificate") == 2 * 3 + 1  # and the refit
    assert recorder.ended().count("Gram matrix") == 2 * 3 + 1
    plain = clone(search).set_callbacks().fit(X, y)
    np.testing.assert_array_equal(
        plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    assert not hasattr(search.best_estimator_, "_parent_callback_ctx")


def test_callbacks_of_a_candidate_in_grid_search():
    X, y = make(n=120, n_labeled=30)
    recorder = Recorder()
    clf = ProjectedLeastSquaresClassifier().set_callbacks(recorder)
    GridSearchCV(clf, {"alpha": [0.0, 1.0]}, cv=StratifiedLabeledKFold(3)).fit(X, y)
    assert recorder.ended().count("certificate") == 2 * 3 + 1


def test_callbacks_can_be_taken_away():
    X, y = make()
    recorder = Recorder()
    clf = ProjectedLeastSquaresClassifier().set_callbacks(recorder)
    clf.set_callbacks().fit(X, y)
    assert recorder.calls == []


def test_no_trace_of_a_callback_is_left():
    X, y = make()
    clf = ProjectedLeastSquaresClassifier().set_callbacks(Recorder()).fit(X, y)
    left = {name for name in vars(clf) if "callback" in name}
    assert left == {"_skl_callbacks"}


# Stopping


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("when", ["Gram matrix", "working set", "pass over all rows"])
def test_a_callback_stops_the_solver(n_classes, n, when):
    X, y = make(n=n, n_classes=n_classes)
    if n == 300 and when == "pass over all rows":
        when = "Gram matrix"  # there is no pass
    full = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    recorder = Recorder(stop=lambda name: name == when)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).set_callbacks(recorder).fit(X, y)
    certificate = clf.certificate_
    assert certificate.stopped_early
    assert not certificate.converged
    assert certificate.holds
    assert clf.n_iter_ < full.n_iter_
    assert certificate.guaranteed_improvement >= 0
    limit = full.certificate_.guaranteed_improvement * (1 + 1e-9)
    assert certificate.guaranteed_improvement <= limit
    assert ("end", "certificate") in recorder.calls
    # True for the worst labels, in plain arithmetic.
    f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
    if n_classes == 2:
        worst = np.where(y == -1, f < g, y)
    else:
        worst = np.eye(n_classes)[np.where(y == -1, (f - g).argmin(axis=1), y)]
    difference = np.sum((f - worst) ** 2 - (g - worst) ** 2)
    assert difference <= certificate.worst_case + 1e-9 * np.sum(g**2)
    if not certificate.guaranteed_improvement:
        assert certificate.reason == "stopped early"


def test_stopping_after_the_end_stops_nothing():
    X, y = make()
    recorder = Recorder(stop=lambda name: name in ("certificate", "fit"))
    clf = ProjectedLeastSquaresClassifier().set_callbacks(recorder).fit(X, y)
    assert clf.certificate_.converged
    assert not clf.certificate_.stopped_early
    np.testing.assert_array_equal(clf.coef_, ProjectedLeastSquaresClassifier().fit(X, y).coef_)


def test_an_answer_that_is_true_but_not_true_stops_as_well():
    # The protocol says bool; NumPy's bool is one to all but `is`.
    X, y = make()
    recorder = Recorder(stop=lambda name: np.True_)
    clf = ProjectedLeastSquaresClassifier().set_callbacks(recorder).fit(X, y)
    assert clf.certificate_.stopped_early
    assert clf.certificate_.holds


@pytest.mark.parametrize(
    ("restriction", "n"),
    [("classes", 50_000), ("prior", 50_000), ("bounds and prior", 20_000)],
)
def test_max_time_of_large_problems(restriction, n):
    n_classes = 4
    X, y = make(n=n, n_classes=n_classes, d=10)
    prior = bounds = None
    if "prior" in restriction:
        prior = np.array([[0.2, 0.3]] * n_classes)
    if "bounds" in restriction:
        bounds = np.full((len(y), n_classes, 2), np.nan)
        rng = np.random.default_rng(0)
        some = np.flatnonzero((y == -1) & (rng.random(len(y)) < 0.5))
        bounds[some, rng.integers(0, n_classes, len(some)), 1] = 0.5
    start = time.process_time()
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, class_prior=prior, max_time=0.05)
    clf.fit(X, y, label_bounds=bounds)
    # What comes before the solver and after it is not stopped, but it should not be endless.
    assert time.process_time() - start < 20
    certificate = clf.certificate_
    assert certificate.holds
    assert certificate.stopped_early or certificate.converged


def test_no_time_at_all():
    X, y = make(n=20_000, n_classes=3)
    clf = ProjectedLeastSquaresClassifier(max_time=0.0).fit(X, y)
    assert clf.certificate_.stopped_early
    assert clf.certificate_.reason == "stopped early"
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)


# Interrupts and errors


@projected
@pytest.mark.parametrize("fitted_before", [False, True])
@pytest.mark.parametrize(
    ("error", "at"),
    [
        (KeyboardInterrupt(), "Gram matrix"),
        (MemoryError(), "working set"),
        (KeyboardInterrupt(), "certificate"),
        (RuntimeError("no"), "fit"),
    ],
)
def test_interrupted_fits_leave_the_classifier_unfitted(classifier, fitted_before, error, at):
    X, y = make(n_classes=3)
    clf = classifier()
    if fitted_before:
        clf.fit(X, y)
        check_is_fitted(clf)
    recorder = Recorder(error=error, at=at)
    clf.set_callbacks(recorder)
    with pytest.raises(type(error)):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)
    for name in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(clf, name)(X)
    for name in ("coef_", "intercept_", "classes_", "certificate_", "supervised_", "n_iter_"):
        assert not hasattr(clf, name), name
    with pytest.raises(NotFittedError):
        clf.soft_labels_  # noqa: B018
    assert ("teardown", "fit") in recorder.calls  # callbacks are cleaned up all the same
    clf.set_callbacks()
    np.testing.assert_array_equal(clf.fit(X, y).coef_, classifier().fit(X, y).coef_)


def test_an_interrupt_of_a_callback_at_the_beginning():
    X, y = make()

    class Early(Recorder):
        def on_fit_task_begin(self, estimator, context):
            raise KeyboardInterrupt

    clf = LeastSquaresClassifier().fit(X, y).set_callbacks(Early())
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)


# Words


@projected
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [200, 20_000])
def test_quiet_is_quiet(classifier, n_classes, n, capfd):
    X, y = make(n=n, n_classes=n_classes)
    clf = classifier().fit(X, y)
    clf.predict_proba(X)
    assert capfd.readouterr() == ("", "")


@projected
@pytest.mark.parametrize(("n_classes", "verbose"), [(2, True), (3, 5)])
def test_verbose_writes_a_line_for_every_stage(classifier, n_classes, verbose, capfd):
    X, y = make(n=20_000, n_classes=n_classes)
    recorder = Recorder()
    classifier(alpha=0.0, verbose=verbose).set_callbacks(recorder).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    stages = recorder.ended()[:-1]
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        pattern = rf"\[{classifier.__name__}\] +\d+\.\d\d s  {stage} \([\d,]+ rows\), \d+ steps"
        assert re.match(pattern, line), line
    seconds = [float(re.search(r"(\d+\.\d\d) s", line).group(1)) for line in lines]
    assert seconds == sorted(seconds)
    assert "20,000 rows" in lines[0]
    gaps = [float(found.group(1)) for line in lines if (found := re.search(r"gap (\S+)", line))]
    assert gaps
    assert min(gaps) <= 1e-6
    assert "nan" not in err


def test_verbose_says_what_is_counted(capfd):
    X, y = make()
    ProjectedLeastSquaresClassifier(solver="lbfgs", verbose=1).fit(X, y)
    lines = capfd.readouterr().err.splitlines()
    assert lines
    for line in lines:
        assert re.search(r"rows\), \d+ function evaluations", line), line


def test_verbose_changes_nothing(capfd):
    X, y = make(n_classes=3)
    loud = ProjectedLeastSquaresClassifier(verbose=1).fit(X, y)
    assert capfd.readouterr().err
    quiet = ProjectedLeastSquaresClassifier().fit(X, y)
    np.testing.assert_array_equal(loud.coef_, quiet.coef_)
    assert loud.certificate_ == quiet.certificate_


@projected
@pytest.mark.parametrize("verbose", [-1, "loud", None])
def test_verbose_of_the_wrong_kind(classifier, verbose):
    X, y = make()
    with pytest.raises(ValueError, match="verbose"):
        classifier(verbose=verbose).fit(X, y)
