"""``neverworse fit``: from a table with few labels to a certified model and a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from neverworse._files import check_replaceable, scratch_folder
from neverworse.cli._common import (
    UsageError,
    add_formulas,
    add_output,
    add_reading,
    add_seed,
    check_folder,
    check_out_file,
    command_of,
    explaining,
    number,
    out_path,
    parse_prior,
    progress,
    read_options,
    without_convergence_warnings,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from neverworse.study import FileFacts, FitSettings
    from neverworse.tables import StoredTable, TableFile


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Fit a classifier to a table in which the target is empty for most rows. The classifier is "
        "never worse than one fitted to the labeled rows alone, in squared error on all rows, "
        "whatever the missing labels are: a certificate says by how much it is better. Writes "
        "model.skops, predictions.csv, certificate.json, study.json and report.html."
    )
    add = parser.add_argument
    add(
        "table",
        nargs="+",
        metavar="TABLE",
        help="CSV, TSV, Parquet, Feather, Arrow, JSON lines or Excel, compressed or not; several "
        "files with the same columns, a folder of them, or - for standard input",
    )
    add("--target", required=True, metavar="COLUMN", help="labels; empty cells are unlabeled rows")
    add(
        "--unlabeled",
        nargs="+",
        default=[],
        metavar="TABLE",
        help="more rows without labels, with the same columns",
    )
    add(
        "--out",
        type=out_path,
        default=Path("neverworse-fit"),
        metavar="DIR",
        help="folder for results (default: neverworse-fit)",
    )
    add_formulas(parser)
    _add_columns(parser)
    _add_model(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("columns").add_argument
    add("--id", metavar="COLUMN", help="identifies the rows in the results; not a feature")
    add("--weight", metavar="COLUMN", help="weights of the rows")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    add(
        "--categorical",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns to treat as categories even if they look like numbers or dates",
    )
    add(
        "--dates",
        choices=("day-first", "month-first"),
        help="order of ambiguous dates such as 01/02/2026",
    )
    add(
        "--plan",
        nargs="?",
        const="",
        type=_plan_path,
        metavar="FILE.json",
        help="show how columns would be read, and stop; with a name, also write this plan to a "
        "file, to edit it and use it with --columns",
    )
    add(
        "--columns",
        type=Path,
        metavar="FILE.json",
        help="read columns as this plan says (see --plan); other columns are detected",
    )
    add(
        "--missing-label",
        dest="markers",
        action="append",
        metavar="VALUE",
        help="a value of the target that marks unlabeled rows, besides empty cells; repeatable",
    )


def _plan_path(text: str) -> str:
    """Return the name of a plan; a table that follows --plan by mistake is never replaced."""
    if text and Path(text).suffix.lower() != ".json":
        raise argparse.ArgumentTypeError(
            f"a plan is a file that ends in .json, not {text!r}. Put --plan after the tables"
        )
    return text


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("model").add_argument
    add(
        "--prior",
        action="append",
        default=[],
        metavar="[CLASS=]LOW..HIGH",
        help="share of a class (of two: the second in sorted order) among the unlabeled rows, as "
        "0.4 or 0.3..0.5; or confidence, for a confidence interval from the labels; repeatable",
    )
    add(
        "--positive",
        metavar="CLASS",
        help="the positive class, which precision, recall and F1 are about (default: the rarer of "
        "two)",
    )
    add(
        "--distance",
        choices=("all", "labeled", "unlabeled", "euclidean"),
        default="all",
        help="distance in which the supervised model is projected; all and unlabeled give a "
        "guarantee (default: all)",
    )
    add(
        "--alpha",
        type=number(float, 0, word="loo"),
        default="loo",
        metavar="A",
        help="ridge penalty of the supervised model: a number, or loo to choose it by exact "
        "leave-one-out on the labeled rows (default: loo)",
    )
    add(
        "--constraint-alpha",
        type=number(float, 0, word="same"),
        default="same",
        metavar="A",
        help="ridge penalty in the loss that the guarantee is about: a number, or same, for that "
        "of the supervised model (default: same). With a smaller one, part of the improvement is "
        "the smaller penalty itself; the certificate says how much",
    )
    add(
        "--class-weight",
        choices=("balanced",),
        help="weight labeled rows so that every class has the same total weight; the guarantee is "
        "then about the weighted squared error",
    )
    add(
        "--kernel",
        choices=("linear", "rbf", "laplacian", "auto"),
        default="linear",
        help="kernel of the supervised and the projected model: linear (default); rbf or "
        "laplacian, with gamma chosen by leave-one-out; or auto: rbf if it predicts left-out "
        "labels clearly better, linear otherwise",
    )
    add(
        "--compare",
        action="store_true",
        help="compare with logistic regression, random forest, gradient boosting, self-training, "
        "self-learning, TSVM and label spreading as well",
    )
    add(
        "--candidates",
        nargs="+",
        metavar="NAME",
        help="methods towards which the supervised model is moved as far as the labels support it "
        "with confidence (the stacked model): icls, self-learning, 'logistic regression' and "
        "'random forest' (the default), 'gradient boosting', self-training, projected; or: none",
    )
    add(
        "--model",
        default="auto",
        metavar="NAME",
        help="what model.skops holds: auto (what the verdict recommends, the default), projected, "
        "supervised, stacked, icls, or another method by its name, such as 'random forest'",
    )
    add(
        "--threshold",
        metavar="RULE",
        help="predict the positive class at or above this probability: a number (default: "
        "0.5); or chosen on held-out labeled rows: balanced (accuracy), f1, or cost=5:1, where a "
        "missed positive costs 5 times as much as a false alarm",
    )
    add(
        "--calibrate",
        action="store_true",
        help="calibrate the probabilities on held-out labeled rows (Platt's sigmoid)",
    )
    add("--no-curves", action="store_true", help="leave the learning curves out of the report")
    add(
        "--memory",
        type=number(float, 1e-9),
        metavar="GB",
        help="leave larger tables on disk, and read them in every pass (default: half of the free "
        "memory)",
    )
    add_seed(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the table, fit, assess, write the results, and print what matters most."""
    _check_roles(arguments)
    if arguments.plan is None:
        check_folder(arguments.out)
    elif arguments.plan:
        check_out_file(Path(arguments.plan))
    with explaining(), without_convergence_warnings(), scratch_folder("neverworse-") as scratch:
        if arguments.plan is None:
            _run(arguments, scratch)
        else:
            from neverworse.cli._fit_words import show_plan

            _, table, settings = read_tables(arguments, settings_of(arguments), scratch)
            show_plan(arguments, table, settings)


