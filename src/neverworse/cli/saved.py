"""What is done with the results of a fit: ``neverworse predict``, ``audit`` and ``report``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse._files import write_whole
from neverworse.cli._common import (
    BAD_MODEL,
    NOT_GUARANTEED,
    CommandError,
    UsageError,
    add_formulas,
    add_output,
    add_reading,
    add_trust,
    check_out_file,
    check_packages,
    explaining,
    out_path,
    parse_prior,
    plain,
    read_options,
    refusing,
    wrapped,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from neverworse.tables import LoadedModel, Noticed

RESPONSES = ("auto", "predict_proba", "score", "error")
WRITERS = (".csv", ".parquet", ".jsonl", ".ndjson")


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Predict the rows of a table, a batch at a time, so that it may be larger than memory. "
        "Prints CSV, or JSON lines with --json, unless --out names a file."
    )
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="model.skops of neverworse fit")
    add("table", nargs="+", metavar="TABLE", help="files of any format, or - for standard input")
    add("--id", metavar="COLUMN", help="identifies the rows (default: row numbers)")
    add("--out", type=out_path, metavar="FILE", help=f"a file to write: {', '.join(WRITERS)}")
    add("--probabilities", action="store_true", help="add the probabilities of all classes")
    add_trust(parser)
    add_formulas(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=predict)


def predict(arguments: argparse.Namespace) -> None:
    """Load the model, stream the table, and say what was noticed."""
    if arguments.out is not None:
        if arguments.out.suffix.lower() not in WRITERS:
            raise UsageError(f"--out ends in {', '.join(WRITERS)}, not {arguments.out.name!r}.")
        check_out_file(arguments.out)
        if arguments.out.resolve() in [Path(table).resolve() for table in arguments.table]:
            raise UsageError(f"--out would replace the table {arguments.out}. Name another file.")
    with explaining():
        from neverworse.tables import Noticed, load_model, predict_batches, table_files

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


def _write(arguments: argparse.Namespace, batches: Iterator[pa.Table]) -> None:
    from neverworse.tables import write_csv, write_json_lines, write_parquet

    to_csv = partial(write_csv, keep_formulas=arguments.keep_formulas)
    if arguments.out is None:
        if sys.stdout is None:
            raise CommandError("Standard output is closed. Name a file: --out FILE.")
        to_stdout = write_json_lines if arguments.json else to_csv
        to_stdout(batches, sys.stdout.buffer)
        return
    writers: dict[str, Any] = {".csv": to_csv, ".parquet": write_parquet}
    write = writers.get(arguments.out.suffix.lower(), write_json_lines)
    write_whole(arguments.out, lambda file: write(batches, file))


def _note(arguments: argparse.Namespace, sentence: str) -> None:
    if not arguments.quiet:
        print(f"neverworse {arguments.command}: note: {plain(sentence)}", file=sys.stderr)


def _finish(arguments: argparse.Namespace, noticed: Noticed) -> None:
    """Say what was written, on whichever stream is free."""
    if arguments.json and arguments.out is not None:
        summary = {
            "out": str(arguments.out),
            "n_rows": noticed.n_rows,
            "classes": dict(noticed.classes),
            "ignored_columns": list(noticed.extra),
            "new_levels": {name: dict(found) for name, found in noticed.new_levels.items()},
        }
        print(json.dumps(summary))
    elif arguments.out is not None and not arguments.quiet:
        from neverworse._words import count

        classes = ", ".join(f"{name}: {n:,}" for name, n in noticed.classes.items())
        print(plain(f"{count(noticed.n_rows, 'row')} ({classes}) in {arguments.out}"))


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Compare a saved model with another on a table, for every possible labeling of its "
        "unlabeled rows. Any scikit-learn classifier saved with skops will do. Exit code 0: never "
        "worse; 3: it may be worse."
    )
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a skops file")
    add("table", nargs="+", metavar="TABLE", help="files of any format, or -")
    add(
        "--against",
        type=Path,
        metavar="MODEL",
        help="the other model (default: the supervised one inside a model of neverworse fit)",
    )
    add("--target", required=True, metavar="COLUMN", help="labels, or empty cells")
    add(
        "--response",
        choices=RESPONSES,
        default="auto",
        help="what is compared: probabilities, scores on targets 0 and 1, or classes (default: "
        "auto, which is scores for linear models of neverworse, otherwise probabilities, or "
        "classes where there are none)",
    )
    add("--weight", metavar="COLUMN", help="weights of the rows")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns that are not features")
    add(
        "--missing-label", action="append", default=[], metavar="VALUE", help="marks unlabeled rows"
    )
    add(
        "--prior",
        action="append",
        default=[],
        metavar="CLASS=LOW..HIGH",
        help="share of a class among the unlabeled rows; repeatable",
    )
    add_trust(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=audit)


def audit(arguments: argparse.Namespace) -> int:
    """Load the models, read the table, and print what is certain."""
    prior = parse_prior(arguments.prior)
    if not isinstance(prior, str) and None in prior:
        raise UsageError("Here, --prior must name the class: CLASS=LOW..HIGH.")
    with explaining():
        from neverworse.tables import (
            audit_table,
            load_any_model,
            read_table,
            reading_of,
            table_files,
        )

        loaded = load_any_model(arguments.model, compiled=arguments.trust_compiled)
        candidate, notes = loaded.model, loaded.notes
        if arguments.against is None:
            baseline = _supervised(loaded, arguments.model)
        else:
            other = load_any_model(arguments.against, compiled=arguments.trust_compiled)
            baseline, notes = other.model, (*notes, *other.notes)
        options = read_options(arguments, frozenset({arguments.target}))
        for model in (candidate, baseline):
            options = reading_of(model, options)
        table = read_table(table_files(arguments.table), options)
        found = audit_table(
            candidate,
            baseline,
            table,
            arguments.target,
            markers=tuple(arguments.missing_label),
            weight=arguments.weight,
            ignored=tuple(arguments.drop),
            response=_response(arguments.response, candidate, baseline),
            class_prior=prior or None,
        )
    for note in dict.fromkeys(notes):
        _note(arguments, note)
    if arguments.json:
        print(json.dumps(found.to_dict()))
    elif not arguments.quiet:
        print(wrapped(found.summary()))
    return 0 if found.holds else NOT_GUARANTEED


def _supervised(loaded: LoadedModel, path: Path) -> Any:
    """Return the supervised model that is inside a model of neverworse."""
    from neverworse.tables import TableClassifier, believing

    model = loaded.model
    with believing(f"{path} cannot be used", UsageError):
        if not (isinstance(model, TableClassifier) and model.has_supervised):
            raise UsageError(
                f"{path} contains no supervised model to compare with. Name one: --against MODEL."
            )
        return model.supervised()


def _response(response: str, *models: Any) -> str:
    """Choose scores where all models have them, which certificates are about, or what there is."""
    from neverworse.estimators import has_class_scores
    from neverworse.tables import TableClassifier

    if response != "auto":
        return response
    if all(isinstance(model, TableClassifier) and has_class_scores(model) for model in models):
        return "score"
    have_probabilities = all(hasattr(model, "predict_proba") for model in models)
    return "predict_proba" if have_probabilities else "error"


def add_report(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = "Rewrite report.html from the results of neverworse fit."
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="the --out folder of neverworse fit")
    add("--out", type=out_path, metavar="FILE", help="where to write it (default: DIR/report.html)")
    add_output(parser)
    parser.set_defaults(run=report)


def report(arguments: argparse.Namespace) -> None:
    """Read the numbers and write the page."""
    check_packages()
    from neverworse.study import REPORT, asked_of, read_study, write_report

    if arguments.out is not None:
        check_out_file(arguments.out)
    path = arguments.out or arguments.folder / REPORT
    with refusing():
        study = read_study(arguments.folder)
        asked = asked_of(arguments.folder, study)
    try:
        write_report(study, path, asked)
    except (MemoryError, OSError):
        raise
    except Exception:  # somebody changed numbers by hand: there is no end to what that may lead to
        raise CommandError(
            f"The numbers in {arguments.folder} are inconsistent. Run neverworse fit again.",
            BAD_MODEL,
        ) from None
    if arguments.json:
        print(json.dumps({"report": str(path), "claim": study.claim}))
    elif not arguments.quiet:
        print(f"Written: {path}")
