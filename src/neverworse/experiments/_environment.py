"""Where and when results were made, for those who read them."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn

import neverworse


def versions() -> str:
    """Return the versions of what results depend on."""
    found = {
        "neverworse": neverworse.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "pandas": pd.__version__,
    }
    return ", ".join(f"{name} {version}" for name, version in found.items())


def machine() -> str:
    """Return the processor, the number of its cores, and the operating system."""
    n_cores = os.cpu_count() or 1
    cores = f"{n_cores} core{'s' if n_cores > 1 else ''}"
    return f"{_processor()}, {cores}, {platform.system()} {platform.machine()}"


def today() -> str:
    """Return the date, for whoever reads it anywhere."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _processor() -> str:
    """Return the name of the processor; Python knows none on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names[0] if names else platform.processor()) or "unknown processor"
