"""Pieces of HTML: what comes from outside is text, whatever it looks like."""

import base64
import hashlib
import re

import pytest

from neverworse.study.report import _html, _words


def test_text_is_escaped_and_markup_is_not():
    assert _html.text("<b>&") == "&lt;b&gt;&amp;"
    assert _html.text(_html.Markup("<b>")) == "<b>"
    assert _html.Markup("<b>") + "<i>" == "<b>&lt;i&gt;"
    assert isinstance(_html.Markup("") + "<i>", _html.Markup)


def test_attributes_are_escaped():
    made = _html.tag("a", "<x>", href='"><script>', class_="k", data_x=None)
    assert made == '<a href="&quot;&gt;&lt;script&gt;" class="k">&lt;x&gt;</a>'


def test_tables_name_their_rows_and_columns():
    made = _html.table("A & B", ["<h>", "n"], [["x", 1]], kind="sortable")
    assert '<th scope="col">&lt;h&gt;</th>' in made
    assert '<th scope="row">x</th><td class="number">1</td>' in made
    assert 'class="scroll sortable" tabindex="0" role="region" aria-label="A &amp; B"' in made


@pytest.mark.parametrize("script", ["", "let a = 1 < 2;"])
def test_the_policy_allows_what_is_in_the_page_and_nothing_else(script):
    made = _html.document("t", ["<p>x</p>"], "p { color: red }", script)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, name in (("style", "style-src"), ("script", "script-src")):
        found = re.search(f"<{kind}>(.*?)</{kind}>", made, re.S)
        assert (name in policy) == (found is not None)
        if found:
            digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
            assert f"{name} 'sha256-{digest}'" in policy


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (3, "3"),
        (-0.5, "\N{MINUS SIGN}0.5"),
        (41.3349, "41.33"),
        (1234.6, "1,235"),
        (9999.7, "10,000"),
        (123456789.0, "123,456,789"),
        (0.000123456, "0.0001235"),
        (2.332e-11, "2.332e\N{MINUS SIGN}11"),
        (1e22, "1e22"),
        (float("nan"), "\N{EN DASH}"),
        (float("-inf"), "\N{MINUS SIGN}∞"),
    ],
)
def test_numbers(value, written):
    assert _words.number(value) == written


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.9999, "100 %"),
        (0.125, "12.5 %"),
        (0.0049, "0.49 %"),
        (-0.2, "\N{MINUS SIGN}20.0 %"),
        (0.00001, "<0.01 %"),
        (-0.00001, ">\N{MINUS SIGN}0.01 %"),
    ],
)
def test_percentages(share, written):
    assert _words.percent(share) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.5, "+0.500"),
        (-0.5, "\N{MINUS SIGN}0.500"),
        (0.0, "0.000"),
        (2e-5, "+2e\N{MINUS SIGN}5"),
        (float("nan"), "\N{EN DASH}"),
    ],
)
def test_differences_have_signs(value, written):
    assert _words.signed(_words.decimal(value)) == written


def test_sizes_of_files():
    assert _words.size(999) == "999 bytes"
    assert _words.size(1234) == "1.23 kB"
    assert _words.size(5_000_000_000_000_000) == "5,000 TB"


def test_moments():
    assert _words.moment("2026-11-16T09:08:12+00:00") == "2026-11-16 09:08 UTC"
    assert _words.moment("2026-11-16T09:08:12+02:00") == "2026-11-16 09:08+0200"
    assert _words.moment("2026-11-16T09:08:12") == "2026-11-16 09:08"
    assert _words.moment("yesterday") == "yesterday"


def test_short_names_fit_on_a_line():
    assert _words.short("a\nb\t c\x00d", 20) == "a b c d"
    assert _words.short("x" * 10, 10) == "x" * 10
    assert _words.short("x" * 300, 10) == "x" * 8 + "…"
    assert len(_words.short("W" * 300, 10)) < len(_words.short("X" * 300, 10)) < 9
    assert len(_words.short("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 300, 10)) == 4
    assert _words.short("", 10) == ""
    assert _words.short("family 👩‍🔬", 20) == "family 👩‍🔬"


def test_numbers_carry_all_their_digits():
    assert _words.exact(1 / 3) == '<data value="0.3333333333333333">0.3333</data>'
