"""The options of all sub-commands; the docstring of ``add_NAME`` is the help of sub-command NAME.

Nothing heavy is imported, so that help is printed at once.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Names that neverworse.experiments and datasets have as well; a test compares them.
EXPERIMENTS = ("robustness", "curves", "table", "timing", "evidence")
DATASETS = ["BCI", "COIL2", "Diabetes", "Digit1", "g241c", "g241d", "Haberman", "Ionosphere"]
DATASETS += ["Mammography", "Parkinsons", "Sonar", "SPECT", "SPECTF", "Transfusion", "USPS", "WDBC"]
AVAILABLE = "available"
PATHS = ("DIR", "FILE", "FILE.json", "MODEL")  # placeholders of options that take a path
TARGET = "labels; empty cells are unlabeled rows"
MARKER = "a value of the target that marks unlabeled rows, besides empty cells; repeatable"
TRUST = "open models that predict with compiled code, such as forests; only of files that you trust"
FORMULAS = "write ids and classes that look like formulas to CSV without an apostrophe before them"


def options(parser: Any, title: str | None = None) -> Callable[..., None]:
    """Return a function that adds an option to a parser, or to a group with a title.

    Its arguments are what to type, the help, and keywords of argparse. ``--json`` is a switch,
    ``--id COLUMN`` takes a value, ``--drop COLUMN...`` one or more, ``--protocol code|text`` one of
    several (by default, the first), and ``TABLE...`` is positional. The default ends the help.
    """
    group = parser if title is None else parser.add_argument_group(title)

    def add(typed: str, text: str, **settings: Any) -> None:
        name, _, value = typed.partition(" ") if typed.startswith("-") else ("", "", typed)
        if "|" in value:
            settings["choices"] = value.split("|")
            settings.setdefault("default", settings["choices"][0])
        elif value:
            settings["metavar"] = value.removesuffix("...")
        else:
            settings["action"] = "store_true"
        if value in PATHS:
            settings.setdefault("type", _path)
        if value.endswith("..."):
            settings.setdefault("nargs", "+")
        if name and (settings.get("action") == "append" or value.endswith("...")):
            settings.setdefault("default", [])
        if settings.get("default") not in (None, []):
            text = f"{text} (default: {settings['default']})"
        group.add_argument(name or settings["metavar"].lower(), help=text, **settings)

    return add


def number(
    kind: type[int] | type[float], low: float, high: float = math.inf, word: str | None = None
) -> Callable[[str], float | str]:
    """Return a type for argparse: a finite number in an interval, or a word."""

    def parse(text: str) -> float | str:
        if text == word:
            return text
        with contextlib.suppress(ValueError):
            value = kind(text)
            if low <= value <= high and math.isfinite(value):
                return value
        limits = f"of at least {low}" if math.isinf(high) else f"between {low} and {high}"
        expected = f"{'a whole number' if kind is int else 'a number'} {limits}"
        expected = expected if word is None else f"{word}, or {expected}"
        raise argparse.ArgumentTypeError(f"must be {expected}, not {text!r}.")

    return parse


_seed = number(int, 0, 2**32 - 1)  # as in scikit-learn


def _path(text: str) -> Path:
    if not text.strip():  # it would be the current folder
        raise argparse.ArgumentTypeError("an empty name; for the current folder, write .")
    return Path(text)


def _plan_path(text: str) -> str:
    if text and Path(text).suffix.lower() != ".json":  # by mistake, a table that must not be lost
        raise argparse.ArgumentTypeError(
            f"a plan is a file that ends in .json, not {text!r}. Put --plan after the tables"
        )
    return text


def _delimiter(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or not (character == "\t" or character.isprintable()):
        raise argparse.ArgumentTypeError(f"must be one character (or tab), not {text!r}.")
    return character


def _encoding(text: str) -> str:
    try:
        "".encode(text)  # not codecs.lookup, which also knows codecs such as gzip
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"There is no encoding {text!r}. Common ones: utf-8, cp1252, utf-16."
        ) from None
    return text


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = options(parser, "reading tables")
    add("--delimiter C", "delimiter of CSV files (default: detected)", type=_delimiter)
    decimal = "decimal mark of numbers, . or , (default: detected)"
    add("--decimal C", decimal, choices=(".", ","))
    add("--encoding NAME", "encoding of text (default: UTF-8)", type=_encoding)
    missing = "a word that means a missing value, besides empty cells, NA, NaN and null; repeatable"
    add("--missing WORD", missing, action="append")
    add("--sheet NAME", "sheet of a workbook (default: the first)")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = options(parser, "output")
    add("--json", "print the results as JSON")
    add("--quiet", "print errors only; no progress bar")


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Fit classifiers to a table with few labels, and recommend one.

    The projected classifier is never worse than the supervised one, fitted to the
    labeled rows alone, in squared error on all rows, whatever the missing labels
    are; a certificate says by how much it is better. Writes model.skops,
    predictions.csv, certificate.json, study.json and report.html.
    """
    add = options(parser)
    formats = "CSV, TSV, Parquet, Feather, Arrow, JSON lines or Excel"
    add("TABLE...", f"{formats}, compressed or not; one or more files, or - for stdin")
    add("--target COLUMN", TARGET, required=True)
    add("--unlabeled TABLE...", "more rows without labels, with the same columns")
    add("--out DIR", "folder for results", default=Path("neverworse-fit"))
    add("--keep-formulas", FORMULAS)
    add = options(parser, "columns")
    add("--id COLUMN", "identifies the rows in the results; not a feature")
    add("--weight COLUMN", "weights of the rows")
    add("--drop COLUMN...", "columns to leave out")
    categories = "columns to treat as categories even if they look like numbers or dates"
    add("--categorical COLUMN...", categories)
    dates = "order of ambiguous dates such as 01/02/2026"
    add("--dates day-first|month-first", dates, default=None)
    plan = "show how columns would be read, and stop; with a name, write it to a file to edit"
    add("--plan FILE.json", plan, nargs="?", const="", type=_plan_path)
    add("--columns FILE.json", "read columns as this plan says; other columns are detected")
    add("--missing-label VALUE", MARKER, dest="markers", action="append", default=None)
    add = options(parser, "model")
    held = "what model.skops holds: auto (by the verdict), projected, supervised, stacked, a method"
    add("--model NAME", held, default="auto")
    add(
        "--candidates NAME...",
        "methods towards which the stacked model may move the supervised one (default: icls, "
        "self-learning, 'logistic regression', 'random forest'); or none",
        default=None,
    )
    penalty = "ridge penalty of the supervised model; loo: chosen by leave-one-out"
    add("--alpha A", penalty, type=number(float, 0, word="loo"), default="loo")
    penalty = "ridge penalty in the loss of the guarantee; same: that of the supervised model"
    add("--constraint-alpha A", penalty, type=number(float, 0, word="same"), default="same")
    distance = "distance of the projection; all and unlabeled give a guarantee"
    add("--distance all|labeled|unlabeled|euclidean", distance)
    kernel = "kernel of both models; auto is rbf if it predicts left-out labels clearly better"
    add("--kernel linear|rbf|laplacian|auto", kernel)
    add(
        "--prior [CLASS=]LOW..HIGH",
        "share of a class (of two: the second in sorted order) among the unlabeled rows, as 0.4 or "
        "0.3..0.5; or confidence, for a confidence interval from the labels; repeatable",
        action="append",
    )
    weights = "give every class the same total weight, in the guarantee as well"
    add("--class-weight balanced", weights, choices=("balanced",))
    positive = "the class that precision, recall and F1 are about (default: the rarer of two)"
    add("--positive CLASS", positive)
    rule = "when to predict it: from a probability (default: 0.5) on, or balanced, f1 or cost=5:1"
    add("--threshold RULE", rule)
    add("--calibrate", "calibrate probabilities on held-out labeled rows (Platt's sigmoid)")
    add = options(parser, "evaluation and resources")
    add("--compare", "compare with more methods, such as random forests and self-training")
    add("--no-curves", "leave the learning curves out of the report")
    add("--seed N", "random seed", type=_seed, default=0)
    larger = "leave larger tables on disk (default: half of the free memory)"
    add("--memory GB", larger, type=number(float, 1e-9))
    _add_reading(parser)


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Predict the classes of the rows of a table, which may be larger than memory.

    Prints CSV, or JSON lines with --json, unless --out names a file.
    """
    add = options(parser)
    add("MODEL", "model.skops of neverworse fit")
    add("TABLE...", "files in any format that neverworse fit reads, or - for standard input")
    add("--id COLUMN", "identifies the rows (default: row numbers)")
    add("--out FILE", "file to write: .csv, .parquet, .jsonl or .ndjson")
    add("--probabilities", "add the probabilities of all classes")
    add("--trust-compiled", TRUST)
    add("--keep-formulas", FORMULAS)
    _add_reading(parser)


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Compare two saved models, for every possible labeling of the unlabeled rows.

    Any scikit-learn classifier saved with skops works. Exit code 0: the first model
    is never worse; 3: it may be worse.
    """
    add = options(parser)
    add("MODEL", "a skops file")
    add("TABLE...", "files in any format that neverworse fit reads, or - for standard input")
    other = "the other model (default: the supervised one inside a model of neverworse fit)"
    add("--against MODEL", other)
    add("--target COLUMN", TARGET, required=True)
    response = "what to compare; auto is scores of least squares, or else probabilities, or classes"
    add("--response auto|predict_proba|score|error", response)
    add("--weight COLUMN", "weights of the rows")
    add("--drop COLUMN...", "columns that are not features")
    add("--missing-label VALUE", MARKER, action="append")
    share = "share of a class among the unlabeled rows; repeatable"
    add("--prior CLASS=LOW..HIGH", share, action="append")
    add("--trust-compiled", TRUST)
    _add_reading(parser)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Rewrite report.html from the results of neverworse fit."""
    add = options(parser)
    add("DIR", "the --out folder of neverworse fit")
    _add_output(parser)


def add_label(parser: argparse.ArgumentParser) -> None:
    """Ask for labels of a few unlabeled rows, and say what they decide.

    The question is whether the model of neverworse fit makes more errors than the
    supervised one. Without an option, say what is decided so far.

    With a file to fill in:
      neverworse label DIR --next 20               writes to_label.csv, to fill in
      neverworse label DIR --answers to_label.csv  says what the answers decide
    Or on a page in your browser, which says so after every answer:
      neverworse label DIR --serve

    Answers are kept in DIR/labels.json, so that labeling can go on next week.
    """
    add = options(parser)
    add("DIR", "the --out folder of neverworse fit")
    step = options(parser.add_mutually_exclusive_group())
    step("--next N", "write N rows to label to a file", type=number(int, 1))
    step("--answers FILE", "record the answers in a file")
    step("--serve", "open a page in the browser, to label one row at a time")
    step("--withdraw ROW...", "take back answers, by row number", type=int)
    step("--fill", "write the table with all answers in its target, to fit again")
    files = "file that --next (default: to_label.csv) or --fill (default: filled.csv) writes"
    add("--out FILE", files)
    port = "port of --serve, on this computer only; 0 is any that is free"
    add("--port N", port, type=number(int, 0, 65535), default=0)
    add("--no-browser", "with --serve, only print the address")
    add("--keep-formulas", FORMULAS)
    _add_reading(parser)


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Compare classifiers on scikit-learn's breast cancer data, with most labels hidden.

    Draws how the projection works, and writes a table to try neverworse fit with.
    """
    add = options(parser)
    files = "folder for the picture constraint-set.png and the table patients.csv"
    add("--out DIR", files, default=Path("neverworse-demo"))
    add("--seed N", "random seed", type=_seed, default=0)


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Run the experiments of Krijthe and Loog (2017), beside the published results.

    Writes figures, Table 1, all measurements and a report. An interrupted run resumes
    where it stopped; adding repeats later computes only the new ones.
    """
    add = options(parser)
    names = f"{', '.join(EXPERIMENTS)}, or all of the paper (all but evidence)"
    add("EXPERIMENT...", names, nargs="*", choices=(*EXPERIMENTS, "all"), default="all")
    names = f"data sets of the paper, or {AVAILABLE}, for those that are found (default: all)"
    add("--datasets NAME...", names, choices=(*DATASETS, AVAILABLE, "all"), default=None)
    n = number(int, 1)
    add("--repeats N", "repeats of each experiment (default: as published)", type=n)
    add("--protocol code|text", "follow the published code, or the text")
    add("--correction bonferroni|holm", "correction for the number of tests in Table 1")
    add("--jobs N", "number of processes (default: one per core)", type=n)
    add("--out DIR", "folder for results", default=Path("neverworse-reproduction"))
    add("--seed N", "random seed", type=_seed, default=0)
    add("--data-home DIR", "folder in which data sets are looked up first")
    add("--quiet", "no progress bar")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Print a shell completion script.

    To use it:
      bash   neverworse completion bash >> ~/.bash_completion
      zsh    neverworse completion zsh > ~/.zfunc/_neverworse, with ~/.zfunc in fpath
      fish   neverworse completion fish > ~/.config/fish/completions/neverworse.fish
      tcsh   neverworse completion tcsh >> ~/.tcshrc
    """
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")
