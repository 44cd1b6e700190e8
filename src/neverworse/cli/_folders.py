"""Folders for results."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

from neverworse.cli._errors import FailureError, UsageError


def out_path(text: str) -> Path:
    """Return the path that --out names; an empty one would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty name; for the current folder, write .")
    return Path(text)


def make_folder(folder: Path) -> None:
    """Make a folder now, so that one that cannot be used is known before anything is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    if not os.access(folder, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def check_folder(folder: Path) -> None:
    """Say now, before anything is computed, if a folder could not be made or written to."""
    nearest = folder
    while not nearest.exists():
        if nearest.is_symlink():
            raise UsageError(f"{nearest} is a link to what is not there. Name a folder: --out DIR.")
        nearest = nearest.parent
    if not nearest.is_dir():
        raise UsageError(f"{nearest} is a file. Name a folder: --out DIR.")
    if not os.access(nearest, os.W_OK):
        raise FailureError(f"{nearest} cannot be written to. Name another folder: --out DIR.")


def check_out_file(path: Path) -> None:
    """Say now, before anything is computed, if a file could not be written."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Name a file: --out FILE.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}. Make it, or name another: --out FILE.")
    if not os.access(path.parent, os.W_OK):
        raise FailureError(f"{path.parent} cannot be written to. Name another folder: --out FILE.")
