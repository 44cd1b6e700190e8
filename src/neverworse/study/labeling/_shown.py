"""What a labeling shows: a sheet of questions, and what the answers decide so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neverworse._files import write_whole
from neverworse._words import count, number, signed
from neverworse.study._files import from_json
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
Bounds = tuple[float, float]


def in_points(difference: float) -> str:
    """Return a difference of error rates in percentage points, however few of many rows differ."""
    return signed(number(100.0 * difference, 3))


@dataclass(frozen=True)
class Standing:
    """What the answers so far decide."""

    model: str  # the candidate: the one in the model file
    verdict: str  # as `SequentialAudit` has it, or "nothing to decide"
    interval: Bounds  # of its error rate minus that of the supervised model
    level: float  # probability with which the verdict and the interval hold
    n_unlabeled: int
    n_differing: int  # unlabeled rows for which the two models predict different classes
    n_decide: int  # answers to rows that were drawn to decide
    n_waiting: int  # of these, how many count only after rows that were drawn earlier
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
        low, high = map(in_points, self.interval)
        sure = f"{100.0 * self.level:g} %"
        if self.verdict == NOT_WORSE:
            yield f"It makes no more errors on the {self._rows}, with {sure} confidence."
        if self.verdict == WORSE:
            yield (
                f"The {self.model} model makes more errors on the {self._rows}, with {sure} "
                "confidence."
            )
        if self.n_differing:
            yield (
                f"The error rate of the {self.model} model minus that of the supervised one is "
                f"between {low} and {high} percentage points ({sure} confidence interval, valid "
                "whenever you stop)."
            )
            yield (
                f"The two disagree on {count(self.n_differing, 'row')}; {self.n_decide:,} of these "
                f"{'has' if self.n_decide == 1 else 'have'} been labeled."
            )
        if self.n_waiting:
            yield (
                f"{count(self.n_waiting, 'answer')} will count once all rows drawn earlier are "
                "labeled: otherwise, easy rows would decide."
            )
        if self.is_open:
            yield f"About {count(self.expected_labels, 'more label')} will probably decide."

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"words": [self.decision, *self.reasons()]}


WIDTH, HEIGHT = 480, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 464, 14, 176  # of the axes
MIN_ANSWERS = 10  # that the axis has room for


def picture_of(history: Sequence[Bounds], standing: Standing) -> dict[str, Any] | None:
    """Return what ``interval.html`` draws, or None if there is nothing to decide."""
    if not standing.n_differing:
        return None
    n = len(history) - 1
    most = max(n, min(standing.n_differing, max(MIN_ANSWERS, n + standing.expected_labels)))
    (lowest, highest), (low, high) = history[0], history[-1]

    def x(k: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * k / most, 1)

    def y(value: float) -> float:
        return round(TOP + (BOTTOM - TOP) * (highest - value) / (highest - lowest), 1)

    lower, upper = (
        [f"{x(k):g},{y(ends[side]):g}" for k, ends in enumerate(history)] for side in (0, 1)
    )
    return {
        "description": (
            f"Confidence interval of the difference of error rates, after {count(n, 'answer')}: "
            f"from {in_points(low)} to {in_points(high)} percentage points; at "
            f"first from {in_points(lowest)} to {in_points(highest)}."
        ),
        "band": " ".join([*upper, *reversed(lower)]),
        "low": " ".join(lower),
        "high": " ".join(upper),
        "zero": y(0.0),  # both models are equally good
        "heights": [(y(value), in_points(value)) for value in (lowest, 0.0, highest)],
        "lengths": [(x(k), f"{k:,}") for k in (0, most)],
        "now": (x(n), y(low), y(high)),
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
    }


@dataclass(frozen=True)
class Asked:
    """What was asked and answered, as ``labels.json`` has it; rows are counted from 1."""

    standing: Standing
    history: tuple[Bounds, ...]  # intervals: before the first answer, and after each
    answers: tuple[tuple[int, str], ...]  # rows and their classes, in the order of the answers
    decide: tuple[tuple[int, str, str], ...]  # rows as drawn, and the predictions of both models
    train: tuple[int, ...]  # rows that were suggested for training

    @property
    def picture(self) -> dict[str, Any] | None:
        return picture_of(self.history, self.standing)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield for each row its number, purpose, answer, predictions, and which model is right."""
        answers = dict(self.answers)
        for row, first, second in self.decide:
            answer = answers.get(row, "")
            right = {first: "supervised", second: self.standing.model}.get(answer, "neither")
            yield f"{row:,}", "decide", answer, first, second, right if answer else ""
        drawn = {row for row, *_ in self.decide}
        for row in self.train:
            if row not in drawn:
                yield f"{row:,}", "train", answers.get(row, ""), "", "", ""


def write_questions(
    labeling: Labeling, questions: Sequence[Question], path: Path, *, keep_formulas: bool = False
) -> None:
    """Write rows to label as CSV: their numbers, columns, an empty target, and purposes."""
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
    """Return the classes that people filled in, by row number, or raise `TableError`."""
    number, target = _own_names(labeling)[0], labeling.settings.target
    files = table_files([str(path)])
    options = replace(options, text=frozenset({number, target}))
    table = read_table(files, found_options(files, options))
    every = table.column_names
    names = {name.removeprefix("'"): name for name in every} | {name: name for name in every}
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
        try:
            row = int(text)
        except ValueError:
            raise TableError(
                f"{text!r} in column {number!r} is not a row number.",
                "Keep the numbers that --next has written.",
                code="value",
                column=number,
            ) from None
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


def asked_of(folder: Path, study: Study) -> Asked | None:
    """Return what was asked and answered about the results in a folder; None if nothing was."""
    if not (folder / LABELS).exists():
        return None
    stored = stored_labels(folder)
    if stored["fit"] != study.made:  # its answers are about another model
        return None
    try:
        parts = {field.name: stored[field.name] for field in fields(Asked)}
        asked: Asked = from_json(Asked, parts, LABELS)
    except (KeyError, ValueError):
        raise _damaged(folder) from None
    return asked


def stored_labels(folder: Path) -> dict[str, Any]:
    """Return what was stored about labels for the results in a folder, besides the audit."""
    try:
        text = (folder / LABELS).read_text(encoding="utf-8")
        content: dict[str, Any] = json.loads(text)["labeling"]
        if not isinstance(content["fit"], str):
            raise TypeError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _damaged(folder) from None
    return content


def _damaged(folder: Path) -> ModelFileError:
    path = folder / LABELS
    return ModelFileError(f"{path} is damaged. Restore it; or rename it, and start again.")
