"""Studies of small tables: real fits where numbers must be true, plain numbers elsewhere."""

import dataclasses
from functools import cache

import numpy as np

from neverworse import ProjectedLeastSquaresClassifier, __version__
from neverworse.study import Study
from neverworse.study._study import (
    AuditFacts,
    CalibrationBin,
    CandidateFacts,
    ChangedRow,
    Changes,
    ClassFacts,
    ClassNumbers,
    Coefficient,
    ColumnFacts,
    Comparison,
    ConfidentFacts,
    Curve,
    CurveLine,
    DataFacts,
    Estimate,
    FileFacts,
    MethodFacts,
    ModelFacts,
    Numbers,
    ScoreGroup,
    Scores,
    Verdict,
)
from neverworse.study._verdict import Evidence, ladder, verdict_of

NASTY = (
    "<script>alert(1)</script>",
    "\"quotes\" & 'apostrophes' --> ]]> </style></svg>",
    "עברית وعربية",
    "🙂 emoji 👩‍🔬",
    "long " * 60,
    "two\nlines\tand $math$ {{x}}",
)

CONFIDENT = ConfidentFacts(
    candidates=(CandidateFacts("ICLS", 0.0, 0.01), CandidateFacts("random forest", 0.4, -0.02)),
    level=0.95,
    n_labeled=12,
    n_unlabeled=400,
    is_sample=False,
    expected_change=-0.015,
    largest_change=-0.003,
)


