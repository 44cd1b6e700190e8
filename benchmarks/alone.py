"""Measure things in processes of their own, so that each has its own peak of memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path


class TookTooLongError(RuntimeError):
    """A measurement was ended because its time was up."""


def run(script, settings, limit=None):
    """Run a script as ``script --one settings``; return what it prints, read as JSON.

    Parameters
    ----------
    script : path
    settings : dict
    limit : float, optional
        Seconds after which the process is ended.
    """
    # The package may come from a folder that only this process knows.
    path = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(
            [sys.executable, str(script), "--one", json.dumps(settings)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TookTooLongError(f"{settings} took more than {limit:g} s") from error
    if done.returncode:
        raise RuntimeError(f"{settings} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def say(text):
    """Show on a terminal what is being done."""
    if sys.stderr.isatty():
        print(f"{text} ...", file=sys.stderr)


def peak_memory():
    """Return the most bytes that this process has had in memory.

    What `getrusage` says is at least what the parent had when it started this process, so it is
    asked only where the kernel keeps no better number.
    """
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak():
    """Let the peak begin at what is in memory now, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return


def _status(name):
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
