"""Write files so that nobody ever sees half of one, or those of two programs side by side."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

LOCK = ".lock"
_PAUSE = 0.05  # seconds until one looks again
_TRIES = 100  # to open a file in a folder that others make and remove; there is no pause between
_UNFINISHED: set[Path] = set()


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name beside `path`, and rename it when it is complete.

    `write` writes the contents to the open file that it is given. An old file is replaced.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    _UNFINISHED.add(temporary)
    try:
        with temporary.open("wb") as file:
            write(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
        _UNFINISHED.discard(temporary)


def check_replaceable(paths: Iterable[Path]) -> None:
    """Raise `OSError` if a file cannot be replaced: Windows refuses while a program has it open."""
    for path in paths:
        if path.exists():
            path.replace(path)


def take_places(folder: Path, names: Sequence[str], new: Path) -> list[Path]:
    """Move new files to a folder, over those of the same names, and return where they are.

    None is moved if one of the old files cannot be replaced. A signal that would end the program
    is handled when all are in place; only a process that is killed may leave some old ones.
    """
    came: list[int] = []
    before = {n: h for n, h in ending_signals().items() if h not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        check_replaceable(folder / name for name in names)
        return [(new / name).replace(folder / name) for name in names]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def ending_signals() -> dict[int, Any]:
    """Return the signals that end a program on this system, and their handlers.

    There are none in other threads than the main one, which do not handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    known = (getattr(signal, name) for name in names if hasattr(signal, name))
    return {int(number): signal.getsignal(number) for number in known}


@contextlib.contextmanager
def scratch_folder(prefix: str, folder: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder, in `folder` or where the system has them, and remove it."""
    from tempfile import TemporaryDirectory  # which takes long to import, for a command line

    # An error on its way up keeps files open, which Windows does not remove.
    with TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as name:
        _UNFINISHED.add(Path(name))
        try:
            yield Path(name)
        finally:
            _UNFINISHED.discard(Path(name))


def remove_unfinished() -> None:
    """Remove what is half written now: for processes that end without further ado."""
    for path in list(_UNFINISHED):
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def only_one(folder: Path, *, wait: bool = False, lock: str = LOCK) -> Iterator[None]:
    """Keep others from writing to a folder, until this process has left it or died.

    The folder is made if need be. If nothing was put into it, what was made is removed. Unless we
    `wait` for others, who may leave files of their own, they are an error.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        file = _locked(folder / lock, wait)
        try:
            yield
        finally:
            if sys.platform == "win32":  # which removes no file that anybody has open
                file.close()
            with contextlib.suppress(OSError):
                (folder / lock).unlink()
            file.close()
    finally:
        with contextlib.suppress(OSError):  # not empty: there are results, perhaps of others
            for path in made:
                path.rmdir()


def _locked(path: Path, wait: bool) -> BinaryIO:
    """Return the locked file, open."""
    while True:
        file = _opened(path)
        # A file that was removed before it was locked keeps nobody away.
        if _lock(file) and _is_there(path, file):
            return file
        removed = not _is_there(path, file)
        file.close()
        if not wait and not removed:
            raise BlockingIOError(
                f"Another run is writing to {path.parent}. Wait for it, or choose another folder."
            )
        time.sleep(_PAUSE)


def _opened(path: Path) -> BinaryIO:
    """Open a file in a folder, which is made if need be."""
    for attempt in range(_TRIES):
        # Between any two of these steps, another run may remove the folder that it made. While it
        # does, Windows permits nothing there.
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("ab")
        except (FileNotFoundError, FileExistsError, PermissionError):
            if attempt == _TRIES - 1:
                raise
    raise AssertionError


def _lock(file: BinaryIO) -> bool:
    """Lock a file unless another process has; the lock of a process ends with it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks: there is nothing to wait for
    return True


def _is_there(path: Path, file: BinaryIO) -> bool:
    if sys.platform == "win32":  # which removes no file that anybody has open
        return True  # nor does it know on all drives which file an open one is
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
