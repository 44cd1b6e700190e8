"""Model files: what goes in comes out, and what is not a model is refused and never run."""

from __future__ import annotations

import datetime as dt
import functools
import importlib
import io
import json
import operator
import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC

import neverworse
from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.methods import ContrastivePessimisticDiscriminantAnalysis, MetricModelSelection
from neverworse.tables import (
    ModelFileError,
    TableClassifier,
    _model_file,
    load_model,
    save_model,
)
from neverworse.tables._model_file import unzipped, zipped
from neverworse.tables._trusted import ROOMS, our_class

load_any_model = functools.partial(load_model, ours=False)
FACTS = {"target": "diagnosis", "classes": ["no", "yes"], "alpha": 0.1, "nothing": None}


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


X, TRUE = rows()
Y = np.where(np.arange(len(X)) < 20, TRUE, -1)
TABLE = pd.DataFrame({"age": X[:, 0], "sex": np.where(X[:, 1] > 0, "f", "m"), "dose": X[:, 2]})


def pipeline():
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "dose"]),
        (OrdinalEncoder(), ["sex"]),
    )
    return make_pipeline(prepare, ProjectedLeastSquaresClassifier(alpha=1.0)).fit(TABLE, Y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model, and the bytes of its file."""
    model = pipeline()
    path = tmp_path_factory.mktemp("saved") / "model.skops"
    save_model(model, path, facts=FACTS)
    return model, path.read_bytes()


def written(folder, contents, name="model.skops"):
    path = folder / name
    path.write_bytes(contents)
    return path


def refusal(load, path):
    """Why a file is refused: at most a few sentences, with nothing of Python in it."""
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert "Traceback" not in message
    assert len(message) < 420 + len(str(path))
    return message


def same_model(first, second):
    return skops_text(first) == skops_text(second)


def skops_text(model):
    """Everything that skops would write of a model, addresses in memory apart."""
    members = unzipped(skops.io.dumps(model))
    files = {name: contents.hex() for name, contents in members.items() if name != "schema.json"}
    text = re.sub(r'"__id__": \d+', "", members["schema.json"].decode())
    return re.sub(r"\d+\.npy", lambda found: files[found.group()], text)


# What goes in comes out


def test_a_pipeline_comes_back(saved, tmp_path):
    model, contents = saved
    loaded = load_model(written(tmp_path, contents))
    assert loaded.facts == FACTS
    assert loaded.note == ""
    assert same_model(loaded.model, model)
    np.testing.assert_array_equal(
        loaded.model.decision_function(TABLE), model.decision_function(TABLE)
    )
    assert loaded.model[-1].certificate_ == model[-1].certificate_
    assert loaded.model[-1].certificate_.summary() == model[-1].certificate_.summary()


@pytest.mark.parametrize(
    ("y", "settings"),
    [
        pytest.param(Y, {}, id="integers"),
        pytest.param(np.where(Y < 0, Y, np.arange(60) % 3), {}, id="three classes"),
        pytest.param(np.where(Y < 0, None, np.where(Y > 0, "b", "a")), {}, id="strings"),
        pytest.param(np.array([None if v < 0 else bool(v) for v in Y]), {}, id="booleans"),
        pytest.param(np.where(Y < 0, np.nan, Y), {"missing_label": np.nan}, id="floats"),
        pytest.param(Y, {"class_prior": (0.3, 0.6)}, id="interval"),
        pytest.param(Y, {"class_prior": {1: (0.3, 0.6)}}, id="dict of integers"),
        pytest.param(
            np.where(Y < 0, None, np.where(Y > 0, "b", "a")),
            {"class_prior": {"b": (0.3, 0.6)}},
            id="dict of strings",
        ),
        pytest.param(Y, {"class_prior": "confidence"}, id="confidence"),
        pytest.param(Y, {"alpha": "loo", "constraint_alpha": 2.0}, id="leave one out"),
        pytest.param(Y, {"distance": np.eye(3)}, id="distance of my own"),
        pytest.param(Y, {"distance": "unlabeled"}, id="transductive"),
    ],
)
def test_projected_comes_back(tmp_path, y, settings):
    model = ProjectedLeastSquaresClassifier(**settings).fit(X, y)
    save_model(model, tmp_path / "m", facts={})
    loaded = load_model(tmp_path / "m").model
    assert loaded.certificate_ == model.certificate_
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.soft_labels_, model.soft_labels_)
    np.testing.assert_array_equal(loaded.supervised_.coef_, model.supervised_.coef_)
    assert str(loaded.get_params()) == str(model.get_params())
    loaded.fit(X, y)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def public_estimators():
    rooms = (neverworse, neverworse.methods)
    found = [getattr(room, name) for room in rooms for name in room.__all__]
    return [one for one in found if isinstance(one, type) and issubclass(one, BaseEstimator)]


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_every_estimator_of_the_package_comes_back(tmp_path, kind):
    if kind is MetricModelSelection:
        model = kind([(str(alpha), LeastSquaresClassifier(alpha)) for alpha in (10.0, 1.0)])
    else:
        needed = {
            "estimator": LeastSquaresClassifier(),
            "target_bounds": (-3.0, 3.0),
            "candidates": [("penalised", LeastSquaresClassifier(1.0))],  # others are compiled
        }
        names = kind._get_param_names()
        model = kind(**{name: value for name, value in needed.items() if name in names})
    y = np.where(Y < 0, np.nan, X[:, 1]) if is_regressor(model) else Y
    if kind is neverworse.methods.OracleClassifier:
        y = TRUE
    model.fit(X, y)
    save_model(model, tmp_path / "m", facts={})
    loaded = load_model(tmp_path / "m").model
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert same_model(loaded, model)


def test_a_file_opens_after_its_classes_have_moved_to_other_modules(tmp_path):
    model = ContrastivePessimisticDiscriminantAnalysis().fit(X, Y)
    save_model(model, tmp_path / "m", facts={})
    contents = (tmp_path / "m").read_bytes()
    here = unzipped(contents)["schema.json"].decode()
    before = re.sub(r'"neverworse\.methods\.(\w+\.)?_\w+"', '"neverworse.estimators._before"', here)
    assert before.count("_before") > 1
    path = written(tmp_path, repacked(contents, schema=json.loads(before)))
    assert same_model(load_model(path).model, model)


def test_classes_in_files_have_one_name_each_and_no_code_of_their_own():
    rooms = [importlib.import_module(f"neverworse.{room}") for room in ROOMS]
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    models = {one for one in public if isinstance(one, type) and issubclass(one, BaseEstimator)}
    every = models.union(*(getattr(room, "FITTED_PARTS", ()) for room in rooms))
    assert len({one.__name__ for one in every}) == len(every) > 40
    for one in every:
        assert our_class(one.__module__, one.__name__) is one
        assert not {"__reduce__", "__setstate__"} & vars(one).keys()


def test_skops_reads_it_as_well(saved, tmp_path):
    model, contents = saved
    path = written(tmp_path, contents)
    loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))


def test_same_model_same_bytes(saved, tmp_path):
    model, contents = saved
    sha256 = save_model(model, tmp_path / "again.skops", facts=FACTS)
    assert (tmp_path / "again.skops").read_bytes() == contents
    assert load_model(tmp_path / "again.skops").sha256 == sha256
    fitted_again = save_model(pipeline(), tmp_path / "fitted.skops", facts=FACTS)
    assert fitted_again == sha256


def test_a_folder_that_is_not_there_is_named(saved, tmp_path):
    message = refusal(lambda path: save_model(saved[0], path), tmp_path / "none" / "m.skops")
    assert message == f"There is no folder {tmp_path / 'none'}. Make it, or name another."


def test_nothing_is_left_behind_by_a_model_that_cannot_be_saved(saved, tmp_path):
    path = written(tmp_path, saved[1])
    model = make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression())
    message = refusal(lambda path: save_model(model, path, facts={}), path)
    assert message.startswith(
        f"This Pipeline cannot be saved: it contains {os.path.__name__}.basename"
    )
    assert path.read_bytes() == saved[1]
    assert [one.name for one in tmp_path.iterdir()] == ["model.skops"]


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"class_prior": {True: (0.3, 0.6)}}, "Use numbers or text as keys"),
        ({"missing_label": pd.NA}, "NAType"),
    ],
)
def test_what_would_come_back_changed_is_not_saved(tmp_path, parameters, word):
    # skops writes the keys of a dict as text: False would come back as bool("false"), which is True
    model = ProjectedLeastSquaresClassifier(**parameters)
    message = refusal(lambda path: save_model(model, path, facts={}), tmp_path / "m")
    assert word in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["memory", "__class__", "__loader__", "__id__", "content", "file"])
def test_columns_may_have_any_name(tmp_path, name):
    table = pd.DataFrame({name: TABLE["sex"], "age": TABLE["age"]})
    model = TableClassifier().fit(table, np.where(Y < 0, None, np.where(Y > 0, "yes", "no")))
    save_model(model, tmp_path / "m", facts={"columns": list(table)})
    loaded = load_model(tmp_path / "m")
    assert loaded.facts == {"columns": [name, "age"]}
    np.testing.assert_array_equal(loaded.model.predict(table), model.predict(table))
    assert loaded.model.certificate_ == model.certificate_


# Models of others


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        SGDClassifier("log_loss", random_state=0),
        LinearSVC(),
        CalibratedClassifierCV(LogisticRegression()),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]),
        GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}),
        make_pipeline(FunctionTransformer(np.arctan), StandardScaler(), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_scikit_learn(tmp_path, model):
    skops.io.dump(model.fit(X, TRUE), tmp_path / "m")
    loaded = load_any_model(tmp_path / "m")
    assert loaded.facts == {}
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    assert "was not written by neverworse" in refusal(load_model, tmp_path / "m")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3),
        KNeighborsClassifier(),
        KNeighborsClassifier(algorithm="brute"),
        SVC(),
        NuSVC(),
        make_pipeline(KBinsDiscretizer(encode="ordinal", strategy="uniform"), SVC()),
        make_pipeline(KBinsDiscretizer(3, strategy="uniform"), LogisticRegression()),  # one-hot
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_compiled_code_is_opened_only_if_asked_for(tmp_path, model):
    skops.io.dump(model.fit(X, TRUE), tmp_path / "m")
    assert "compiled code that a malicious file can crash" in refusal(
        load_any_model, tmp_path / "m"
    )
    loaded = load_any_model(tmp_path / "m", compiled=True).model
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_model_of_neverworse_is_any_model(saved, tmp_path):
    loaded = load_any_model(written(tmp_path, saved[1]))
    assert loaded.facts == FACTS
    np.testing.assert_array_equal(loaded.model.predict(TABLE), saved[0].predict(TABLE))


def test_something_that_is_no_model(tmp_path):
    skops.io.dump({"a": [1, 2]}, tmp_path / "m")
    assert "a dict has no method predict" in refusal(load_any_model, tmp_path / "m")


# Files that want to run something


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_the_bait_works(tmp_path):
    marker = tmp_path / "marker"
    pickle.loads(pickle.dumps(Touch(marker))).close()
    assert marker.exists()


@pytest.mark.parametrize("load", [load_model, load_any_model])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_not_opened(tmp_path, load, protocol):
    marker = tmp_path / "marker"
    path = written(tmp_path, pickle.dumps(Touch(marker), protocol=protocol))
    message = refusal(load, path)
    assert "skops.io.dump" in message
    assert "is a pickle" in message or protocol < 2
    assert not marker.exists()


@pytest.mark.parametrize("compress", [0, "zlib", "gzip", "bz2", "lzma", "xz"])
def test_files_of_joblib_are_not_opened(tmp_path, compress):
    marker = tmp_path / "marker"
    joblib.dump(Touch(marker), tmp_path / "model.joblib", compress=compress)
    assert "skops.io.dump" in refusal(load_any_model, tmp_path / "model.joblib")
    assert not marker.exists()


def repacked(contents, *, schema=None, members=None, seal=True):
    """The file with another description or other members, sealed like a true one."""
    found = unzipped(contents) | (members or {})
    if schema is not None:
        found["schema.json"] = json.dumps(schema).encode()
    if seal and "neverworse.json" in found:
        document = json.loads(found["neverworse.json"])
        document.pop("seal")
        document["members"] = {
            name: _model_file._sha256(data)
            for name, data in found.items()
            if name != "neverworse.json"
        }
        document["seal"] = _model_file._seal(document)
        found["neverworse.json"] = json.dumps(document).encode()
    return zipped(found)


def node(loader, name, **rest):
    module, _, kind = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": kind, **rest}


def listed(*content, loader="TupleNode", name="builtins.tuple"):
    return node(loader, name, content=list(content))


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def as_dict(**content):
    return node(
        "DictNode",
        "builtins.dict",
        content=content,
        key_types=listed(
            *(node("TypeNode", "builtins.str") for _ in content),
            loader="ListNode",
            name="builtins.list",
        ),
    )


def evil(marker):
    """Descriptions of objects that touch the marker, or could, if they were made."""
    touch = text(f"touch '{marker}'")
    code = text(f"open({str(marker)!r}, 'w')")
    system = node("FunctionNode", "os.system")
    return {
        "os.system": node("FunctionNode", "posix.system"),
        "builtins.eval": node("TypeNode", "builtins.eval"),
        "eval as constructor": node(
            "ConstructorFromReduceNode", "builtins.eval", content=listed(code)
        ),
        "os.system as constructor": node(
            "ConstructorFromReduceNode", "os.system", content=listed(touch)
        ),
        "Popen": node("ConstructorFromReduceNode", "subprocess.Popen", content=listed(touch)),
        "Popen as list": listed(touch, loader="ListNode", name="subprocess.Popen"),
        "Popen as set": listed(touch, loader="SetNode", name="subprocess.Popen"),
        "eval as array": node("NdArrayNode", "builtins.eval", type="numpy", file="0.npy"),
        "eval as loss": node(
            "LossNode", "builtins.eval", content=as_dict(), __reduce__={"args": listed(code)}
        ),
        "eval as key": node(
            "DictNode",
            "builtins.dict",
            content={f"open({str(marker)!r}, 'w')": text(1)},
            key_types=listed(node("TypeNode", "builtins.eval")),
        ),
        "exec as default": node(
            "DefaultDictNode",
            "collections.defaultdict",
            content={"main": as_dict(), "default_factory": node("TypeNode", "builtins.exec")},
        ),
        "partial": node(
            "PartialNode",
            "functools.partial",
            content={
                "func": system,
                "args": listed(touch),
                "kwds": as_dict(),
                "namespace": text(None),
            },
        ),
        "operator": node("OperatorFuncNode", "operator.call", attrs=listed(system, touch)),
        "methodcaller": node(
            "OperatorFuncNode", "operator.methodcaller", attrs=listed(text("system"), touch)
        ),
        "method": node(
            "MethodNode", "pathlib.Path", content={"func": "touch", "obj": text(str(marker))}
        ),
        "object with reduce": node("ObjectNode", "tests.tables.test_model_file.Touch"),
        "method of a classifier": node(
            "MethodNode",
            "neverworse.estimators._least_squares.LeastSquaresClassifier",
            content={
                "func": "fit",
                "obj": node(
                    "ObjectNode", "neverworse.estimators._least_squares.LeastSquaresClassifier"
                ),
            },
        ),
        "function of neverworse": node("FunctionNode", "neverworse._files.write_whole"),
        "function as class": node("ObjectNode", "neverworse.estimators._audit.audit"),
        "classifier as function": node(
            "FunctionNode", "neverworse.estimators._least_squares.LeastSquaresClassifier"
        ),
        "classifier as constructor": node(
            "ConstructorFromReduceNode",
            "neverworse.estimators._least_squares.LeastSquaresClassifier",
            content=listed(),
        ),
        "main of neverworse": node("FunctionNode", "neverworse.cli.main"),
        "function of scikit-learn": node("ObjectNode", "sklearn.utils._testing.check_output"),
        "function of NumPy": node("FunctionNode", "numpy.load"),
        "random numbers": node(
            "RandomStateNode", "numpy.random.mtrand.RandomState", content=as_dict()
        ),
        "cached": node("CachedNode", "builtins.str", __id__=1),
        "bytes": node("BytesNode", "builtins.bytes", file="0.npy"),
        "sparse": node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="0"),
        "no type": {"__loader__": "ObjectNode"},
        "no loader": {"__class__": "system", "__module__": "os"},
        "long types": node(9000 * "L", 9000 * "x" + ".y"),
        "types that are no text": {"__loader__": [], "__class__": {}, "__module__": 3},
        "attributes as list": node(
            "ObjectNode",
            "neverworse.estimators._least_squares.LeastSquaresClassifier",
            content=listed(listed(text("predict"), system)),
        ),
        "cache folder": node(
            "ObjectNode", "sklearn.pipeline.Pipeline", content=as_dict(memory=text("/tmp/cache"))
        ),
    }


EVIL = sorted(evil("marker"))


@pytest.mark.parametrize("load", [load_model, functools.partial(load_any_model, compiled=True)])
@pytest.mark.parametrize("where", ["root", "attribute"])
@pytest.mark.parametrize("name", EVIL)
def test_descriptions_of_other_things_are_refused(saved, tmp_path, load, where, name):
    marker = tmp_path / "marker"
    bad = evil(marker)[name]
    schema = json.loads(unzipped(saved[1])["schema.json"])
    if where == "root":
        schema = bad | {"protocol": schema["protocol"]}
    else:
        schema["content"]["content"]["verbose"] = bad
    path = written(tmp_path, repacked(saved[1], schema=schema))
    said = refusal(load, path)
    assert str(path) in said
    assert len(said) < 1000
    assert not marker.exists()


def test_an_attribute_may_be_what_it_was(saved, tmp_path):
    """The way in which the files above were made gives a good file for a good attribute."""
    schema = json.loads(unzipped(saved[1])["schema.json"])
    schema["content"]["content"]["verbose"] = text(True)
    path = written(tmp_path, repacked(saved[1], schema=schema))
    assert load_model(path).model.verbose is True


@pytest.mark.parametrize("dumped", [operator.attrgetter("a"), functools.partial(print, 1), os.stat])
def test_true_files_of_skops_with_functions_are_refused(tmp_path, dumped):
    model = LogisticRegression().fit(X, TRUE)
    model.verbose = dumped
    skops.io.dump(model, tmp_path / "m")
    assert "which is not on the list" in refusal(load_any_model, tmp_path / "m")


def test_arrays_of_objects_are_not_unpickled(saved, tmp_path):
    marker = tmp_path / "marker"
    buffer = io.BytesIO()
    np.save(buffer, np.array([Touch(marker)], dtype=object), allow_pickle=True)
    bare = pickle.dumps(Touch(marker))
    zipped_array = io.BytesIO()
    np.savez(zipped_array, a=np.zeros(3))
    for contents in (buffer.getvalue(), bare, zipped_array.getvalue(), b"", b"\x93NUMPY"):
        path = written(tmp_path, repacked(saved[1], members={"0.npy": contents}))
        refusal(load_model, path)
        assert not marker.exists()


def test_an_array_that_claims_to_be_enormous(saved, tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**45,)}
    )
    path = written(tmp_path, repacked(saved[1], members={"0.npy": buffer.getvalue()}))
    refusal(load_model, path)


# Files that are damaged, or something else


def test_no_file(tmp_path):
    assert "There is no file" in refusal(load_model, tmp_path / "none.skops")
    assert "There is no file" in refusal(load_model, tmp_path)
    assert "is not a model file" in refusal(load_model, written(tmp_path, b""))
    assert "There is no file" in refusal(load_model, os.devnull)


@pytest.mark.parametrize("contents", [b"a,b\n1,2\n", b"<html>", b"\x93NUMPY\x01\x00", b"PAR1"])
def test_other_files(tmp_path, contents):
    assert "is not a model file, which is a zip" in refusal(load_model, written(tmp_path, contents))


def test_other_archives(tmp_path):
    path = written(tmp_path, zipped({"data.pkl": b"\x80"}))
    assert "but not a model of skops" in refusal(load_model, path)


@pytest.mark.parametrize("share", np.linspace(0.001, 0.999, 25))
def test_cut_off(saved, tmp_path, share):
    contents = saved[1][: max(4, int(share * len(saved[1])))]
    assert "it is damaged" in refusal(load_model, written(tmp_path, contents))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bytes_are_found_or_change_nothing(saved, tmp_path_factory, data):
    model, contents = saved
    flipped = bytearray(contents)
    # Three in four are in the directory at the end, where less is covered by check sums.
    low = data.draw(st.sampled_from([0, len(flipped) - 2000]))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(low, len(flipped) - 1))
        flipped[position] ^= data.draw(st.integers(1, 255))
    path = written(tmp_path_factory.getbasetemp(), bytes(flipped), "flipped.skops")
    try:
        loaded = load_model(path)
    except ModelFileError:
        return
    assert loaded.facts == FACTS
    assert same_model(loaded.model, model)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_description_is_opened_or_refused(saved, tmp_path_factory, data):
    """Change parts of the description at random, and seal it again."""
    schema = json.loads(unzipped(saved[1])["schema.json"])
    places = list(inner(schema))
    for _ in range(data.draw(st.integers(1, 4))):
        parent, key = data.draw(st.sampled_from(places))
        other = data.draw(st.sampled_from(places))
        junk = data.draw(
            st.sampled_from([None, 3, "", "null", "[" * 5000, [], {}, "DictNode", "builtins"])
        )
        parent[key] = data.draw(st.sampled_from([junk, json.loads(json.dumps(other[0][other[1]]))]))
    contents = repacked(saved[1], schema=schema)
    path = written(tmp_path_factory.getbasetemp(), contents, "changed.skops")
    try:
        load_model(path)
    except ModelFileError:
        return


def inner(tree):
    """Every place in the description, as what contains it and where."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from inner(value)


@pytest.mark.parametrize("member", ["schema.json", "0.npy", "neverworse.json"])
def test_changed_members(saved, tmp_path, member):
    found = unzipped(saved[1])
    assert found[member] != found[member].replace(b"0", b"1")
    changed = zipped(found | {member: found[member].replace(b"0", b"1")})
    path = written(tmp_path, changed)
    for load in (load_model, load_any_model):
        said = refusal(load, path)
        assert "changed since it was written" in said or member == "neverworse.json"


def test_changed_facts(saved, tmp_path):
    found = unzipped(saved[1])
    found["neverworse.json"] = found["neverworse.json"].replace(b"diagnosis", b"diagnoses")
    message = refusal(load_model, written(tmp_path, zipped(found)))
    assert "changed since it was written" in message


def test_a_member_too_many_and_one_too_few(saved, tmp_path):
    found = unzipped(saved[1])
    assert "changed since it was written" in refusal(
        load_model, written(tmp_path, zipped(found | {"extra.npy": b""}))
    )
    del found["0.npy"]
    assert "changed since it was written" in refusal(load_model, written(tmp_path, zipped(found)))
    assert "a part of it is missing" in refusal(
        load_model, written(tmp_path, repacked(zipped(found)))
    )


def redocumented(contents, **changes):
    found = unzipped(contents)
    document = json.loads(found["neverworse.json"]) | changes
    found["neverworse.json"] = json.dumps(document).encode()
    return repacked(zipped(found))


def test_versions(saved, tmp_path):
    newer = redocumented(saved[1], neverworse="99.1")
    assert "saved with neverworse 99.1 and" in load_model(written(tmp_path, newer)).note
    other = redocumented(saved[1], **{"scikit-learn": "1.0"})
    assert "scikit-learn 1.0" in load_model(written(tmp_path, other)).note
    format_2 = redocumented(saved[1], format=2, neverworse="99.1")
    message = refusal(load_model, written(tmp_path, format_2))
    assert "format 2 of neverworse 99.1" in message
    assert 'Run in a newer clone of neverworse: pip install ".[tables]"' in message
    refusal(load_model, written(tmp_path, redocumented(saved[1], facts=[])))


def test_a_model_of_another_scikit_learn_gives_no_warning(saved, tmp_path):
    schema = unzipped(saved[1])["schema.json"].decode()
    schema = schema.replace(f'\\"{_model_file.sklearn.__version__}\\"', '\\"1.0\\"')
    path = written(tmp_path, repacked(saved[1], schema=json.loads(schema)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(path)


@pytest.mark.parametrize("protocol", [0, 1, -1, 99, True, "2", None])
def test_protocols_of_other_times(saved, tmp_path, protocol):
    schema = json.loads(unzipped(saved[1])["schema.json"]) | {"protocol": protocol}
    message = refusal(load_model, written(tmp_path, repacked(saved[1], schema=schema)))
    assert "it was written by another skops (protocol" in message


@pytest.mark.parametrize(
    "schema",
    [b"", b"{", b"\xff\xfe", b"[]", b"3", b"null", b'{"a":' * 100_000, b"[" * 100_000, b"9" * 9999],
)
def test_descriptions_that_are_none(tmp_path, schema):
    path = written(tmp_path, zipped({"schema.json": schema}))
    assert "is refused" in refusal(load_any_model, path)


@pytest.mark.parametrize("depth", [250, 5000])
def test_a_description_that_is_nested_deeply(tmp_path, depth):
    schema = '{"protocol": 2, "content": ' + "[" * depth + "]" * depth + "}"
    path = written(tmp_path, zipped({"schema.json": schema.encode()}))
    refusal(load_any_model, path)


def test_a_description_that_contains_itself_many_times(tmp_path):
    """Two to the power of fifty objects, in a few kilobytes, for who follows the ids."""
    level = listed(text(1), loader="ListNode", name="builtins.list") | {"__id__": 1}
    for depth in range(2, 52):
        again = {"__id__": depth - 1, "__loader__": "ListNode"}
        again |= {"__module__": "builtins", "__class__": "list"}
        level = listed(level, again, loader="ListNode", name="builtins.list") | {"__id__": depth}
    path = written(tmp_path, zipped({"schema.json": json.dumps(level | {"protocol": 2}).encode()}))
    refusal(load_any_model, path)


def archive(*members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there already
        with zipfile.ZipFile(buffer, "w", compression) as file:
            for name, contents in members:
                file.writestr(name, contents)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/passwd", "a\\b.npy", "C:evil", "a\nb"])
def test_names_that_are_paths(saved, tmp_path, name):
    members = unzipped(saved[1]) | {name: b""}
    path = written(tmp_path, archive(*members.items()))
    assert "not named or compressed as skops does it" in refusal(load_model, path)


def test_two_members_of_one_name(saved, tmp_path):
    members = unzipped(saved[1])
    path = written(tmp_path, archive(*members.items(), ("schema.json", b"{}")))
    assert "have the same name" in refusal(load_model, path)


def test_a_bomb(tmp_path):
    bomb = archive(
        ("schema.json", b"{}"),
        ("0.npy", bytes(_model_file.FREE_BYTES + 1)),
        compression=zipfile.ZIP_DEFLATED,
    )
    assert len(bomb) < 2**20
    assert "would unpack to 100 MiB: an attack" in refusal(load_any_model, written(tmp_path, bomb))


def test_many_small_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(_model_file, "MAX_BYTES", 10**6)  # instead of writing gigabytes
    members = [(f"{k}.npy", bytes(10**5)) for k in range(11)]
    path = written(tmp_path, archive(*members, compression=zipfile.ZIP_DEFLATED))
    assert "unpacked, it is larger than" in refusal(load_any_model, path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path, compression):
    path = written(tmp_path, archive(("schema.json", b"{}"), compression=compression))
    assert "not named or compressed as skops does it" in refusal(load_any_model, path)


# The library


@pytest.mark.parametrize("call", [load_any_model, lambda path: save_model(None, path, facts={})])
def test_without_skops(saved, tmp_path, monkeypatch, call):
    path = written(tmp_path, saved[1])
    monkeypatch.setitem(sys.modules, "skops.io", None)
    assert 'Run in a clone of neverworse: pip install ".[tables]"' in refusal(call, path)


def test_an_old_skops(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("skops.__version__", "0.12.0")
    message = refusal(load_model, written(tmp_path, saved[1]))
    assert "skops 0.12.0 is not safe" in message


def test_a_new_process_opens_a_file_and_imports_no_room_that_it_does_not_name(saved, tmp_path):
    path = written(tmp_path, saved[1])
    code = (
        "import sys; from neverworse.tables import load_model; "
        "print(load_model(sys.argv[1]).model[-1].certificate_.summary()); "
        "print(*(name for name in sys.modules if name.startswith('neverworse.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    said, imported = ran.stdout.rstrip().rsplit("\n", 1)
    assert said == saved[0][-1].certificate_.summary()
    rooms = {name.split(".")[1] for name in imported.split()}
    assert "estimators" in rooms
    assert not rooms & {"methods", "evidence", "study"}


# Written by neverworse 0.1.0 when the classes of tables and methods were in other modules.
BEFORE = Path(__file__).with_name("model_0_1_0.skops")
ROWS_BEFORE = pa.table(
    {
        "age": [1.126, -0.132, 1.64, 0.105, 0.464],
        "city": ["C", "B", "A", "A", "C"],
        "seen": [
            *(dt.date(2026, 6, 21), dt.date(2026, 5, 2), dt.date(2026, 10, 26)),
            *(dt.date(2026, 3, 1), dt.date(2026, 10, 11)),
        ],
        "price": ["7,06 €", "4,98 €", "5,23 €", "7,29 €", "4,32 €"],
    }
)


def test_a_file_of_an_earlier_version_is_opened_and_predicts_the_same():
    model = load_model(BEFORE, compiled=True).model  # it has a one-hot encoder
    expected = [
        *(-0.1535889692743278, 0.3606920057863546, -0.5546135115563171),
        *(0.27865384156838724, -0.49185030501128846),
    ]
    np.testing.assert_allclose(model.decision_function(ROWS_BEFORE), expected, rtol=1e-9)
    assert model.predict(ROWS_BEFORE).tolist() == ["ill", "well", "ill", "well", "ill"]
    assert model.certificate_.holds


def test_a_file_with_a_class_that_is_gone_is_refused_and_its_version_named(tmp_path):
    members = unzipped(BEFORE.read_bytes())
    members["schema.json"] = members["schema.json"].replace(b"TablePreparation", b"OldPreparation")
    document = json.loads(members["neverworse.json"])
    document["neverworse"] = "0.0.9"
    del document["seal"]
    document["members"]["schema.json"] = _model_file._sha256(members["schema.json"])
    document["seal"] = _model_file._seal(document)
    members["neverworse.json"] = json.dumps(document).encode()
    (tmp_path / "model.skops").write_bytes(zipped(members))
    with pytest.raises(ModelFileError) as caught:
        load_model(tmp_path / "model.skops")
    assert "model.skops, written by neverworse 0.0.9, is refused: it contains " in str(caught.value)
    assert "OldPreparation" in str(caught.value)
