"""Labels after a fit: what is asked, what is answered, and what is kept."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from neverworse import SequentialAudit, suggest_labels
from neverworse.study import FitSettings, asked_of, page, read_answers, write_questions
from neverworse.study.labeling import Predicted
from neverworse.tables import ModelFileError, ReadOptions, StoredTable, TableError
from tests.study.labeling import asked


@pytest.fixture
def case(made, opening):
    """How to open results, where they are, and the classes of all rows."""
    return opening, opening().folder, made[3]


def codes_of(folder):
    found = pyarrow.csv.read_csv(folder / "predictions.csv")
    rows = [int(name.removeprefix("'=")) + 1 for name in found.column("mail").to_pylist()]
    names = (
        found.column("prediction").to_pylist(),
        found.column("supervised_prediction").to_pylist(),
    )
    candidate, baseline = (
        np.array([asked.CLASSES.index(n.removeprefix("'")) for n in each]) for each in names
    )
    return rows, baseline, candidate


def answer(labeling, truth, rows):
    return labeling.record({row: truth[row - 1] for row in rows})


def test_rows_to_decide_are_those_of_a_sequential_audit_and_get_different_classes(case):
    opening, folder, truth = case
    labeling = opening()
    rows, baseline, candidate = codes_of(folder)
    # Sorted classes: '=spam' comes first.
    audit = SequentialAudit(
        *(Predicted(1 - codes, 2) for codes in (baseline, candidate)),
        np.arange(len(rows)),
        random_state=0,
    )
    while audit.verdict_ == "undecided":
        (position,) = audit.next(1)
        row = labeling.current([])
        assert (row, labeling.purpose(row)) == (rows[position], "decide")
        assert baseline[position] != candidate[position]
        answer(labeling, truth, [row])
        audit.record(position, sorted(asked.CLASSES).index(truth[row - 1]))
        assert labeling.standing().interval == audit.interval_ == labeling.history[-1]
    assert labeling.standing().verdict == audit.verdict_
    assert labeling.standing().n_decide == audit.n_labels_ == len(labeling.history) - 1
    assert labeling.current([]) is None


def test_the_verdict_is_true_when_all_rows_that_differ_have_labels(case):
    opening, folder, truth = case
    labeling = opening()
    while labeling.standing().verdict == "undecided":
        answer(labeling, truth, [labeling.current([])])
    rows, baseline, candidate = codes_of(folder)
    right = np.array([asked.CLASSES.index(truth[row - 1]) for row in rows])
    worse = (candidate != right).sum() > (baseline != right).sum()
    assert (labeling.standing().verdict == "candidate is worse") == worse
    low, high = labeling.standing().interval
    assert low <= (candidate != right).mean() - (baseline != right).mean() <= high


def test_a_batch_has_rows_to_decide_and_the_rows_that_training_needs_most(case, made):
    opening, _, _ = case
    labeling, table = opening(), made[2]
    questions = labeling.questions(20)
    decide = [row for row in questions if labeling.purpose(row) == "decide"]
    train = [row for row in questions if labeling.purpose(row) == "train"]
    assert len(decide) == labeling.standing().expected_labels
    assert len(questions) == len(set(questions)) == 20
    X = np.column_stack([table.column(f"x{k}") for k in range(8)])
    y = [-1 if label is None else int(label == "ham") for label in table.column("kind").to_pylist()]
    picked = [row + 1 for row in suggest_labels(X, y, 30).rows if row + 1 not in decide]
    assert train == picked[: len(train)]
    assert labeling.questions(20) == questions


def test_a_stopped_program_loses_nothing(case):
    opening, folder, truth = case
    labeling = opening()
    rows = labeling.questions(12)
    answer(labeling, truth, rows[:9])
    labeling.save()
    again = opening()
    assert again.answers == labeling.answers
    assert again.standing() == labeling.standing()
    assert again.history == labeling.history
    assert again.questions(4) == labeling.questions(4)
    assert [path.name for path in folder.glob(".labels*")] == []


def test_an_answer_for_training_counts_when_its_row_is_drawn_later(case):
    opening, folder, truth = case
    labeling = opening()
    draws = [labeling.current([])]
    rows, baseline, candidate = codes_of(folder)
    later = opening()
    every = [row for row, b, c in zip(rows, baseline, candidate, strict=True) if b != c]
    later._train = dict.fromkeys(every)  # all of them have been suggested
    answer(later, truth, [row for row in every if row != draws[0]])
    assert later.standing().n_decide == 0
    assert later.standing().n_train == len(every) - 1
    answer(later, truth, draws)
    assert later.current([]) is None
    assert later.standing().verdict != "undecided"
    assert later.standing().n_train < len(every) - 1


def test_skipped_rows_come_again_and_hold_back_those_behind_them(case):
    opening, _, truth = case
    labeling = opening()
    first = labeling.current([])
    labeling.skip(first)
    second = labeling.current([])
    assert second != first
    answer(labeling, truth, [second])
    assert labeling.standing().n_waiting == 1
    assert labeling.history[1] == labeling.history[0]
    seen = []
    for _ in range(5):
        seen.append(labeling.current([]))
        labeling.skip(seen[-1])
    assert first in seen
    answer(labeling, truth, [first])
    assert labeling.standing().n_waiting == 0


def test_withdrawing_takes_back_what_an_answer_has_changed(case):
    opening, _, truth = case
    labeling = opening()
    first, second = labeling.questions(2)
    answer(labeling, truth, [first])
    before = labeling.standing(), list(labeling.history)
    answer(labeling, truth, [second])
    assert labeling.history[-1] != labeling.history[-2]
    labeling.withdraw([second])
    assert (labeling.standing(), labeling.history) == before
    assert labeling.current([]) == second
    with pytest.raises(TableError, match=f"Row {second} has no answer that could be withdrawn"):
        labeling.withdraw([first, second])
    assert first in labeling.answers


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"first": "eggs"}, "has the class 'eggs', which no labeled row has. The classes are"),
        ({"other": "ham"}, "was not asked for. Which rows decide is drawn at random: labels of"),
        ({"known": "wrong"}, "before. If that was a mistake, take it back first: --withdraw"),
    ],
)
def test_answers_that_cannot_be_used_change_nothing(case, given, said):
    opening, _, truth = case
    labeling = opening()
    first, known, fine = labeling.questions(3)
    answer(labeling, truth, [known])
    wrong = next(name for name in asked.CLASSES if name != truth[known - 1])
    rows = {"first": first, "known": known, "other": 1}
    answers = {rows[row]: wrong if text == "wrong" else text for row, text in given.items()}
    before = dict(labeling.answers), labeling.standing()
    with pytest.raises(TableError, match=said.replace(".", r"\.")):
        labeling.record({fine: truth[fine - 1], **answers})
    assert (labeling.answers, labeling.standing()) == before


def test_the_same_answer_again_changes_nothing(case):
    opening, _, truth = case
    labeling = opening()
    row = labeling.current([])
    assert answer(labeling, truth, [row]) == 1
    before = labeling.standing()
    assert answer(labeling, truth, [row]) == 0
    assert labeling.standing() == before


def test_nothing_to_decide_where_both_models_say_the_same(tmp_path):
    table, truth = asked.mails()
    settings = dataclasses.replace(asked.SETTINGS, model="supervised")
    study = asked.results(tmp_path, table, settings)
    labeling = asked.opened(tmp_path, study, table, settings)
    standing = labeling.standing()
    assert standing.verdict == "nothing to decide"
    assert standing.decision.startswith("Nothing to decide: model.skops holds the supervised model")
    assert list(standing.reasons()) == []
    questions = labeling.questions(3)
    assert list(map(labeling.purpose, questions)) == ["train"] * 3
    answer(labeling, truth, questions)
    assert labeling.standing().n_train == 3
    same = dataclasses.replace(standing, model="projected")
    assert "gives all 188 unlabeled rows the class that the supervised model" in same.decision


def test_answers_of_an_earlier_fit_are_not_taken(case, made):
    opening, folder, _ = case
    opening().save()
    later = dataclasses.replace(made[1], made="2099-01-01T00:00:00+00:00")
    with pytest.raises(ModelFileError, match="has the answers of an earlier fit"):
        asked.opened(folder, later, made[2])


@pytest.mark.parametrize("content", ["{", "{}", '{"labeling": {}}', "[]"])
def test_damaged_answers_are_refused(case, content):
    opening, folder, _ = case
    (folder / "labels.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"labels.json is damaged"):
        opening()


def test_answers_that_do_not_go_with_the_predictions_are_refused(case):
    opening, folder, _ = case
    labeling = opening()
    labeling.save()
    path = folder / "predictions.csv"
    text = path.read_text()
    path.write_text(text.replace('"ham"', '"\'=spam"', 1))
    with pytest.raises(ModelFileError, match="The classifiers are not those that the audit began"):
        opening()
    path.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(ModelFileError, match=r"should have the predictions of 188 unlabeled rows"):
        opening()


def test_a_sheet_has_the_row_its_columns_an_empty_target_and_what_it_is_for(case, made):
    opening, folder, truth = case
    labeling, path = opening(), folder / "sheet.csv"
    questions = labeling.questions(12)
    write_questions(labeling, questions, path)
    sheet = pyarrow.csv.read_csv(path).to_pylist()
    assert list(sheet[0]) == ["row", "mail", *(f"x{k}" for k in range(8)), "kind", "question"]
    for line, row in zip(sheet, questions, strict=True):
        assert (line["row"], line["question"]) == (row, labeling.purpose(row))
        assert line["mail"] == f"'={row - 1}"
        assert line["x3"] == pytest.approx(made[2].column("x3")[row - 1].as_py())
        assert line["kind"] is None
    assert read_answers(labeling, path, ReadOptions()) == {}
    wanted = {row: truth[row - 1] for row in questions[:7]}
    # As a spreadsheet of another country stores it, in another order.
    lines = ["question;kind;row", *(f";{name};{row}" for row, name in wanted.items()), ";;5"]
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    assert read_answers(labeling, path, ReadOptions()) == wanted


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("row,colour\n1,ham\n", "has no column 'kind'. Fill in the file that --next has written"),
        ("line,kind\n1,ham\n", "has no column 'row'. Fill in"),
        ("row,kind\none,ham\n", "'one' is not a row number."),
        ("row,kind\n1,ham\n1,=spam\n", "Row 1 has two classes in"),
    ],
)
def test_sheets_that_cannot_be_used(case, tmp_path, content, said):
    path = tmp_path / "sheet.csv"
    path.write_text(content)
    with pytest.raises(TableError) as raised:
        read_answers(case[0](), path, ReadOptions())
    assert said in str(raised.value)


def test_names_of_the_table_are_not_mistaken_for_those_of_the_sheet(tmp_path):
    table, _truth = asked.mails()
    names = {"mail": "row", "x0": "question"}
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    settings = FitSettings(target="kind", id="row", alpha=0.0)
    study = asked.results(tmp_path, table, settings)
    labeling = asked.opened(tmp_path, study, table, settings)
    questions = labeling.questions(2)
    write_questions(labeling, questions, tmp_path / "sheet.csv")
    (line, _) = pyarrow.csv.read_csv(tmp_path / "sheet.csv").to_pylist()
    assert (line["row_"], line["question_"]) == (questions[0], "decide")
    assert line["row"] == f"'={questions[0] - 1}"


def test_whole_numbers_are_classes_however_they_are_spelled(tmp_path):
    table, _truth = asked.mails()
    k = table.column_names.index("kind")
    labels = [
        None if v is None else asked.CLASSES.index(v) for v in table.column("kind").to_pylist()
    ]
    table = table.set_column(k, "kind", pa.array(labels))
    study = asked.results(tmp_path, table)
    labeling = asked.opened(tmp_path, study, table)
    row, other = labeling.questions(2)
    labeling.record({row: " 1.0 ", other: "0"})
    assert labeling.answers == {row: 1, other: 0}
    with pytest.raises(TableError, match=r"'1\.5', which no labeled row has"):
        labeling.record({labeling.current([]): "1.5"})


def test_the_filled_table_has_all_answers(case, made):
    opening, _, truth = case
    labeling = opening()
    rows = labeling.questions(10)
    answer(labeling, truth, rows)
    before, after = made[2].column("kind").to_pylist(), labeling.filled().column("kind").to_pylist()
    assert [k + 1 for k in range(200) if before[k] != after[k]] == sorted(rows)
    assert all(after[row - 1] == truth[row - 1] for row in rows)
    assert labeling.filled().drop_columns("kind").equals(made[2].drop_columns("kind"))


def test_rows_of_tables_larger_than_memory(case, made, tmp_path):
    opening, folder, _ = case
    path = tmp_path / "mails.parquet"
    pyarrow.parquet.write_table(made[2], path, row_group_size=70)
    stored = dataclasses.replace(StoredTable.open([str(path)]), batch_rows=16)
    labeling, inside = asked.opened(folder, made[1], stored), opening()
    assert labeling.questions(20) == inside.questions(20)
    rows = [200, 1, 71, 70, 17, 16]
    assert labeling.cells(rows) == inside.cells(rows)
    with pytest.raises(TableError, match="larger than memory"):
        labeling.filled()


def test_what_is_stored_names_the_fit_and_its_files(case):
    opening, folder, _ = case
    opening().save()
    stored = json.loads((folder / "labels.json").read_text())
    assert stored["format"] == "neverworse sequential audit"
    assert stored["labeling"].keys() >= {"fit", "train", "answers"}


def test_a_few_of_many_rows_are_no_difference_of_zero(case):
    standing = dataclasses.replace(case[0]().standing(), interval=(-82e-6, 41e-6))
    assert "between \N{MINUS SIGN}0.0082 and +0.0041 percentage points" in " ".join(
        standing.reasons()
    )


def test_the_report_says_what_was_asked_by_which_rule_and_what_was_answered(case, made):
    labeling, truth = case[0](), case[2]
    study, folder = made[1], labeling.folder
    assert asked_of(folder, study) is None
    assert "What was asked" not in page(study)
    questions = labeling.questions(6)
    drawn = [row for row in questions if labeling.purpose(row) == "decide"]
    answer(labeling, truth, drawn[:2])
    labeling.save()
    found = asked_of(folder, study)
    assert found.standing == labeling.standing()
    assert list(found.history) == labeling.history
    rows = list(found.rows())
    assert [(int(row[0]), row[1]) for row in rows] == [(q, labeling.purpose(q)) for q in questions]
    for number, _, given, first, second, right in rows[:2]:
        assert given == truth[int(number) - 1]
        assert first != second
        assert right == ("supervised" if given == first else labeling.study.model.name)
    assert rows[2][2] == rows[-1][2] == rows[-1][3] == ""
    said = page(study, found)
    assert "drawn at random, without replacement, among the" in said
    assert f"To train, {len(found.train)} rows were suggested" in said
    assert found.picture["description"] in said
    assert "2 have an answer." in said
    other = dataclasses.replace(study, made="2001-01-01T00:00:00+00:00")
    assert asked_of(folder, other) is None


def test_the_top_of_the_report_says_what_labels_have_decided(case, made):
    labeling, study = case[0](), made[1]
    labeling.questions(6)
    labeling.save()
    found = asked_of(labeling.folder, study)
    assert "<h3>Undecided" in page(study, found)
    for verdict in ("candidate is not worse", "candidate is worse"):
        decided = dataclasses.replace(found.standing, verdict=verdict)
        top = page(study, dataclasses.replace(found, standing=decided)).split("<nav")[0]
        assert "<h3>Undecided" not in top
        assert "<h3>Decided" in top
        assert decided.decision.split(".")[0].replace("Decided: use", "<p>Use") in top


@pytest.mark.parametrize("part", ["standing", "history", "decide"])
def test_a_report_refuses_damaged_answers(case, made, part):
    labeling = case[0]()
    labeling.questions(2)
    labeling.save()
    path = labeling.folder / "labels.json"
    content = json.loads(path.read_text())
    content["labeling"][part] = [["?"]]
    path.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="is damaged"):
        asked_of(labeling.folder, made[1])
