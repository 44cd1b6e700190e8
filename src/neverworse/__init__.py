"""Safe semi-supervised learning: never worse than the supervised model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time, a name is imported when it is first asked for: see below
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

__all__ = [
    "Audit",
    "Certificate",
    "ICLSClassifier",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "LeastSquaresRegressorCV",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "SafeStackingClassifier",
    "SequentialAudit",
    "__version__",
    "audit",
    "suggest_labels",
]

# The command line must answer at once, and scikit-learn alone takes a second to import.
_MODULE_OF = dict.fromkeys(__all__, "neverworse.estimators")
_MODULE_OF["Certificate"] = "neverworse.projection"
_MODULE_OF |= dict.fromkeys(
    ("SafeStackingClassifier", "SequentialAudit", "suggest_labels"), "neverworse.evidence"
)
_ROOMS = frozenset(
    {
        "cli",
        "datasets",
        "estimators",
        "evidence",
        "experiments",
        "methods",
        "model_selection",
        "plots",
        "projection",
        "rows",
        "tables",
    }
)

if not TYPE_CHECKING:  # a type checker that saw it would believe that every name exists

    def __getattr__(name: str) -> Any:
        """Import a public name, or a room of the package, when it is first asked for."""
        from importlib import import_module

        if name in _ROOMS:
            return import_module(f"neverworse.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
