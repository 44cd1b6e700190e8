"""Files that are written completely or not at all, and by one program at a time."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

LOCK = ".lock"
_PAUSE = 0.05  # seconds between attempts to lock a file


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name, by calling `write` with it, and rename it to `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(paths: Iterable[Path]) -> None:
    """Raise `OSError` if a file cannot be replaced: Windows refuses while a program has it open."""
    for path in paths:
        if path.exists():
            path.replace(path)


def take_places(folder: Path, names: Sequence[str], new: Path) -> list[Path]:
    """Move files from the folder `new`, replace those of the same names, and return their paths.

    None is moved if one of the old files cannot be replaced. A signal only interrupts the main
    thread, which waits for the one that moves the files.
    """
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    def move() -> list[Path]:
        check_replaceable(folder / name for name in names)
        return [(new / name).replace(folder / name) for name in names]

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # a thread whose start is interrupted would not be waited for
        return pool.submit(move).result()


@contextlib.contextmanager
def scratch_folder(prefix: str, folder: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder, in `folder` or where the system has them, and remove it."""
    from tempfile import TemporaryDirectory  # slow to import

    # An error on its way up keeps files open, which Windows does not remove.
    with TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def only_one(folder: Path, *, wait: bool = False, lock: str = LOCK) -> Iterator[None]:
    """Lock a folder for this process; raise `BlockingIOError`, or `wait`, if another has locked it.

    The folder is made if need be. `lock` is the name of the file that is locked, and removed at the
    end. A lock ends with its process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / lock
    while True:
        file = path.open("ab")
        is_locked = _lock(file)
        if is_locked and os.fstat(file.fileno()).st_nlink:  # not removed in the meantime
            break
        file.close()
        if not (is_locked or wait):
            raise BlockingIOError(
                f"Another run is writing to {folder}. Wait for it, or choose another folder."
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where open files cannot be removed
            file.close()
        with contextlib.suppress(OSError):
            path.unlink()
        file.close()


def _lock(file: BinaryIO) -> bool:
    """Lock a file; return False if another process has locked it."""
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
        pass  # a file system without locks
    return True
