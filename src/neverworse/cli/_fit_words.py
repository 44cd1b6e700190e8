"""What ``neverworse fit`` prints: how columns are read, how methods compare, what is proved."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse._files import write_whole
from neverworse._words import count, decimal, grouped, interval, signed
from neverworse.cli._common import UsageError, aligned, labelled, wrapped
from neverworse.study import (
    ColumnFacts,
    Comparison,
    DataFacts,
    FitSettings,
    ModelFacts,
    Numbers,
    Study,
    feature_columns,
    looks_at,
)
from neverworse.tables import (
    KINDS,
    TablePreparation,
    check_readable,
    describe,
    read_plan,
    read_target,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from neverworse.tables import StoredTable

MAX_COLUMNS = 40
MAX_SAID = 5  # columns that matter most


def summary(study: Study, paths: Sequence[Path]) -> Iterator[str]:
    """Yield paragraphs for people: what to do first, then the evidence, then what was read."""
    yield from _verdict(study)
    yield from _model(study.model)
    if study.comparison is not None:
        yield from _compared(study.comparison, study.model)
        yield from _numbers(study)
    yield from _read(study.data)
    for note in study.notes:
        yield f"{wrapped(f'Note: {note}')}\n"
    yield f"{wrapped(study.certificate_words)}\n"
    yield f"Written to {paths[0].parent}: {', '.join(path.name for path in paths)}"
    yield from to_look_at({column.name: column.look for column in study.data.columns})


def _verdict(study: Study) -> Iterator[str]:
    verdict = study.verdict
    yield wrapped(verdict.headline)
    parts = {
        "How good": [] if verdict.quality is None else [verdict.quality],
        **{rung.strength.capitalize(): rung.words for rung in study.ladder},
        "Why": verdict.reasons,
        "Caution": verdict.cautions,
        "Could help": verdict.advice,
    }
    for label, sentences in parts.items():
        for k, sentence in enumerate(sentences):
            yield labelled("" if k else label, sentence)
    yield ""


def _model(model: ModelFacts) -> Iterator[str]:
    yield labelled("Model", " ".join(model.words))
    for sentence in () if model.decision is None else model.decision.words:
        yield labelled("", sentence)
    yield f"{labelled('Audit', model.audit.words)}\n"


def as_json(study: Study, paths: Sequence[Path]) -> str:
    """Return everything for machines."""
    files = {path.name: str(path) for path in paths}
    return json.dumps({**study.to_dict(), "outputs": files}, allow_nan=False)


def _read(data: DataFacts) -> Iterator[str]:
    names = ", ".join(file.name for file in data.files[:3])
    more = f" and {len(data.files) - 3} more" if len(data.files) > 3 else ""
    yield wrapped(
        f"Read {count(data.n_rows, 'row')} from {names}{more}: {data.n_labeled:,} with a label in "
        f"{data.target!r}, {data.n_unlabeled:,} without."
    )
    classes = ", ".join(f"{facts.name} ({facts.n_labeled:,})" for facts in data.classes)
    yield f"{wrapped(f'Labels per class: {classes}.')}\n"
    columns = [column for column in data.columns if column.kind != "target"]
    yield aligned(
        ("column", "read as", "made into", "missing", "features"),
        [_column(column) for column in columns[:MAX_COLUMNS]],
        right=(3, 4),
    )
    if len(columns) > MAX_COLUMNS:
        yield f"... and {count(len(columns) - MAX_COLUMNS, 'more column')}: see the report"
    yield ""


def _column(column: ColumnFacts) -> tuple[str, ...]:
    missing = f"{column.n_missing:,}" if column.n_missing else ""
    made = f"{column.n_features:,}" if column.n_features else "-"
    return column.name, column.read_as or column.kind, column.treatment, missing, made


def _compared(comparison: Comparison, model: ModelFacts) -> Iterator[str]:
    at = ", all at a threshold of 0.5" if model.has_threshold else ""
    repeats = f" x {comparison.n_repeats}" if comparison.n_repeats > 1 else ""
    yield wrapped(
        f"Cross-validated on {count(comparison.n_labeled, 'labeled row')}, "
        f"{comparison.n_folds} folds{repeats}, with "
        f"{count(comparison.n_unlabeled, 'unlabeled row')} in every fit (Δ with 95 % interval){at}:"
    )
    baseline = comparison.baseline
    rows = [(f"always {comparison.majority!r}", *_short(baseline), "")]
    for method in comparison.methods:
        difference = method.error_difference
        shown = "" if difference is None else interval(difference, sign=True)
        rows.append((method.method, *_short(method.numbers), shown))
    yield aligned(
        ("method", "error", "balanced", "AUC", "Brier", "Δ error vs. supervised"),
        rows,
        right=(1, 2, 3, 4, 5),
    )
    for name, why in comparison.failures.items():
        yield wrapped(f"Left out, because its fit failed: {name}. {why}")
    yield f"{wrapped(comparison.words)}\n"


def _short(numbers: Numbers) -> tuple[str, ...]:
    return (
        decimal(numbers.error.value),
        decimal(numbers.balanced_accuracy.value),
        "" if numbers.auc is None else decimal(numbers.auc.value),
        "" if numbers.brier is None else decimal(numbers.brier.value),
    )


def _numbers(study: Study) -> Iterator[str]:
    """Yield the numbers of the model in the file, with their intervals."""
    assert study.numbers is not None
    yield aligned(
        (f"{study.model.name}, on held-out rows", "value", "95 % interval"),
        [
            (
                f"{what} of {of!r}" if of else what,
                decimal(found.value),
                f"{decimal(found.low)} to {decimal(found.high)}",
            )
            for what, of, found in study.numbers.measures(study.data.positive)
            if found is not None
        ],
        right=(1, 2),
    )
    yield ""
    yield f"{wrapped(_matters(study))}\n"


def _matters(study: Study) -> str:
    """Name the most important columns, for the positive class if there is one."""
    positive, found = study.data.positive, study.importance
    if found is not None:
        of = "" if positive is None else f" of {positive!r}"
        what = (
            f"columns for the {found.model} model, by the increase in {found.measure}{of} when a "
            "column is shuffled"
        )
        increases = ((each.column, each.increase.value) for each in found.columns)
        effects = [(column, value) for column, value in increases if value > 0.0]
        if not effects:
            return f"No column matters to the {found.model} model: shuffling any changes nothing."
    elif study.coefficients:
        score = "the score of a class" if positive is None else f"the score of {positive!r}"
        what = f"features, by the change in {score} per standard deviation"
        which = "supervised" if study.model.name == "supervised" else "projected"
        effects = [
            (
                f"{each.feature} for {each.class_name!r}" if positive is None else each.feature,
                getattr(each, f"{which}_scaled"),
            )
            for each in study.coefficients
            if positive in (None, each.class_name)
        ]
        effects.sort(key=lambda effect: -abs(effect[1]))
    else:
        return "The importance of columns was not computed: there are too few labels."
    parts = [f"{name} ({signed(decimal(effect))})" for name, effect in effects[:MAX_SAID]]
    return f"Most important {what}: {', '.join(parts)}."


def show_plan(
    arguments: argparse.Namespace, table: pa.Table | StoredTable, settings: FitSettings
) -> None:
    """Print how the columns of a table would be read, and write it if a file is named."""
    target = read_target(table, settings.target, settings.markers)
    columns = feature_columns(table, settings)
    plans = TablePreparation(**settings.reading).plan(columns)
    plan = describe(plans, looks_at(columns, target, plans), columns)
    if arguments.plan:
        path = Path(arguments.plan)
        text = json.dumps(plan, ensure_ascii=False, indent=1)
        write_whole(path, lambda file: file.write(f"{text}\n".encode()))
    if arguments.json:
        print(json.dumps(plan, indent=1))
    elif not arguments.quiet:
        for paragraph in _planned(plan["columns"]):
            print(paragraph)
        if arguments.plan:
            print(f"\nWritten: {arguments.plan}. Edit it, and use it: --columns {arguments.plan}")
    check_readable(plans)


def columns_of(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the columns of the plan that --columns names."""
    columns = read_plan(arguments.columns)
    if arguments.target in columns:
        raise UsageError(
            f"--target and the plan {arguments.columns} both name the column "
            f"{arguments.target!r}. Remove it from the plan."
        )
    # What the command says of a column comes before what the plan says.
    return {k: v for k, v in columns.items() if k not in (arguments.id, arguments.weight)}


def _planned(columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield aligned(
        ("column", "read as", "made into", "missing", "distinct", "examples"),
        [
            (
                name,
                entry["read_as"],
                entry["made_into"],
                f"{entry['missing']:,}" if entry["missing"] else "",
                "" if entry["distinct"] is None else f"{entry['distinct']:,}",
                " | ".join(entry["examples"]),
            )
            for name, entry in columns.items()
        ],
        right=(3, 4),
    )
    # What cannot be read is an error, which says why.
    known = {name: entry["look"] for name, entry in columns.items() if entry["kind"] in KINDS}
    yield from to_look_at(known)


def to_look_at(looks: Mapping[str, str]) -> Iterator[str]:
    """Yield a list of columns with what is to be looked at, in full; those alike share a line."""
    found = grouped(looks)
    if found:
        yield "\nColumns to check:"
    for look, names in found.items():
        yield wrapped(f"- {names}: {look}", hanging="  ")
