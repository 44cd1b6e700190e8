"""Where the paper's data are on this machine, if they are."""

import importlib.util
import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("NEVERWORSE_DATA", "") or "no such folder")

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="set NEVERWORSE_DATA to the folder of the data sets"
)


def tried(error):
    """Return the sources that the message of a `DataNotFoundError` lists, and their reasons."""
    return [tuple(line.strip().split(": ", 1)) for line in str(error).splitlines()[1:-1]]


def needs(package):
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not installed"
    )
