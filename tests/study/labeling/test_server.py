"""The page to label on: what it shows, what it stores, and whom it answers."""

from __future__ import annotations

import asyncio
import json
import re
import socket

import numpy as np
import pytest

from neverworse.pages import digest
from neverworse.study.labeling._server import LabelingPage, listening
from neverworse.study.labeling._shown import picture_of
from tests.study.labeling import asked

TOKEN = "secret"
HOST, ORIGIN = ("host", "127.0.0.1:8123"), ("origin", "http://127.0.0.1:8123")


@pytest.fixture
def site(made, opening):
    return Site(opening(), made[3])


class Site:
    """The application without a network."""

    def __init__(self, labeling, truth, n_train=3):
        self.labeling, self.truth = labeling, truth
        suggested = labeling.suggested(n_train)
        self._app = LabelingPage(labeling, suggested, TOKEN, 8123)

    def get(self, path=f"/{TOKEN}/", headers=(HOST,)):
        return self._ask("GET", path, headers, b"")

    def post(self, action, row, code=None, headers=(HOST, ORIGIN)):
        body = json.dumps({"row": row, "code": code}).encode()
        status, _, text = self._ask("POST", f"/{TOKEN}/{action}", headers, body)
        return status, json.loads(text) if text.startswith("{") else text

    def _ask(self, method, path, headers, body):
        sent = []
        sized = (*headers, ("content-length", str(len(body))))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(name.encode(), value.encode()) for name, value in sized],
        }

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        text = b"".join(each.get("body", b"") for each in sent[1:]).decode()
        return sent[0]["status"], headers, text

    def row(self):
        return int(re.search(r'id="asked" data-row="(\d+)"', self.get()[2])[1])

    def code(self, row):
        return self.labeling.target.class_names.index(self.truth[row - 1])

    def stored(self):
        content = json.loads((self.labeling.folder / "labels.json").read_text())
        codes = {name: k for k, name in enumerate(self.labeling.target.class_names)}
        return {row: codes[name] for row, name in content["labeling"]["answers"]}


def test_the_page_shows_a_row_and_a_button_for_each_class(site, made):
    status, headers, page = site.get()
    assert status == 200
    row = site.row()
    assert made[2].column("x3")[row - 1].as_py() == pytest.approx(
        float(re.search(r'<bdi class="name">x3</bdi></dt><dd><bdi class="name">([^<]+)', page)[1])
    )
    buttons = re.findall(r'data-code="(\d)" aria-keyshortcuts="(\d)">.*?name">([^<]+)', page)
    assert buttons == [("0", "1", "=spam"), ("1", "2", "ham")]
    assert "Undecided: use the projected model or the supervised one?" in page
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert headers["cache-control"] == "no-store"


def test_the_page_runs_its_own_script_only_and_loads_nothing(site):
    page = site.get()[2]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    style, script = (
        re.search(f"<{tag}>(.*?)</{tag}>", page, re.S)[1] for tag in ("style", "script")
    )
    assert policy == (
        f"default-src 'none'; img-src data:; style-src '{digest(style)}'; script-src "
        f"'{digest(script)}'; base-uri 'none'; form-action 'none'; connect-src 'self'"
    )
    assert "url(" not in style
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", page) == []


def test_without_javascript_the_way_by_file_is_named(site):
    told = re.search(r"<noscript>(.*?)</noscript>", site.get()[2], re.S)[1]
    assert f"neverworse label {site.labeling.folder} --next 20" in told
    assert "--answers to_label.csv" in told


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"/{TOKEN}/", (("host", "evil.example:8123"),), 421),
        (f"/{TOKEN}/", (("host", "127.0.0.1:9999"),), 421),
        (f"/{TOKEN}/", (), 421),
        ("/guess/", (HOST,), 404),
        ("/", (HOST,), 404),
        (f"/{TOKEN}/", (("host", "localhost:8123"),), 200),
    ],
)
def test_others_see_nothing(site, path, headers, status):
    found, _, text = site.get(path, headers)
    assert found == status
    assert ("asked" in text) == (status == 200)


@pytest.mark.parametrize(
    "headers",
    [(HOST,), (HOST, ("origin", "https://evil.example")), (HOST, ("origin", "null"))],
)
def test_other_sites_answer_nothing(site, headers):
    row = site.row()
    assert site.post("answer", row, 0, headers)[0] == 403
    assert site.labeling.answers == {}


