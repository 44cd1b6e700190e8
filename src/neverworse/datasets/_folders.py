"""Folders in which data are looked for, and kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

VARIABLE = "NEVERWORSE_DATA"


def user_cache() -> Path:
    """Return the folder in which data that were downloaded are kept.

    It is where each platform has its caches: ``$XDG_CACHE_HOME`` if that is set, or else
    ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS and ``%LOCALAPPDATA%`` on Windows.
    """
    # The specification says that a relative path is to be ignored.
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen / "neverworse"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neverworse"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "neverworse"
    return Path.home() / ".cache" / "neverworse"


def data_folders(data_home: Any) -> list[Path]:
    """Return the folders to look in: the argument, the environment variable, the user's cache."""
    chosen = [data_home, os.environ.get(VARIABLE)]
    folders = [Path(folder).expanduser() for folder in chosen if folder]
    return list(dict.fromkeys([*folders, user_cache()]))
