"""``neverworse audit``: what is certain about two saved models on a table, whatever its labels."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse.cli._errors import NOT_GUARANTEED, UsageError
from neverworse.cli._table_arguments import (
    add_output,
    add_reading,
    add_trust,
    explaining,
    read_options,
)
from neverworse.cli._text import wrapped
from neverworse.cli.fit import parse_prior

if TYPE_CHECKING:
    from neverworse.tables import LoadedModel

RESPONSES = ("auto", "predict_proba", "score", "error")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of the command line."""
    parser = commands.add_parser(
        "audit",
        help="prove how much worse or better a saved model may be than another",
        description="Compare a saved model with another on a table, for every possible labeling of "
        "its unlabeled rows. Any scikit-learn classifier will do that was saved with skops. "
        "Exit code 0: never worse; 3: it may be worse.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file of skops")
    parser.add_argument("table", nargs="+", metavar="TABLE", help="files of any format, or -")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="MODEL",
        help="the other model (default: the supervised one inside a model of neverworse fit)",
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="labels, or empty cells")
    parser.add_argument(
        "--response",
        choices=RESPONSES,
        default="auto",
        help="what is compared: probabilities, scores on targets 0 and 1, or classes (default: "
        "auto, which is score for models of neverworse)",
    )
    parser.add_argument("--weight", metavar="COLUMN", help="how much each row counts")
    parser.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="are no features")
    parser.add_argument(
        "--missing-label", action="append", default=[], metavar="VALUE", help="marks unlabeled rows"
    )
    parser.add_argument(
        "--prior",
        action="append",
        default=[],
        metavar="CLASS=LOW..HIGH",
        help="share of a class among the unlabeled rows; repeatable",
    )
    add_trust(parser)
    add_reading(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Load the models, read the table, and print what is certain."""
    prior = parse_prior(arguments.prior)
    if not isinstance(prior, str) and None in prior:
        raise UsageError("--prior names the class here: CLASS=LOW..HIGH.")
    with explaining():
        from neverworse.tables import load_any_model, read_table, table_files
        from neverworse.tables._audit import audit_table, reading_of

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
    for note in () if arguments.quiet else dict.fromkeys(notes):
        print(f"neverworse audit: note: {note}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    elif not arguments.quiet:
        print(wrapped(found.summary()))
    return 0 if found.holds else NOT_GUARANTEED


def _supervised(loaded: LoadedModel, path: Path) -> Any:
    """Return the supervised model that is inside a model of neverworse."""
    from neverworse.tables import TableClassifier
    from neverworse.tables._archive import believing

    model = loaded.model
    with believing(f"{path} cannot be used", UsageError):
        inside = hasattr(model, "baseline_") or hasattr(
            getattr(model, "estimator_", None), "supervised_"
        )
        if not (isinstance(model, TableClassifier) and inside):
            raise UsageError(
                f"{path} has no supervised model inside to be compared with. Name one: "
                "--against MODEL."
            )
        return model.supervised()


def _response(response: str, *models: Any) -> str:
    """Choose scores where all models have them: it is what their certificate is about."""
    from neverworse.estimators._audit_models import _has_score
    from neverworse.tables import TableClassifier

    if response == "auto" and all(
        isinstance(model, TableClassifier) and _has_score(model) for model in models
    ):
        return "score"
    return response
