"""``neverworse fit``: from a table with few labels to a certified model and a report."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
from sklearn.exceptions import ConvergenceWarning

from neverworse import study as studies
from neverworse import tables
from neverworse._files import check_replaceable, scratch_folder, write_whole
from neverworse._words import count, decimal, grouped, interval
from neverworse.cli import _common as common

LABEL_WIDTH = 12
MAX_COLUMNS = 40  # in the table of columns


def run(arguments: argparse.Namespace) -> None:
    """Read the table; fit, assess and write the results, or show the plan."""
    _check_roles(arguments)
    # Certificates and notes say what the warnings say, in words for the command line.
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with quiet, scratch_folder("neverworse-") as scratch:
        if arguments.plan is None:
            _fit(arguments, scratch)
        else:
            _show_plan(arguments, scratch)


def _fit(arguments: argparse.Namespace, scratch: Path) -> None:
    common.check_folder(arguments.out)
    there = [path for name in studies.OUTPUTS if (path := arguments.out / name).exists()]
    if there and not (arguments.out / studies.STUDY).exists():
        raise common.CommandError(
            f"{there[0]} is no file of an earlier fit: there is no {studies.STUDY} beside it. Move "
            "it, or name another folder: --out DIR."
        )
    check_replaceable(there)
    with common.progress(arguments) as bar, ThreadPoolExecutor(1) as pool:
        bar("reading", 0.0)
        files, table, settings = read_tables(arguments, scratch)
        facts = pool.submit(lambda: [file_facts(file) for file in files])
        bar("fitting", 0.0)
        fit = studies.fit_table(table, settings)
        del table  # only its features are needed from here on
        study, scored, chosen = studies.assess(
            fit,
            settings,
            files=facts.result(),
            command=arguments.typed,
            compare_all=arguments.compare,
            curves=not arguments.no_curves,
            seed=arguments.seed,
            notify=bar,
        )
        bar("writing", 0.0)
        for file in files:
            file.check_unchanged()
        results = (chosen, study, scored, settings.id)
        keep = arguments.keep_formulas
        paths = studies.write_outputs(arguments.out, *results, keep_formulas=keep)
    outputs = {path.name: str(path) for path in paths}
    common.print_results(arguments, {**study.to_dict(), "outputs": outputs}, summary(study, paths))


def _check_roles(arguments: argparse.Namespace) -> None:
    """Refuse a column with two roles."""
    single = (arguments.target, arguments.id, arguments.weight)
    named = [*filter(None, single), *set(arguments.drop), *set(arguments.categorical)]
    for name in named:
        if named.count(name) > 1:
            raise common.CommandError(
                f"The column {name!r} can only have one role, but several of --target, --id, "
                "--weight, --drop and --categorical name it."
            )


def settings_of(arguments: argparse.Namespace) -> studies.FitSettings:
    """Return the settings of a fit; most have the names and types of the arguments."""
    names = {each.name for each in fields(studies.FitSettings)} - {"decimal"}  # detected later
    given = {name: value for name, value in vars(arguments).items() if name in names}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if v is not None}
    given["prior"] = common.parse_prior(arguments.prior)
    if arguments.columns is not None:
        columns = tables.read_plan(arguments.columns)
        if arguments.target in columns:
            raise common.CommandError(
                f"--target and the plan {arguments.columns} both name the column "
                f"{arguments.target!r}. Remove it from the plan."
            )
        roles = (arguments.id, arguments.weight)  # they come before the plan
        given["columns"] = {name: plan for name, plan in columns.items() if name not in roles}
    try:
        given["model"] = studies.named(arguments.model)
        if arguments.candidates is not None:
            given["candidates"] = studies.candidates_named(arguments.candidates)
        if arguments.threshold is not None:
            given["threshold"] = studies.ThresholdRule.parse(arguments.threshold)
    except ValueError as error:
        raise common.CommandError(str(error)) from None
    settings = studies.FitSettings(**given)
    if settings.model == "stacked" and not settings.candidates:
        raise common.CommandError("--model stacked needs candidates. Remove --candidates none.")
    return settings


def read_tables(
    arguments: argparse.Namespace, scratch: Path
) -> tuple[list[tables.TableFile], pa.Table | tables.StoredTable, studies.FitSettings]:
    """Read the tables; one that is larger than memory stays on disk, as it is or as Parquet."""
    settings = settings_of(arguments)
    files, others = tables.table_files(arguments.table), tables.table_files(arguments.unlabeled)
    every = [*files, *others]
    for path in (arguments.out / name for name in studies.OUTPUTS):
        if any(path.exists() and not file.once and path.samefile(file.path) for file in files):
            raise common.CommandError(f"{path} would be replaced. Name another folder: --out DIR.")
    options = tables.found_options(every, common.read_options(arguments, settings.text))
    if any(file.format == "csv" for file in every):
        settings = replace(settings, decimal=options.decimal)
    text = options.text | tables.text_columns(settings.columns, options.decimal)
    options = replace(options, text=text)
    limit = None if arguments.memory is None else arguments.memory * 1e9
    if tables.is_large(every, options, limit):
        if others:
            raise common.CommandError(
                "These tables are larger than memory, which --unlabeled does not support. Give all "
                "of them as TABLE, with an empty column for the target."
            )
        return files, tables.store(files, options, scratch), settings
    table = tables.read_table(files, options)
    if others:
        added = tables.read_table(others, options)
        table = studies.add_unlabeled(table, added, settings, others[0].name)
    return every, table, settings


def file_facts(file: tables.TableFile) -> studies.FileFacts:
    """Return the size and the hash of a file."""
    if file.once:
        return studies.FileFacts(file.name, None, None)
    with Path(file.path).open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return studies.FileFacts(tables.printable(Path(file.path).name), stream.tell(), sha256)


def summary(study: studies.Study, paths: Sequence[Path]) -> Iterator[str]:
    """Yield paragraphs: what to do first, then the evidence, then what was read."""
    verdict, model = study.verdict, study.model
    yield common.wrapped(verdict.headline)
    yield from _labelled("How good", [] if verdict.quality is None else [verdict.quality])
    for rung in study.ladder:
        yield from _labelled(rung.strength.capitalize(), rung.words)
    yield from _labelled("Why", verdict.reasons)
    yield from _labelled("Caution", verdict.cautions)
    yield from _labelled("Could help", verdict.advice)
    yield ""
    decision = () if model.decision is None else model.decision.words
    yield from _labelled("Model", [" ".join(model.words), *decision])
    yield from _labelled("Audit", [model.audit.words])
    yield ""
    if study.comparison is not None:
        yield from _comparison(study, study.comparison)
    yield from _data(study.data)
    for note in study.notes:
        yield f"{common.wrapped(f'Note: {note}')}\n"
    yield f"{common.wrapped(study.certificate_words)}\n"
    folder = paths[0].parent
    yield f"Written to {folder}: {', '.join(path.name for path in paths)}"
    if study.ladder[-1].found and model.name != "supervised":
        command = f"neverworse label {shlex.quote(folder.as_posix())} --next 20"
        yield f"To label rows that decide between the two models: {common.plain(command)}"
    yield from columns_to_check({column.name: column.look for column in study.data.columns})


def _labelled(label: str, sentences: Sequence[str]) -> Iterator[str]:
    for k, sentence in enumerate(sentences):
        yield common.wrapped(sentence, f"{'' if k else label:<{LABEL_WIDTH}}", " " * LABEL_WIDTH)


def _comparison(study: studies.Study, comparison: studies.Comparison) -> Iterator[str]:
    """Yield tables of how well all methods, and the model in the file, predict held-out rows."""
    at = ", all at a threshold of 0.5" if study.model.has_threshold else ""
    n_repeats = comparison.n_repeats
    repeats = f" repeated {n_repeats} times" if n_repeats > 1 else ""
    yield common.wrapped(
        f"Cross-validated on {count(comparison.n_labeled, 'labeled row')}, "
        f"{comparison.n_folds} folds{repeats}, with "
        f"{count(comparison.n_unlabeled, 'unlabeled row')} in every fit (Δ with 95 % interval){at}:"
    )
    numbers = {f"always {comparison.majority!r}": comparison.baseline}
    numbers |= {method.method: method.numbers for method in comparison.methods}
    differences = [None, *(method.error_difference for method in comparison.methods)]
    rows = []
    for (name, each), difference in zip(numbers.items(), differences, strict=True):
        four = [estimate for _, _, estimate in islice(each.measures(None), 4)]
        shown = ["" if estimate is None else decimal(estimate.value) for estimate in four]
        rows.append((name, *shown, "" if difference is None else interval(difference, sign=True)))
    head = ("method", "error", "bal. acc.", "AUC", "Brier", "Δ error vs. supervised")
    yield common.aligned(head, rows, right=range(1, 6))
    for name, why in comparison.failures.items():
        yield common.wrapped(f"Left out, because its fit failed: {name}. {why}")
    yield f"{common.wrapped(comparison.words)}\n"
    assert study.numbers is not None
    own = []
    for what, of, found in study.numbers.measures(study.data.positive):
        if found is not None:
            name = f"{what} of {of!r}" if of else what
            own.append((name, decimal(found.value), f"{found.low:.3f} to {found.high:.3f}"))
    titles = (f"{study.model.name}, on held-out rows", "value", "95 % interval")
    yield f"{common.aligned(titles, own, right=(1, 2))}\n"


def _data(data: studies.DataFacts) -> Iterator[str]:
    names = ", ".join(file.name for file in data.files[:3])
    more = f" and {len(data.files) - 3} more" if len(data.files) > 3 else ""
    yield common.wrapped(
        f"Read {count(data.n_rows, 'row')} from {names}{more}: {data.n_labeled:,} with a label in "
        f"{data.target!r}, {data.n_unlabeled:,} without."
    )
    classes = ", ".join(f"{facts.name} ({facts.n_labeled:,})" for facts in data.classes)
    yield f"{common.wrapped(f'Labels per class: {classes}.')}\n"
    columns = [column for column in data.columns if column.kind != "target"]
    head = ("column", "read as", "made into", "missing", "features")
    rows = []
    for each in columns[:MAX_COLUMNS]:
        counts = _counts(each.n_missing, each.n_features)
        rows.append((each.name, each.read_as or each.kind, each.treatment, *counts))
    yield common.aligned(head, rows, right=(3, 4))
    if len(columns) > MAX_COLUMNS:
        yield f"... and {count(len(columns) - MAX_COLUMNS, 'more column')}: see the report"
    yield ""


def _counts(*numbers: int | None) -> list[str]:
    return [f"{n:,}" if n else "" for n in numbers]


def columns_to_check(looks: Mapping[str, str]) -> Iterator[str]:
    """Yield a list of columns with remarks, in full; columns with the same one share a line."""
    found = grouped(looks)
    if found:
        yield "\nColumns to check:"
    for look, names in found.items():
        yield common.wrapped(f"{names}: {look}", "- ", "  ")


def _show_plan(arguments: argparse.Namespace, scratch: Path) -> None:
    """Print how the columns of a table would be read, and write it if a file is named."""
    if arguments.plan:
        common.check_out_file(Path(arguments.plan), "--plan FILE.json")
    _, table, settings = read_tables(arguments, scratch)
    target = tables.read_target(table, settings.target, settings.markers)
    columns = studies.feature_columns(table, settings)
    plans = tables.TablePreparation(**settings.reading).plan(columns)
    looks = studies.looks_at(plans, studies.leaking_columns(columns, target, plans))
    plan = tables.describe(plans, looks, columns)
    rows, to_check = [], {}
    for name, entry in plan["columns"].items():
        counts = _counts(entry["missing"], entry["distinct"])
        examples = " | ".join(entry["examples"])
        rows.append((name, entry["read_as"], entry["made_into"], *counts, examples))
        if entry["kind"] in tables.KINDS:  # others are left to the error that follows
            to_check[name] = entry["look"]
    head = ("column", "read as", "made into", "missing", "distinct", "examples")
    lines = [common.aligned(head, rows, right=(3, 4)), *columns_to_check(to_check)]
    if arguments.plan:
        text = json.dumps(plan, ensure_ascii=False, indent=1)
        write_whole(Path(arguments.plan), lambda file: file.write(f"{text}\n".encode()))
        lines.append(
            f"\nWritten: {arguments.plan}. Edit it, and use it: --columns {arguments.plan}"
        )
    common.print_results(arguments, plan, lines)
    tables.check_readable(plans)
