"""Ways to damage a file, chosen by a seed."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import traceback
import warnings
from unittest import mock

from neverworse.cli import main

CODES = {0, 1, 2, 3, 4, 5}
VALUES = (
    *(None, True, False, -1, 0, 1, 2, 7, 10**6, 10**30, -(10**18), 0.5, 1e308, -1e308, 1e-320),
    *("", "x", "=1+1", "null", "\ud800", "é" * 300, "numpy", "builtins", "0.npy", "nan"),
    *([], {}, [[]], [1, 2, 3], ["a"], {"a": 1}, math.nan, math.inf),
)


def ran(words, stdin=None):
    """Run the command in this process; return what broke, or None."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
            mock.patch("sys.stdin", stdin),
        ):
            warnings.simplefilter("ignore")
            code = main(words)
    except BaseException:
        return f"{' '.join(words)}\n{traceback.format_exc(limit=-4)}"
    if code == 130:  # whoever runs the attack has stopped it
        raise KeyboardInterrupt
    said = err.getvalue()
    if code not in CODES or (code not in (0, 3)) != ("error: " in said):
        return f"{' '.join(words)}\nexit code {code}: {said}"
    if len(said) > 5000:
        return f"{' '.join(words)}\n{len(said)} characters: {said[:200]}"
    return None


def flipped(content, rng):
    """Bytes with some changed, cut off, doubled or added."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        at = rng.randrange(len(content) + 1)
        length = rng.choice([1, 1, 2, 16, 400])
        how = rng.randrange(5)
        if how == 0:
            content[at : at + length] = rng.randbytes(length)
        elif how == 1:
            del content[at : at + length]
        elif how == 2:
            content[at:at] = content[at : at + length]
        elif how == 3 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif rng.random() < 0.2:
            del content[at:]
    return bytes(content)


def changed(tree, rng, values=VALUES):
    """A copy of what JSON describes, with some parts replaced, removed, doubled or moved."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = list(_places(tree))
        if not places:
            break
        holder, key = rng.choice(places)
        how = rng.randrange(6)
        if how == 0:
            del holder[key]
        elif how == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif how == 2 and type(holder[key]) in (int, float):
            holder[key] *= rng.choice([-1, 0, 2, 10**6, 1e-9])
        elif how == 3:
            other, name = rng.choice(places)
            with contextlib.suppress(LookupError):
                holder[key] = copy.deepcopy(other[name])
        else:
            holder[key] = copy.deepcopy(rng.choice(values))
    return tree


def _places(tree):
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def as_json(tree):
    """JSON as bytes, with all that Python lets pass."""
    return json.dumps(tree).encode()
