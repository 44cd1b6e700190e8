"""Tables in Markdown, and pages that have them between two marks."""

from __future__ import annotations

END = "<!-- end -->"


def table(header, rows, form):
    """Return a table; numbers that are not whole are written in the given form.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences
        Cells: text and numbers. Columns are aligned to the right, all but the first.
    form : str
        As in `format`.
    """
    lines = [header, ["---"] + ["---:"] * (len(header) - 1)]
    lines += [[format(v, form) if isinstance(v, float) else str(v) for v in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_tables(page, begin, text):
    """Return the page with other tables between a mark and the end of them."""
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"The page has no marks {begin} and {END}. Put them where tables belong.")
    return f"{before}{begin}\n\n{text}\n\n{END}{after}"
