"""Attacks that are seeded, and repeated until something does not hold: ``make fuzz``.

An attack is a function of a seed. It returns None, or says in a sentence what did not hold. To add
one, write such a function in a module of its own and name it in `ATTACKS`, with the number of seeds
that a whole run tries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Attack:
    """Where a function of a seed is, and how many seeds a whole run tries."""

    module: str
    function: str
    n_seeds: int

    def load(self) -> Callable[[int], str | None]:
        return getattr(import_module(f"tests.fuzz.{self.module}"), self.function)


ATTACKS = {
    "certificates": Attack("certificates", "attack", 100_000),
    "audits": Attack("certificates", "audit_of_scores", 10_000),
    "kernels": Attack("kernels", "attack", 5_000),
    "fits": Attack("fits", "attack", 10_000),
    "tables": Attack("tables", "damaged_table", 10_000),
    "models": Attack("models", "changed_model", 5_000),
    "other models": Attack("models", "changed_scikit_learn_model", 3_000),
    "studies": Attack("models", "changed_study", 2_000),
    "workers": Attack("cluster", "all_workers_die", 20),
}
