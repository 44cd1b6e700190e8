"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info


def describe():
    """Return a sentence that names processor, memory and versions."""
    libraries = [i for i in threadpool_info() if i["user_api"] == "blas"]
    blas = {f"{i['internal_api']} {i['version']}" for i in libraries}
    threads = max((i["num_threads"] for i in libraries), default=1)
    return (
        f"{_processor()}, {os.cpu_count()} cores, {_memory()}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn "
        f"{sklearn.__version__}, {', '.join(sorted(blas))} with {threads} threads"
    )


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory():
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "memory unknown"
    return f"{size / 2**30:.0f} GiB"
