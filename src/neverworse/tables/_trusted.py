"""What a model file may contain: a short list, so that opening one never runs foreign code.

skops builds objects only of types that are trusted, and by default it trusts much more than a
classifier needs. Here, what the file describes is checked before skops sees it: each node of its
tree names a loader and a type, and both must be on the lists below. None of these loaders calls
anything that the file could choose; those that do (methods, partial functions, operators,
constructors with arguments) are not on the list.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from neverworse._words import cropped
from neverworse.tables._errors import ModelFileError

# Rooms whose estimators, and whose `FITTED_PARTS`, model files may contain.
ROOMS = ("estimators", "tables", "evidence", "methods")
# Parts of scikit-learn's models, written in Python, that skops leaves to its users to judge.
PARTS = frozenset(
    f"sklearn.{name}"
    for name in (
        *("calibration._CalibratedClassifier", "calibration._SigmoidCalibration"),
        *("gaussian_process.kernels.ConstantKernel", "gaussian_process.kernels.Matern"),
        *("gaussian_process.kernels.Product", "gaussian_process.kernels.RBF"),
        *("gaussian_process.kernels.Sum", "gaussian_process.kernels.WhiteKernel"),
        *("metrics._scorer._PassthroughScorer", "utils._bunch.Bunch"),
        *("model_selection._split.KFold", "model_selection._split.StratifiedKFold"),
        "utils._metadata_requests.MetadataRequest",
        "utils._metadata_requests.MethodMetadataRequest",
    )
) | {"numpy.dtype"}
# Compiled parts that skops leaves to its users to judge.
COMPILED = frozenset(
    f"sklearn.{name}"
    for name in (
        *("ensemble._hist_gradient_boosting.predictor.TreePredictor", "tree._tree.Tree"),
        *("metrics._dist_metrics.EuclideanDistance64", "neighbors._ball_tree.BallTree"),
        "neighbors._kd_tree.KDTree",
    )
)
# Where the models of scikit-learn are that predict in NumPy, which checks every index, or leave the
# predicting to others. Whatever is elsewhere (trees, neighbours, kernel machines, clusters, words)
# may run compiled code that does not check the indices and lengths in the file: wrong numbers can
# crash the process, or worse.
PLAIN = (
    *("numpy.", "neverworse.", "sklearn.svm._classes.Linear"),
    *(
        f"sklearn.{name}."
        for name in (
            *("base", "calibration", "compose", "cross_decomposition", "decomposition._fastica"),
            *("decomposition._factor_analysis", "decomposition._incremental_pca"),
            *("decomposition._kernel_pca", "decomposition._pca", "decomposition._truncated_svd"),
            *("discriminant_analysis", "dummy", "ensemble._bagging", "ensemble._stacking"),
            *("ensemble._voting", "ensemble._weight_boosting", "feature_selection", "frozen"),
            *("gaussian_process", "impute", "isotonic", "kernel_approximation", "linear_model"),
            *("metrics._scorer", "mixture", "model_selection", "multiclass", "multioutput"),
            *("naive_bayes", "neighbors._nearest_centroid", "neural_network", "pipeline"),
            *("preprocessing", "random_projection", "semi_supervised", "utils._bunch"),
            "utils._metadata_requests",
        )
    ),
)
# It writes where its attributes say, through compiled code that does not look for such a place.
NOT_PLAIN = "sklearn.preprocessing._encoders.OneHotEncoder"
SCALARS = {f"numpy.{scalar.__name__}": scalar for scalar in np.sctypeDict.values()}
KEYS = {"builtins.float", "builtins.int", "builtins.str"} | {
    name
    for name, scalar in SCALARS.items()
    if issubclass(scalar, np.integer | np.floating | np.str_)
}
# The types that a loader may make, besides objects.
LOADERS: dict[str, tuple[str, ...]] = {
    "DTypeNode": ("numpy.dtype",),
    "DictNode": ("builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"),
    "JsonNode": ("builtins.str",),
    "ListNode": ("builtins.list",),
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),
    "NdArrayNode": (*SCALARS, "numpy.ndarray"),
    "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "SetNode": ("builtins.set",),
    "SliceNode": ("builtins.slice",),
    "TreeNode": ("sklearn.tree._tree.Tree",),
    "TupleNode": ("builtins.tuple",),
    "TypeNode": (*SCALARS, "builtins.bool", "builtins.float", "builtins.int", "builtins.str"),
}
COMPILED_LOADERS = ("RandomGeneratorNode", "RandomStateNode", "TreeNode")
# Of these, skops has lists of its own. Not from neverworse, whose functions and classes would
# otherwise pass as a function because they are trusted as objects.
FROM = {
    "FunctionNode": ("numpy.", "scipy.special."),
    "LossNode": ("_loss.", "sklearn._loss.", "sklearn.linear_model."),  # without sklearn before 1.9
}
NODE = frozenset({"__class__", "__loader__", "__module__"})
NOT_LISTED = (
    "which is not on the list of what models need. Use estimators of scikit-learn and neverworse "
    "only."
)
MAX_DEPTH = 200  # of lists and objects in each other; pipelines in pipelines get to about 60


@cache
def our_class(module: str, name: str) -> type | None:
    """Return a class of this package, if model files may contain it: a public estimator or a part.

    Classes move between modules from version to version, but keep their names.
    """
    named = module.removeprefix("neverworse.").partition(".")[0]
    for room in sorted(ROOMS, key=lambda each: each != named):
        offered = import_module(f"neverworse.{room}")
        found = getattr(offered, name) if name in offered.__all__ else None
        if isinstance(found, type) and issubclass(found, BaseEstimator):
            return found
        for part in getattr(offered, "FITTED_PARTS", ()):
            if part.__name__ == name:
                return part
    return None


def is_trusted(full: str, *, compiled: bool) -> bool:
    """Whether models may consist of objects of a type, besides those that skops knows."""
    module, _, name = full.rpartition(".")
    if module.startswith("neverworse."):
        found = our_class(module, name)
        return found is not None and found.__module__ == module
    return full in PARTS or (compiled and full in COMPILED)


def checked_tree(tree: Any, *, compiled: bool) -> tuple[Any, dict[str, str]]:
    """Return a copy of what the ``schema.json`` of a file describes, if all is on the lists.

    Without the ids, by which a small file could describe a tree of any size, or one that contains
    itself, and with the modules in which our classes are now. Members with arrays are numbered, as
    skops names them by addresses in memory; the names that they had are returned as well.
    """
    arrays: dict[str, str] = {}

    def checked(tree: Any, depth: int, *, may_be_node: bool = True) -> Any:
        if depth > MAX_DEPTH:
            problem = f"it is nested more than {MAX_DEPTH} deep, more than any model needs."
            raise ModelFileError(problem)
        if isinstance(tree, list):
            return [checked(part, depth + 1) for part in tree]
        if not isinstance(tree, dict):
            return tree
        is_node = may_be_node and not NODE.isdisjoint(tree)
        node = _checked_node(tree, compiled) if is_node else tree
        if is_node and isinstance(name := node.get("file"), str):
            node["file"] = arrays.setdefault(name, f"{len(arrays)}.npy")
        # The content of a dict is never a node, though a column of a table may be called __class__.
        content = "content" if is_node and node["__loader__"] == "DictNode" else None
        return {k: checked(v, depth + 1, may_be_node=k != content) for k, v in node.items()}

    return checked(tree, 0), arrays


def _checked_node(tree: dict[str, Any], compiled: bool) -> dict[str, Any]:
    node = {key: part for key, part in tree.items() if key != "__id__"}
    loader, module, name = (str(node.get(key)) for key in ("__loader__", "__module__", "__class__"))
    if module.startswith("neverworse.") and (ours := our_class(module, name)):
        module = node["__module__"] = ours.__module__
    full = f"{module}.{name}"
    shown = cropped(full, 200)
    if loader == "ObjectNode":
        is_allowed = full.startswith("sklearn.") or is_trusted(full, compiled=True)
        is_compiled = not full.startswith(PLAIN) or full == NOT_PLAIN
    else:
        is_allowed = full in LOADERS.get(loader, ()) or full.startswith(FROM.get(loader, ()))
        is_compiled = loader in COMPILED_LOADERS
    if not is_allowed or not name.isidentifier():
        raise ModelFileError(f"it contains {shown} ({cropped(loader)}), {NOT_LISTED}")
    if is_compiled and not compiled:
        raise ModelFileError(
            f"it contains {shown}, compiled code that a malicious file can crash. If you made the "
            "file, or know who did, accept it with --trust-compiled (in Python: compiled=True). "
            "Otherwise, ask for a model that predicts with plain arithmetic, such as a linear one."
        )
    if loader == "DictNode":
        content, types = node["content"], node["key_types"]["content"]
        names = {f"{one['__module__']}.{one['__class__']}" for one in types}
        # skops writes keys as text.
        if not isinstance(content, dict) or len(content) != len(types) or names - KEYS:
            raise ModelFileError("a dict would come back changed. Use numbers or text as keys.")
    elif loader == "ObjectNode" and full not in COMPILED:
        _check_attributes(node.get("content"))
    return node


def _check_attributes(content: Any) -> None:
    """Refuse attributes that are not a dict, and names of cache folders."""
    loader = content.get("__loader__") if isinstance(content, dict) else None
    none = content is None or (loader == "JsonNode" and content.get("content") == "null")
    if not none and loader != "DictNode":
        raise ModelFileError("the attributes of an object are not a dict.")
    # scikit-learn unpickles what it finds in the folder of a parameter called memory.
    memory = None if none else content["content"].get("memory")
    if memory is not None and not (isinstance(memory, dict) and memory.get("content") == "null"):
        raise ModelFileError("it names a cache folder. Save it with memory=None.")
