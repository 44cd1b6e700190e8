"""``neverworse predict``: the classes of rows of a table of any size."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse.cli._errors import FailureError, UsageError
from neverworse.cli._folders import check_out_file, out_path
from neverworse.cli._table_arguments import (
    add_formulas,
    add_output,
    add_reading,
    add_trust,
    explaining,
    read_options,
)
from neverworse.cli._text import plain

if TYPE_CHECKING:
    import pyarrow as pa

WRITERS = (".csv", ".parquet", ".jsonl", ".ndjson")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of the command line."""
    parser = commands.add_parser(
        "predict",
        help="predict the classes of a table with a model of neverworse fit",
        description="Predict the rows of a table, a batch at a time, so that it may be larger than "
        "the memory. Prints CSV, or with --json JSON lines, unless --out names a file.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="model.skops of neverworse fit")
    parser.add_argument(
        "table", nargs="+", metavar="TABLE", help="files of any format, or - for standard input"
    )
    parser.add_argument("--id", metavar="COLUMN", help="names the rows (default: their numbers)")
    parser.add_argument(
        "--out", type=out_path, metavar="FILE", help=f"a file to write: {', '.join(WRITERS)}"
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="add the probabilities of all classes"
    )
    add_trust(parser)
    add_formulas(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Load the model, stream the table, and say what was noticed."""
    if arguments.out is not None:
        if arguments.out.suffix.lower() not in WRITERS:
            raise UsageError(f"--out ends in {', '.join(WRITERS)}, not {arguments.out.name!r}.")
        check_out_file(arguments.out)
        if any(table != "-" and _same(arguments.out, table) for table in arguments.table):
            raise UsageError(f"--out would replace the table {arguments.out}. Name another file.")
    with explaining():
        from neverworse.tables import load_model, table_files
        from neverworse.tables._predict import Noticed, predict_batches

        loaded = load_model(arguments.model, compiled=arguments.trust_compiled)
        for note in loaded.notes:
            _note(arguments, note)
        noticed = Noticed(expected=tuple(loaded.facts.get("no_features", ())))
        text = frozenset() if arguments.id is None else frozenset({arguments.id})
        batches = predict_batches(
            loaded.model,
            table_files(arguments.table),
            read_options(arguments, text),
            noticed,
            id_name=arguments.id,
            probabilities=arguments.probabilities,
        )
        _write(arguments, batches)
    for sentence in noticed.sentences():
        _note(arguments, sentence)
    _finish(arguments, noticed)


def _same(path: Path, other: str) -> bool:
    return path.exists() and Path(other).exists() and path.samefile(other)


def _write(arguments: argparse.Namespace, batches: Iterator[pa.Table]) -> None:
    from functools import partial

    from neverworse._files import write_whole
    from neverworse.tables._write import write_csv, write_json_lines, write_parquet

    to_csv = partial(write_csv, keep_formulas=arguments.keep_formulas)
    if arguments.out is None:
        if sys.stdout is None:
            raise FailureError("Standard output is closed. Name a file: --out FILE.")
        to_stdout = write_json_lines if arguments.json else to_csv
        to_stdout(batches, sys.stdout.buffer)
        return
    writers: dict[str, Any] = {".csv": to_csv, ".parquet": write_parquet}
    write = writers.get(arguments.out.suffix.lower(), write_json_lines)
    write_whole(arguments.out, lambda file: write(batches, file))


def _note(arguments: argparse.Namespace, sentence: str) -> None:
    if not arguments.quiet:
        print(f"neverworse predict: note: {plain(sentence)}", file=sys.stderr)


def _finish(arguments: argparse.Namespace, noticed: Any) -> None:
    """Say what was written, on whichever stream is free."""
    if arguments.json and arguments.out is not None:
        summary = {
            "out": str(arguments.out),
            "n_rows": noticed.n_rows,
            "classes": dict(noticed.classes),
            "ignored_columns": list(noticed.extra),
            "new_levels": {name: dict(found) for name, found in noticed.new_levels.items()},
        }
        print(json.dumps(summary, ensure_ascii=False))
    elif arguments.out is not None and not arguments.quiet:
        from neverworse.projection.words import count

        classes = ", ".join(f"{name}: {n:,}" for name, n in noticed.classes.items())
        print(plain(f"{count(noticed.n_rows, 'row')} ({classes}) in {arguments.out}"))
