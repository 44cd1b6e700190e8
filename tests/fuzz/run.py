"""Run attacks until all of their seeds were tried or the time is over: ``python -m tests.fuzz``.

Of all attacks, the same share of the seeds is tried. What was done is remembered, so that the next
run goes on where this one ended. Seeds that something did not hold for are tried again first: what
was repaired is forgotten.
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

N_BATCHES = 1000  # of an attack: the seeds of one are tried by one process, in order
ROUND = 500  # batches until processes are started afresh: their memory does not grow for ever
STATE = Path("build") / "fuzz.json"


def main(argv=None):
    options = _options(argv)
    names = options.only or list(ATTACKS)
    if options.seed is not None:
        found = {name: tried(name, [options.seed])[0] for name in names}
        for name, violations in found.items():
            print(f"{name}, seed {options.seed}: {violations.get(options.seed, 'holds')}")
        return int(any(found.values()))
    state = _read(options.state)
    ends = time.monotonic() + 60.0 * options.minutes
    for name in names:
        _try_again(name, state, options)
    left = _batches(names, state)
    with tqdm(total=len(left), unit=" batches") as bar:
        while left and time.monotonic() < ends:
            left = left[_run(left[:ROUND], state, options, ends, bar) :]
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


def _try_again(name, state, options):
    """Try what failed before: what was repaired is forgotten."""
    own = state.setdefault(name, {"done": 0, "violations": {}, "cpu_seconds": 0.0})
    if seeds := [int(seed) for seed in own["violations"]]:
        own["violations"] = {}
        _remember(state, name, _tried_apart(name, seeds), options)


def _batches(names, state):
    """Return what is left to do: of every attack the same share, whenever the time is over."""
    batches = []
    for name in names:
        total = ATTACKS[name].n_seeds
        size = -(-total // N_BATCHES)
        first = range(state[name]["done"], total, size)
        batches += [(lo / total, name, list(range(lo, min(lo + size, total)))) for lo in first]
    return [(name, seeds) for _, name, seeds in sorted(batches)]


def _run(batches, state, options, ends, bar):
    """Try batches of seeds until the time is over; return how many were tried."""
    n_done = 0
    for name, seeds, result in _in_processes(batches, options.jobs):
        state[name]["done"] = seeds[-1] + 1
        _remember(state, name, result, options)
        n_done += 1
        bar.update()
        bar.set_postfix(violations=sum(len(own["violations"]) for own in state.values()))
        if time.monotonic() >= ends:
            break
    return n_done


def _remember(state, name, result, options):
    found, seconds = result
    state[name]["violations"].update({str(seed): text for seed, text in found.items()})
    state[name]["cpu_seconds"] += seconds
    _write(options.state, state)


def _in_processes(batches, jobs):
    """Yield batches in order with what did not hold; where a process died, seed by seed."""
    done = 0
    try:
        with _pool(jobs) as pool:
            futures = [pool.submit(tried, *batch) for batch in batches]
            try:
                for (name, seeds), future in zip(batches, futures, strict=True):
                    yield name, seeds, future.result()
                    done += 1
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    except BrokenProcessPool:
        name, seeds = batches[done]
        yield name, seeds, _tried_apart(name, seeds)


def _tried_apart(name, seeds):
    """Try seeds in a process of their own, or in two if that dies, until it is known which do."""
    try:
        with _pool(1) as pool:
            return pool.submit(tried, name, seeds).result()
    except BrokenProcessPool:
        if len(seeds) == 1:
            return {seeds[0]: "the process died"}, 0.0
    half = len(seeds) // 2
    (first, one), (second, other) = (_tried_apart(name, s) for s in (seeds[:half], seeds[half:]))
    return first | second, one + other


def _pool(jobs):
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


def tried(name, seeds):
    """Return what did not hold, for those of the seeds where something did not, and CPU seconds."""
    started = os.times()
    attack, found = ATTACKS[name].load(), {}
    for seed in seeds:
        try:
            text = attack(seed)
        except Exception:
            text = "the attack itself failed: " + traceback.format_exc()
        if text is not None:
            found[seed] = text
    return found, sum(os.times()[:4]) - sum(started[:4])


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
            f"{len(violations):,} violations, {state[name]['cpu_seconds']:,.0f} seconds of CPU time"
        )
        for seed, text in list(violations.items())[:5]:
            print(f"  seed {seed}: {text[:500]}")
    if n_violations:
        print(f"All of them: {options.state}. One again: python -m tests.fuzz --only NAME --seed N")
    return int(n_violations > 0)
