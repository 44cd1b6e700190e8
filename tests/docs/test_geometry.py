"""The interactive page: its closed forms against the library, and what people do with it."""

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.plots import ConstraintSetDisplay
from tests.study.report.test_browser import BROWSER

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")

PAGE = Path(__file__).parents[2] / "docs" / "the-geometry.html"
NO_INTERCEPT = {"fit_intercept": False}
# Uses the page as people do, with the mouse and from the keyboard.
USE = """
const said = () => byId("said").textContent;
const key = (p, name) => p.node.dispatchEvent(
  new KeyboardEvent("keydown", {key: name, bubbles: true}));
const mouse = (p, kind, x, y) => p.node.dispatchEvent(
  new PointerEvent(kind, {clientX: x, clientY: y, pointerId: 1, bubbles: true}));
const hidden = points.find((p) => !p.known), seen = {first: said(), at: [hidden.x, hidden.y]};
mouse(hidden, "pointerdown", 100, 100);
mouse(hidden, "pointermove", 100, 60);
mouse(hidden, "pointerup", 100, 60);
seen.dragged = [hidden.x, hidden.y, hidden.known];
mouse(hidden, "pointerdown", 100, 60);
mouse(hidden, "pointerup", 101, 60);
seen.tapped = hidden.known;
key(hidden, "Enter");
seen.entered = hidden.known;
key(hidden, "ArrowLeft");
seen.moved = hidden.x - seen.dragged[0];
key(hidden, "1");
seen.label = [hidden.label, hidden.node.getAttribute("aria-label")];
points.filter((p) => p.known && p.label === 1).forEach((p) => key(p, "Enter"));
seen.refused = [said(), points.filter((p) => p.known && p.label === 1).length];
byId("start").value = "nothing to improve";
byId("start").dispatchEvent(new Event("change"));
seen.nothing = said();
const before = points.length;
byId("add").click();
seen.added = [points.length - before, document.activeElement === points[before].node];
byId("remove").click();
seen.removed = points.length - before;
byId("alpha").value = "1.5";
byId("alpha").dispatchEvent(new Event("input"));
seen.alpha = alpha;
"""


def ran(script, folder):
    """Return what a script finds in the page, as `seen`."""
    content = PAGE.read_text("utf-8")
    code = f"{script}\ndocument.documentElement.dataset.seen = JSON.stringify(seen);\n</script>"
    path = folder / "page.html"
    path.write_text(content.replace("</script>", code), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    flags += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000"]
    flags += ["--enable-logging=stderr", "--v=0", "--dump-dom"]
    done = subprocess.run(
        [BROWSER, *flags, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert [line for line in done.stderr.splitlines() if ":CONSOLE" in line] == []
    return json.loads(unescape(re.search(r'data-seen="([^"]*)"', done.stdout)[1]))


def problem(seed):
    """Return rows, labels, which of them are known, and a penalty."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 20))
    X = rng.uniform(0, 1, (n, 2)).round(3)
    label = rng.integers(0, 2, n)
    known = rng.random(n) < 0.4
    label[:2], known[:2] = (0, 1), True
    return X, label, known, float(rng.choice([0.0, 0.1, 1.0]))


def test_its_numbers_are_those_of_the_library(tmp_path):
    problems = [problem(seed) for seed in range(40)]
    given = [
        [[{"x": x, "y": y, "label": int(q), "known": bool(k)} for (x, y), q, k in rows], alpha]
        for rows, alpha in ((zip(X, q, k, strict=True), a) for X, q, k, a in problems)
    ]
    script = f"const seen = {json.dumps(given)}.map(([points, alpha]) => solve(points, alpha));"
    improved = 0
    for found, (X, label, known, alpha) in zip(ran(script, tmp_path), problems, strict=True):
        y = np.where(known, label, -1)
        projected = ProjectedLeastSquaresClassifier(alpha=alpha, **NO_INTERCEPT).fit(X, y)
        icls = ICLSClassifier(alpha=alpha, **NO_INTERCEPT).fit(X, y)
        oracle = LeastSquaresClassifier(alpha=alpha, **NO_INTERCEPT).fit(X, label)
        for name, model in (
            ("supervised", projected.supervised_),
            ("projected", projected),
            ("icls", icls),
            ("oracle", oracle),
        ):
            np.testing.assert_allclose(found[name], model.coef_[0], rtol=1e-5, atol=1e-6)
        for name, model in (("certificate", projected), ("riskier", icls)):
            certificate = model.certificate_
            expected = [certificate.worst_case, certificate.best_case]
            shown = [found[name]["worst"], found[name]["best"]]
            np.testing.assert_allclose(shown, expected, rtol=1e-4, atol=1e-5)
            losses = [
                np.sum((each.decision_function(X) + 0.5 - label) ** 2)
                + alpha * np.sum(each.coef_**2)
                for each in (model, projected.supervised_)
            ]
            change = losses[0] - losses[1]
            np.testing.assert_allclose(found[name]["truth"], change, rtol=1e-4, atol=1e-5)
        improved += projected.certificate_.guaranteed_improvement > 1e-3
    assert improved >= 5  # not all problems are those in which nothing happens


def test_its_constraint_set_is_that_of_the_library(tmp_path):
    X, label, known, _ = problem(3)
    y = np.where(known, label, -1)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, **NO_INTERCEPT).fit(X, y)
    expected = ConstraintSetDisplay.from_estimator(clf, X, y).constraint_set
    rows = [
        {"x": a, "y": b, "label": int(q), "known": bool(k)}
        for (a, b), q, k in zip(X, label, known, strict=True)
    ]
    corners = np.array(ran(f"const seen = solve({json.dumps(rows)}, 0).set;", tmp_path))
    for theirs, ours in ((expected, corners), (corners, expected)):
        gaps = np.linalg.norm(theirs[:, None] - ours[None], axis=2).min(axis=1)
        np.testing.assert_allclose(gaps, 0, atol=1e-8)


def test_points_can_be_dragged_tapped_and_moved_from_the_keyboard(tmp_path):
    seen = ran(USE, tmp_path)
    assert seen["first"].startswith("Never worse: whatever the labels of the")
    assert seen["dragged"][0] == pytest.approx(seen["at"][0])
    assert seen["dragged"][1] > seen["at"][1]
    assert seen["dragged"][2] is False
    assert seen["tapped"] is True
    assert seen["entered"] is False
    assert seen["moved"] == pytest.approx(-0.01)
    assert seen["label"][0] == 1
    assert "no label, in truth class 1" in seen["label"][1]
    assert seen["refused"] == ["Both classes need a point with a label.", 1]
    assert seen["nothing"].startswith("Nothing can be improved")
    assert seen["added"] == [1, True]
    assert seen["removed"] == 0
    assert seen["alpha"] == 1.5


def test_it_needs_nothing_from_elsewhere():
    content = PAGE.read_text("utf-8")
    assert re.findall(r"(?:src|href)=\"(?!index\.html)[^\"]*\"", content) == []
    assert set(re.findall(r"https?://[^\"\s]+", content)) == {"http://www.w3.org/2000/svg"}
