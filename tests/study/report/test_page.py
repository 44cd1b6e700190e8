"""report.html: one page, nothing else, and the numbers of the study."""

import dataclasses
import json
import re
import subprocess
import sys
import warnings
from functools import cache
from html.parser import HTMLParser

import pytest

from neverworse._words import number
from neverworse.pages import COLOURS
from neverworse.study._files import study_from
from neverworse.study._study import DecisionFacts, Estimate, Importance
from neverworse.study._verdict import ladder
from neverworse.study.report import page, write_report
from tests.study.report import studies

VOID = {"meta", "link"}
LONGEST_TABLE = 500
CERTIFICATE_NUMBERS = (
    "worst_case",
    "best_case",
    "penalty",
    "rounding_bound",
    "duality_gap",
    "n_labeled",
    "n_unlabeled",
    "n_one",
    "n_fractional",
)


def shown(content):
    """Return text as a browser shows it."""
    return " ".join(content.split())


class Reader(HTMLParser):
    """Reads a page as a browser would, and complains about what is not closed or not escaped."""

    def __init__(self, content):
        super().__init__()
        self.open, self.ids, self.addresses, self.tables, self.labels = [], [], [], [], []
        self.sections, self.section, self.numbers, self.titles, self.tags = {}, "", {}, [], set()
        self.feed(content)
        self.close()
        assert self.open == []
        self.sections = {key: shown(said) for key, said in self.sections.items()}

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.seen(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open
        self.seen(tag, attrs)

    def seen(self, tag, attrs):
        attributes = dict(attrs)
        assert len(attributes) == len(attrs)
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        self.tags.add(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        self.addresses += re.findall(r"url\((.*?)\)", attributes.get("clip-path", ""))
        self.labels += [attributes["aria-label"]] if tag == "svg" else []
        if tag == "section":
            self.section = attributes["id"]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "data":
            self.numbers.setdefault(self.section, {})[attributes["value"]] = ""
            self.value = attributes["value"]
        if tag == "title":
            self.titles.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"style", "script"} & set(self.open):
            return
        self.sections[self.section] = self.sections.get(self.section, "") + data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if "data" in self.open:
            self.numbers[self.section][self.value] += data
        if "title" in self.open:
            self.titles[-1] += data

    @property
    def text(self):
        return "".join(self.sections.values())

    def table(self, *head):
        (found,) = [table for table in self.tables if tuple(table[0][: len(head)]) == head]
        return found[1:]


@cache
def content_of(make):
    return page(make())


@pytest.fixture(params=list(studies.ALL))
def make(request):
    return studies.ALL[request.param]


def read(study):
    return Reader(page(study))


def test_the_page_needs_nothing_else(make):
    content = content_of(make)
    found = Reader(content)
    assert len(found.ids) == len(set(found.ids))
    for address in found.addresses:
        assert address == "data:," or address[1:] in found.ids, address
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", content)
    assert found.tags.isdisjoint({"iframe", "object", "embed", "img", "base", "form"})
    assert content.count("<script>") == 1
    style = re.search(r"<style>(.*?)</style>", content, re.S)[1]
    for part in ("prefers-color-scheme: dark", "@media print"):
        assert part in style
    for part in ("@import", "url("):
        assert part not in style
    assert not re.findall(r"\b(nan|None|inf)\b", found.text)


def test_numbers_are_those_of_the_certificate(make):
    study, found = make(), Reader(content_of(make))
    certificate = study.certificate
    shown = found.numbers["certificate"]
    for key in CERTIFICATE_NUMBERS:
        value = certificate[key]
        if certificate["reason"] and key in ("worst_case", "best_case"):
            continue  # both are 0, which says nothing
        assert repr(value) in shown, key
        if key != "duality_gap":
            assert shown[repr(value)].startswith(number(value))
    for value in certificate["supervised_loss"]:
        assert repr(value) in shown
    assert study.claim in found.sections["certificate"]
    assert study.certificate_words in found.sections["certificate"]


def test_all_colours_are_roles(make):
    drawn = "".join(re.findall(r"<svg.*?</svg>", content_of(make), re.S))
    classes = re.findall(r'class="([^"]*)"', drawn)
    used = {each for found in classes for each in found.split()}
    assert used <= {f"{kind}-{role}" for kind in "fs" for role in COLOURS}
    assert "f-projected" in used
    assert ("s-supervised" in used) or make is studies.nothing_improved
    assert not re.findall(r"\b(fill|stroke)=\"(?!none)", drawn)


def test_names_from_outside_are_text():
    found = Reader(content_of(studies.nasty))
    for name in studies.NASTY:
        for section in ("notes", "coefficients", "data", "reproduction"):
            assert shown(name) in found.sections[section], section
    assert studies.NASTY[0] in found.sections[""]
    assert any(studies.NASTY[1] in title for title in found.titles)
    assert any(studies.NASTY[1] in label for label in found.labels)
    assert f"score for {studies.NASTY[0]}" in found.sections["scores"]
    assert [row[0] for row in found.table("File")] == list(studies.NASTY)


def test_charts_say_what_they_show(make):
    found = Reader(content_of(make))
    assert len(found.labels) >= 2
    assert all(len(label) > 40 for label in found.labels)


@pytest.mark.parametrize("make", [studies.binary, studies.three_classes])
def test_shapes_have_titles(make):
    study, found = make(), Reader(content_of(make))
    assert "projected, 400 unlabeled rows: 0.131, between 0.111 and 0.151" in found.titles
    error = study.comparison.of("projected").numbers.error
    assert f"projected: {error.value:.3f}, between {error.low:.3f} and {error.high:.3f}" in (
        found.titles
    )
    assert (
        "projected: \N{MINUS SIGN}0.023, between \N{MINUS SIGN}0.035 and \N{MINUS SIGN}0.011"
        in found.titles
    )
    largest = max(study.coefficients, key=effect)
    assert sum(title.startswith(f"{largest.feature}") for title in found.titles) >= 2


def effect(each):
    return max(abs(each.projected_scaled), abs(each.supervised_scaled))


def test_changed_rows_and_their_counts():
    study, found = studies.not_guaranteed(), Reader(content_of(studies.not_guaranteed))
    rows = found.table("Row", "Supervised", "Projected")
    assert len(rows) == study.changes.n_changed
    for row, each in zip(rows, study.changes.rows, strict=True):
        assert row[:3] == [each.row, each.supervised, each.projected]
    assert f"For {study.changes.n_changed} of 400 unlabeled rows" in found.sections["changes"]


def test_weights_are_ordered_by_their_effect():
    study, found = studies.binary(), Reader(content_of(studies.binary))
    rows = found.table("Feature", "Supervised", "Projected")
    assert rows[0][0] == "intercept"
    weights = {each.feature: each for each in study.coefficients}
    effects = [effect(weights[row[0]]) for row in rows[1:]]
    assert effects == sorted(effects, reverse=True)
    for row in rows[1:]:
        assert row[1] == number(weights[row[0]].supervised)
        assert row[2] == number(weights[row[0]].projected)


def test_where_nothing_changed_nothing_is_shown_twice():
    found = Reader(content_of(studies.nothing_improved))
    assert "changes" not in found.ids
    heads = [table[0] for table in found.tables]
    assert ["Feature", "Weight", "Weight, per SD"] in heads
    assert ["Class", "Labeled", "Predicted"] in heads
    for section in ("certificate", "scores", "coefficients"):
        assert not re.search(r"between 0 and 0|dashed line|No weight", found.sections[section])
    both = studies.binary().unlabeled_curve
    same = dataclasses.replace(
        both,
        lines=tuple(
            dataclasses.replace(line, error=both.lines[0].error, loss=both.lines[0].loss)
            for line in both.lines
        ),
    )
    said = read(dataclasses.replace(studies.binary(), unlabeled_curve=same)).sections["curves"]
    assert "Unlabeled rows" not in said
    assert both.words in said


@pytest.mark.parametrize(
    ("make", "kind", "badge", "is_green"),
    [
        (studies.binary, "projected", "Never worse", True),
        (studies.nothing_improved, "nothing to gain", "Same as supervised", False),
        (studies.binary, "supervised", "Worse on held-out rows", False),
        (studies.binary, "stacked", "Likely better, not certain", False),
        (studies.binary, "another method", "Another method is better", False),
        (studies.not_guaranteed, "undecided", "Not guaranteed", False),
        (studies.not_guaranteed, "projected", "Better on held-out rows, not guaranteed", False),
    ],
)
def test_the_badge_is_green_only_for_a_projected_model_to_use(make, kind, badge, is_green):
    study = make()
    verdict = dataclasses.replace(study.verdict, kind=kind)
    content = page(dataclasses.replace(study, verdict=verdict))
    mood, word = re.search(r'<p class="verdict (\w+)">(.*?)</p>', content).groups()
    assert word == badge
    assert (mood == "good") == is_green


def test_the_verdict_comes_first(make):
    study, found = make(), Reader(content_of(make))
    said = found.sections[""]
    verdict = study.verdict
    assert verdict.headline in said
    assert verdict.quality is None or verdict.quality in said
    rungs = [sentence for rung in study.ladder for sentence in rung.words]
    for sentence in (*rungs, *verdict.reasons, *verdict.cautions, *verdict.advice):
        assert shown(sentence) in said


def test_rungs_say_what_is_known_and_candidates_how_far_to_go():
    study = studies.binary()
    content = page(study)
    rungs = re.findall(r'<li(?: class="(\w+)")?>\n<h3>(\w+) <span', content)
    assert rungs == [("certain", "Certain"), ("confident", "Confident"), ("undecided", "Undecided")]
    nothing = ladder("No.", False, None, "so it is.", model="x", n_differing=0, n_unlabeled=9)
    content = page(dataclasses.replace(study, ladder=nothing, confident=None))
    rungs = re.findall(r'<li(?: class="(\w+)")?>\n<h3>(\w+) <span', content)
    assert rungs == [("", "Certain"), ("", "Confident"), ("", "Undecided")]
    assert "Candidates of the stacked model" not in content
    found = Reader(page(study)).sections["model"]
    assert "random forest" in found
    assert "0.40" in found


def test_options_are_not_broken_at_their_hyphens():
    base = studies.binary()
    verdict = dataclasses.replace(base.verdict, advice=("Try --class-weight balanced.",))
    assert '<code class="option">--class-weight</code> balanced' in page(
        dataclasses.replace(base, verdict=verdict)
    )


@pytest.mark.parametrize("make", [studies.binary, studies.three_classes])
def test_numbers_of_held_out_rows(make):
    study, found = make(), Reader(content_of(make))
    model = study.model.name
    numbers, always = study.comparison.of(model).numbers, study.comparison.baseline
    rows = {row[0]: row[1:] for row in found.table("", model)}
    for title, key in (("Error", "error"), ("AUC", "auc"), ("Log loss", "log_loss")):
        each = getattr(numbers, key)
        shown = f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})"
        assert rows[title] == [shown, f"{getattr(always, key).value:.3f}"]
    assert ("Recall of malignant" in rows) == (make is studies.binary)
    matrix = found.table("True ↓  predicted →")
    for row, counts in zip(matrix, numbers.confusion, strict=True):
        assert [cell.split(" ")[0] for cell in row[1:]] == [
            f"{n:,.1f}".removesuffix(".0") for n in counts
        ]
    calibrated = "predicted 0.10: observed 0.18, between 0.10 and 0.26" in found.titles
    assert calibrated == (make is studies.binary)


