"""Questions as a sheet that people fill in, with a spreadsheet or any editor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from neverworse._files import write_whole
from neverworse.study.labeling._labeling import Labeling, Question
from neverworse.tables import (
    ReadOptions,
    TableError,
    found_options,
    id_texts,
    read_table,
    table_files,
    write_csv,
)


def write_questions(
    labeling: Labeling, questions: Sequence[Question], path: Path, *, keep_formulas: bool = False
) -> None:
    """Write rows to label as CSV: their numbers, their columns, an empty target, what each is for.

    Parameters
    ----------
    labeling : Labeling
    questions : sequence of Question
    path : Path
    keep_formulas : bool
        Whether to write text that a spreadsheet would run as it is.
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

    Parameters
    ----------
    labeling : Labeling
    path : Path
        What `write_questions` wrote, in any format of tables.
    options : ReadOptions

    Raises
    ------
    TableError
        If it is no such table, or has two classes for a row.
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
    while number in taken:
        number += "_"
    while purpose in taken:
        purpose += "_"
    return number, purpose


def _row(text: str, column: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TableError(
            f"{text!r} in column {column!r} is no number of a row.",
            "Keep the numbers that --next has written.",
            code="value",
            column=column,
        ) from None
