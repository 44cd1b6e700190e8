"""``report.html``: everything that came out, beside what was published, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd

from neverworse.experiments import _environment
from neverworse.experiments._catalogue import EXPERIMENTS
from neverworse.experiments._drawing import Drawing
from neverworse.experiments._findings import (
    agreement_sentence,
    as_text,
    claims_sentence,
    comparable,
    guarantee_holds,
    guarantee_sentences,
    is_known_exception,
    too_few_repeats,
    totals,
)
from neverworse.experiments._protocol import CORRECTIONS, PROTOCOLS
from neverworse.experiments._published import published
from neverworse.experiments.report.sections import curves, robustness, table_one, timing
from neverworse.experiments._reproduction import Reproduction
from neverworse.study.report._html import Markup, contents, document, facts, section, tag, text

TITLE = "The experiments of “Projected estimators for robust semi-supervised classification”"
SECTIONS = {
    "robustness": ("Robustness", robustness),
    "curves": ("Learning curves", curves),
    "table": ("Cross-validation", table_one),
    "timing": ("Training time", timing),
}


@dataclass(frozen=True)
class Circumstances:
    """When, where and how the results were made.

    Attributes
    ----------
    command : str or None
        What was typed, if it was.
    took : str or None
        How long it took, if that is known.
    date, machine, versions : str
    """

    command: str | None = None
    took: str | None = None
    date: str = ""
    machine: str = ""
    versions: str = ""

    @classmethod
    def now(cls, command: str | None = None, took: str | None = None) -> Circumstances:
        """Return those of this process."""
        return cls(
            command, took, _environment.today(), _environment.machine(), _environment.versions()
        )


def write_report(
    reproduction: Reproduction, drawings: dict[str, Drawing], circumstances: Circumstances
) -> str:
    """Return the report as one HTML page that needs nothing else.

    Parameters
    ----------
    reproduction : Reproduction
    drawings : dict of str to Drawing
        As `neverworse.experiments._figures.draw` returns them.
    circumstances : Circumstances
    """
    parts = {
        name: section(name, title, *make(reproduction, drawings))
        for name, (title, make) in SECTIONS.items()
        if name in reproduction.measurements
    }
    links = {"run": "What was run", "differently": "What is done differently"}
    links |= {name: SECTIONS[name][0] for name in parts}
    body = [
        tag(
            "header",
            tag("h1", TITLE),
            tag(
                "p",
                f"J. H. Krijthe and M. Loog (2017), run again with neverworse on "
                f"{circumstances.date}.",
                class_="soft",
            ),
        ),
        tag("ul", *_headline(reproduction), class_="headline"),
        contents(links.items()),
        section("run", links["run"], facts(_run(reproduction, circumstances))),
        section("differently", links["differently"], *_differently(reproduction)),
        *parts.values(),
        tag("footer", tag("p", f"Published numbers: {published()['source']}", class_="soft")),
    ]
    sheets = ("neverworse.study.report", "page.css"), ("neverworse.experiments", "report.css")
    style = "".join(files(room).joinpath(name).read_text("utf-8") for room, name in sheets)
    return document(TITLE, body, style)


def _headline(reproduction: Reproduction) -> Iterator[Markup]:
    """Yield what matters most: whether the guarantee holds, and whether Table 1 agrees."""
    holds = guarantee_holds(reproduction)
    if holds is not None:
        title = "The guarantee holds." if holds else "The guarantee is violated."
        yield _item(title, guarantee_sentences(reproduction), holds)
    cells = reproduction.summaries.get("table")
    if cells is not None:
        yield _item("Table 1", [agreement_sentence(cells)], _mood(cells))
        counts = [
            f"{total.method} {as_text(total.ours)} (published: {as_text(total.published)})".replace(
                " ", "\N{NO-BREAK SPACE}"
            )
            for total in totals(cells)
        ]
        few = too_few_repeats(cells)
        said = [f"{', '.join(counts)}."] + ([few] if few else [])
        same = all(not total.differences for total in totals(cells))
        yield _item("Win / draw / loss", said, None if few else True if same else None)
    if "curves" in reproduction.measurements:
        claims = claims_sentence(reproduction.measurements["curves"])
        yield _item("Learning curves", [claims], None)
    if list(reproduction.measurements) == ["timing"]:
        yield _item("A part of the paper", ["This run has training times only."], None)


def _mood(cells: pd.DataFrame) -> bool | None:
    """Return whether all cells agree; None if only those do not of which that is known."""
    compared = comparable(cells)
    far = compared[~compared["agrees"].astype(bool)]
    if compared.empty or (len(far) and is_known_exception(far).all()):
        return None
    return far.empty


def _item(title: str, sentences: Iterable[str], good: bool | None) -> Markup:
    mood = None if good is None else "good" if good else "bad"
    return tag("li", tag("strong", title), *(tag("div", said) for said in sentences), class_=mood)


def _run(reproduction: Reproduction, circumstances: Circumstances) -> Iterator[tuple[str, object]]:
    """Yield what was run, how, when and where."""
    plan = reproduction.plan
    if circumstances.command:
        yield "Command", tag("code", circumstances.command)
    yield "Protocol", tag("code", plan.protocol) + text(f": {PROTOCOL_WORDS[plan.protocol]}")
    for name, measured in reproduction.measurements.items():
        datasets = list(measured["dataset"].unique())
        repeats = measured["repeat"].nunique()
        published_repeats = EXPERIMENTS[name].repeats
        of = "" if repeats == published_repeats else f" (published: {published_repeats})"
        yield (
            EXPERIMENTS[name].title,
            f"{repeats} repeat{'s' if repeats > 1 else ''}{of} on {', '.join(datasets)}",
        )
    yield "Tests", f"{reproduction.correction.capitalize()}, family-wise error rate 0.05"
    yield "Seed", plan.seed
    yield "Versions", circumstances.versions
    yield "Machine", circumstances.machine
    yield "Date", circumstances.date
    if circumstances.took:
        yield "Took", f"{circumstances.took}, without repeats that were stored before"


def _differently(reproduction: Reproduction) -> Iterator[Markup]:
    """Yield what is done neither as the text says nor as the code did."""
    yield tag("p", "In either protocol, what follows differs from what was published:")
    yield facts((name, what[0].upper() + what[1:]) for name, what in CORRECTIONS.items())
    if reproduction.plan.protocol != "code":
        yield tag(
            "p",
            "The published numbers were made by the code, not as the text says, so that some of "
            "them are not comparable with this run.",
        )


PROTOCOL_WORDS = {
    "code": "as the published code ran. Least squares without a penalty (alpha=0.0, "
    "constraint_alpha=0.0) leave out directions with at most "
    f"{PROTOCOLS['code'].cutoff:.1e} of the largest singular value of the Gram matrix, centred on "
    "labeled rows for Supervised, and on all rows for the supervised weights that Projection "
    "projects; principal components with 99 % of the variance come first in the robustness "
    "experiment; at least 10 labeled rows, and 20 in cross-validation; penalty 0.1 of the support "
    "vector machines, and as many positive rows of TSVM as in SVMlin; the error of a "
    "cross-validation is the mean of its folds.",
    "text": "as the paper's text says. Exact least squares without a penalty (alpha=0.0, "
    "constraint_alpha=0.0); no principal components; twice as many labeled rows as features, and "
    "five more than features in cross-validation; penalty 0.01 of the support vector machines; "
    "the error of a cross-validation is that of all rows together.",
}