def test_numbers_are_those_of_the_threshold_in_the_file():
    study = studies.binary()
    tested = dataclasses.replace(
        study.comparison.of("projected").numbers, error=Estimate(0.351, 0.3, 0.4)
    )
    decision = DecisionFacts("0.2", "malignant", 0.2, False, tested, ())
    model = dataclasses.replace(study.model, decision=decision)
    found = read(dataclasses.replace(study, model=model))
    row = found.table("", "projected")[0]
    assert row[:2] == ["Error", "0.351 (0.300 to 0.400)"]
    assert "Error on held-out rows35.1 %" in found.sections[""]
    assert (
        "The model in the file, with its threshold, compared with always predicting"
        in found.sections["numbers"]
    )
    assert "both at a threshold of 0.5" in found.sections["changes"]
    assert (
        "Rows are predicted to be of class malignant from a score of one half on, the dotted line, "
        "before the threshold and calibration of the model in the file." in found.sections["scores"]
    )
    assert "All are compared at a threshold of 0.5." in found.sections["comparison"]
    plain = Reader(content_of(studies.binary))
    assert (
        "class malignant from a score of one half on, the dotted line. The"
        in plain.sections["scores"]
    )
    assert "threshold" not in plain.sections["numbers"] + plain.sections["comparison"]


