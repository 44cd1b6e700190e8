"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name beside `path`, and rename it when it is complete.

    Parameters
    ----------
    path : Path
        Where the file will be; one that is there already is replaced.
    write : callable
        Writes the contents to the open file that it is given.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
