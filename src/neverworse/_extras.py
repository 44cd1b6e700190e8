"""How to get the packages that only some parts of neverworse need."""

from __future__ import annotations


def install(extra: str, clone: str = "a clone") -> str:
    """Return a sentence, without its full stop, that says how to install an extra.

    Parameters
    ----------
    extra : {"plots", "tables", "parquet", "dask", "paper", "label"}
    clone : str
        Where to do that.
    """
    return f'Run in {clone} of neverworse: pip install ".[{extra}]"'