def test_the_class_that_is_looked_for_has_its_weights_drawn():
    base = studies.three_classes()
    one = dataclasses.replace(base.data, positive=base.data.classes[2].name)
    found = read(dataclasses.replace(base, data=one))
    said = found.sections["coefficients"]
    assert f"How much the score of {one.positive} rises" in said
    largest = sorted(
        (each for each in base.coefficients if each.class_name == one.positive),
        key=effect,
        reverse=True,
    )
    (drawn,) = [label for label in found.labels if label.startswith("weight per standard")]
    assert drawn.startswith(f"weight per standard deviation of the feature. {largest[0].feature}: ")
    assert drawn.count("projected") == len(largest)
    assert "How much the score of a class rises" in read(base).sections["coefficients"]


def test_charts_tell_the_weights_of_a_feature_apart():
    study = studies.wide_names()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", content_of(studies.wide_names))
    names = [text for text in texts if text.startswith("MEAN ")]
    assert len(names) == len(study.coefficients) == 18
    starts = {name.rpartition(", ")[2][:4] for name in names}
    assert starts == {each.name[:4] for each in study.data.classes}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (studies.binary, "Even an adversary who chose the labels"),
        (studies.nothing_improved, "it has the same weights"),
        (studies.not_guaranteed, "nothing proves it"),
    ],
)
def test_what_the_certificate_means(make, sentence):
    found = Reader(content_of(make))
    assert sentence in found.sections["meaning"]
    assert "It is not about accuracy." in found.sections["meaning"]


