"""``neverworse label``: from a fit with an open question to a decision."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from http.client import HTTPConnection

import pytest

from neverworse._files import only_one
from neverworse.cli import main
from neverworse.study import listening, read_study
from tests.cli.tables import COMMAND, files_in, needs_signals, neverworse
from tests.study.labeling import asked

FIT = (
    *("fit", "mails.csv", "--target", "kind", "--id", "mail", "--alpha", "0"),
    *("--no-curves", "--candidates", "none"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, the results of a fit to it, and the classes of all its rows."""
    folder = tmp_path_factory.mktemp("made")
    table, truth = asked.mails()
    table.to_pandas().to_csv(folder / "mails.csv", index=False)
    with contextlib.chdir(folder):
        assert main([*FIT, "--out", "results", "--quiet"]) == 0
    return folder, truth


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy of both, which is the current folder."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "89")
    return tmp_path


def fill(path, truth, n=None):
    """Do what people do: write classes into the sheet."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines[:n]:
        line["kind"] = truth[int(line["row"]) - 1]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    return lines


def test_from_an_open_question_to_a_decision(made, place, capsys):
    """As the documentation has it, at first with the real command."""
    ran = neverworse("label", "results", "--next", "20", cwd=place)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Written: to_label.csv, with 20 rows to label (")
    assert "Undecided: use the projected model or the supervised one?" in ran.stdout
    lines = fill(place / "to_label.csv", made[1])
    assert {line["question"] for line in lines} == {"decide", "train"}
    assert main(["label", "results", "--answers", "to_label.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    n_decide = sum(line["question"] == "decide" for line in lines)
    assert f"Recorded: 20 new answers ({n_decide} to decide, " in out
    assert files_in(place / "results") == [
        *("certificate.json", "labels.json", "model.skops", "predictions.csv", "report.html"),
        "study.json",
    ]
    report = (place / "results" / "report.html").read_text(encoding="utf-8")
    assert "<h2>What was asked and answered</h2>" in report
    assert "20 have an answer" in report
    (place / "results" / "report.html").unlink()
    assert main(["report", "results"]) == 0
    assert (place / "results" / "report.html").read_text(encoding="utf-8") == report


def test_it_goes_on_until_it_is_decided(made, place, capsys):
    verdicts = []
    for _ in range(20):
        assert main(["label", "results", "--next", "3", "--json"]) == 0
        asked_for = json.loads(capsys.readouterr().out)
        if asked_for["standing"]["verdict"] != "undecided":
            break
        fill(place / "to_label.csv", made[1])
        assert main(["label", "results", "--answers", "to_label.csv", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["n_new"] == 3
        assert said["before"] == asked_for["standing"]
        verdicts.append(said["standing"]["verdict"])
    assert set(verdicts[:-1]) <= {"undecided"}
    assert verdicts[-1] in ("candidate is not worse", "candidate is worse")
    assert main(["label", "results"]) == 0
    assert capsys.readouterr().out.startswith("Decided: use the ")


def test_answers_that_decide_say_what_changed(made, place, capsys):
    main(["label", "results", "--next", "2"])
    fill(place / "to_label.csv", made[1])
    capsys.readouterr()
    assert main(["label", "results", "--answers", "to_label.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Recorded: 2 new answers (2 to decide, 0 to train). Before, the interval was" in said


def test_it_is_run_where_the_fit_was_run(place, capsys, monkeypatch):
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["label", "../results", "--next", "1"]) == 4
    assert "in the folder in which neverworse fit was run." in capsys.readouterr().err


def test_a_table_that_changed_is_refused(place, capsys):
    with (place / "mails.csv").open("a") as file:
        file.write("=200,1,1,1,1,1,1,1,1,\n")
    assert main(["label", "results", "--next", "1"]) == 4
    assert "mails.csv changed since neverworse fit: labels belong to" in capsys.readouterr().err
    assert not (place / "to_label.csv").exists()


def test_answers_that_are_not_recorded_are_not_replaced(made, place, capsys):
    assert main(["label", "results", "--next", "2", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    fill(place / "to_label.csv", made[1], 1)
    assert main(["label", "results", "--next", "2"]) == 2
    said = capsys.readouterr().err
    assert "to_label.csv would be replaced, but is another table, or has answers that are" in said
    assert main(["label", "results", "--answers", "to_label.csv"]) == 0
    assert main(["label", "results", "--next", "2"]) == 0
    (place / "other.csv").write_text("a,b\n1,2\n")
    assert main(["label", "results", "--next", "2", "--out", "other.csv"]) == 2
    assert (
        "other.csv would be replaced, but is another table, or has answers"
        in capsys.readouterr().err
    )


def test_mistakes_are_taken_back(made, place, capsys):
    main(["label", "results", "--next", "2"])
    (first, _second) = fill(place / "to_label.csv", made[1])
    main(["label", "results", "--answers", "to_label.csv"])
    text = (place / "to_label.csv").read_text()
    wrong = {"ham": "=spam", "=spam": "ham"}[first["kind"]]
    lines = text.splitlines()
    lines[1] = lines[1].replace(f",{first['kind']},", f",{wrong},")
    (place / "to_label.csv").write_text("\n".join(lines))
    capsys.readouterr()
    assert main(["label", "results", "--answers", "to_label.csv"]) == 4
    assert f"take it back first: --withdraw {first['row']}." in capsys.readouterr().err
    assert main(["label", "results", "--withdraw", first["row"]]) == 0
    assert "Withdrawn: 1 answer. The rows will be asked for again." in capsys.readouterr().out
    assert main(["label", "results", "--answers", "to_label.csv"]) == 0
    assert "Recorded: 1 new answer" in capsys.readouterr().out


def test_the_filled_table_can_be_fitted_again(made, place, capsys):
    main(["label", "results", "--next", "5"])
    fill(place / "to_label.csv", made[1])
    main(["label", "results", "--answers", "to_label.csv"])
    assert main(["label", "results", "--fill"]) == 0
    assert "filled.csv, the table with 5 answers in its target." in capsys.readouterr().out
    assert main(["label", "results", "--fill"]) == 2
    again = ["filled.csv" if word == "mails.csv" else word for word in FIT]
    assert main([*again, "--out", "again", "--json"]) == 0
    assert json.loads((place / "again" / "study.json").read_text())["data"]["n_labeled"] == 17


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 5, "nowhere has no study.json, so it is not a results folder."),
        (("empty",), 5, "empty has no study.json, so it is not a results folder."),
        (("results", "--next", "0"), 2, "--next: must be a whole number of at least 1, not '0'."),
        (("results", "--answers", "nowhere.csv"), 4, "There is no file nowhere.csv."),
        (("results", "--withdraw", "3"), 4, "Row 3 has no answer that could be withdrawn."),
    ],
)
def test_wrong_arguments(place, capsys, arguments, code, said):
    (place / "empty").mkdir()
    assert main(["label", *arguments]) == code
    assert said in capsys.readouterr().err
    assert not (place / "nowhere").exists()


@pytest.mark.parametrize("command", ["", "neverworse demo", "neverworse fit - --target kind"])
def test_results_whose_table_is_not_known(place, capsys, command):
    path = place / "results" / "study.json"
    study = replace(read_study(path.parent), command=command)
    path.write_text(json.dumps(study.to_dict()))
    assert main(["label", "results"]) == 5
    assert "are not known, or came from standard input" in capsys.readouterr().err


def test_two_at_once_do_not_lose_answers(place, capsys):
    with only_one(place / "results", lock=".labeling"):
        assert main(["label", "results", "--next", "1"]) == 1
    assert "Another run is writing to results." in capsys.readouterr().err


@pytest.fixture
def server(place):
    """Start the real command, and say where its page is."""
    started = []

    def start(*arguments):
        words = [*COMMAND, "label", "results", "--serve", "--no-browser", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, cwd=place, **pipes)
        started.append(process)
        found = re.fullmatch(
            r"Label here: http://127\.0\.0\.1:(\d+)(/\S+/)\n", process.stdout.readline()
        )
        return process, int(found[1]), found[2]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer_on_page(port, path, truth):
    """Answer the row that the page shows, as its script does."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    page = connection.getresponse().read().decode()
    row = int(re.search(r'id="asked" data-row="(\d+)"', page)[1])
    body = json.dumps({"row": row, "code": sorted(asked.CLASSES).index(truth[row - 1])})
    connection.request("POST", f"{path}answer", body, {"Origin": f"http://127.0.0.1:{port}"})
    assert connection.getresponse().status == 200
    connection.close()
    return row


