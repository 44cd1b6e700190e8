"""Run attacks until all of their seeds were tried or the time is over: ``python -m tests.fuzz``.

What was done is remembered, so that the next run goes on where this one ended. Seeds that something
did not hold for are tried again first: what was repaired is forgotten.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from tests.fuzz import ATTACKS

BATCH = 25  # seeds that a process tries before it reports
STATE = Path("build") / "fuzz.json"


def main(argv=None):
    options = _options(argv)
    names = options.only or list(ATTACKS)
    if options.seed is not None:
        found = {name: tried(name, [options.seed]) for name in names}
        for name, violations in found.items():
            print(f"{name}, seed {options.seed}: {violations.get(options.seed, 'holds')}")
        return int(any(found.values()))
    state = _read(options.state)
    ends = time.monotonic() + 60.0 * options.minutes
    for i, name in enumerate(names):
        left = ends - time.monotonic()
        _run(name, state, options, time.monotonic() + left / (len(names) - i))
    return _report(names, state, options)


def _options(argv):
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="time at most (default: 30)")
    parser.add_argument(
        "--only", action="append", choices=ATTACKS, metavar="NAME", help=f"of {', '.join(ATTACKS)}"
    )
    parser.add_argument("--seed", type=int, help="try this seed alone, and remember nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--state", type=Path, default=STATE, help=f"default: {STATE}")
    return parser.parse_args(argv)


def _run(name, state, options, ends):
    """Try what failed before, and then seeds that are new, in order."""
    own = state.setdefault(name, {"done": 0, "violations": {}})
    again = [int(seed) for seed in own["violations"]]
    total = ATTACKS[name].n_seeds
    with tqdm(total=total, initial=own["done"], desc=name, unit=" seeds") as bar:
        if again:
            found = _tried_apart(name, again, options.jobs)
            own["violations"] = {str(seed): text for seed, text in found.items()}
            _write(options.state, state)
        while own["done"] < total and time.monotonic() < ends:
            # Processes are started afresh now and then: memory does not grow, and a crash that
            # takes down a pool costs one round.
            stop = min(own["done"] + BATCH * 8 * options.jobs, total)
            batches = [
                list(range(lo, min(lo + BATCH, stop))) for lo in range(own["done"], stop, BATCH)
            ]
            for seeds, found in _in_processes(name, batches, options.jobs):
                own["violations"].update({str(seed): text for seed, text in found.items()})
                own["done"] = seeds[-1] + 1
                bar.update(len(seeds))
                bar.set_postfix(violations=len(own["violations"]))
                _write(options.state, state)
                if time.monotonic() >= ends:
                    break


def _in_processes(name, batches, jobs):
    """Yield batches in order with what did not hold; where a process died, seed by seed."""
    done = 0
    try:
        with _pool(jobs) as pool:
            futures = [pool.submit(tried, name, seeds) for seeds in batches]
            try:
                for seeds, future in zip(batches, futures, strict=True):
                    yield seeds, future.result()
                    done += 1
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    except BrokenProcessPool:
        seeds = batches[done]
        yield seeds, _tried_apart(name, seeds, jobs)


def _tried_apart(name, seeds, jobs):
    """Try seeds each in a process of its own, to find the one that ends it."""
    found = {}
    for seed in seeds:
        try:
            with _pool(1) as pool:
                found |= pool.submit(tried, name, [seed]).result()
        except BrokenProcessPool:
            found[seed] = "the process died"
    return found


def _pool(jobs):
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


def tried(name, seeds):
    """Return what did not hold, for those of the seeds where something did not."""
    attack, found = ATTACKS[name].load(), {}
    for seed in seeds:
        try:
            text = attack(seed)
        except Exception:
            text = "the attack itself failed: " + traceback.format_exc()
        if text is not None:
            found[seed] = text
    return found


def _read(path):
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path, state):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state, indent=1))
    new.replace(path)


def _report(names, state, options):
    """Print what was tried and what did not hold; return the exit code."""
    n_violations = 0
    for name in names:
        violations = state[name]["violations"]
        n_violations += len(violations)
        print(
            f"{name}: {state[name]['done']:,} of {ATTACKS[name].n_seeds:,} seeds tried, "
            f"{len(violations):,} violations"
        )
        for seed, text in list(violations.items())[:5]:
            print(f"  seed {seed}: {text[:500]}")
    if n_violations:
        print(f"All of them: {options.state}. One again: python -m tests.fuzz --only NAME --seed N")
    return int(n_violations > 0)
