"""Model files and studies that somebody changed: each ends in a sentence, never in a traceback.

An attack takes a seed, and returns None if the program held, or what broke.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import tempfile
import warnings
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from neverworse.cli import main
from tests.cli.tables import quick
from tests.fuzz.mutations import as_json, changed, flipped, ran

TARGET = ("--target", "species")


@cache
def folder():
    """A folder with a table, the results of a fit, and models of scikit-learn."""
    place = Path(tempfile.mkdtemp(prefix="neverworse-fuzz-"))
    Finalize(None, shutil.rmtree, (place,), {"ignore_errors": True}, exitpriority=1)
    table = quick().assign(bed=["a", "b", None, "c d"] * 25)
    table["petal width (cm)"] = table["petal width (cm)"].where(np.arange(len(table)) % 9 > 0)
    table.to_csv(place / "t.csv", index=False)
    words = ["fit", str(place / "t.csv"), *TARGET, "--alpha", "1", "--quiet"]
    assert main([*words, "--out", str(place / "out")]) == 0
    numbers = quick()[[name for name in quick() if name != "species"]]
    quick().to_csv(place / "numbers.csv", index=False)
    labels = np.where(np.arange(len(numbers)) < 50, "small", "large")
    for name, model in scikit_learn().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(numbers.to_numpy(), labels)
        skops.io.dump(model, place / f"{name}.skops")
    return place


def scikit_learn():
    """Models that need no trust."""
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    columns = make_column_transformer((bins, [0, 1]), (StandardScaler(), [2, 3]))
    both = [("a", LogisticRegression()), ("b", GaussianNB())]
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "bins": make_pipeline(columns, LogisticRegression()),
        "bayes": GaussianNB(),
        "discriminant": LinearDiscriminantAnalysis(),
        "network": MLPClassifier((3,), max_iter=20, random_state=0),
        "process": GaussianProcessClassifier(optimizer=None),
        "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
        "voting": VotingClassifier(both, voting="soft"),
    }


def changed_model(seed):
    """A model of ``neverworse fit``, changed and sealed again, in ``predict`` and ``audit``."""
    rng = random.Random(seed)
    path = _written(seed, _changed(folder() / "out" / "model.skops", rng))
    words = [str(path), str(folder() / "t.csv")]
    predict = ["predict", *words, *rng.choice([(), ("--probabilities",), ("--json",)])]
    return _gone(path, ran(rng.choice([predict, ["audit", *words, *TARGET]])))


def changed_scikit_learn_model(seed):
    """A model of scikit-learn, changed, in ``audit``."""
    rng = random.Random(seed)
    names = sorted(scikit_learn())
    path = _written(seed, _changed(folder() / f"{rng.choice(names)}.skops", rng))
    other = folder() / f"{rng.choice(names)}.skops"
    response = rng.choice(["auto", "predict_proba", "error"])
    words = ["audit", str(path), str(folder() / "numbers.csv"), "--against", str(other), *TARGET]
    return _gone(path, ran([*words, "--response", response]))


def changed_study(seed):
    """A study.json that was changed, in ``report``."""
    rng = random.Random(seed)
    content = (folder() / "out" / "study.json").read_bytes()
    place = Path(tempfile.mkdtemp(dir=folder()))
    wrong = flipped(content, rng) if rng.random() < 0.1 else None
    (place / "study.json").write_bytes(wrong or as_json(changed(json.loads(content), rng)))
    broke = ran(["report", str(place)])
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    return broke


def _written(seed, content):
    path = folder() / f"changed-{seed}.skops"
    path.write_bytes(content)
    return path


def _gone(path, broke):
    if broke is None:
        path.unlink()
    return broke


def _changed(path, rng):
    """A model file of which the archive, the description or the arrays were changed."""
    content = path.read_bytes()
    if rng.random() < 0.1:
        return flipped(content, rng)
    with ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice([name for name in members if name != "neverworse.json"])
        if name == "schema.json" or rng.random() < 0.4:
            schema = json.loads(members["schema.json"])
            members["schema.json"] = as_json(changed(schema, rng))
        else:
            members[name] = _changed_array(members[name], rng)
    if "neverworse.json" in members:
        members["neverworse.json"] = _sealed(members, rng)
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def _changed_array(content, rng):
    if rng.random() < 0.1:
        return flipped(content, rng)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError):  # it was damaged before
        return content
    how = rng.randrange(7)
    if how == 0:
        array = np.resize(array, max(array.size + rng.choice([-2, -1, 1, 5, 1000]), 0))
    elif how == 1:
        array = array.reshape(rng.choice([(1, -1), (-1, 1), (-1,), (1, 1, -1)]))
    elif how == 2:
        kinds = ["U3", "S1", "V8"] if array.dtype.kind in "USV" else ["f4", "?", "c16", "U3", "V8"]
        array = array.astype(rng.choice(kinds))
    elif how == 3 and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        array.flat[rng.randrange(array.size)] = rng.choice([0, 1, 100, -5 % 128, 127])
    elif how == 4 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array = array * rng.choice([np.nan, np.inf, 1e300, 0.0, -1.0])
    elif how == 5:
        array = array[:0] if array.ndim else array
    else:
        array = array[::-1].copy() if array.ndim else np.array([array, array])
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _sealed(members, rng):
    """The facts about a model, with checksums that are right."""
    document = json.loads(members["neverworse.json"])
    if rng.random() < 0.2:
        document["facts"] = changed({"facts": document["facts"]}, rng).get("facts")
    del document["seal"]
    document["members"] = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name != "neverworse.json"
    }
    sealed = json.dumps(document, sort_keys=True).encode()
    return as_json({**document, "seal": hashlib.sha256(sealed).hexdigest()})
