"""Numbers, words and names as people read them."""

from types import SimpleNamespace

import pytest

from neverworse._words import (
    card,
    change,
    count,
    decimal,
    interval,
    listed,
    moment,
    number,
    percent,
    short,
    signed,
    size,
)


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
    assert number(value) == written


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
    assert percent(share) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.5, "+0.500"),
        (-0.5, "\N{MINUS SIGN}0.500"),
        (0.0, "0.000"),
        (2e-5, "+2e\N{MINUS SIGN}5"),
        (-2.8e-16, "0.000"),  # of a sum in another order
        (float("nan"), "\N{EN DASH}"),
    ],
)
def test_differences_have_signs(value, written):
    assert signed(decimal(value)) == written


def test_sizes_of_files():
    assert size(999) == "999 bytes"
    assert size(1234) == "1.23 kB"
    assert size(5_000_000_000_000_000) == "5,000 TB"


def test_moments():
    assert moment("2026-11-16T09:08:12+00:00") == "2026-11-16 09:08 UTC"


def test_short_names_fit_on_a_line():
    assert short("a\nb\t c\x00d", 20) == "a b c d"
    assert short("x" * 10, 10) == "x" * 10
    assert short("x" * 300, 10) == "x" * 8 + "…"
    assert len(short("W" * 300, 10)) < len(short("X" * 300, 10)) < 9
    assert len(short("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 300, 10)) == 4
    assert short("", 10) == ""
    assert short("family 👩‍🔬", 20) == "family 👩‍🔬"


def test_counts_agree_with_their_nouns():
    assert [count(n, "row") for n in (0, 1, 2, 12345)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "12,345 rows",
    ]


def test_lists_in_sentences():
    assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a and b", "a, b and c"]


def test_intervals():
    found = SimpleNamespace(value=0.25, low=-0.5, high=1.0)
    assert interval(found) == "0.250 (\N{MINUS SIGN}0.500 to 1.000)"
    assert interval(found, sign=True) == "+0.250 (\N{MINUS SIGN}0.500 to +1.000)"


def test_cards_escape_what_they_are_given():
    made = card("<t>", "#123456", "<x>", [("<n>", "<v>")])
    assert "<t>" not in made
    assert all(each in made for each in ("&lt;t&gt;", "&lt;x&gt;", "&lt;n&gt;", "&lt;v&gt;"))


def test_changes_below_what_is_shown_are_none():
    found = SimpleNamespace(value=0.021, low=0.01, high=0.03)
    assert change(found) == "changed by +2.1 points (95 % interval +1.0 to +3.0)"
    for tiny in (-2.8e-18, 0.0, 4e-4):
        assert change(SimpleNamespace(value=tiny, low=-0.01, high=0.01)) == (
            "did not change on average (95 % interval \N{MINUS SIGN}1.0 to +1.0 points)"
        )
