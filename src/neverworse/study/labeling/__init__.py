"""What is asked and answered after a fit: labels to decide between its models, and to train."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from neverworse import tables
from neverworse._files import write_whole
from neverworse._typing import Indices, Vector
from neverworse._words import count, quoted
from neverworse.evidence import SequentialAudit, suggest_labels
from neverworse.study._files import PREDICTIONS
from neverworse.study._fit import FitSettings, feature_columns
from neverworse.study._study import Study
from neverworse.study.labeling._shown import LABELS, NOTHING, UNDECIDED, Asked, Standing, asked_of

WINDOW = 5  # rows that may wait for an answer at once, if some are skipped


class Predicted:
    """Classes that were predicted, as a classifier of these rows."""

    def __init__(self, codes: Indices, n_classes: int) -> None:
        self.codes, self.classes_ = codes, np.arange(n_classes)

    def predict(self, X: Any) -> Indices:  # noqa: ARG002
        return self.codes


class Labeling:
    """Labels for the results of a fit.

    Rows to decide are drawn at random, among those for which the model in the file and the
    supervised one predict different classes. Rows to train are those whose labels help least
    squares most. A row may be both; then one answer is enough.

    The table has all rows that the model was fitted to. `answers` has codes of classes by row
    number, in the order of the answers; `history`, the interval at first and after each answer that
    was to decide; `note`, why no rows are suggested for training, if none are.
    """

    def __init__(
        self,
        folder: Path,
        study: Study,
        table: pa.Table | tables.StoredTable,
        settings: FitSettings,
        *,
        seed: int = 0,
    ) -> None:
        self.folder, self.study, self.settings = folder, study, settings
        self._table = table
        self.target: tables.Target = tables.read_target(table, settings.target, settings.markers)
        self._unlabeled: Indices = np.flatnonzero(~self.target.labeled)
        self.answers: dict[int, int] = {}
        self.history: list[tuple[float, float]] = []
        self.note = ""
        self._train: dict[int, None] = {}  # rows by number, in order
        self._skipped: set[int] = set()
        self._models = self._read_models()
        models = *self._models, np.arange(len(self._unlabeled))
        if (folder / LABELS).exists():
            self._audit = self._resumed(*models)
        else:
            self._audit = SequentialAudit(*models, random_state=seed)
        self._decide = dict.fromkeys(map(self._number, self._audit.state()["asked"]))
        self._replay()

    def _read_models(self) -> tuple[Predicted, Predicted]:
        """Return the supervised model and the one in the file, by their predictions."""
        path, classes = self.folder / PREDICTIONS, self.target.class_names
        wanted = dict.fromkeys(["supervised_prediction", "prediction"], pa.string())
        # An apostrophe keeps spreadsheets from taking names for formulas.
        names = pa.array([*classes, *(f"'{name}" for name in classes)])
        codes = []
        with suppress(pa.ArrowException, FileNotFoundError):
            found = csv.read_csv(
                path,
                parse_options=csv.ParseOptions(newlines_in_values=True),
                convert_options=csv.ConvertOptions(include_columns=[*wanted], column_types=wanted),
            )
            codes = [pc.index_in(column, names).drop_null() for column in found.columns]
        if [len(each) for each in codes] != 2 * [len(self._unlabeled)]:
            raise tables.ModelFileError(
                f"{path} is not what neverworse fit wrote there: it should have the predictions of "
                f"{count(len(self._unlabeled), 'unlabeled row')}. Run neverworse fit again."
            )
        n = len(classes)
        supervised, chosen = (Predicted(each.to_numpy().astype(np.intp) % n, n) for each in codes)
        return supervised, chosen

    def _resumed(self, *models: Any) -> SequentialAudit:
        """Return the audit that was stored, and restore its answers."""
        path, stored = self.folder / LABELS, asked_of(self.folder, self.study)
        if stored is None:
            raise tables.ModelFileError(
                f"{path} has the answers of an earlier fit, and a new model has no verdict until "
                "it is compared again. Rename that file to begin; its answers are for rows of the "
                "table of that fit."
            )
        names, self._train = self.target.class_names, dict.fromkeys(stored.train)
        try:
            self.answers = {row: names.index(name) for row, name in stored.answers}
            return SequentialAudit.load(path, *models)
        except (KeyError, TypeError, ValueError) as error:
            raise tables.ModelFileError(f"{path} cannot be used: {error}") from None

    def save(self) -> None:
        """Write everything that was asked and answered to the folder."""
        names = self.target.class_names
        asked = Asked(
            standing=self.standing(),
            history=tuple(self.history),
            answers=tuple((row, names[code]) for row, code in self.answers.items()),
            decide=tuple((row, *self._predicted(row)) for row in self._decide),
            train=tuple(self._train),
        )
        about = {"fit": self.study.made} | asdict(asked)
        text = json.dumps(self._audit.state() | {"labeling": about}, indent=1)
        write_whole(self.folder / LABELS, lambda file: file.write(f"{text}\n".encode()))

    def questions(self, n: int) -> list[int]:
        """Return rows to label: as many as are likely to decide, the others to train."""
        found = self._drawn(min(n, max(1, self._audit.expected_labels_)))
        return [*found, *self.suggested(n - len(found))]

    def purpose(self, row: int) -> Literal["decide", "train"]:
        return "decide" if row in self._decide else "train"

    def current(self, suggested: Iterable[int]) -> int | None:
        """Return the row to show: to decide or else to train, skipped rows only after others."""
        n_skipped = len(self._skipped & self._decide.keys())
        drawn = self._drawn(min(WINDOW, 1 + n_skipped))
        rows = drawn or [row for row in suggested if row not in self.answers]
        fresh = [row for row in rows if row not in self._skipped]
        if not fresh:
            self._skipped.clear()
        return next(iter(fresh or rows), None)

    def skip(self, row: int) -> None:
        self._skipped.add(row)

    def _drawn(self, n: int) -> list[int]:
        """Return rows that are to decide, and count those that have an answer already."""
        while self._audit.verdict_ == UNDECIDED:
            rows = [self._number(position) for position in self._audit.next(n)]
            self._decide |= dict.fromkeys(rows)
            known = [row for row in rows if row in self.answers]
            if not known:
                return rows
            self._count(known)
        return []

    def suggested(self, n: int) -> list[int]:
        """Return rows whose labels help training most, best first, and remember them."""
        codes = self._codes()
        if n < 1 or not np.isnan(codes).any():
            return []
        # Rows that are to decide may be among them, and are left out.
        n_wanted = n + sum(row not in self.answers for row in self._decide)
        weight = self.settings.weight
        weights = None if weight is None else tables.row_weights(weight, self._table.column(weight))
        try:
            found = suggest_labels(
                self._features, codes, n_wanted, sample_weight=weights, missing_label=np.nan
            )
        except ValueError as error:
            self.note = f"No rows are suggested for training: {error}"
            return []
        rows = [row for row in (found.rows + 1).tolist() if row not in self._decide][:n]
        self._train |= dict.fromkeys(rows)
        return rows

    @cached_property
    def _features(self) -> Any:
        preparation = tables.TablePreparation(**self.settings.reading)
        return tables.fitted_features(preparation, feature_columns(self._table, self.settings))

    def _codes(self) -> Vector:
        codes = self.target.codes.copy()
        for row, code in self.answers.items():
            codes[row - 1] = code
        return codes

    def record(self, answers: Mapping[int, str]) -> int:
        """Record classes by number of row, all of them or none; return how many are new."""
        asked, names, coded = self._decide.keys() | self._train.keys(), self.target.class_names, {}
        for row, text in answers.items():
            code = self.target.code_of(text)
            if row not in asked:
                raise tables.TableError(
                    f"Row {row} was not asked for. Which rows decide is drawn at random: labels of "
                    "rows that people choose would void the guarantee.",
                    "Answer the rows of --next; write other labels into the table, and fit again.",
                    code="label",
                )
            if code is None:
                raise tables.TableError(
                    f"Row {row} has the class {text.strip()!r}, which no labeled row has.",
                    f"The classes are {quoted(names)}. For another one, fit again.",
                    code="label",
                )
            if self.answers.get(row, code) != code:
                raise tables.TableError(
                    f"Row {row} was {names[self.answers[row]]!r} before.",
                    f"If that was a mistake, take it back first: --withdraw {row}.",
                    code="label",
                )
            coded[row] = code
        new = [row for row in coded if row not in self.answers]
        self.answers |= coded
        self._skipped.difference_update(new)
        self._count(row for row in new if row in self._decide)
        return len(new)

    def withdraw(self, rows: Iterable[int]) -> None:
        """Withdraw answers, all of them or none; their rows are asked again."""
        wanted = set(rows)
        for row in sorted(wanted - self.answers.keys()):
            problem = f"Row {row} has no answer that could be withdrawn."
            raise tables.TableError(problem, code="label")
        for row in wanted:
            del self.answers[row]
        self._replay()

    def _replay(self) -> None:
        """Count all answers again, one after another."""
        counted = [row for row, _ in self._audit.state()["labels"]]
        if counted:
            self._audit.withdraw(counted)
        self.history = [self._audit.interval_]
        self._count(row for row in self.answers if row in self._decide)

    def _count(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._audit.record(int(np.searchsorted(self._unlabeled, row - 1)), self.answers[row])
            self.history.append(self._audit.interval_)

    def _predicted(self, row: int) -> tuple[str, str]:
        """Return the classes that the supervised and the other model predict for a row."""
        position, names = np.searchsorted(self._unlabeled, row - 1), self.target.class_names
        first, second = (names[model.codes[position]] for model in self._models)
        return first, second

    def _number(self, position: Any) -> int:
        return int(self._unlabeled[position]) + 1

    def standing(self) -> Standing:
        (result,) = self._audit.results_.values()
        n_decide = self._audit.n_labels_
        return Standing(
            model=self.study.model.name,
            verdict=result.verdict if result.n_differing else NOTHING,
            interval=result.interval,
            level=self._audit.level,
            n_unlabeled=len(self._unlabeled),
            n_differing=result.n_differing,
            n_decide=n_decide,
            n_waiting=n_decide - result.n_counted,
            n_train=len(self.answers) - n_decide,
            expected_labels=result.expected_labels,
        )

    def cells(self, rows: Iterable[int]) -> dict[str, list[str]]:
        """Return rows by number, without their target, as text by column."""
        names = self.column_names
        found = _taken(self._table.select(names), np.array(list(rows), np.intp) - 1)
        return {name: tables.id_texts(found.column(name)).to_pylist() for name in names}

    @property
    def column_names(self) -> list[str]:
        """The columns of the table without its target, the one that names rows first."""
        names = [name for name in self._table.column_names if name != self.settings.target]
        return sorted(names, key=lambda name: name != self.settings.id)

    def filled(self) -> pa.Table:
        """Return the table with all answers in its target, as text."""
        if isinstance(self._table, tables.StoredTable):
            raise tables.TableError(
                "The table is larger than memory: write the answers into its files."
            )
        names, codes = self.target.class_names, self._codes()
        labels = [None if np.isnan(code) else names[int(code)] for code in codes]
        target = self.settings.target
        place = self._table.column_names.index(target)
        return self._table.set_column(place, target, pa.array(labels))


def _taken(table: pa.Table | tables.StoredTable, rows: Indices) -> pa.Table:
    """Return some rows of a table, in the given order."""
    if not isinstance(table, tables.StoredTable):
        return table.take(pa.array(rows))
    ends = np.cumsum([0, *table.sizes()])
    needed = np.unique(np.searchsorted(ends, rows, "right") - 1)
    read = np.concatenate([np.arange(ends[k], ends[k + 1]) for k in needed])
    found = pa.concat_tables(table.batches(needed.tolist()))
    return found.take(pa.array(np.searchsorted(read, rows)))
