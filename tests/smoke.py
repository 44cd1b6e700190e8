"""A short use of an installed package, from outside of its source: `make dist` runs it.

Usage: python smoke.py
"""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import neverworse
from neverworse import ProjectedLeastSquaresClassifier, audit
from neverworse.model_selection import mask_labels


def main():
    home = Path(neverworse.__file__)
    assert "site-packages" in home.parts, (
        f"this is the source tree, not an installed package: {home}"
    )
    assert neverworse.__version__ == version("neverworse")
    assert (home.parent / "py.typed").exists()

    # What is not Python has to be packed as well.
    package = files("neverworse")
    for folder, names in {
        "pages": ["page.css", "page.js", "*.html"],
        "study/labeling": ["page.css", "page.js", "*.html"],
        "datasets": ["*.toml"],
        "experiments": ["*.json"],
        "study/report/templates": ["report.html"],
    }.items():
        for name in names:
            assert list(Path(str(package / folder)).rglob(name)), f"{folder}/{name} is missing"

    for name in neverworse.__all__:
        assert getattr(neverworse, name) is not None

    X, y_true = load_breast_cancer(return_X_y=True)
    y = mask_labels(y_true, n_labeled=40, stratify=True, random_state=0)
    clf = make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier()).fit(X, y)
    assert clf[-1].certificate_.holds
    assert np.mean(clf.predict(X) == y_true) > 0.85
    found = audit(clf[-1], clf[-1].supervised_, clf[:-1].transform(X), y)
    assert found.best_case <= found.worst_case
    print(f"neverworse {neverworse.__version__} works")


if __name__ == "__main__":
    main()
