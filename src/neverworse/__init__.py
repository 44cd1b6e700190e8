"""Safe semi-supervised learning: never worse than the supervised model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
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


def _lazily(package: str, *modules: str, rooms: Collection[str] = ()) -> Callable[[str], Any]:
    """Return a `__getattr__` that imports a room, or a public name from the module that has it.

    Scikit-learn alone takes a second to import, and the command line must answer at once.
    """

    def find(name: str) -> Any:
        if name in rooms:
            return import_module(f"{package}.{name}")
        here = import_module(package)
        for module in modules if name in here.__all__ else ():
            found = import_module(f"{package}.{module}")
            if hasattr(found, name):
                setattr(here, name, getattr(found, name))
                return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


if not TYPE_CHECKING:  # a type checker that saw it would believe that every name exists
    __getattr__ = _lazily(__name__, "projection", "estimators", "evidence", rooms=_ROOMS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
