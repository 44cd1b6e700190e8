"""Commands for the results of a fit: ``neverworse predict``, ``audit`` and ``report``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from neverworse import tables
from neverworse._files import write_whole
from neverworse._words import count
from neverworse.cli import _common as common
from neverworse.cli._common import CommandError, wrapped
from neverworse.estimators import has_class_scores

FORMATS = (".csv", ".parquet", ".jsonl", ".ndjson")


def predict(arguments: argparse.Namespace) -> None:
    """Load the model, predict the table batch by batch, and print notes."""
    if arguments.out is not None:
        if arguments.out.suffix.lower() not in FORMATS:
            raise CommandError(f"--out ends in {', '.join(FORMATS)}, not {arguments.out.name!r}.")
        common.check_out_file(arguments.out)
        if arguments.out.resolve() in [Path(table).resolve() for table in arguments.table]:
            raise CommandError(f"--out would replace the table {arguments.out}. Name another file.")
    loaded = tables.load_model(arguments.model, compiled=arguments.trust_compiled)
    _print_notes(arguments, [loaded.note])
    noticed = tables.Noticed(expected=tuple(loaded.facts.get("no_features", ())))
    batches = tables.predict_batches(
        loaded.model,
        tables.table_files(arguments.table),
        common.read_options(arguments, frozenset(filter(None, [arguments.id]))),
        noticed,
        id_name=arguments.id,
        probabilities=arguments.probabilities,
    )
    _write(arguments, batches)
    _print_notes(arguments, noticed.sentences())
    if arguments.out is None:
        return
    facts = {
        "out": str(arguments.out),
        "n_rows": noticed.n_rows,
        "classes": dict(noticed.classes),
        "ignored_columns": list(noticed.extra),
        "new_levels": {name: dict(found) for name, found in noticed.new_levels.items()},
    }
    classes = ", ".join(f"{name}: {n:,}" for name, n in noticed.classes.items())
    line = f"Written: {arguments.out}, {count(noticed.n_rows, 'row')} ({classes})"
    common.print_results(arguments, facts, [common.plain(line)])


def _write(arguments: argparse.Namespace, batches: Iterator[pa.Table]) -> None:
    to_csv = partial(tables.write_csv, keep_formulas=arguments.keep_formulas)
    if arguments.out is not None:
        writers: dict[str, Any] = {".csv": to_csv, ".parquet": tables.write_parquet}
        write = writers.get(arguments.out.suffix.lower(), tables.write_json_lines)
        write_whole(arguments.out, lambda file: write(batches, file))
    elif sys.stdout is None:
        raise CommandError("Standard output is closed. Name a file: --out FILE.", common.FAILURE)
    else:
        write = tables.write_json_lines if arguments.json else to_csv
        write(batches, sys.stdout.buffer)


def _print_notes(arguments: argparse.Namespace, notes: Iterable[str]) -> None:
    """Print notes to standard error, each once."""
    if not arguments.quiet:
        for note in dict.fromkeys(filter(None, notes)):
            print(f"neverworse {arguments.command}: note: {common.plain(note)}", file=sys.stderr)


def audit(arguments: argparse.Namespace) -> int:
    """Load the models, read the table, and print the worst and the best case."""
    prior = common.parse_prior(arguments.prior)
    if not isinstance(prior, str) and None in prior:
        raise CommandError("Here, --prior must name the class: CLASS=LOW..HIGH.")
    paths = [path for path in (arguments.model, arguments.against) if path is not None]
    trust = arguments.trust_compiled
    loaded = [tables.load_model(path, compiled=trust, ours=False) for path in paths]
    models = [each.model for each in loaded]
    if arguments.against is None:
        models.append(_supervised(models[0], arguments.model))
    reading = common.read_options(arguments, frozenset({arguments.target}))
    for model in models:
        reading = tables.reading_of(model, reading)
    candidate, baseline = models
    found = tables.audit_table(
        candidate,
        baseline,
        tables.read_table(tables.table_files(arguments.table), reading),
        arguments.target,
        markers=tuple(arguments.missing_label),
        weight=arguments.weight,
        ignored=tuple(arguments.drop),
        response=_response(models) if arguments.response == "auto" else arguments.response,
        class_prior=prior or None,
    )
    _print_notes(arguments, [each.note for each in loaded])
    common.print_results(arguments, found.to_dict(), [wrapped(found.summary())])
    return 0 if found.holds else common.NOT_GUARANTEED


def _supervised(model: Any, path: Path) -> Any:
    """Return the supervised model inside a model of ``neverworse fit``."""
    with tables.believing(f"{path} cannot be used", CommandError):
        found = model.supervised() if isinstance(model, tables.TableClassifier) else None
        if found is None:
            raise CommandError(
                f"{path} contains no supervised model to compare with. Name one: --against MODEL."
            )
        return found


def _response(models: list[Any]) -> str:
    """Return scores, which certificates are about; or else probabilities; or else classes."""
    if all(
        isinstance(model, tables.TableClassifier) and has_class_scores(model) for model in models
    ):
        return "score"
    has_probabilities = all(hasattr(model, "predict_proba") for model in models)
    return "predict_proba" if has_probabilities else "error"


def report(arguments: argparse.Namespace) -> None:
    """Read the numbers and write the page."""
    from neverworse.study import REPORT, asked_of, write_report

    study = common.read_results(arguments.dir)
    path, asked = arguments.dir / REPORT, asked_of(arguments.dir, study)
    with tables.believing(f"The results in {arguments.dir} cannot be used"):
        write_report(study, path, asked)
    facts = {"report": str(path), "claim": study.claim}
    common.print_results(arguments, facts, [f"Written: {path}"])