def _run(arguments: argparse.Namespace, scratch: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from neverworse.cli._fit_words import as_json, summary
    from neverworse.study import OUTPUTS, assess, fit_table, write_outputs

    check_replaceable(arguments.out / name for name in OUTPUTS)
    settings = settings_of(arguments)
    with progress(quiet=arguments.quiet or arguments.json) as bar, ThreadPoolExecutor(1) as pool:
        bar("reading", 0.0)
        files, table, settings = read_tables(arguments, settings, scratch)
        facts = pool.submit(lambda: [file_facts(file) for file in files])
        bar("fitting", 0.0)
        fit = fit_table(table, settings)
        del table  # its features are what is needed from here on
        study, scored, chosen = assess(
            fit,
            settings,
            files=facts.result(),
            command=command_of(arguments),
            compare_all=arguments.compare,
            curves=not arguments.no_curves,
            seed=arguments.seed,
            notify=bar,
        )
        bar("writing", 0.0)
        for file in files:
            file.check_unchanged()
        paths = write_outputs(
            *(arguments.out, chosen, study, scored, settings.id),
            keep_formulas=arguments.keep_formulas,
        )
    if arguments.json:
        print(as_json(study, paths))
    elif not arguments.quiet:
        for paragraph in summary(study, paths):
            print(paragraph)


def _check_roles(arguments: argparse.Namespace) -> None:
    """Refuse a column that should be two things."""
    single = (arguments.target, arguments.id, arguments.weight)
    named = [*filter(None, single), *set(arguments.drop), *set(arguments.categorical)]
    for name in named:
        if named.count(name) > 1:
            raise UsageError(
                f"The column {name!r} can only have one role, but several of --target, --id, "
                "--weight, --drop and --categorical name it."
            )


def settings_of(arguments: argparse.Namespace) -> FitSettings:
    """Return the settings that the arguments mean: most have the same names, and the same types."""
    from dataclasses import fields

    from neverworse.cli._fit_words import columns_of
    from neverworse.study import FitSettings, ThresholdRule, candidates_named, named

    names = {field.name for field in fields(FitSettings)} - {"decimal"}  # which is detected later
    given = {name: value for name, value in vars(arguments).items() if name in names}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if v is not None}
    given["prior"] = parse_prior(arguments.prior)
    if arguments.columns is not None:
        given["columns"] = columns_of(arguments)
    try:
        given["model"] = named(arguments.model)
        if arguments.candidates is not None:
            given["candidates"] = candidates_named(arguments.candidates)
        if arguments.threshold is not None:
            given["threshold"] = ThresholdRule.parse(arguments.threshold)
    except ValueError as error:
        raise UsageError(str(error)) from None
    settings = FitSettings(**given)
    if settings.model == "stacked" and not settings.candidates:
        raise UsageError("--model stacked needs candidates. Remove --candidates none.")
    return settings


def read_tables(
    arguments: argparse.Namespace, settings: FitSettings, scratch: Path
) -> tuple[list[TableFile], pa.Table | StoredTable, FitSettings]:
    """Read the tables; what is larger than memory stays in its files, or in copies in Parquet."""
    from dataclasses import replace

    from neverworse.study import OUTPUTS, add_unlabeled
    from neverworse.tables import (
        found_options,
        is_large,
        read_table,
        store,
        table_files,
        text_columns,
    )

    options = read_options(arguments, settings.text)
    files = table_files(arguments.table)
    for path in (arguments.out / name for name in OUTPUTS):
        if any(path.exists() and not file.once and path.samefile(file.path) for file in files):
            raise UsageError(f"{path} would be replaced. Name another folder: --out DIR.")
    others = table_files(arguments.unlabeled)
    options = found_options([*files, *others], options)
    if any(file.format == "csv" for file in (*files, *others)):
        settings = replace(settings, decimal=options.decimal)
    options = replace(options, text=options.text | text_columns(settings.columns, options.decimal))
    limit = None if arguments.memory is None else arguments.memory * 1e9
    if is_large([*files, *others], options, limit):
        if others:
            raise UsageError(
                "These tables are larger than memory, which --unlabeled does not support. Give all "
                "of them as TABLE, with an empty column for the target."
            )
        return files, store(files, options, scratch), settings
    table = read_table(files, options)
    if others:
        table = add_unlabeled(table, read_table(others, options), settings, others[0].name)
    return [*files, *others], table, settings


def file_facts(file: TableFile) -> FileFacts:
    """Return the size of a file and a hash that tells whether it is the same one later."""
    import hashlib

    from neverworse.study import FileFacts
    from neverworse.tables import printable

    if file.once:
        return FileFacts(file.name, None, None)
    with Path(file.path).open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return FileFacts(printable(Path(file.path).name), stream.tell(), sha256)
