"""How the text of columns is understood: what is consistent is read, and nothing is guessed."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neverworse.tables import TableError
from neverworse.tables.preparation.columns import Column, recognise
from neverworse.tables.preparation.notation import ORDERS, Reading

NBSP, NARROW = "\u00a0", "\u202f"


def read(values, **hints):
    """What a column of values is read as, its numbers or days, and what is to be looked at."""
    reading, look = recognise(Column("c", pa.chunked_array([values])), **hints)
    parsed = None
    if reading is not None and reading.kind != "category":
        parsed = reading.parse(pa.array(values)).tolist()
    return reading, parsed, look


def refusal(values, **hints):
    with pytest.raises(TableError) as caught:
        read(values, **hints)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "words", "expected"),
    [
        (["1,892.5", "364", "3,046"], "numbers, thousands ','", [1892.5, 364, 3046]),
        (["1,234,567", "12"], "numbers, thousands ','", [1234567, 12]),
        (["5,3", "12,75"], "numbers, decimal ','", [5.3, 12.75]),
        (["0,125", "1,250"], "numbers, decimal ','", [0.125, 1.25]),
        (["63.123,68", "7,5"], "numbers, thousands '.', decimal ','", [63123.68, 7.5]),
        (["1.234.567", "89"], "numbers, thousands '.', decimal ','", [1234567, 89]),
        (["3,2 %", "14,0%"], "percent, decimal ','", [3.2, 14]),
        (["3.2 %", "-1 %"], "percent", [3.2, -1]),
        (["-.45", ".5 "], "numbers", [-0.45, 0.5]),
        ([",45 %", "1,5 %"], "percent, decimal ','", [0.45, 1.5]),
        (["$5,300.00", "-$12.5", "$-1"], "numbers in $, thousands ','", [5300, -12.5, -1]),
        (["US$ 5", "US$ 7.5"], "numbers in US$", [5, 7.5]),
        (["EUR 5,30", "EUR 7"], "numbers in EUR, decimal ','", [5.3, 7]),
        (["5,30 €", "1.007,00 €"], "numbers in €, thousands '.', decimal ','", [5.3, 1007]),
        (["5.3 kg", "70kg"], "numbers in kg", [5.3, 70]),
        (["5 mg/dl", "7.5 mg/dl"], "numbers in mg/dl", [5, 7.5]),
        (["12 m2", "7 m2"], "numbers in m2", [12, 7]),
        (["(5.3)", "5.3"], "numbers, (1) is -1", [-5.3, 5.3]),
        (["($1,200.50)", "$3"], "numbers in $, thousands ',', (1) is -1", [-1200.5, 3]),
        (["1 234,5", "7"], "numbers, thousands ' ', decimal ','", [1234.5, 7]),
        ([f"1{NBSP}234,5", "7"], "numbers, thousands ' ', decimal ','", [1234.5, 7]),
        ([f"1{NARROW}234", "7,5"], "numbers, thousands ' ', decimal ','", [1234, 7.5]),
        (["1'234.50", "1\u2019000.00"], "numbers, thousands '''", [1234.5, 1000]),
        (["\u22125.5", " 5.5 "], "numbers", [-5.5, 5.5]),
        (["12,34,567", "1,000"], "numbers, thousands ','", [1234567, 1000]),
        (["1,5e3", "2,5"], "numbers, decimal ','", [1500, 2.5]),
        (["yes", "No", "NO"], "yes/no", [1, 0, 0]),
        (["ja", "nein", "Yes ", "no"], "yes/no", [1, 0, 1, 0]),
        (["oui", "non"], "yes/no", [1, 0]),
        (["Y", "n"], "yes/no", [1, 0]),
    ],
)
def test_values_that_are_understood(values, words, expected):
    reading, parsed, look = read(values)
    assert reading.words == words
    assert parsed == expected
    assert look == ""


def test_a_decimal_comma_is_no_point():
    parsed = Reading("number", decimal=",").parse(pa.array(["5,3", "5.3"]))
    assert parsed[0] == 5.3
    assert np.isnan(parsed[1])


def days(*date):
    return (dt.datetime(*date) - dt.datetime(1970, 1, 1)) / dt.timedelta(1)


@pytest.mark.parametrize(
    ("values", "words", "expected"),
    [
        (["01/16/2020", "02/03/2020"], "month/day/year", [(2020, 1, 16), (2020, 2, 3)]),
        (["16/01/2020", "02/03/2020"], "day/month/year", [(2020, 1, 16), (2020, 3, 2)]),
        (["20.05.2021", "1.2.2021"], "day.month.year", [(2021, 5, 20), (2021, 2, 1)]),
        (["01.02.2021", "03.04.2021"], "day.month.year", [(2021, 2, 1), (2021, 4, 3)]),
        (["2021/05/20", "2021/1/2"], "year/month/day", [(2021, 5, 20), (2021, 1, 2)]),
        (["31-12-99", "01-01-05"], "day-month-year", [(1999, 12, 31), (2005, 1, 1)]),
        (["16 Jan 2020", "2 März 2021"], "day month year", [(2020, 1, 16), (2021, 3, 2)]),
        (["Jan 16, 2020", "October 2, 2021"], "month day year", [(2020, 1, 16), (2021, 10, 2)]),
        (["20.05.2021 14:30"], "day.month.year", [(2021, 5, 20, 14, 30)]),
        (["1/16/2020 2:30 PM"], "month/day/year", [(2020, 1, 16, 14, 30)]),
        (["1/16/2020 12:00 AM"], "month/day/year", [(2020, 1, 16)]),
        (["2020-01-31", "2021-12-01 06:00:30"], "", [(2020, 1, 31), (2021, 12, 1, 6, 0, 30)]),
    ],
)
def test_dates_that_are_understood(values, words, expected):
    reading, parsed, _ = read(values)
    assert reading.words == f"dates {words}".rstrip()
    assert parsed == pytest.approx([days(*date) for date in expected], abs=1e-9)


def test_a_date_that_may_be_two_is_not_guessed():
    values = ["01/02/2020", "03/04/2020"]
    assert "--dates day-first, or --dates month-first" in refusal(values)
    assert read(values, dates="month-first")[1] == [days(2020, 1, 2), days(2020, 3, 4)]
    assert read(values, dates="day-first")[1] == [days(2020, 2, 1), days(2020, 4, 3)]
    # What the column tells counts more than what is said about others.
    assert read(["01/16/2020", *values], dates="day-first")[0].order == "month/day/year"


def test_thousands_are_no_decimals():
    reading, parsed, look = read(["1,892", "364", "3,046"])
    assert (reading.words, parsed) == ("numbers, thousands ','", [1892, 364, 3046])
    assert "'1,892' is read as 1892. If that is wrong: --decimal ','." in look
    # Where other columns tell, there is no doubt.
    assert read(["1,892", "364"], decimal=".")[1:] == ([1892, 364], "")
    assert read(["1,892", "364"], decimal=",")[1:] == ([1.892, 364], "")
    _, parsed, look = read(["1.892 kg", "364 kg"])
    assert parsed == [1.892, 364]
    assert "--decimal ','" in look
    assert read(["1.892 kg", "364 kg"], decimal=",")[1:] == ([1892, 364], "")
    assert read(["6.317", "364"], decimal=",")[1] == [6317, 364]


@pytest.mark.parametrize("values", [["1,892", "12345"], ["1,234", "1.234"]])
def test_marks_that_nothing_tells_apart(values):
    assert f"has '{values[0]}', but also '{values[1]}': it is unclear" in refusal(values)
    assert read(values, decimal=".")[1][0] > 1000
    assert read(values, decimal=",")[1][0] < 2


@pytest.mark.parametrize(("values", "decimal"), [(["5,3", "12,75"], "."), (["5.3", "7"], ",")])
def test_a_decimal_mark_that_was_given_is_not_overruled(values, decimal):
    other = {".": ",", ",": "."}[decimal]
    said = refusal(values, decimal=decimal)
    assert (
        f"numbers such as {values[0]!r}, but the decimal mark of the table is '{decimal}'" in said
    )
    assert f"--decimal '{other}'" in said


KILOGRAMS = [f"{k} kg" for k in range(12)]
QUARTERS = [f"{k}.25" for k in range(12)]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["5,3", "4,2", "1,1", "k.A."], "'k.A.' in 1 of its rows, first in row 4. If that marks"),
        (["5.3", "4.2", "1.1", "k.A."], "'k.A.' in 1 of its rows, first in row 4. If that marks"),
        (
            ["3,2 %", "4,0 %", "?"],
            "missing values: --missing '?'; if the column is a category: --cat",
        ),
        ([*KILOGRAMS, "300 g"], "numbers such as '0 kg', but also '300 g' in 1 of its rows, first"),
        ([*KILOGRAMS, "300"], "numbers such as '0 kg', but also '300' in 1 of its rows, first"),
        ([*QUARTERS, "3,25"], "numbers such as '0.25', but also '3,25' in 1 of its rows, first"),
        (["16/01/2020", "17/01/2020", "01/18/2020"], "(day/month/year), but also '01/18/2020'"),
        (
            ["20.05.2021", "22.05.2021", "2021-05-21"],
            "'2021-05-21' in 1 of its rows, first in row 3",
        ),
        (["31.02.2021", "01.02.2021", "03.02.2021"], "also '31.02.2021' in 1 of its rows"),
        (["20.05.2021", "21.05.2021", "unknown"], "--missing 'unknown'"),
        (
            ["1.5", "2.5", "3.5", "5,5,5", "x"],
            "has numbers such as '1.5', but also '5,5,5', 'x' in 2 of its rows",
        ),
    ],
)
def test_columns_that_are_refused(values, words):
    assert words in refusal(values)


@pytest.mark.parametrize(
    "values",
    [
        ["18-25", "26-35", "65+"],
        ["A12", "A13", "B7"],
        ["1.2.3", "1.2.4", "1.10.0"],
        ["192.168.0.1", "10.0.0.1"],
        ["12 Main Street", "14 Elm Road", "3 High Lane", "9 Low Road", "8 Far Path"],
        ["T1", "T2"],
        ["yes", "no", "maybe"],
        ["1/2", "3/4"],
        ["low", "high"],
        ["0x10", "0x1f"],
    ],
)
def test_text_stays_text(values):
    assert read(values)[0] is None


@pytest.mark.parametrize(
    "values", [["01067", "50667"], ["007", "12", "0"], ["02134", "10001", "?"]]
)
def test_codes_are_categories(values):
    reading, _, look = read(values)
    assert reading == Reading("category")
    assert "leading zeros" in look
    assert "--columns" in look


def test_a_few_values_in_several_units_are_named():
    reading, _, look = read(["1st", "2nd", "3rd"])
    assert reading is None
    assert "'1st' and '2nd' are numbers in several units" in look


# Whatever is written in a convention is read back


def written(value, thousands, decimal, decimals):
    text = f"{abs(value):,.{decimals}f}"
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


CONVENTIONS = [
    (t, d) for d in ".," for t in ("", ",", ".", " ", NBSP, NARROW, "'", "\u2019") if t != d
]


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=8, unique=True),
    decimals=st.integers(0, 5),
    convention=st.sampled_from(CONVENTIONS),
    unit=st.sampled_from(["", "%", " %", "$", "€", " kg", "°C", "USD "]),
    parentheses=st.booleans(),
    said=st.booleans(),
)
def test_numbers_are_read_back(values, decimals, convention, unit, parentheses, said):
    thousands, decimal = convention
    exact = [float(f"{value}e-{decimals}") for value in values]
    texts = []
    for value in exact:
        text = written(value, thousands, decimal, decimals)
        text = f"{unit}{text}" if unit in ("$", "€", "USD ") else f"{text}{unit}"
        texts.append(text if value >= 0 else f"({text})" if parentheses else f"-{text}")
    if not said and twofold(texts):
        return
    reading, parsed, look = read(texts, decimal=decimal if said else None)
    assert reading.unit == unit.strip()
    assert parsed == exact
    assert look == ""


def twofold(texts):
    """Whether all marks are such that each of them may be before thousands or decimals."""
    bodies = [re.sub(r"[^0-9.,]", "", text) for text in texts]
    marked = [body for body in bodies if "." in body or "," in body]
    return all(re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", body) for body in marked) and any(marked)


@settings(deadline=None, max_examples=60)
@given(
    dates=st.lists(st.dates(dt.date(1000, 1, 1)), min_size=1, max_size=6, unique=True),
    order=st.sampled_from(sorted(ORDERS)),
)
def test_dates_are_read_back(dates, order):
    mark, fields = ORDERS[order]
    # With points the day is first, and two fields up to twelve could be either.
    assume(order != "month.day.year" or any(date.day > 12 for date in dates))
    form = {"year": "{:%Y}", "month": "{:%m}", "day": "{:%d}"}
    texts = [mark.join(form[each].format(date) for each in fields) for date in dates]
    _, parsed, _ = read(texts, dates=None if fields[0] == "year" else f"{fields[0]}-first")
    assert parsed == [days(date.year, date.month, date.day) for date in dates]


def test_readings_survive_as_dictionaries():
    readings = [
        Reading("number", ",", ".", "€", True),
        Reading("date", order="day.month.year"),
        Reading("yes/no"),
        Reading("category"),
        Reading("number"),
    ]
    for reading in readings:
        assert Reading(**reading.to_dict()) == reading
    assert Reading("number").to_dict() == {"kind": "number"}


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "numbers"},
        {"kind": "number", "decimal": ";"},
        {"kind": "number", "thousands": "."},
        {"kind": "number", "unit": 5},
        {"kind": "number", "parentheses": "yes"},
        {"kind": "date", "order": "day of month"},
        {"kind": "date", "order": 7},
    ],
)
def test_readings_that_make_no_sense(values):
    with pytest.raises((TypeError, ValueError)):
        Reading(**values)
