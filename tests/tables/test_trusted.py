"""Attempts to abuse parts of scikit-learn that are trusted in model files though skops asks."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys

import numpy as np
import pytest
import skops.io
from sklearn import config_context
from sklearn._loss import _loss
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._metadata_requests import SIMPLE_METHODS
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from neverworse.tables import ModelFileError
from neverworse.tables._model_file import unzipped
from tests.tables.test_model_file import (
    EVIL,
    TRUE,
    X,
    as_dict,
    evil,
    listed,
    load_any_model,
    node,
    refusal,
    repacked,
    text,
    written,
)

REQUEST = "sklearn.utils._metadata_requests.MetadataRequest"
METHOD = "sklearn.utils._metadata_requests.MethodMetadataRequest"
LOSS = f"{_loss.CyHalfBinomialLoss.__module__}.CyHalfBinomialLoss"
HINGE = "sklearn.linear_model._sgd_fast.Hinge"
OLD_LOSS = "_loss.CyHalfBinomialLoss"  # as scikit-learn before 1.9 calls it


def with_attribute(value, folder):
    """A file of a logistic regression that has one more attribute."""
    contents = skops.io.dumps(LogisticRegression().fit(X, TRUE))
    schema = json.loads(unzipped(contents)["schema.json"])
    content = schema["content"]
    content["content"]["_metadata_request"] = value
    content["key_types"]["content"].append(node("TypeNode", "builtins.str"))
    return written(folder, repacked(contents, schema=schema))


def of_method(name, requests, **parts):
    """What a file says of the requests of a method, with other parts."""
    attributes = {"owner": text("LogisticRegression"), "method": text(name), "_requests": requests}
    return node("ObjectNode", METHOD, content=as_dict(**attributes | parts))


def request(**parts):
    """What a file says of requests for metadata, with other parts; some are those of a method."""
    inner = {name: parts.pop(name) for name in ("method", "_requests") if name in parts}
    attributes = {name: of_method(name, as_dict()) for name in SIMPLE_METHODS}
    attributes["fit"] = of_method("fit", as_dict(sample_weight=text(True)), **inner)
    attributes["owner"] = text("LogisticRegression")
    return node("ObjectNode", REQUEST, content=as_dict(**attributes | parts))


def loss(name=LOSS, args=(), content=None):
    """What a file says of a loss."""
    state = as_dict() if content is None else content
    return node("LossNode", name, content=state, __reduce__={"args": listed(*args)})


def use(model):
    """Do what people do with a model that they have opened."""
    with config_context(enable_metadata_routing=True):
        for act in (
            lambda: repr(model._metadata_request),
            lambda: clone(model),
            lambda: get_routing_for_object(model),
            lambda: make_pipeline(StandardScaler(), model).fit(X, TRUE, sample_weight=np.ones(60)),
            lambda: model.predict(X),
        ):
            # nonsense may fail, as Python fails
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                act()


def open_and_use(path):
    """Use a model unless it is refused, as it may be."""
    with contextlib.suppress(ModelFileError):
        use(load_any_model(path).model)


# What goes in comes out


def test_requests_for_metadata_come_back(tmp_path):
    model = LogisticRegression().fit(X, TRUE)
    model._metadata_request = MetadataRequest(owner="LogisticRegression")
    model._metadata_request.fit.add_request(param="sample_weight", alias=True)
    skops.io.dump(model, tmp_path / "m")
    found = load_any_model(tmp_path / "m").model
    assert repr(found._metadata_request) == "{'fit': {'sample_weight': True}}"
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_what_was_written_by_hand_is_a_file_as_good(tmp_path):
    found = load_any_model(with_attribute(request(), tmp_path)).model
    assert repr(found._metadata_request) == "{'fit': {'sample_weight': True}}"
    use(found)


@pytest.mark.parametrize("name", ["log_loss", "hinge", "modified_huber", "squared_error"])
def test_losses_come_back(tmp_path, name):
    model = SGDClassifier(name, random_state=0).fit(X, TRUE)
    skops.io.dump(model, tmp_path / "m")
    found = load_any_model(tmp_path / "m").model
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


# Attempts


@pytest.mark.parametrize("place", ["owner", "fit", "predict", "method", "_requests", "__class__"])
@pytest.mark.parametrize("name", EVIL)
def test_nothing_else_hides_in_requests_for_metadata(tmp_path, place, name):
    marker = tmp_path / "marker"
    refusal(load_any_model, with_attribute(request(**{place: evil(marker)[name]}), tmp_path))
    assert not marker.exists()


@pytest.mark.parametrize("place", ["args", "content"])
@pytest.mark.parametrize("name", EVIL)
def test_nothing_else_hides_in_a_loss(tmp_path, place, name):
    marker = tmp_path / "marker"
    bad = evil(marker)[name]
    described = loss(args=[bad]) if place == "args" else loss(content=bad)
    refusal(load_any_model, with_attribute(described, tmp_path))
    assert not marker.exists()


@pytest.mark.parametrize("full", [REQUEST, METHOD, LOSS, HINGE, OLD_LOSS])
@pytest.mark.parametrize(
    "loader",
    [
        *("ConstructorFromReduceNode", "DictNode", "FunctionNode", "JsonNode", "ListNode"),
        *("MethodNode", "NdArrayNode", "OperatorFuncNode", "PartialNode", "SetNode", "TreeNode"),
        "TypeNode",
    ],
)
def test_no_other_loader_makes_them(tmp_path, loader, full):
    """As a function or a type, they could be called by whoever finds them in an attribute."""
    described = request() | {"__loader__": loader, "args": listed()}
    described["__module__"], _, described["__class__"] = full.rpartition(".")
    message = refusal(load_any_model, with_attribute(described, tmp_path))
    assert "which is not on the list" in message or "compiled code" in message


@pytest.mark.parametrize(
    "full",
    [
        "_loss.os.system",
        "_loss.sub.CyHalfBinomialLoss",
        "_loss.__loader__",
        "_loss.__pyx_unpickle_CyHalfBinomialLoss",
        "sklearn._loss._loss.__loader__",
        "sklearn._loss._loss.__pyx_unpickle_CyHalfBinomialLoss",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn.linear_model.LinearRegression",
        "sklearn.linear_model._base.make_dataset",
        "sklearn.linear_model._sgd_fast._plain_sgd",
        "sklearn.linear_model._sgd_fast.np.load",
        REQUEST,
        METHOD,
    ],
)
def test_nothing_else_is_made_as_a_loss(tmp_path, full):
    """A loss is made by calling its class with arguments from the file."""
    refusal(load_any_model, with_attribute(loss(full, [text("x")]), tmp_path))


@pytest.mark.parametrize(
    "attributes",
    [
        {"__class__": text("x"), "__dict__": text("x"), "_type": text("metadata_router")},
        {"__deepcopy__": node("FunctionNode", "numpy.exp")},
        {"__sklearn_clone__": node("TypeNode", "builtins.int")},
        {"_serialize": node("FunctionNode", "numpy.exp"), "owner": text(None)},
        {"_requests": text(["sample_weight"]), "method": text(3)},
        {"_requests": as_dict(sample_weight=request()), "fit": request()},
        {"fit": text(None), "predict": text([])},
    ],
)
def test_attributes_that_stand_in_for_methods_run_nothing(tmp_path, attributes):
    open_and_use(with_attribute(request(**attributes), tmp_path))


def test_requests_in_requests_have_an_end(tmp_path):
    described = request()
    for _ in range(100):
        described = request(owner=described)
    message = refusal(load_any_model, with_attribute(described, tmp_path))
    assert "nested more than 200 deep" in message


@pytest.mark.parametrize(
    "args",
    [
        [text("x")],
        [text(None)] * 3,
        [text(1e308), text(-1)],
        [listed(text(1))],
        [as_dict(a=text(1))],
        [request()],
    ],
)
@pytest.mark.parametrize("full", [LOSS, HINGE, LOSS.replace("HalfBinomial", "Huber")])
@pytest.mark.parametrize("content", [None, listed(text(1)), as_dict(__class__=text("x"))])
def test_losses_with_nonsense_are_made_or_refused(tmp_path, full, args, content):
    open_and_use(with_attribute(loss(full, args, content), tmp_path))


def test_an_old_name_of_a_loss_imports_nothing_that_lies_about(tmp_path, monkeypatch):
    """Scikit-learn before 1.9 names a module of which anybody may have one of their own."""
    for folder in (tmp_path / "_loss", tmp_path / "_loss" / "inner"):
        folder.mkdir()
        planted = "from pathlib import Path\nPath('marker').touch()\n"
        (folder / "__init__.py").write_text(planted + "class CyHalfBinomialLoss: pass\nPlanted = 3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # where Python looks for modules first
    for name in (OLD_LOSS, "_loss.Planted", "_loss.inner.Planted"):
        path = with_attribute(loss(name, []), tmp_path)
        if name == OLD_LOSS == LOSS:
            load_any_model(path)
        else:
            assert "is refused" in refusal(load_any_model, path)
    assert not (tmp_path / "marker").exists()
    monkeypatch.delitem(sys.modules, "_loss", raising=False)
    importlib.import_module("_loss.inner")  # which would have been found
    assert (tmp_path / "marker").exists()
    del sys.modules["_loss"], sys.modules["_loss.inner"]