@pytest.mark.parametrize(
    ("action", "row", "code", "status"),
    [
        ("answer", "1", 0, 400),
        ("answer", None, 0, 400),
        ("answer", True, 0, 400),
        ("answer", 13, "ham", 400),
        ("drop", 13, 0, 400),
        ("answer", 10**9, 0, 409),
        ("answer", 1, 0, 409),  # has been labeled from the start
        ("undo", 13, None, 409),
    ],
)
def test_requests_that_make_no_sense_change_nothing(site, action, row, code, status):
    assert site.post(action, row, code)[0] == status
    assert site.labeling.answers == {}


@pytest.mark.parametrize("code", [-1, 2, None])
def test_a_class_that_is_not_there(site, code):
    assert site.post("answer", site.row(), code)[0] == 409
    assert site.labeling.answers == {}


def test_every_answer_is_stored_at_once(site, made):
    seen = {}
    for _ in range(4):
        row = site.row()
        status, answer = site.post("answer", row, site.code(row))
        assert status == 200
        seen[row] = site.code(row)
        assert site.stored() == seen
        assert f'data-row="{site.row()}"' in answer["work"]
    again = asked.opened(site.labeling.folder, made[1], made[2])
    assert again.standing() == site.labeling.standing()
    assert again.current([]) == site.labeling.current([])


def test_two_windows_do_not_count_a_row_twice(site):
    row = site.row()
    code = site.code(row)
    assert site.post("answer", row, code)[0] == 200
    before = site.labeling.standing()
    assert site.post("answer", row, code)[0] == 200
    status, answer = site.post("answer", row, 1 - code)
    assert status == 409
    assert re.match(rf"Row {row} was .* before\. Nothing", answer["message"])
    assert site.labeling.standing() == before
    assert site.stored() == {row: code}


def test_undo_takes_back_the_last_answer_only(site):
    rows = []
    for _ in range(2):
        rows.append(site.row())
        site.post("answer", rows[-1], site.code(rows[-1]))
    assert site.post("undo", rows[0])[0] == 409
    assert list(site.stored()) == rows
    assert site.post("undo", rows[1])[0] == 200
    assert list(site.stored()) == rows[:1]
    assert site.row() == rows[1]


def test_skipped_rows_come_again(site):
    first = site.row()
    assert site.post("skip", first)[0] == 200
    assert site.row() != first
    seen = set()
    for _ in range(6):
        seen.add(site.row())
        site.post("skip", site.row())
    assert first in seen


def test_what_is_not_stored_does_not_count(site, monkeypatch):
    row = site.row()
    before = site.labeling.standing()

    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site.labeling, "save", full)
    status, answer = site.post("answer", row, site.code(row))
    assert (status, answer["message"]) == (507, "Not stored: No space left on device. Try again.")
    assert site.labeling.standing() == before
    monkeypatch.undo()
    assert site.row() == row


def test_from_the_decision_to_training_to_the_end(site):
    while site.labeling.standing().verdict == "undecided":
        row = site.row()
        said = site.post("answer", row, site.code(row))[1]["message"]
        decided = (
            ""
            if site.labeling.standing().verdict == "undecided"
            else site.labeling.standing().decision
        )
        assert said == f"Row {row}: {site.truth[row - 1]}. {decided}".rstrip()
    page = site.get()[2]
    assert re.search(r'class="claim (good|bad)-word" id="decision">Decided: use the ', page)
    assert "Its label would help a new fit most." in page
    for _ in range(3):
        site.post("answer", site.row(), site.code(site.row()))
    page = site.get()[2]
    assert "All rows that were asked for have an answer" in page
    assert "data-code" not in page
    assert 'data-action="undo"' in page


def test_cells_are_text_whatever_they_look_like(tmp_path):
    table, truth = asked.mails()
    evil = ["<script>alert(1)</script>"] * table.num_rows
    table = table.set_column(0, "mail", [evil])
    study = asked.results(tmp_path, table)
    page = Site(asked.opened(tmp_path, study, table), truth).get()[2]
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)" in page


def test_the_picture_narrows_and_says_what_it_shows(site):
    widths = []
    for _ in range(3):
        site.post("answer", site.row(), site.code(site.row()))
        found = picture_of(site.labeling.history, site.labeling.standing())
        low, high = (-float(found[end][-1].split(",")[1]) for end in ("low", "high"))
        assert (low, high) == pytest.approx(100.0 * np.array(site.labeling.history[-1]), rel=1e-5)
        widths.append(high - low)
        assert len(found["low"]) == len(site.labeling.history)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < found["ends"][1] - found["ends"][0]
    assert found["description"].startswith(
        "Confidence interval of the difference of error rates, after 3"
    )
    assert found["description"] in site.get()[2]


def test_only_this_computer_is_listened_to_and_a_port_in_use_is_named():
    with listening() as at:
        host, port = at.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(ValueError, match=f"Port {port}: .* Choose another with --port"):
            listening(port)
        with socket.create_connection((host, port), 5):
            pass
