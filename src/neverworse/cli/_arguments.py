"""Arguments of sub-commands with tables, what they mean, and what the package needs for them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from neverworse._extras import install
from neverworse.cli._common import BAD_MODEL, BAD_TABLE, CommandError, UsageError

if TYPE_CHECKING:
    from neverworse.study import ThresholdRule
    from neverworse.tables import ReadOptions

NEEDED = ("jinja2", "matplotlib", "pyarrow", "skops")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what says how tables are read."""
    add = parser.add_argument_group("reading").add_argument
    add("--delimiter", metavar="C", help="between cells of CSV (default: found by itself)")
    add(
        "--decimal",
        metavar="C",
        help="before the decimals of numbers: . or , (default: found by itself)",
    )
    add("--encoding", metavar="NAME", help="of text (default: UTF-8)")
    add(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="a word that means a missing value, besides empty cells, NA, NaN and null; repeatable",
    )
    add("--sheet", metavar="NAME", help="of a workbook (default: the first)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what says how results are printed."""
    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="print the results as JSON")
    add("--quiet", action="store_true", help="print errors only; no progress bar")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add what says which model files are opened."""
    parser.add_argument(
        "--trust-compiled",
        action="store_true",
        help="open models that predict with compiled code, such as forests, neighbours and SVC: "
        "their files could crash this program, so only if you know where they come from",
    )


def add_formulas(parser: argparse.ArgumentParser) -> None:
    """Add what says how text that looks like a formula is written."""
    parser.add_argument(
        "--keep-formulas",
        action="store_true",
        help="write ids and classes to CSV as they are, though they begin like a formula of a "
        "spreadsheet (default: with an apostrophe before them)",
    )


def read_options(arguments: argparse.Namespace, text: frozenset[str]) -> ReadOptions:
    """Return how tables are to be read; columns in `text` hold names, whatever they look like."""
    from neverworse.tables import ReadOptions

    delimiter = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";"}.get(
        arguments.delimiter, arguments.delimiter
    )
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError(f"--delimiter is one character (or tab), not {delimiter!r}.")
    if delimiter is not None and not (delimiter == "\t" or delimiter.isprintable()):
        raise UsageError(f"--delimiter is a character between cells (or tab), not {delimiter!r}.")
    if arguments.decimal not in (None, ".", ","):
        raise UsageError(f"--decimal is . or , and not {arguments.decimal!r}.")
    if arguments.decimal is not None and arguments.decimal == delimiter:
        raise UsageError("--decimal and --delimiter cannot be the same.")
    if arguments.encoding is not None and not _is_text_encoding(arguments.encoding):
        raise UsageError(
            f"There is no encoding {arguments.encoding!r}. Well-known ones: utf-8, cp1252, utf-16."
        )
    return ReadOptions(
        delimiter=delimiter,
        encoding=arguments.encoding,
        decimal=arguments.decimal,
        missing=tuple(arguments.missing),
        sheet=arguments.sheet,
        text=text,
    )


def _is_text_encoding(name: str) -> bool:
    try:
        "".encode(name)  # not codecs.lookup, which knows others as well, such as gzip
    except (LookupError, ValueError):
        return False
    return True


@contextmanager
def explaining() -> Iterator[None]:
    """Give what is wrong with tables, plans and model files the exit codes of the command line."""
    check_packages()
    import pyarrow as pa

    from neverworse.tables import ModelFileError, PlanError, TableError

    pa.enable_signal_handlers(False)  # ours know what to clear up
    try:
        yield
    except TableError as error:
        raise CommandError(str(error), BAD_TABLE) from None
    except ModelFileError as error:
        raise CommandError(str(error), BAD_MODEL) from None
    except PlanError as error:
        raise UsageError(str(error)) from None


def check_packages(needed: Sequence[str] = NEEDED, extra: str = "tables") -> None:
    """Say what to install if a package is missing; nothing is imported to find out."""
    missing = [name for name in needed if not is_installed(name)]
    if missing:
        raise CommandError(
            f"This needs {' and '.join(missing)}, not installed here. {install(extra)}"
        )


def is_installed(name: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    if name in sys.modules:
        return sys.modules[name] is not None
    return find_spec(name) is not None


def parse_penalty(option: str, text: str, word: str) -> float | str:
    """Return the penalty that is meant: a number, or the estimator's word for finding it."""
    if text == word:
        return word
    try:
        alpha = float(text)
    except ValueError:
        raise UsageError(f"{option} is a number or {word}, not {text!r}.") from None
    if not 0.0 <= alpha < float("inf"):
        raise UsageError(f"{option} must not be negative or infinite, but is {text}.")
    return alpha


def parse_prior(texts: list[str]) -> dict[str | None, tuple[float, float]] | str:
    """Return the shares of classes that are meant; see --prior."""
    if texts == ["confidence"]:
        return "confidence"
    if "confidence" in texts:
        raise UsageError("--prior confidence says all there is to say: give it once, or shares.")
    found: dict[str | None, tuple[float, float]] = {}
    for text in texts:
        name, _, interval = text.rpartition("=")
        match = re.fullmatch(r"([0-9.eE+-]+?)(?:\.\.([0-9.eE+-]+))?", interval)
        try:
            if match is None:
                raise ValueError
            low = float(match[1])
            high = low if match[2] is None else float(match[2])
        except ValueError:
            raise UsageError(
                f"--prior is a share such as 0.4, 0.3..0.5 or CLASS=0.3..0.5, or confidence, not "
                f"{text!r}."
            ) from None
        if not 0.0 <= low <= high <= 1.0:
            raise UsageError(f"--prior is between 0 and 1, and the lower end first, not {text!r}.")
        if (name or None) in found:
            raise UsageError(f"--prior says two things about {name or 'the second class'!r}.")
        found[name or None] = (low, high)
    return found


def parse_model(text: str) -> str:
    """Return the name of the model that is meant; see --model."""
    from neverworse.study import named

    try:
        return named(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def parse_candidates(texts: list[str] | None, model: str) -> tuple[str, ...]:
    """Return the names of the candidates that are meant; see --candidates."""
    from neverworse.study import FitSettings, candidates_named

    try:
        found = FitSettings.candidates if texts is None else candidates_named(texts)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not found and parse_model(model) == "stacked":
        raise UsageError("--model stacked takes candidates. Leave --candidates none out.")
    return found


def parse_threshold(text: str) -> ThresholdRule:
    """Return the rule that is meant; see --threshold."""
    from neverworse.study import ThresholdRule

    named = {"balanced": ThresholdRule("balanced"), "f1": ThresholdRule("f1")}
    if text in named:
        return named[text]
    kind, _, costs = text.rpartition("=")
    parts = costs.split(":") if kind == "cost" else [text]
    try:
        numbers = [float(part) for part in parts]
        if kind not in ("", "cost") or len(numbers) != (2 if kind else 1):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--threshold is a number between 0 and 1, balanced, f1 or cost=5:1, not {text!r}."
        ) from None
    if kind:
        if not all(0.0 < cost < float("inf") for cost in numbers):
            raise UsageError(f"--threshold: both costs must be positive, but are {costs}.")
        return ThresholdRule("cost", miss=numbers[0], alarm=numbers[1])
    if not 0.0 < numbers[0] < 1.0:
        raise UsageError(f"--threshold is a probability between 0 and 1, not {text}.")
    return ThresholdRule(value=numbers[0])