def with_certificate(study, **changed):
    return dataclasses.replace(study, certificate={**study.certificate, **changed})


@pytest.mark.parametrize(
    ("level", "sentence"),
    [
        (None, "These shares were given"),
        (0.95, "with a probability of at least 95.0 % if labels are missing completely at random"),
    ],
)
def test_what_is_assumed(level, sentence):
    base = studies.binary()
    assumptions = {
        **base.certificate["assumptions"],
        "class_prior": [["<b>", 0.3, 0.5]],
        "prior_level": level,
        "n_bounded": 17,
    }
    found = read(with_certificate(base, assumptions=assumptions, rows="unlabeled", penalty=2.5))
    said = found.sections["meaning"]
    assert sentence in said
    assert "Class <b> makes up between 30.0 % and 50.0 % of the unlabeled rows." in said
    assert "The labels of 17 unlabeled rows" in said
    assert "Nothing else is assumed" not in said
    assert "over the 400 unlabeled rows, plus the ridge penalty 2.5 ‖w‖² of the weights." in said
    assert "Nothing else is assumed" in Reader(content_of(studies.binary)).sections["meaning"]


def test_columns_that_matter_to_a_model_without_weights():
    columns = {f"column {k}": studies.around(0.3 / (k + 1), 0.05) for k in range(25)}
    study = dataclasses.replace(studies.binary(), importance=Importance("random forest", columns))
    found = read(study)
    words = "How much the Brier score of random forest on held-out rows rises"
    assert words in found.sections["importance"]
    assert "column 0: 0.300, between 0.250 and 0.350" in found.titles
    assert [row[0] for row in found.table("Column", "Rise of the Brier score")] == list(columns)
    assert "importance" not in Reader(content_of(studies.binary)).ids


def test_parts_that_are_not_there_are_left_out():
    study, found = studies.bare(), Reader(content_of(studies.bare))
    assert {"numbers", "curves", "comparison"}.isdisjoint(found.ids)
    assert study.notes[0] in found.sections["notes"]
    assert {"numbers", "curves", "comparison"} <= set(Reader(content_of(studies.binary)).ids)


def test_one_learning_curve_alone():
    found = read(dataclasses.replace(studies.binary(), unlabeled_curve=None))
    assert "More labels?" in found.sections["curves"]
    assert "More unlabeled rows?" not in found.sections["curves"]


def test_numbers_that_are_not_known():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(with_certificate(studies.binary(), duality_gap=None))
    assert "infinite" in found.sections["certificate"]
    tsvm = next(row for row in found.table("Method", "Error") if row[0] == "TSVM")
    assert tsvm[3:6] == ["\N{EN DASH}"] * 3  # it has no probabilities


