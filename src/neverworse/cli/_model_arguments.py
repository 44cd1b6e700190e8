"""Which model ``neverworse fit`` makes: the arguments, and what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from neverworse.cli._errors import UsageError

if TYPE_CHECKING:
    from neverworse.study import ThresholdRule


def add_choice(group: argparse._ArgumentGroup) -> None:
    """Add what decides on the model in the model file."""
    group.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="let the labeled rows of every class weigh the same together; the guarantee is then "
        "about the weighted squared error",
    )
    group.add_argument(
        "--compare",
        action="store_true",
        help="compare with logistic regression, random forest, gradient boosting, self-training, "
        "self-learning, TSVM and label spreading as well",
    )
    group.add_argument(
        "--model",
        default="auto",
        metavar="NAME",
        help="what model.skops holds: auto (what the verdict recommends, the default), projected, "
        "supervised, icls, or another method by its name in the comparison, such as 'random "
        "forest'",
    )
    group.add_argument(
        "--threshold",
        default="0.5",
        metavar="RULE",
        help="of the probability of the positive one of two classes: a number (default: 0.5); or "
        "found on held-out labeled rows: balanced (accuracy), f1, or cost=5:1, where a missed row "
        "costs 5 times as much as a false alarm",
    )
    group.add_argument(
        "--calibrate",
        action="store_true",
        help="calibrate the probabilities on held-out labeled rows (Platt's sigmoid)",
    )


def parse_model(text: str) -> str:
    """Return the name of the model that is meant; see --model."""
    from neverworse.study import named

    try:
        return named(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def parse_threshold(text: str) -> ThresholdRule:
    """Return the rule that is meant; see --threshold."""
    from neverworse.study import ThresholdRule

    named = {"balanced": ThresholdRule("balanced"), "f1": ThresholdRule("f1")}
    if text in named:
        return named[text]
    kind, _, costs = text.rpartition("=")
    parts = costs.split(":") if kind == "cost" else [text]
    try:
        numbers = [float(part) for part in parts]
        if kind not in ("", "cost") or len(numbers) != (2 if kind else 1):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--threshold is a number between 0 and 1, balanced, f1 or cost=5:1, not {text!r}."
        ) from None
    if kind:
        if not all(0.0 < cost < float("inf") for cost in numbers):
            raise UsageError(f"--threshold: both costs must be positive, but are {costs}.")
        return ThresholdRule("cost", miss=numbers[0], alarm=numbers[1])
    if not 0.0 < numbers[0] < 1.0:
        raise UsageError(f"--threshold is a probability between 0 and 1, not {text}.")
    return ThresholdRule(value=numbers[0])