def made_up(n_classes=2, n_labeled=12, n_unlabeled=400, n_features=6, seed=3):
    """Rows of classes that overlap, most of them without a label."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_labeled + n_unlabeled) % n_classes
    centres = 0.8 * rng.standard_normal((n_classes, n_features))
    X = centres[y] + 1.3 * rng.standard_normal((len(y), n_features))
    X *= 10.0 ** np.arange(-2, n_features - 2)
    return X, np.where(np.arange(len(y)) < n_labeled, y, -1)


def study_of(X, y, names, features, notes=(), **params):
    """Return the study of a fit, with all parts."""
    clf = ProjectedLeastSquaresClassifier(**{"alpha": 0.0, **params}).fit(X, y)
    known, n_classes = y >= 0, len(names)
    before, after = (_scores(model, X) for model in (clf.supervised_, clf))
    soft = clf.soft_labels_
    soft = np.column_stack([1 - soft, soft]) if soft.ndim == 1 else soft
    certificate = clf.certificate_.to_dict()
    data = _data(y, names, features, before[~known], after[~known])
    changes = _changes(names, before[~known], after[~known], soft)
    compared, curve = comparison(names), _curve("labeled", (10, 15, 20, 30))
    verdict = _verdict(certificate, data, changes, compared, curve)
    return Study(
        version=__version__,
        made="2026-11-16 09:30 UTC",
        command="neverworse fit patients.csv --target diagnosis --out model",
        settings={"target": "diagnosis", "distance": "all", "alpha": 0.0, "prior": None},
        packages={"numpy": "2.3.0", "scikit-learn": "1.9.1"},
        data=data,
        verdict=verdict,
        ladder=ladder(
            *(_claim(certificate), verdict.kind == "projected", CONFIDENT, ""),
            model=verdict.model,
            n_differing=changes.n_changed,
            n_unlabeled=changes.n_unlabeled,
        ),
        confident=CONFIDENT,
        certificate=certificate,
        claim=_claim(certificate),
        certificate_words=certificate["summary"],
        scores=tuple(
            _score_groups(k, names, y, before[:, k], after[:, k])
            for k in (range(n_classes) if n_classes > 2 else [1])
        ),
        changes=changes,
        coefficients=_coefficients(clf, X, names, features),
        intercepts=_intercepts(clf, X, names),
        importance=None,
        unlabeled_curve=_curve("unlabeled", (0, 25, 50, 100, 200, 400)),
        labeled_curve=curve,
        comparison=compared,
        notes=tuple(notes),
        model=_model(verdict.model),
    )


def _model(name):
    return ModelFacts(
        name=name,
        certified=name == "projected",
        compiled=False,
        words=(f"model.skops holds the {name} model.",),
        decision=None,
        audit=AuditFacts("predict_proba", 0.0, 0.0, True, "It was audited."),
    )


def _claim(certificate):
    if certificate["reason"]:
        return "Nothing could be improved for certain: this is the supervised model."
    if not certificate["holds"]:
        return "This model may be better or worse than the supervised one: nothing is guaranteed."
    return (
        "Whatever the true labels of the unlabeled rows are, this model's quadratic loss on all "
        f"{certificate['n_labeled'] + certificate['n_unlabeled']:,} rows is lower than that of the "
        f"supervised model, by at least {certificate['guaranteed_improvement']:.3f}."
    )


def _scores(model, X):
    found = model.decision_function(X) + 0.5
    return np.column_stack([1 - found, found]) if found.ndim == 1 else found


def _data(y, names, features, before, after):
    counts = [np.bincount(each.argmax(axis=1), minlength=len(names)) for each in (before, after)]
    return DataFacts(
        files=(FileFacts("patients.csv", 1234, "9f86d081" * 8), FileFacts("-", None, None)),
        target="diagnosis",
        n_rows=len(y),
        n_labeled=int((y >= 0).sum()),
        n_unlabeled=int((y < 0).sum()),
        n_features=len(features),
        classes=tuple(
            ClassFacts(name, int((y == k).sum()), int(counts[0][k]), int(counts[1][k]))
            for k, name in enumerate(names)
        ),
        positive=names[1] if len(names) == 2 else None,
        columns=(
            *(ColumnFacts(name, "number", "scaled; median if missing", 3, 1) for name in features),
            ColumnFacts("diagnosis", "target", "classes", int((y < 0).sum()), 0),
            ColumnFacts("patient", "id", "names rows", 0, 0),
        ),
    )


def _score_groups(k, names, y, before, after):
    low, high = np.quantile(np.r_[before, after], [0.002, 0.998])
    edges = np.linspace(min(low, -0.1), max(high, 1.1), 37)
    others = names[1 - k] if len(names) == 2 else "other classes"
    groups = [(names[k], y == k), (others, (y != k) & (y >= 0)), ("unlabeled", y < 0)]
    return Scores(
        names[k],
        tuple(edges.tolist()),
        tuple(
            ScoreGroup(
                name,
                int(chosen.sum()),
                *(
                    tuple(np.histogram(each[chosen].clip(edges[0], edges[-1]), edges)[0].tolist())
                    for each in (before, after)
                ),
            )
            for name, chosen in groups
        ),
    )


def _changes(names, before, after, soft):
    old, new = before.argmax(axis=1), after.argmax(axis=1)
    rows = np.flatnonzero(old != new)
    return Changes(
        len(rows),
        len(before),
        tuple(
            ChangedRow(
                f"P-{row:05d}",
                names[old[row]],
                names[new[row]],
                float(before[row, new[row]]),
                float(after[row, new[row]]),
                float(soft[row, new[row]]),
            )
            for row in rows
        ),
    )


def _coefficients(clf, X, names, features):
    spread = X.std(axis=0)
    classes = names if len(names) > 2 else names[1:]
    return tuple(
        Coefficient(
            feature,
            feature,
            class_name,
            float(clf.supervised_.coef_[k, j]),
            float(clf.coef_[k, j]),
            float(clf.supervised_.coef_[k, j] * spread[j]),
            float(clf.coef_[k, j] * spread[j]),
        )
        for j, feature in enumerate(features)
        for k, class_name in enumerate(classes)
    )


def _intercepts(clf, X, names):
    classes = names if len(names) > 2 else names[1:]
    at_zero = [model.intercept_ + 0.5 for model in (clf.supervised_, clf)]
    at_mean = [
        model.intercept_ + 0.5 + X.mean(axis=0) @ model.coef_.T for model in (clf.supervised_, clf)
    ]
    return tuple(
        Coefficient("intercept", "", name, *(float(each[k]) for each in (*at_zero, *at_mean)))
        for k, name in enumerate(classes)
    )


def _curve(rows, sizes):
    steps = np.arange(len(sizes))
    falling = 0.12 + 0.14 * np.exp(-0.5 * steps)
    flat = np.full(len(sizes), 0.26) if rows == "unlabeled" else falling + 0.05
    margins = (0.04 - 0.004 * steps).tolist()

    def line(values):
        return tuple(
            Estimate(float(v), float(v) - m, float(v) + m)
            for v, m in zip(values, margins, strict=True)
        )

    return Curve(
        rows,
        sizes,
        24 if rows == "unlabeled" else 400,
        20,
        tuple(
            CurveLine(name, line(error), line(0.6 * error))
            for name, error in (("supervised", flat), ("projected", falling))
        ),
        Estimate(-0.004, -0.02, 0.012),
        "The last doubling of the unlabeled rows lowered the error by 0.4 points, within its "
        "uncertainty: more of them are unlikely to help much.",
    )


def comparison(classes=("benign", "malignant")):
    """A comparison in plain numbers."""
    none, proved = "none", "never worse in quadratic loss on all training rows"
    methods = (
        ("supervised", 0.171, 0.131, None, "none"),
        ("projected", 0.148, 0.112, (-0.023, 0.012), proved),
        ("ICLS", 0.152, 0.115, (-0.019, 0.02), none),
        ("self-learning", 0.182, 0.14, (0.011, 0.018), none),
        ("TSVM", 0.19, None, (0.019, 0.028), none),
        ("label spreading", 0.165, None, (-0.006, 0.02), none),
    )
    return Comparison(
        n_folds=10,
        n_repeats=5,
        n_labeled=12,
        n_unlabeled=400,
        majority=classes[0],
        baseline=numbers(0.42, classes, has_probabilities=True),
        methods=tuple(
            MethodFacts(
                name,
                words,
                numbers(error, classes, has_probabilities=loss is not None),
                None if step is None else around(*step),
                None if step is None or loss is None else around(*step),
                None if step is None or loss is None else around(*step),
            )
            for name, error, loss, step, words in methods
        ),
        failures={},
        words="The projected model has the lowest error, 2.3 points below the supervised one.",
    )


def around(value, margin):
    return Estimate(value, value - margin, value + margin)


def numbers(error, classes, *, has_probabilities):
    """How well a method predicts that is wrong in such a share of rows."""
    n = len(classes)
    right = 1.0 - error
    confusion = tuple(
        tuple(100.0 * (right if j == k else error / (n - 1)) for k in range(n)) for j in range(n)
    )
    share = around(right, 0.05)
    bins = tuple(CalibrationBin(p, around(0.1 + 0.8 * p, 0.08)) for p in (0.1, 0.4, 0.6, 0.9))
    return Numbers(
        error=around(error, 0.04),
        balanced_accuracy=share,
        auc=around(1.0 - 0.7 * error, 0.03) if has_probabilities else None,
        brier=around(0.7 * error, 0.02) if has_probabilities else None,
        log_loss=around(2.0 * error, 0.05) if has_probabilities else None,
        classes=tuple(ClassNumbers(name, 100, share, share, share) for name in classes),
        confusion=confusion,
        calibration=bins if has_probabilities and n == 2 else None,
    )


def _verdict(certificate, data, changes, compared, curve):
    guarantee = "improved" if certificate["holds"] else "none"
    evidence = Evidence(
        guarantee="same" if certificate["reason"] else guarantee,
        penalised=certificate["penalty"] > 0.0,
        has_prior=False,
        data=data,
        changes=changes,
        comparison=compared,
        better=(),
        labeled_curve=curve,
    )
    return verdict_of(evidence, _model(evidence.recommended))


FEATURES = ("age", "blood pressure", "cholesterol", "glucose", "bmi", "smoker: yes")


@cache
def binary():
    """Two classes, and something to improve."""
    return study_of(*made_up(), ("benign", "malignant"), FEATURES, ("Column 'zip' was dropped.",))


@cache
def three_classes():
    return study_of(*made_up(3, 18), ("setosa", "versicolor", "virginica"), FEATURES)


@cache
def nothing_improved():
    """Scores of unlabeled rows that are labels already."""
    y = np.array([0, 1] * 20 + [-1] * 60)
    X = np.random.default_rng(0).random((100, 6)) * 1e-3
    X[:40, 0] = y[:40]
    X[40:, 0] = np.linspace(0.2, 0.8, 60)
    return study_of(X, y, ("no", "yes"), FEATURES)


@cache
def not_guaranteed():
    return study_of(*made_up(), ("benign", "malignant"), FEATURES, distance="labeled")


@cache
def bare():
    """No part that is optional."""
    parts = dict.fromkeys(("unlabeled_curve", "labeled_curve", "comparison"))
    base = binary()
    verdict = _verdict(base.certificate, base.data, base.changes, None, None)
    return dataclasses.replace(
        base,
        **parts,
        verdict=verdict,
        notes=("Class malignant has one label only, so nothing is compared.",),
    )


@cache
def nasty():
    """Names from outside that want to be markup."""
    X, y = made_up(3, 18)
    found = study_of(X, y, NASTY[:3], NASTY, notes=NASTY)
    changes = dataclasses.replace(
        found.changes,
        rows=tuple(
            dataclasses.replace(each, row=NASTY[k % len(NASTY)])
            for k, each in enumerate(found.changes.rows)
        ),
    )
    data = dataclasses.replace(
        found.data,
        target=NASTY[0],
        files=tuple(FileFacts(each, 10, "0" * 64) for each in NASTY),
    )
    return dataclasses.replace(
        found,
        data=data,
        changes=changes,
        command=" ".join(NASTY),
        claim=NASTY[0],
        ladder=tuple(dataclasses.replace(each, words=NASTY) for each in found.ladder),
        confident=dataclasses.replace(
            CONFIDENT, candidates=tuple(CandidateFacts(each, 0.1, 0.2) for each in NASTY)
        ),
        verdict=Verdict("projected", NASTY[1], *NASTY[:2], NASTY, NASTY, NASTY),
        model=dataclasses.replace(found.model, name=NASTY[1], words=NASTY),
        certificate_words=NASTY[1],
        settings=dict.fromkeys(NASTY, NASTY[1]),
        comparison=dataclasses.replace(
            found.comparison,
            words=NASTY[1],
            methods=tuple(
                dataclasses.replace(each, method=name)
                for each, name in zip(found.comparison.methods, NASTY, strict=True)
            ),
        ),
    )


@cache
def wide_names():
    """Names of wide letters that are as long as charts show them, and longer."""
    names = ("WWWWWWWWWWWWWWWWW", "MALIGNANT MELANOMA, STAGE IV", "GUTARTIG")
    features = tuple(f"MEAN {name} OF THE MMMMMMMMM" for name in FEATURES)
    found = study_of(*made_up(3, 18), names, features)
    methods = tuple(
        dataclasses.replace(each, method="WITHOUT ANY GUARANTEE AT ALL" if k > 1 else each.method)
        for k, each in enumerate(found.comparison.methods)
    )
    return dataclasses.replace(
        found, comparison=dataclasses.replace(found.comparison, methods=methods)
    )


def big():
    """As many rows as tables show, twelve classes, 3,000 features."""
    names = tuple(f"class {k}" for k in range(12))
    X, y = made_up(12, 60, 3000, 8)
    features = tuple(f"feature {k}" for k in range(8))
    found = study_of(X, y, names, features)
    each = found.coefficients
    return dataclasses.replace(found, coefficients=each * 375)


ALL = {
    "binary": binary,
    "three classes": three_classes,
    "nothing improved": nothing_improved,
    "not guaranteed": not_guaranteed,
    "bare": bare,
    "nasty": nasty,
    "wide names": wide_names,
}
