"""What a model file may contain: a short list, so that opening one never runs foreign code.

skops builds objects only of types that are trusted, and by default it trusts much more than a
classifier needs. Here, what the file describes is checked before skops sees it: each node of its
tree names a loader and a type, and both must be on the lists below. None of these loaders calls
anything that the file could choose; those that do (methods, partial functions, operators,
constructors with arguments) are not on the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import neverworse
from neverworse import evidence, methods
from neverworse.estimators import SoftLabels
from neverworse.projection import Assumptions, Certificate
from neverworse.tables._archive import ModelFileError
from neverworse.tables._classifier import TableClassifier
from neverworse.tables._decided import DecidedClassifier
from neverworse.tables._errors import short
from neverworse.tables._plan import ColumnPlan
from neverworse.tables._preparation import TablePreparation

_PUBLIC = (getattr(room, name) for room in (neverworse, methods) for name in room.__all__)
OURS: tuple[type, ...] = (
    *(one for one in _PUBLIC if isinstance(one, type) and issubclass(one, BaseEstimator)),
    *methods.FITTED_PARTS,
    *evidence.FITTED_PARTS,
    Assumptions,
    Certificate,
    ColumnPlan,
    DecidedClassifier,
    SoftLabels,
    TableClassifier,
    TablePreparation,
)
# Parts of scikit-learn's models, written in Python, that skops leaves to its users to judge.
PARTS = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.utils._bunch.Bunch",
        *(
            f"sklearn.gaussian_process.kernels.{name}"
            for name in ("ConstantKernel", "Matern", "Product", "RBF", "Sum", "WhiteKernel")
        ),
    }
)
# Where the models of scikit-learn are that predict in NumPy, which checks every index, or leave the
# predicting to others. Whatever is elsewhere (trees, neighbours, kernel machines, clusters, words)
# may run compiled code that follows the indices and lengths in the file without looking: numbers
# that somebody made up crash the process, or worse.
PLAIN = tuple(
    f"sklearn.{name}."
    for name in (
        *(
            "base",
            "calibration",
            "compose",
            "cross_decomposition",
            "decomposition._factor_analysis",
        ),
        *("decomposition._fastica", "decomposition._incremental_pca", "decomposition._kernel_pca"),
        *("decomposition._pca", "decomposition._truncated_svd", "discriminant_analysis", "dummy"),
        *("ensemble._bagging", "ensemble._stacking", "ensemble._voting"),
        *("ensemble._weight_boosting", "feature_selection", "frozen", "gaussian_process", "impute"),
        *("isotonic", "kernel_approximation", "linear_model", "metrics._scorer", "mixture"),
        *("model_selection", "multiclass", "multioutput", "naive_bayes"),
        *("neighbors._nearest_centroid", "neural_network", "pipeline", "preprocessing"),
        *("random_projection", "semi_supervised", "utils._bunch"),
    )
)
LINEAR = frozenset({"sklearn.svm._classes.LinearSVC", "sklearn.svm._classes.LinearSVR"})
# Compiled parts that skops leaves to its users to judge.
COMPILED = frozenset(
    {
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.tree._tree.Tree",
    }
)
# Files name the module of a class, and classes move between versions; their names do not change.
_MODULES = {one.__qualname__: one.__module__ for one in OURS}
TRUSTED = (
    frozenset(f"{one.__module__}.{one.__qualname__}" for one in OURS) | PARTS | {"numpy.dtype"}
)

_SCALARS = frozenset(f"numpy.{scalar.__name__}" for scalar in np.sctypeDict.values())
_KEYS = frozenset({"builtins.float", "builtins.int", "builtins.str"}) | {
    f"numpy.{scalar.__name__}"
    for scalar in np.sctypeDict.values()
    if issubclass(scalar, np.integer | np.floating | np.str_)
}
# Which types a loader may make; for those without a set, skops has a list of its own.
_LOADERS: dict[str, frozenset[str] | None] = {
    "DTypeNode": frozenset({"numpy.dtype"}),
    "DictNode": frozenset(
        {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}
    ),
    "FunctionNode": None,
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "LossNode": None,
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"}),
    "NdArrayNode": _SCALARS | {"numpy.ndarray"},
    "ObjectNode": None,
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": _SCALARS | {f"builtins.{one}" for one in ("bool", "float", "int", "str")},
}
_COMPILED_LOADERS: dict[str, frozenset[str] | None] = {
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
}
# Where the types of the loaders without a set may come from: not from neverworse, whose functions
# and classes would otherwise pass as a function because they are trusted as objects.
_FROM = {
    "FunctionNode": ("numpy.", "scipy.special."),
    "LossNode": ("sklearn._loss.", "sklearn.linear_model."),
}
_NODE = frozenset({"__class__", "__loader__", "__module__"})
_DEEPEST = 200  # of lists and objects in each other; pipelines in pipelines get to about 60


def checked_tree(tree: Any, *, compiled: bool = False) -> Any:
    """Return a copy of what a model file describes, if all of it is on the lists.

    Without the ids: skops follows them from node to node, so that a small file could describe a
    tree of any size, or one that contains itself.

    Parameters
    ----------
    tree : dict
        The contents of ``schema.json``.
    compiled : bool
        Whether models are accepted, too, that are not `PLAIN`.
    """
    return _checked(tree, compiled, 0)


def _checked(tree: Any, compiled: bool, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ModelFileError(f"it is nested more than {_DEEPEST} deep, as no model is.")
    if isinstance(tree, list):
        return [_checked(part, compiled, depth + 1) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if not _NODE & tree.keys():
        return _checked_parts(tree, compiled, depth)
    tree = _where_it_is_today(tree)
    _check_node(tree, compiled)
    node = {key: part for key, part in tree.items() if key != "__id__"}
    if tree["__loader__"] != "DictNode":
        return _checked_parts(node, compiled, depth)
    # The content of a dict is never a node, though a column of a table may be called __class__.
    content = _checked_parts(node.pop("content"), compiled, depth + 1)
    return _checked_parts(node, compiled, depth) | {"content": content}


def _checked_parts(tree: dict[str, Any], compiled: bool, depth: int) -> dict[str, Any]:
    return {key: _checked(part, compiled, depth + 1) for key, part in tree.items()}


def _where_it_is_today(node: dict[str, Any]) -> dict[str, Any]:
    """Return the node of one of our classes with the module that has the class in this version."""
    module = _MODULES.get(str(node.get("__class__")))
    ours = str(node.get("__module__")).startswith("neverworse.")
    return node | {"__module__": module} if ours and module is not None else node


def _check_node(node: dict[str, Any], compiled: bool) -> None:
    loader, module, name = (str(node.get(key)) for key in ("__loader__", "__module__", "__class__"))
    full = f"{module}.{name}"
    shown = short(full, 200)
    if not compiled and (loader in _COMPILED_LOADERS or (loader == "ObjectNode" and _blind(full))):
        raise ModelFileError(
            f"it contains {shown}, compiled code that made-up numbers can crash. Use a model that "
            "predicts with plain arithmetic, such as a linear one, or, if you know who made the "
            "file, accept it with --trust-compiled (in Python: compiled=True)."
        )
    known = (_LOADERS | _COMPILED_LOADERS).get(loader, frozenset())
    if known is None:
        allowed = full.startswith(_FROM[loader]) if loader in _FROM else _is_model(full)
    else:
        allowed = full in known
    if not allowed or not name.isidentifier():
        raise ModelFileError(
            f"it contains {shown} ({short(loader)}), which is not on the list of what models need. "
            "Use estimators of scikit-learn and neverworse only."
        )
    if loader == "DictNode":
        _check_dict(node)
    elif loader == "ObjectNode" and full not in COMPILED:
        _check_attributes(node.get("content"))


def _blind(full: str) -> bool:
    """Whether it may follow indices of the file without looking."""
    return full.startswith("sklearn.") and not (full.startswith(PLAIN) or full in LINEAR)


def _is_model(full: str) -> bool:
    return full in TRUSTED or full.startswith("sklearn.")


def _check_attributes(content: Any) -> None:
    """Refuse attributes that are not a dict, and names of cache folders."""
    loader = content.get("__loader__") if isinstance(content, dict) else None
    none = content is None or (loader == "JsonNode" and content.get("content") == "null")
    if not none and loader != "DictNode":
        raise ModelFileError("the attributes of an object are no dict.")
    # scikit-learn unpickles what it finds in the folder of a parameter called memory.
    memory = None if none else content["content"].get("memory")
    if memory is not None and not (isinstance(memory, dict) and memory.get("content") == "null"):
        raise ModelFileError("it names a cache folder. Save it with memory=None.")


def _check_dict(node: dict[str, Any]) -> None:
    """Refuse dicts whose keys would come back as others: skops writes them as text."""
    try:
        content, types = node["content"], node["key_types"]["content"]
        names = {f"{one['__module__']}.{one['__class__']}" for one in types}
    except (KeyError, TypeError):
        raise ModelFileError("the description of a dict is not one.") from None
    if not isinstance(content, dict) or len(content) != len(types) or names - _KEYS:
        raise ModelFileError(
            "it contains a dict that would be changed by saving it, as its keys are not all "
            "numbers or all text. Use numbers or text as keys."
        )


def nodes_with_file(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes whose numbers are in another member of the file."""
    if isinstance(tree, list):
        for part in tree:
            yield from nodes_with_file(part)
    elif isinstance(tree, dict):
        if isinstance(tree.get("__loader__"), str) and isinstance(tree.get("file"), str):
            yield tree
        for part in tree.values():
            yield from nodes_with_file(part)
