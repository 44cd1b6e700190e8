"""How long ``neverworse --help`` takes, beside a Python that does nothing.

Run it with: python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import numpy as np

from timing import side_by_side

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "neverworse --help": ["-m", "neverworse", "--help"],
    "import neverworse": ["-c", "import neverworse"],
    "import scikit-learn": ["-c", "import sklearn"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    times = side_by_side(
        {name: starter(words) for name, words in COMMANDS.items()}, parser.parse_args().repeats
    )
    print(f"{'':20} {'median':>9} {'fastest':>9}")
    for name, seconds in times.items():
        print(f"{name:20} {np.median(seconds):>7.3f} s {np.min(seconds):>7.3f} s")


def starter(words):
    """Return a function that runs Python with these arguments and waits for its end."""
    return lambda: subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
