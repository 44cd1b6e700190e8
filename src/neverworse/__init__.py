"""Safe semi-supervised learning: never worse than the supervised model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time, a name is imported when it is first used
    from neverworse.estimators import (
        Audit,
        ICLSClassifier,
        LeastSquaresClassifier,
        LeastSquaresClassifierCV,
        LeastSquaresRegressor,
        LeastSquaresRegressorCV,
        ProjectedLeastSquaresClassifier,
        ProjectedLeastSquaresRegressor,
        audit,
    )
    from neverworse.evidence import SafeStackingClassifier, SequentialAudit, suggest_labels
    from neverworse.projection import Certificate

__version__ = "0.2.0"

__all__ = ["Audit", "Certificate", "ICLSClassifier", "LeastSquaresClassifier"]
__all__ += ["LeastSquaresClassifierCV", "LeastSquaresRegressor", "LeastSquaresRegressorCV"]
__all__ += ["ProjectedLeastSquaresClassifier", "ProjectedLeastSquaresRegressor"]
__all__ += ["SafeStackingClassifier", "SequentialAudit", "__version__", "audit", "suggest_labels"]

_ROOMS = {"cli", "datasets", "estimators", "evidence", "experiments", "methods", "model_selection"}
_ROOMS |= {"plots", "projection", "rows", "tables"}


def _lazily(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` that imports names, listed by module, when they are first used.

    Scikit-learn alone takes a second to import, and the command line must answer at once.
    """
    module_of = {name: module for module in names for name in names[module].split()}

    def find(name: str) -> Any:
        from importlib import import_module

        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(import_module(package), name, value)
        return value

    return find


if not TYPE_CHECKING:  # a type checker that saw it would believe that every name exists

    def __getattr__(name: str) -> Any:
        """Import a public name, or a sub-package, when it is first used."""
        from importlib import import_module

        return import_module(f"neverworse.{name}") if name in _ROOMS else _public(name)

    _public = _lazily(
        __name__,
        {
            "estimators": "Audit ICLSClassifier LeastSquaresClassifier LeastSquaresClassifierCV "
            "LeastSquaresRegressor LeastSquaresRegressorCV ProjectedLeastSquaresClassifier "
            "ProjectedLeastSquaresRegressor audit",
            "evidence": "SafeStackingClassifier SequentialAudit suggest_labels",
            "projection": "Certificate",
        },
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
