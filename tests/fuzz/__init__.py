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
    """Where the function ``attack(seed)`` is, and how many seeds a whole run tries."""

    module: str
    n_seeds: int

    def load(self) -> Callable[[int], str | None]:
        return import_module(self.module).attack


ATTACKS = {
    "certificates": Attack("tests.fuzz.certificates", 100_000),
    "fits": Attack("tests.fuzz.fits", 10_000),
}