def test_long_tables_say_where_the_rest_is():
    base = studies.binary()
    row = studies.not_guaranteed().changes.rows[0]
    changes = dataclasses.replace(base.changes, n_changed=100_000, rows=(row,) * 1000)
    found = read(dataclasses.replace(base, changes=changes))
    assert len(found.table("Row", "Supervised", "Projected")) == LONGEST_TABLE
    assert "The 500 first of 100,000; all are in predictions.csv." in found.sections["changes"]
    assert "Not on paper: 460 more rows" in found.sections["changes"]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_nouns_and_verbs_agree_with_their_numbers(n):
    base = studies.not_guaranteed()
    row, weight = base.changes.rows[0], base.coefficients[0]
    changes = dataclasses.replace(base.changes, n_changed=n, n_unlabeled=2, rows=(row,) * n)
    groups = tuple(dataclasses.replace(g, n_rows=n) for g in base.scores[0].groups)
    study = dataclasses.replace(
        base,
        changes=dataclasses.replace(changes, n_unlabeled=n) if n else changes,
        scores=(dataclasses.replace(base.scores[0], groups=groups),),
        coefficients=(weight,) * n,
        data=dataclasses.replace(
            base.data, n_rows=n, n_labeled=n, n_unlabeled=n, n_features=n, columns=()
        ),
        certificate={
            **base.certificate,
            "n_unlabeled": n,
            "assumptions": {**base.certificate["assumptions"], "n_bounded": n},
        },
        comparison=dataclasses.replace(base.comparison, n_unlabeled=n),
        unlabeled_curve=dataclasses.replace(base.unlabeled_curve, n_other=n, n_repeats=n),
    )
    found = read(study)
    text = " ".join([*found.sections.values(), *found.titles, *found.labels])
    nouns = ["row", "column", "feature", "weight", "label", "class", "repeat", "time"]
    one, some = "|".join(nouns), "|".join(f"{noun}e?s" for noun in nouns)
    wrong = rf"(?<![^\s(]){n} (?:(?:un)?labeled |more )?(?:{some if n == 1 else one})\b"
    assert re.findall(wrong, text) == []
    assert re.findall(r"(?<!and )\b1 (?:are|have|get|lie)\b", text) == []


def test_only_columns_that_became_features_are_counted():
    study = studies.binary()
    assert {each.kind for each in study.data.columns} == {"number", "target", "id"}
    assert "6 columns became 6 features." in Reader(content_of(studies.binary)).sections["data"]


def test_settings_are_shown_as_they_are():
    settings = {
        "alpha": 0.125,
        "alpha chosen by": "leave-one-out",
        "prior": None,
        "calibrate": True,
    }
    found = read(dataclasses.replace(studies.bare(), settings=settings))
    shown = "alpha0.125 alpha chosen byleave-one-out priornot set calibrateyes"
    assert shown in found.sections["reproduction"]
    assert found.numbers["reproduction"]["0.125"] == "0.125"


def test_large_studies_stay_small():
    content = page(studies.big())
    assert len(content.encode()) < 1_500_000
    assert len(Reader(content).table("Feature", "Class")) == LONGEST_TABLE


def test_the_same_study_gives_the_same_page():
    study = studies.binary()
    again = study_from(json.loads(json.dumps(study.to_dict())))
    assert page(again) == content_of(studies.binary)


def test_the_file_is_written_whole(tmp_path):
    half_a_pair = dataclasses.replace(studies.bare(), command="name \ud800")
    write_report(half_a_pair, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "name ?" in (tmp_path / "report.html").read_text("utf-8")


def test_importing_the_report_imports_no_charts():
    code = "import neverworse.study.report, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_proved_of_scores_is_not_proved_of_probabilities():
    study = studies.binary()
    found = read(study)
    said = found.sections["certificate"]
    assert "The guarantee is about the squared loss of scores" in said
    assert "Nothing is guaranteed about that of probabilities (Brier score)" in said
    assert "the scores clipped to [0, 1]" in said
    for key in ("probability_best_case", "probability_worst_case"):
        assert number(study.certificate[key]) in said


def test_a_penalty_that_is_not_the_baselines_is_said_to_matter():
    base = studies.binary()
    changed = with_certificate(base, penalty=0.0, supervised_penalty=3.0, penalty_share=1.06)
    assert (
        "106 % of the guaranteed improvement is due to that alone"
        in (read(changed).sections["meaning"])
    )
    assert "is due to that alone" not in read(base).sections["meaning"]
