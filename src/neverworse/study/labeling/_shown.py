"""What people see of a labeling: a sheet of questions, and what the answers decide so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neverworse._files import write_whole
from neverworse._words import count, number, signed
from neverworse.study._study import Study
from neverworse.tables import (
    ModelFileError,
    ReadOptions,
    TableError,
    found_options,
    id_texts,
    read_table,
    table_files,
    write_csv,
)

if TYPE_CHECKING:
    from neverworse.study.labeling import Labeling, Question

NOT_WORSE, WORSE, UNDECIDED = "candidate is not worse", "candidate is worse", "undecided"
NOTHING = "nothing to decide"
LABELS = "labels.json"


def in_points(difference: float) -> str:
    """Return a difference of error rates in percentage points, however few of many rows differ."""
    return signed(number(100.0 * difference, 3))


@dataclass(frozen=True)
class Standing:
    """What the answers so far decide."""

    model: str  # the candidate: the one in the model file
    verdict: str  # as `SequentialAudit` has it, or "nothing to decide"
    interval: tuple[float, float]  # of its error rate less that of the supervised model
    level: float  # probability with which the verdict and the interval hold
    n_unlabeled: int
    n_differing: int  # unlabeled rows that get another class
    n_decide: int  # answers to rows that were drawn to decide
    n_waiting: int  # of these, those that count when rows that were drawn before have an answer
    n_train: int  # answers to rows that were suggested for training alone
    expected_labels: int  # how many more labels a verdict is likely to take

    @property
    def is_open(self) -> bool:
        return self.verdict == UNDECIDED

    @property
    def is_decided(self) -> bool:
        return self.verdict in (NOT_WORSE, WORSE)

    @property
    def decision(self) -> str:
        if self.model == "supervised":
            return "Nothing to decide: model.skops holds the supervised model itself."
        return {
            NOTHING: f"Nothing to decide: the {self.model} model gives all {self._rows} the class "
            "that the supervised model gives them.",
            UNDECIDED: f"Undecided: use the {self.model} model or the supervised one?",
            NOT_WORSE: f"Decided: use the {self.model} model. It is what model.skops holds.",
            WORSE: "Decided: use the supervised model. Run neverworse fit again, with --model "
            "supervised.",
        }[self.verdict]

    @property
    def _rows(self) -> str:
        return count(self.n_unlabeled, "unlabeled row")

    def reasons(self) -> Iterator[str]:
        """Yield what the decision rests on, and what is missing."""
        if self.n_differing:
            low, high = map(in_points, self.interval)
            sure = f"{100.0 * self.level:g} %"
            if self.verdict == NOT_WORSE:
                yield f"It makes no more errors on the {self._rows}, with {sure} confidence."
            elif self.verdict == WORSE:
                yield (
                    f"The {self.model} model makes more errors on the {self._rows}, with {sure} "
                    "confidence."
                )
            yield (
                f"The error rate of the {self.model} model minus that of the supervised one is "
                f"between {low} and {high} percentage points ({sure} confidence interval, valid "
                "whenever you stop)."
            )
            yield (
                f"The two give different classes to {count(self.n_differing, 'row')}, of which "
                f"{self.n_decide:,} {'has' if self.n_decide == 1 else 'have'} been labeled."
            )
        if self.n_waiting:
            yield (
                f"{count(self.n_waiting, 'answer')} will count as soon as rows that were drawn "
                "before have one: otherwise, easy rows would decide."
            )
        if self.is_open:
            yield f"About {count(self.expected_labels, 'more label')} will probably decide."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the words, as JSON has them."""
        return asdict(self) | {"words": [self.decision, *self.reasons()]}


WIDTH, HEIGHT = 480, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
FEWEST = 10  # answers for which there is room


def picture_of(history: Sequence[tuple[float, float]], standing: Standing) -> dict[str, Any] | None:
    """Return where ``interval.html`` draws the intervals before the first answer and after each.

    None if nothing is to decide.
    """
    if not standing.n_differing:
        return None
    n = len(history) - 1
    most = max(n, min(standing.n_differing, max(FEWEST, n + standing.expected_labels)))
    lowest, highest = history[0]

    def x(k: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * k / most, 1)

    def y(value: float) -> float:
        share = (highest - value) / (highest - lowest)
        return round(TOP + (HEIGHT - TOP - BOTTOM) * share, 1)

    lines = [[(x(k), y(bounds[side])) for k, bounds in enumerate(history)] for side in (0, 1)]
    low, high = history[-1]
    return {
        "description": (
            f"Confidence interval of the difference of error rates, after {count(n, 'answer')}: "
            f"from {in_points(low)} to {in_points(high)} percentage points; at "
            f"first from {in_points(lowest)} to {in_points(highest)}."
        ),
        "band": _points([*lines[1], *reversed(lines[0])]),
        "low": _points(lines[0]),
        "high": _points(lines[1]),
        "zero": y(0.0),  # both models are equally good
        "heights": [(y(value), in_points(value)) for value in (lowest, 0.0, highest)],
        "lengths": [(x(k), f"{k:,}") for k in (0, most)],
        "now": (x(n), y(low), y(high)),
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
    }