@needs_signals
def test_a_killed_server_loses_nothing(made, place, server, capsys):
    process, port, path = server()
    rows = [answer_on_page(port, path, made[1]) for _ in range(3)]
    assert main(["label", "results"]) == 1
    assert "Another run is writing to results." in capsys.readouterr().err
    process.kill()
    process.wait()
    stored = json.loads((place / "results" / "labels.json").read_text())["labeling"]["answers"]
    assert [row for row, _ in stored] == rows
    assert main(["label", "results", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["standing"]["n_decide"] == 3
    other, port, another = server()
    assert another != path
    assert answer_on_page(port, another, made[1]) not in rows
    other.send_signal(signal.SIGINT)
    said = other.communicate(timeout=30)
    assert other.returncode == 130
    assert "neverworse label: stopped. " in said[1]
    assert "All answers are in results/labels.json." in said[1]
    assert files_in(place / "results")[0] == "certificate.json"


def test_a_port_that_is_in_use_or_none(place, capsys):
    with listening() as at:
        port = str(at.getsockname()[1])
        assert main(["label", "results", "--serve", "--no-browser", "--port", port]) == 1
        said = capsys.readouterr().err
        assert f"Port {port}: " in said
        assert "Choose another with --port N" in said
    assert main(["label", "results", "--serve", "--port", "65536"]) == 2
    assert (
        "--port: must be a whole number between 0 and 65535, not '65536'."
        in capsys.readouterr().err
    )
