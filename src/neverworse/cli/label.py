"""``neverworse label``: a few labels that decide which model to use, and labels to train with."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse._files import only_one, scratch_folder
from neverworse.cli import fit
from neverworse.cli._common import (
    BAD_MODEL,
    CommandError,
    UsageError,
    add_formulas,
    add_output,
    add_reading,
    check_out_file,
    check_packages,
    explaining,
    number,
    out_path,
    plain,
    progress,
    read_options,
    refusing,
    wrapped,
)

if TYPE_CHECKING:
    from neverworse.study import FitSettings, Labeling, Study
    from neverworse.tables import TableFile

MAX_PORT = 65535
N_TRAIN = 20  # rows for training that a page asks for, when everything is decided
SHEET = "to_label.csv"
AT_WORK = ".labeling"  # a folder by whose lock others know that somebody labels
HOW = """\
first the rows that decide between the model in model.skops and the supervised one:
  neverworse label DIR --next 20               writes to_label.csv: fill in its target
  neverworse label DIR --answers to_label.csv  says what the answers decide
or on a page in your browser, which says it after every answer:
  neverworse label DIR --serve
Answers are kept in DIR/labels.json, so that labeling can go on next week."""


def add_label(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Ask for labels of a few unlabeled rows, and say what they decide: whether the\nmodel of "
        "neverworse fit makes more errors than the supervised one. Without an\noption, say what is "
        "decided so far."
    )
    parser.epilog = HOW
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="the --out folder of neverworse fit")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--next", type=number(int, 1), metavar="N", help="write N rows to label to a file"
    )
    what.add_argument("--answers", type=Path, metavar="FILE", help="record the answers in a file")
    what.add_argument(
        "--serve",
        action="store_true",
        help="open a page in the browser, to label one row at a time",
    )
    what.add_argument(
        "--withdraw", type=int, nargs="+", metavar="ROW", help="take back answers, by row number"
    )
    what.add_argument(
        "--fill",
        action="store_true",
        help="write the table with all answers in its target, to fit again",
    )
    add(
        "--out",
        type=out_path,
        metavar="FILE",
        help=f"where --next writes (default: {SHEET}), and --fill (default: filled.csv)",
    )
    add(
        "--from",
        dest="place",
        type=Path,
        metavar="DIR",
        help="where neverworse fit was run, if its tables are not found from here",
    )
    add(
        "--port",
        type=number(int, 0, MAX_PORT),
        default=0,
        metavar="N",
        help="port of --serve, on this computer only (default: a free one)",
    )
    add("--no-browser", action="store_true", help="with --serve, only print the address")
    add_formulas(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Open the results of a fit, and ask or record."""
    arguments.out = arguments.out or Path("filled.csv" if arguments.fill else SHEET)
    if arguments.next or arguments.fill:
        check_out_file(arguments.out)
    if arguments.serve:
        check_packages(("starlette", "uvicorn"), "label")
    steps = {
        "next": _ask,
        "answers": _record,
        "withdraw": _withdraw,
        "serve": _serve,
        "fill": _fill,
    }
    step = next((steps[option] for option in steps if getattr(arguments, option)), _say)
    with explaining():
        from neverworse.study import REPORT, asked_of, read_study, write_report

        with refusing():
            study = read_study(arguments.folder)
        with _alone(arguments.folder), scratch_folder("neverworse-") as scratch:
            with progress(quiet=arguments.quiet or arguments.json) as bar:
                bar("reading", 0.0)
                labeling = _open(arguments, study, scratch)
            try:
                step(arguments, labeling)
            finally:  # a server is ended by Ctrl-C
                if step in (_record, _withdraw, _serve):
                    asked = asked_of(labeling.folder, study)
                    write_report(study, labeling.folder / REPORT, asked)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second program from counting answers that this one does not know of."""
    try:
        with only_one(folder / AT_WORK):
            yield
    except BlockingIOError:
        raise CommandError(
            f"Another neverworse label is running in {folder}. Wait for it, or stop it."
        ) from None
    finally:
        with contextlib.suppress(OSError):  # in use; otherwise, one that was killed has left it
            (folder / AT_WORK).rmdir()


def _open(arguments: argparse.Namespace, study: Study, scratch: Path) -> Labeling:
    """Read the labels in the folder of a fit, and the tables of the fit once more."""
    from neverworse.study import LABELS, Labeling, stored_labels

    place = arguments.place or Path()
    if arguments.place is None and (arguments.folder / LABELS).exists():
        place = Path(stored_labels(arguments.folder)["place"])
    fitted = _fit_arguments(study, place)
    files, table, settings = _tables(fitted, study, scratch)
    labeling = Labeling(arguments.folder, study, table, settings, seed=fitted.seed, place=place)
    for file in files:
        file.check_unchanged()
    return labeling


def _fit_arguments(study: Study, place: Path) -> argparse.Namespace:
    """Return the arguments with which the fit was made, with paths that lead to its files."""
    parser = argparse.ArgumentParser()
    fit.add_fit(parser)
    try:
        _, command, *words = shlex.split(study.command)
        with contextlib.redirect_stderr(io.StringIO()):
            found = parser.parse_args(words)
    except (SystemExit, ValueError):
        command = ""
    if command != "fit" or "-" in (*found.table, *found.unlabeled):
        raise CommandError(
            "The tables of this fit are not known, or came from standard input, and cannot be read "
            "again. Store them in files, and run neverworse fit on these; or use SequentialAudit "
            "in Python.",
            BAD_MODEL,
        )
    found.table, found.unlabeled = (
        [os.path.normpath(place / path) for path in paths]
        for paths in (found.table, found.unlabeled)
    )
    if found.columns is not None:
        found.columns = place / found.columns
    return found


def _tables(
    fitted: argparse.Namespace, study: Study, scratch: Path
) -> tuple[list[TableFile], Any, FitSettings]:
    """Read the tables as the fit has read them, if they are the same."""
    from neverworse.tables import TableError

    for path in (*fitted.table, *fitted.unlabeled):
        if not Path(path).exists():
            raise TableError(
                f"There is no file {path}, the table of this fit.",
                "Say in which folder neverworse fit was run: --from DIR.",
                code="file",
            )
    files, table, settings = fit.read_tables(fitted, fit.settings_of(fitted), scratch)
    known = [(each.name, each.sha256) for each in study.data.files]
    found = [(each.name, each.sha256) for each in map(fit.file_facts, files)]
    if found != known:
        changed = [name for name, _ in set(found) ^ set(known)]
        raise TableError(
            f"{', '.join(sorted(set(changed)))} changed since neverworse fit: labels belong to the "
            "rows of the table as it was.",
            "Restore it, or run neverworse fit again.",
            code="file",
        )
    return files, table, settings


def _ask(arguments: argparse.Namespace, labeling: Labeling) -> None:
    from neverworse._words import count
    from neverworse.study import write_questions

    _check_replaceable(arguments, labeling)
    questions = labeling.questions(arguments.next)
    if questions:
        write_questions(labeling, questions, arguments.out, keep_formulas=arguments.keep_formulas)
    labeling.save()
    purposes = [each.purpose for each in questions]
    counts = {purpose: purposes.count(purpose) for purpose in ("decide", "train")}
    said = []
    if questions:
        said.append(
            f"Written: {arguments.out}, with {count(len(questions), 'row')} to label "
            f"({counts['decide']:,} to decide, {counts['train']:,} to train). Fill in column "
            f"{labeling.settings.target!r} ({' or '.join(labeling.target.class_names)}), then: "
            f"{_command(arguments, '--answers', arguments.out.as_posix())}"
        )
    elif not labeling.note:
        said.append("All rows have a label: there is nothing to ask for.")
    if labeling.note:
        said.append(labeling.note)
    written = str(arguments.out) if questions else None
    _say(arguments, labeling, {"out": written, "n_rows": counts}, said)


def _check_replaceable(arguments: argparse.Namespace, labeling: Labeling) -> None:
    """Refuse to write over a file that has answers which are not recorded, or another table."""
    from neverworse.study import read_answers
    from neverworse.tables import ReadOptions, TableError

    path = arguments.out
    if not path.exists():
        return
    other = UsageError(f"{path} is another table, and would be replaced. Name another: --out FILE.")
    try:
        given = read_answers(labeling, path, ReadOptions())
    except TableError:
        raise other from None
    codes = {row: labeling.target.code_of(text) for row, text in given.items()}
    if any(labeling.answers.get(row) != code for row, code in codes.items()):
        raise UsageError(
            f"{path} has answers that are not recorded, and would be replaced. Record them first: "
            f"{_command(arguments, '--answers', path.as_posix())}. "
            "Or name another file: --out FILE."
        )


def _record(arguments: argparse.Namespace, labeling: Labeling) -> None:
    from neverworse._words import count
    from neverworse.study import in_points, read_answers

    before = labeling.standing()
    options = read_options(arguments, frozenset())
    n_new = labeling.record(read_answers(labeling, arguments.answers, options))
    labeling.save()
    now = labeling.standing()
    n_decide, n_train = now.n_decide - before.n_decide, now.n_train - before.n_train
    recorded = f"{count(n_new, 'new answer')} ({n_decide:,} to decide, {n_train:,} to train)"
    said = [f"Recorded: {recorded}."]
    if before.verdict != now.verdict:
        said.append(f"It was {before.verdict} before.")
    elif now.n_decide > before.n_decide and now.n_differing:
        low, high = map(in_points, before.interval)
        said.append(f"Before, the interval was {low} to {high} points.")
    _say(arguments, labeling, {"n_new": n_new, "before": before.to_dict()}, said)


def _withdraw(arguments: argparse.Namespace, labeling: Labeling) -> None:
    from neverworse._words import count

    labeling.withdraw(arguments.withdraw)
    labeling.save()
    rows = sorted(set(arguments.withdraw))
    said = [f"Withdrawn: {count(len(rows), 'answer')}. The rows will be asked for again."]
    _say(arguments, labeling, {"withdrawn": rows}, said)


def _serve(arguments: argparse.Namespace, labeling: Labeling) -> None:
    import webbrowser

    from neverworse.study import LABELS, listening, serve

    def ready(address: str) -> None:
        if arguments.json:
            print(json.dumps({"address": address}), flush=True)
        else:
            print(f"Label here: {address}\nWhen you are done: Ctrl+C", flush=True)
        if not arguments.no_browser:
            webbrowser.open(address)

    try:
        at = listening(arguments.port)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with at:
        suggested = labeling.suggested(N_TRAIN)
        try:
            serve(labeling, suggested, at, ready)
        except KeyboardInterrupt:
            path = arguments.folder / LABELS
            raise KeyboardInterrupt(
                f"{labeling.standing().decision} All answers are in {path}."
            ) from None


def _fill(arguments: argparse.Namespace, labeling: Labeling) -> None:
    from neverworse._files import write_whole
    from neverworse._words import count
    from neverworse.tables import write_csv

    if arguments.out.exists():
        raise UsageError(f"{arguments.out} would be replaced. Name another file: --out FILE.")
    table = labeling.filled()
    # It is the user's own table, to be read again: an apostrophe would make another value.
    write_whole(arguments.out, lambda file: write_csv(iter([table]), file, keep_formulas=True))
    n = len(labeling.answers)
    said = (
        f"Written: {arguments.out}, the table with {count(n, 'answer')} in its target. A model "
        "fitted to it is a new model: nothing is decided about it yet."
    )
    _say(arguments, labeling, {"out": str(arguments.out), "n_answers": n}, [said])


def _say(
    arguments: argparse.Namespace,
    labeling: Labeling,
    facts: dict[str, Any] | None = None,
    said: Sequence[str] = (),
) -> None:
    """Print what was done, and what is decided."""
    standing = labeling.standing()
    if arguments.json:
        print(json.dumps({**(facts or {}), "standing": standing.to_dict()}))
    elif not arguments.quiet:
        for paragraph in said:
            print(wrapped(paragraph, hanging="  "))
        print(wrapped(standing.decision))
        for reason in standing.reasons():
            print(wrapped(reason, "  "))


def _command(arguments: argparse.Namespace, *more: str) -> str:
    return plain(shlex.join(["neverworse", "label", arguments.folder.as_posix(), *more]))