@dataclass(frozen=True)
class Asked:
    """What was asked and answered, for the report."""

    standing: Standing
    history: list[tuple[float, float]]  # intervals: before the first answer, and after each
    answers: dict[int, str]  # classes by number of row, in the order in which they came
    decide: dict[int, tuple[str, str]]  # rows as drawn, and what the two models say of them
    train: list[int]  # rows that were suggested for training

    @property
    def picture(self) -> dict[str, Any] | None:
        return picture_of(self.history, self.standing)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield all rows that were asked for: number, purpose, answer, and who is right."""
        for row, (first, second) in self.decide.items():
            answer = self.answers.get(row)
            right = {first: "supervised", second: self.standing.model}.get(answer or "", "neither")
            yield f"{row:,}", "decide", answer or "", first, second, right if answer else ""
        for row in self.train:
            if row not in self.decide:
                yield f"{row:,}", "train", self.answers.get(row, ""), "", "", ""


def _points(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in corners)


def write_questions(
    labeling: Labeling, questions: Sequence[Question], path: Path, *, keep_formulas: bool = False
) -> None:
    """Write rows to label as CSV: their numbers, their columns, an empty target, what each is for.

    Text that a spreadsheet would run is changed, unless formulas are to be kept.
    """
    rows = [each.row for each in questions]
    number, purpose = _own_names(labeling)
    columns: dict[str, Any] = {
        number: pa.array(rows, pa.int64()),
        **{name: pa.array(cells) for name, cells in labeling.cells(rows).items()},
        labeling.settings.target: pa.array([""] * len(rows)),
        purpose: pa.array([each.purpose for each in questions]),
    }
    table = pa.table(columns)
    write_whole(path, lambda file: write_csv(iter([table]), file, keep_formulas=keep_formulas))


def read_answers(labeling: Labeling, path: Path, options: ReadOptions) -> dict[int, str]:
    """Return the classes that people filled in, by number of row.

    The file is what `write_questions` wrote, in any format of tables. `TableError` if it is not,
    or has two classes for a row.
    """
    number, _ = _own_names(labeling)
    target = labeling.settings.target
    files = table_files([str(path)])
    options = replace(options, text=frozenset({number, target}))
    table = read_table(files, found_options(files, options))
    names = {name.removeprefix("'"): name for name in table.column_names} | {
        name: name for name in table.column_names
    }
    for name in (number, target):
        if name not in names:
            raise TableError(
                f"{files[0].name} has no column {name!r}.",
                "Fill in the file that --next has written, and keep its columns.",
                code="column",
                column=name,
            )
    unanswered = {"", *(marker.strip() for marker in labeling.settings.markers or ())}
    answers: dict[int, str] = {}
    rows, classes = (id_texts(table.column(names[name])).to_pylist() for name in (number, target))
    for text, label in zip(rows, classes, strict=True):
        if label.strip() in unanswered:
            continue
        row = _row(text, number)
        if answers.setdefault(row, label) != label:
            raise TableError(
                f"Row {row} has two classes in {files[0].name}: {answers[row]!r} and {label!r}.",
                "Keep the right one.",
                code="label",
                column=target,
            )
    return answers


def _own_names(labeling: Labeling) -> tuple[str, str]:
    """Return names for the two columns that a sheet has besides those of the table."""
    taken = {labeling.settings.target, *labeling.column_names}
    number, purpose = "row", "question"
    while taken & {number, purpose}:
        number, purpose = f"{number}_", f"{purpose}_"
    return number, purpose


def _row(text: str, column: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TableError(
            f"{text!r} in column {column!r} is not a row number.",
            "Keep the numbers that --next has written.",
            code="value",
            column=column,
        ) from None


def asked_of(folder: Path, study: Study) -> Asked | None:
    """Return what was asked and answered about the results in a folder; None if nothing was."""
    if not (folder / LABELS).exists():
        return None
    stored = stored_labels(folder)
    if stored["fit"] != study.made:  # its answers are about another model
        return None
    names = [facts.name for facts in study.data.classes]
    try:
        standing = stored["standing"]
        return Asked(
            Standing(**standing | {"interval": tuple(standing["interval"])}),
            [(float(low), float(high)) for low, high in stored["history"]],
            {int(row): names[code] for row, code in stored["answers"]},
            {int(row): (names[first], names[second]) for row, first, second in stored["decide"]},
            [int(row) for row in stored["train"]],
        )
    except (IndexError, KeyError, TypeError, ValueError):
        raise _damaged(folder / LABELS) from None


def stored_labels(folder: Path) -> dict[str, Any]:
    """Return what was stored about labels for the results in a folder, besides the audit."""
    path = folder / LABELS
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["labeling"]
        if not isinstance(content["place"], str):
            raise TypeError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _damaged(path) from None
    return content


def _damaged(path: Path) -> ModelFileError:
    return ModelFileError(f"{path} is damaged. Restore it; or rename it, and start again.")
