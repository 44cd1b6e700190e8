"""What ``neverworse fit`` prints: what was read, how methods compare, and what is proved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from neverworse.cli._text import aligned, wrapped
from neverworse.projection.words import count
from neverworse.study._study import ColumnFacts, Comparison, DataFacts, Study

MOST_COLUMNS = 40


def summary(study: Study, paths: Sequence[Path]) -> Iterator[str]:
    """Yield paragraphs for people."""
    yield from _read(study.data)
    if study.comparison is not None:
        yield from _compared(study.comparison)
    for note in study.notes:
        yield f"{wrapped(f'Note: {note}')}\n"
    yield f"{wrapped(study.claim)}\n"
    yield f"{wrapped(study.certificate_words)}\n"
    n_changed = study.changes.n_changed
    yield wrapped(
        f"{f'{n_changed:,}' if n_changed else 'None'} of "
        f"{count(study.changes.n_unlabeled, 'unlabeled row')} "
        f"{'get' if n_changed > 1 else 'gets'} another class than from the supervised model."
    )
    yield f"\nIn {paths[0].parent}: {', '.join(path.name for path in paths)}"


def as_json(study: Study, paths: Sequence[Path]) -> str:
    """Return everything for machines."""
    files = {path.name: str(path) for path in paths}
    return json.dumps({**study.to_dict(), "outputs": files}, ensure_ascii=False, allow_nan=False)


def _read(data: DataFacts) -> Iterator[str]:
    names = ", ".join(file.name for file in data.files[:3])
    more = f" and {len(data.files) - 3} more" if len(data.files) > 3 else ""
    yield wrapped(
        f"Read {count(data.n_rows, 'row')} from {names}{more}: {data.n_labeled:,} with a label in "
        f"{data.target!r}, {data.n_unlabeled:,} without."
    )
    classes = ", ".join(f"{facts.name} ({facts.n_labeled:,})" for facts in data.classes)
    yield f"{wrapped(f'Classes and their labels: {classes}.')}\n"
    columns = [column for column in data.columns if column.kind != "target"]
    yield aligned(
        ("column", "taken as", "made into", "missing", "features"),
        [_column(column) for column in columns[:MOST_COLUMNS]],
        right=(3, 4),
    )
    if len(columns) > MOST_COLUMNS:
        yield f"... and {count(len(columns) - MOST_COLUMNS, 'more column')}: see the report"
    yield ""


def _column(column: ColumnFacts) -> tuple[str, ...]:
    missing = f"{column.n_missing:,}" if column.n_missing else ""
    made = f"{column.n_features:,}" if column.n_features else "-"
    return column.name, column.kind, column.treatment, missing, made


def _compared(comparison: Comparison) -> Iterator[str]:
    yield wrapped(
        f"Cross-validated on labeled rows, {comparison.n_folds} folds"
        f"{f' x {comparison.n_repeats}' if comparison.n_repeats > 1 else ''}, with "
        f"{count(comparison.n_unlabeled, 'unlabeled row')} in every fit (mean and standard error):"
    )
    rows = []
    for method in comparison.methods:
        loss = "" if method.loss is None else f"{method.loss:.4f} ± {method.loss_se or 0.0:.4f}"
        first = method is comparison.methods[0]
        difference = "" if first else f"{method.difference:+.4f} ± {method.difference_se:.4f}"
        error = f"{method.error:.4f} ± {method.error_se:.4f}"
        guarantee = "never worse" if method.guarantee.startswith("never worse") else "none"
        rows.append((method.method, error, difference, loss, guarantee))
    yield aligned(
        ("method", "error", "less supervised", "squared loss", "guarantee"), rows, right=(1, 2, 3)
    )
    yield f"{wrapped(comparison.words)}\n"
