"""What a labeling shows: a sheet of questions, and what the answers decide so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neverworse import tables
from neverworse._files import write_whole
from neverworse._words import count, number, signed
from neverworse.study._files import from_json
from neverworse.study._study import Study

if TYPE_CHECKING:
    from neverworse.study.labeling import Labeling

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
    def is_decided(self) -> bool:
        return self.verdict in (NOT_WORSE, WORSE)

    @property
    def decision(self) -> str:
        rows = count(self.n_unlabeled, "unlabeled row")
        if self.model == "supervised":
            return "Nothing to decide: model.skops holds the supervised model itself."
        return {
            NOTHING: f"Nothing to decide: the {self.model} model gives all {rows} the class "
            "that the supervised model gives them.",
            UNDECIDED: f"Undecided: use the {self.model} model or the supervised one?",
            NOT_WORSE: f"Decided: use the {self.model} model. It is what model.skops holds.",
            WORSE: "Decided: use the supervised model. Run neverworse fit again, with --model "
            "supervised.",
        }[self.verdict]

    def reasons(self) -> Iterator[str]:
        """Yield what the decision rests on, and what is missing."""
        low, high = map(in_points, self.interval)
        sure = f"{100.0 * self.level:g} %"
        if self.is_decided:
            more = "more" if self.verdict == WORSE else "no more"
            errors = f"{more} errors on the {count(self.n_unlabeled, 'unlabeled row')}"
            yield f"The {self.model} model makes {errors}, with {sure} confidence."
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
        if self.verdict == UNDECIDED:
            yield f"About {count(self.expected_labels, 'more label')} will probably decide."

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"words": [self.decision, *self.reasons()]}


MIN_ANSWERS = 10  # that the axis of the picture has room for


def picture_of(history: Sequence[Bounds], standing: Standing) -> dict[str, Any] | None:
    """Return what ``interval.html`` draws, or None if there is nothing to decide."""
    if not standing.n_differing:
        return None
    n = len(history) - 1
    (lowest, highest), (low, high) = history[0], history[-1]
    lower, upper = (
        # In the picture, up is negative.
        [f"{k},{-100.0 * ends[side]:g}" for k, ends in enumerate(history)]
        for side in (0, 1)
    )
    return {
        "description": (
            f"Confidence interval of the difference of error rates, after {count(n, 'answer')}: "
            f"from {in_points(low)} to {in_points(high)} percentage points; at "
            f"first from {in_points(lowest)} to {in_points(highest)}."
        ),
        "low": lower,
        "high": upper,
        "ends": (100.0 * lowest, 100.0 * highest),
        "labels": (in_points(lowest), in_points(highest)),
        "n": n,
        "most": max(n, min(standing.n_differing, max(MIN_ANSWERS, n + standing.expected_labels))),
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
    labeling: Labeling, rows: Sequence[int], path: Path, *, keep_formulas: bool = False
) -> None:
    """Write rows to label as CSV: their numbers, columns, an empty target, and purposes."""
    number, purpose = _own_names(labeling)
    columns = {
        number: rows,
        **labeling.cells(rows),
        labeling.settings.target: [""] * len(rows),
        purpose: [labeling.purpose(row) for row in rows],
    }
    table = pa.table(columns)
    write_whole(
        path, lambda file: tables.write_csv(iter([table]), file, keep_formulas=keep_formulas)
    )


def read_answers(labeling: Labeling, path: Path, options: tables.ReadOptions) -> dict[int, str]:
    """Return the classes that people filled in, by row number, or raise `TableError`."""
    number, target = _own_names(labeling)[0], labeling.settings.target
    files = tables.table_files([str(path)])
    options = replace(options, text=frozenset({number, target}))
    table = tables.read_table(files, tables.found_options(files, options))
    every = table.column_names
    names = {name.removeprefix("'"): name for name in every} | {name: name for name in every}
    keep = "Fill in the file that --next has written, and keep its columns and numbers."
    for name in (number, target):
        if name not in names:
            raise tables.TableError(
                f"{path} has no column {name!r}.", keep, code="column", column=name
            )
    unanswered = {"", *(marker.strip() for marker in labeling.settings.markers or ())}
    answers: dict[int, str] = {}
    rows, classes = (
        tables.id_texts(table.column(names[name])).to_pylist() for name in (number, target)
    )
    for text, label in zip(rows, classes, strict=True):
        if label.strip() in unanswered:
            continue
        if not text.strip().isdecimal():
            raise tables.TableError(f"{text!r} is not a row number.", keep, column=number)
        if answers.setdefault(int(text), label) != label:
            problem = f"Row {text} has two classes in {path}: {answers[int(text)]!r} and {label!r}."
            raise tables.TableError(problem, "Keep the right one.", code="label", column=target)
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
    path = folder / LABELS
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["labeling"]
        if stored["fit"] != study.made:  # its answers are about another model
            return None
        parts = {field.name: stored[field.name] for field in fields(Asked)}
        asked: Asked = from_json(Asked, parts, LABELS)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise tables.ModelFileError(
            f"{path} is damaged. Restore it; or rename it, and start again."
        ) from None
    return asked
