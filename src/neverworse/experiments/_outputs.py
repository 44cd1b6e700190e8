"""Write all that came out of the experiments into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from neverworse._files import write_whole
from neverworse.experiments.report.figures import draw
from neverworse.experiments._rendering import FORMATS, render
from neverworse.experiments.report.page import Circumstances, write_report
from neverworse.experiments._reproduction import Reproduction
from neverworse.experiments.report.tables import to_latex, to_markdown

REPORT = "report.html"


def save(
    reproduction: Reproduction,
    out: str | Path,
    *,
    command: str | None = None,
    took: str | None = None,
) -> list[Path]:
    """Write measurements, summaries, figures, tables and the report.

    Every file is complete at any time: one that is there already is replaced at once.

    Parameters
    ----------
    reproduction : Reproduction
    out : path
        A folder; made if need be.
    command : str, optional
        What was typed, for the report.
    took : str, optional
        How long it took, for the report.

    Returns
    -------
    paths : list of Path
        What was written; the report last.
    """
    folder = Path(out)
    paths = []
    for name, make in _contents(reproduction, Circumstances.now(command, took)):
        path, content = folder / name, make()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
        paths.append(path)
    return paths


def _contents(
    reproduction: Reproduction, circumstances: Circumstances
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the names of files, and what makes their contents."""
    tables = {"measurements": reproduction.measurements, "summaries": reproduction.summaries}
    for folder, frames in tables.items():
        for name, frame in frames.items():
            yield f"{folder}/{name}.csv", lambda frame=frame: _csv(frame)  # type: ignore[misc]
    drawings = draw(reproduction)
    for name, drawing in drawings.items():
        for kind in FORMATS:
            yield (
                f"figures/{name}.{kind}",
                lambda figure=drawing.figure, kind=kind: render(figure, kind),  # type: ignore[misc]
            )
    if "table" in reproduction.summaries:
        cells, correction = reproduction.summaries["table"], reproduction.correction
        yield "table1.md", lambda: to_markdown(cells, correction).encode()
        yield "table1.tex", lambda: to_latex(cells, correction).encode()
    yield REPORT, lambda: write_report(reproduction, drawings, circumstances).encode()


def _csv(frame: pd.DataFrame) -> bytes:
    """Return a table with every digit, so that reading it gives the same numbers."""
    return frame.to_csv(index=False, lineterminator="\n").encode()
