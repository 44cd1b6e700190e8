"""``neverworse label``: a few labels that decide which model to use, and labels to train with."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

from neverworse import study as studies
from neverworse._files import only_one, scratch_folder, write_whole
from neverworse._words import count
from neverworse.cli import _common as common
from neverworse.cli import fit
from neverworse.cli._common import CommandError, wrapped
from neverworse.cli._options import add_fit
from neverworse.tables import ReadOptions, TableError, write_csv

N_TRAIN = 20  # rows that --serve asks for to train, when everything is decided
LOCK = ".labeling"  # a file that is locked while somebody labels
Done = tuple[dict[str, Any], list[str]]  # of a step: facts for --json, and paragraphs to print


def run(arguments: argparse.Namespace) -> None:
    """Open the results of a fit, do the step that an option names, and print what is decided."""
    arguments.out = arguments.out or Path("filled.csv" if arguments.fill else "to_label.csv")
    if arguments.next or arguments.fill:
        common.check_out_file(arguments.out)
    if arguments.serve:
        common.check_packages("label", "starlette", "uvicorn")
    study = common.read_results(arguments.dir)
    # Two programs at once would not know the answers of each other.
    with only_one(arguments.dir, lock=LOCK), scratch_folder("neverworse-") as scratch:
        with common.progress(arguments) as bar:
            bar("reading", 0.0)
            labeling = _open(arguments, study, scratch)
        if arguments.serve:
            _serve(arguments, labeling)
            return
        steps = {"next": _ask, "answers": _record, "withdraw": _withdraw, "fill": _fill}
        step = next((steps[name] for name in steps if getattr(arguments, name)), None)
        facts, paragraphs = ({}, []) if step is None else step(arguments, labeling)
        if step not in (None, _fill):
            labeling.save()
            _rewrite_report(labeling)
    standing = labeling.standing()
    lines = [
        *(wrapped(paragraph, others="  ") for paragraph in paragraphs),
        wrapped(standing.decision),
        *(wrapped(reason, "  ") for reason in standing.reasons()),
    ]
    common.print_results(arguments, {**facts, "standing": standing.to_dict()}, lines)


def _open(arguments: argparse.Namespace, study: studies.Study, scratch: Path) -> studies.Labeling:
    """Read the labels in the folder of a fit, and the tables of the fit once more."""
    fitted = _fit_arguments(study)
    for path in (*fitted.table, *fitted.unlabeled):
        if not Path(path).exists():
            raise TableError(
                f"There is no file {path}, the table of this fit.",
                "Run neverworse label in the folder in which neverworse fit was run.",
                code="file",
            )
    files, table, settings = fit.read_tables(fitted, scratch)
    changed = {(each.name, each.sha256) for each in study.data.files}
    changed ^= {(each.name, each.sha256) for each in map(fit.file_facts, files)}
    if changed:
        raise TableError(
            f"{', '.join(sorted({name for name, _ in changed}))} changed since neverworse fit: "
            "labels belong to the rows of the table as it was.",
            "Restore it, or run neverworse fit again.",
            code="file",
        )
    labeling = studies.Labeling(arguments.dir, study, table, settings, seed=fitted.seed)
    for file in files:
        file.check_unchanged()
    return labeling


def _fit_arguments(study: studies.Study) -> argparse.Namespace:
    """Return the arguments of the fit, whose tables must be files."""
    parser = argparse.ArgumentParser()
    add_fit(parser)
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
            common.BAD_MODEL,
        )
    return found


def _ask(arguments: argparse.Namespace, labeling: studies.Labeling) -> Done:
    _check_replaceable(arguments, labeling)
    questions = labeling.questions(arguments.next)
    if questions:
        keep = arguments.keep_formulas
        studies.write_questions(labeling, questions, arguments.out, keep_formulas=keep)
    purposes = [labeling.purpose(row) for row in questions]
    counts = {purpose: purposes.count(purpose) for purpose in ("decide", "train")}
    facts = {"out": str(arguments.out) if questions else None, "n_rows": counts}
    if not questions:
        return facts, [labeling.note or "All rows have a label: there is nothing to ask for."]
    written = (
        f"Written: {arguments.out}, with {count(len(questions), 'row')} to label "
        f"({counts['decide']:,} to decide, {counts['train']:,} to train). Fill in column "
        f"{labeling.settings.target!r} ({' or '.join(labeling.target.class_names)}), then:"
    )
    return facts, [written, f"  {_record_command(arguments)}", *filter(None, [labeling.note])]


def _check_replaceable(arguments: argparse.Namespace, labeling: studies.Labeling) -> None:
    """Refuse to replace another table, or answers that are not recorded."""
    if not arguments.out.exists():
        return
    code_of, recorded = labeling.target.code_of, labeling.answers
    with contextlib.suppress(TableError):  # another table
        found = studies.read_answers(labeling, arguments.out, ReadOptions())
        if all(recorded.get(row) == code_of(text) for row, text in found.items()):
            return
    raise CommandError(
        f"{arguments.out} would be replaced, but is another table, or has answers that are not "
        f"recorded. Record them: {_record_command(arguments)}. Or name another file: --out FILE."
    )


def _record_command(arguments: argparse.Namespace) -> str:
    # Slashes, also on Windows: they need no quotes.
    paths = (path.as_posix() for path in (arguments.dir, arguments.out))
    return common.plain("neverworse label {} --answers {}".format(*map(shlex.quote, paths)))


def _record(arguments: argparse.Namespace, labeling: studies.Labeling) -> Done:
    before = labeling.standing()
    reading = common.read_options(arguments, frozenset())
    n_new = labeling.record(studies.read_answers(labeling, arguments.answers, reading))
    now = labeling.standing()
    n_decide, n_train = now.n_decide - before.n_decide, now.n_train - before.n_train
    paragraphs = [
        f"Recorded: {count(n_new, 'new answer')} ({n_decide:,} to decide, {n_train:,} to train)."
    ]
    if before.verdict != now.verdict:
        paragraphs.append(f"It was {before.verdict} before.")
    elif n_decide > 0 and now.n_differing:
        low, high = map(studies.in_points, before.interval)
        paragraphs.append(f"Before, the interval was {low} to {high} points.")
    return {"n_new": n_new, "before": before.to_dict()}, paragraphs


def _withdraw(arguments: argparse.Namespace, labeling: studies.Labeling) -> Done:
    labeling.withdraw(arguments.withdraw)
    rows = sorted(set(arguments.withdraw))
    said = f"Withdrawn: {count(len(rows), 'answer')}. The rows will be asked for again."
    return {"withdrawn": rows}, [said]


def _rewrite_report(labeling: studies.Labeling) -> None:
    """Rewrite the report of the fit, which shows the answers."""
    folder, study = labeling.folder, labeling.study
    studies.write_report(study, folder / studies.REPORT, studies.asked_of(folder, study))


def _serve(arguments: argparse.Namespace, labeling: studies.Labeling) -> None:
    """Serve the page until Ctrl+C."""
    import webbrowser

    def ready(address: str) -> None:
        text = f"Label here: {address}\nWhen you are done: Ctrl+C"
        print(json.dumps({"address": address}) if arguments.json else text, flush=True)
        if not arguments.no_browser:
            webbrowser.open(address)

    try:
        at = studies.listening(arguments.port)
    except ValueError as error:
        raise CommandError(str(error), common.FAILURE) from None
    try:
        with at:
            studies.serve(labeling, labeling.suggested(N_TRAIN), at, ready)
    except KeyboardInterrupt:
        path = arguments.dir / studies.LABELS
        raise KeyboardInterrupt(
            f"{labeling.standing().decision} All answers are in {path}."
        ) from None
    finally:
        _rewrite_report(labeling)


def _fill(arguments: argparse.Namespace, labeling: studies.Labeling) -> Done:
    if arguments.out.exists():
        raise CommandError(f"{arguments.out} would be replaced. Name another file: --out FILE.")
    table = labeling.filled()
    # It is the user's own table, to be read again: an apostrophe would change its values.
    write_whole(arguments.out, lambda file: write_csv(iter([table]), file, keep_formulas=True))
    n = len(labeling.answers)
    said = (
        f"Written: {arguments.out}, the table with {count(n, 'answer')} in its target. A model "
        "fitted to it is a new model: nothing is decided about it yet."
    )
    return {"out": str(arguments.out), "n_answers": n}, [said]
