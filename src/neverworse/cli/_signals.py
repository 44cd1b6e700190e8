"""Signals that end a program: what it has half written is removed first."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from neverworse._files import ENDING, remove_unfinished

GRACE = 5.0  # seconds for a library to return


@contextlib.contextmanager
def stopping() -> Iterator[list[int]]:
    """Raise `KeyboardInterrupt` when a signal ends the program; which one is in the list.

    Not for signals that are ignored, as nohup has it, or that another program has a use for.
    Python sees a signal when a library returns. Some do not while they wait, for example for the
    next rows from a pipe: after a while, a thread clears up and ends the process.
    """
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if not came:  # another one must not stop the clearing up
            came.append(number)
            raise KeyboardInterrupt

    before = _ending() if threading.current_thread() is threading.main_thread() else {}
    if not before:
        yield came
        return
    done = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_end, args=(reader, set(before), done), daemon=True).start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in before:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(writer)


def _ending() -> dict[int, signal.Handlers]:
    """Return the signals that would end the process now, and what they do."""
    known = (getattr(signal, name) for name in ENDING if hasattr(signal, name))
    handlers = {int(number): signal.getsignal(number) for number in known}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    return {number: handler for number, handler in handlers.items() if handler in usual}  # type: ignore[misc]


def _end(reader: int, numbers: set[int], done: threading.Event) -> None:
    """End the process some time after a signal, if it has not ended by itself."""
    with open(reader, "rb", buffering=0) as signals:
        while number := signals.read(1):
            if number[0] in numbers and not done.wait(GRACE):
                remove_unfinished()
                os._exit(128 + number[0])
