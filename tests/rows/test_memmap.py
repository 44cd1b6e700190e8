import subprocess
import sys
import textwrap

import numpy as np
import pytest

from neverworse import ProjectedLeastSquaresClassifier
from tests.rows.fits import CASES


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", CASES)
def test_same_model_as_in_memory(name, order, tmp_path):
    case = CASES[name]
    X, y, weights = case.data()
    X = np.asarray(X, order=order)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found, expected = case.fit(mapped, y, weights), case.fit(X, y, weights)
    coef = expected._coef_name
    np.testing.assert_array_equal(getattr(found, coef), getattr(expected, coef))
    np.testing.assert_array_equal(found.predict(mapped), expected.predict(X))


MEASURE = """
import sys
import threading
import numpy as np
from neverworse import ProjectedLeastSquaresClassifier

def own():
    # What belongs to the process alone: pages of the file are those of the system.
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024

X, y = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[2])
before, seen, done = own(), [], threading.Event()

def watch():
    while not done.wait(0.005):
        seen.append(own())

thread = threading.Thread(target=watch)
thread.start()
clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
done.set()
thread.join()
assert clf.certificate_.converged and clf.certificate_.guaranteed_improvement > 0
print(max(seen) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_memory(tmp_path):
    rng = np.random.default_rng(0)
    n, d = 200_000, 100
    y = rng.integers(0, 2, n)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (n, d))
    X[:] = rng.standard_normal((n, d), dtype=np.float32)
    X += 0.2 * y[:, None].astype(np.float32)
    X.flush()
    y[300:] = -1
    np.save(tmp_path / "y.npy", y)
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), tmp_path / "X.npy", tmp_path / "y.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(run.stdout) < 45, run.stdout  # of 80 MB


def test_read_only(tmp_path):
    X, y, _ = CASES["few labels"].data()
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    before = (tmp_path / "X").read_bytes()
    ProjectedLeastSquaresClassifier().fit(
        np.memmap(tmp_path / "X", np.float32, "r+", shape=X.shape), y
    )
    assert (tmp_path / "X").read_bytes() == before
