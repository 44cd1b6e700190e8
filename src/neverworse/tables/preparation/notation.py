"""How the text in the cells of a column is read: as numbers, dates, or yes and no.

All is done on the distinct values of a column, by PyArrow's kernels for text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import AnyArray, Mask, Vector

SPACES = "[\u00a0\u2007\u2009\u202f]"  # that do not break: all count as a space
CURRENCIES = (
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "INR", "JPY"),
    *("KRW", "MXN", "NOK", "NZD", "PLN", "SEK", "SGD", "TRY", "USD", "ZAR", "Fr\\.?", "Rs\\.?"),
)
DIGITS = r"[0-9][0-9.,' ]*[0-9.,]|[.,]?[0-9][.,]?"
NUMBER = (
    r"^(?P<open>\()? ?(?P<sign>[-+])? ?"
    rf"(?P<before>(?:[A-Za-z]{{0,3}}\p{{Sc}}|{'|'.join(CURRENCIES)}))? ?(?P<inner>[-+])?"
    rf"(?P<body>{DIGITS})(?P<power>[eE][-+]?[0-9]+)? ?"
    r"(?P<after>[^0-9 .,()'+-][^0-9()]{0,11}[23]?)?(?P<close>\))?$"
)
GROUPED = {  # a whole number of at least four digits; India groups by two before the last three
    ",": r"[1-9][0-9]{0,2}(?:,[0-9]{2,3})*,[0-9]{3}",
    **{mark: rf"[1-9][0-9]{{0,2}}(?:[{mark}][0-9]{{3}})+" for mark in ".' "},
}
TIME = (
    r"(?:(?:T|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2}(?:[.,][0-9]+)?))?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)
# Three fields with two marks between them. The first or the second may be the name of a month.
MONTH = "[A-Za-zäéûÄÉ]{3,9}"
DATE = (
    rf"^(?P<first>[0-9]{{1,4}}|{MONTH})\.?(?P<mark>[-./ ]) ?(?P<second_field>[0-9]{{1,2}}|{MONTH})"
    r"(?:st|nd|rd|th)?(?P<mark_2>\. |, |[-./ ])(?P<third>[0-9]{1,4})" + TIME + "$"
)
MONTHS = (  # in English, German, French and Spanish, as far as the first letters tell
    ("jan", "ene", "jän"),
    ("feb", "fév", "fev"),
    ("mar", "mär", "mrz", "mae"),
    ("apr", "avr", "abr"),
    ("may", "mai"),
    ("jun", "juin"),
    ("jul", "juil"),
    ("aug", "aoû", "aou", "ago"),
    ("sep",),
    ("oct", "okt"),
    ("nov",),
    ("dec", "dez", "déc", "dic"),
)
YES = frozenset(
    ("yes", "y", "true", "t", "ja", "j", "oui", "sí", "si", "sì", "sim", "wahr", "vrai")
)
NO = frozenset(("no", "n", "false", "f", "nein", "non", "não", "nao", "nee", "falsch", "faux"))
THOUSANDS = ("", ",", ".", " ", "'")
PIVOT = 69  # of two-digit years, those from here on are of the last century, as in POSIX

Kind = Literal["number", "date", "yes/no", "category"]


@dataclass(frozen=True)
class Reading:
    """What the cells of a column are, and how they are written."""

    kind: Kind
    decimal: str = "."  # before the decimals of a number
    thousands: str = ""  # between groups of digits
    unit: str = ""  # before or behind every number
    parentheses: bool = False  # whether a number in parentheses is negative
    order: str = ""  # of a date, such as "day.month.year"; as in ISO 8601 if empty

    def __post_init__(self) -> None:
        if self.kind not in ("number", "date", "yes/no", "category"):
            raise ValueError(f"unknown kind {self.kind!r}")
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal is '.' or ',', not {self.decimal!r}")
        if self.thousands not in THOUSANDS or self.thousands == self.decimal:
            raise ValueError(f"thousands is one of , . ' or a space, not {self.thousands!r}")
        if not isinstance(self.unit, str) or not isinstance(self.parentheses, bool):
            raise ValueError("unit is text, and parentheses is true or false")
        if self.order and self.order not in ORDERS:
            raise ValueError(f"order is such as 'day.month.year', not {self.order!r}")

    @property
    def plain(self) -> bool:
        """Whether any reader of text knows how to read this, given the decimal mark."""
        return self == Reading(self.kind, decimal=self.decimal)

    @property
    def words(self) -> str:
        if self.kind != "number":
            known = {"category": "categories", "yes/no": "yes/no"}
            return known.get(self.kind, f"dates {self.order}".rstrip())
        said = ["numbers"]
        if self.unit:
            said = ["percent" if self.unit == "%" else f"numbers in {self.unit}"]
        if self.thousands:
            said.append(f"thousands '{self.thousands}'")
        if self.decimal == ",":
            said.append("decimal ','")
        if self.parentheses:
            said.append("(1) is -1")
        return ", ".join(said)

    @property
    def shown(self) -> str:
        """The same, with an example where words leave open how a value is written."""
        if self.kind == "date":
            mark, fields = ORDERS[self.order or "year-month-day"]
            parts = {"day": "31", "month": "01", "year": "2026"}
            return f"{self.words} ({mark.join(parts[each] for each in fields)})"
        if self.kind != "number" or self.plain:
            return self.words
        return f"{self.words} ({f'1{self.thousands}234{self.decimal}5 {self.unit}'.rstrip()})"

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the plain reading of this kind."""
        default = vars(Reading(self.kind))
        return {k: v for k, v in vars(self).items() if k == "kind" or v != default[k]}

    def parse(self, values: pa.Array) -> Vector:
        """Return numbers, or days since 1970, of strings; NaN for those not written in this way."""
        values = normalised(values)
        if self.kind == "yes/no":
            yes, no = (_among(values, words) for words in (YES, NO))
            return np.where(yes, 1.0, np.where(no, 0.0, np.nan))
        if self.kind == "date":
            return Dates.find(values).days(self.order or "year-month-day")
        found = Numbers.find(values)
        fits = found.fits(self.thousands, self.decimal) & _mask(pc.equal(found.units, self.unit))
        if not self.parentheses:
            fits &= ~found.enclosed
        parsed = np.where(fits, found.floats(self.thousands, self.decimal), np.nan)
        if self.plain:  # what else Python knows: inf, and digits of other scripts
            for k in np.flatnonzero(~fits).tolist():
                parsed[k] = _float(values[k].as_py())
        return parsed


ORDERS = {
    mark.join(fields): (mark, fields)
    for fields in (("day", "month", "year"), ("month", "day", "year"), ("year", "month", "day"))
    for mark in "./- "
}


def normalised(values: pa.Array) -> pa.Array:
    """Return text with one kind of space, apostrophe and minus, and none around it."""
    values = pc.replace_substring_regex(values.cast(pa.string()), SPACES, " ")
    values = pc.replace_substring(pc.replace_substring(values, "\u2019", "'"), "\u2212", "-")
    return pc.utf8_trim_whitespace(values)


@dataclass(frozen=True)
class Numbers:
    """Distinct values, taken apart as numbers: those that are none have no body."""

    bodies: pa.Array
    powers: pa.Array
    units: pa.Array
    negative: Mask
    enclosed: Mask

    @classmethod
    def find(cls, values: pa.Array) -> Self:
        found = pc.extract_regex(values, NUMBER)
        part = {field.name: pc.struct_field(found, field.name) for field in found.type}
        there = {name: _mask(pc.not_equal(cells, "")) for name, cells in part.items()}
        known = ~np.asarray(found.is_null())
        # A parenthesis has its partner; there is one sign, and one unit.
        known &= there["open"] == there["close"]
        known &= ~(there["sign"] & there["inner"]) & ~(there["before"] & there["after"])
        known &= ~(there["open"] & (there["sign"] | there["inner"]))
        unit = pc.utf8_trim_whitespace(
            pc.binary_join_element_wise(part["before"], part["after"], "")
        )
        sign = pc.binary_join_element_wise(part["sign"], part["inner"], "")
        bodies = pc.if_else(pa.array(known), part["body"], pa.scalar(None, pa.string()))
        return cls(
            bodies,
            part["power"],
            pc.fill_null(unit, ""),
            _mask(pc.equal(sign, "-")) | there["open"],
            there["open"],
        )

    def fits(self, thousands: str, decimal: str) -> Mask:
        """Whether each value is a number with these marks, either of which it need not have."""
        whole = "[0-9]+" if not thousands else f"[0-9]+|{GROUPED[thousands]}"
        pattern = rf"^(?:(?:{whole})(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)$"
        return matches(self.bodies, pattern)

    def floats(self, thousands: str, decimal: str) -> Vector:
        """Return the numbers, of those that fit; whatever, of all others."""
        texts = self.bodies
        if thousands:
            texts = pc.replace_substring(texts, thousands, "")
        if decimal == ",":
            texts = pc.replace_substring(texts, ",", ".")
        texts = pc.binary_join_element_wise(texts, self.powers, "")
        fits = pc.match_substring_regex(
            texts, r"^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
        )
        texts = pc.if_else(fits, texts, pa.scalar(None, pa.string()))
        values: Vector = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return np.where(self.negative, -values, values)

    def marks(self) -> set[str]:
        """Return which marks there are between digits."""
        return {mark for mark in ",.' " if self.have(mark).any()}

    def common_units(self, chosen: Mask, most: int) -> list[str]:
        """Return the units that most of some values have, the most frequent first."""
        counted = self.units.filter(pa.array(chosen)).value_counts().to_pylist()
        return [each["values"] for each in sorted(counted, key=lambda e: -e["counts"])[:most]]

    def have(self, mark: str) -> Mask:
        """Whether each value has a mark between its digits."""
        return _mask(pc.match_substring(self.bodies, mark))


@dataclass(frozen=True)
class Dates:
    """Distinct values, taken apart as dates: those that are none have zeros."""

    first: AnyArray
    second: AnyArray
    third: AnyArray
    four_first: Mask
    four_last: Mask
    named: AnyArray  # which field is the name of a month: 1, 2, or 0 for none
    marks: AnyArray
    seconds: Vector  # of the day

    @classmethod
    def find(cls, values: pa.Array) -> Self:
        found = pc.extract_regex(values, DATE)
        part = {field.name: pc.struct_field(found, field.name) for field in found.type}
        names = ("first", "second_field")
        months = [_months(part[name]) for name in names]
        fields = [
            np.where(month > 0, month, _whole(part[name]))
            for name, month in zip(names, months, strict=True)
        ]
        named = np.where(months[0] > 0, 1, np.where(months[1] > 0, 2, 0))
        marks = np.array(pc.fill_null(part["mark"], "").to_pylist(), dtype=object)
        same = _mask(pc.equal(part["mark"], part["mark_2"]))
        known = (same | (named > 0)) & (fields[0] > 0) & (fields[1] > 0)
        known &= ~((months[0] > 0) & (months[1] > 0))
        marks[named > 0] = " "
        lengths = [pc.utf8_length(part[name]) for name in ("first", "third")]
        four = [_mask(pc.equal(length, 4)) for length in lengths]
        four[0] &= months[0] == 0
        known &= ~_mask(pc.equal(lengths[0], 3)) | (months[0] > 0)
        known &= ~_mask(pc.is_in(lengths[1], pa.array([1, 3]))) | four[0]
        known &= ~(four[0] & four[1])
        hour, minute = _whole(part["hour"]), _whole(part["minute"])
        half = pc.utf8_lower(pc.fill_null(part["half"], ""))
        afternoon, morning = (_mask(pc.starts_with(half, letter)) for letter in "pa")
        known &= (
            (hour < 24) & (minute < 60) & (~(afternoon | morning) | ((hour > 0) & (hour <= 12)))
        )
        hour = np.where(afternoon | morning, hour % 12 + 12 * afternoon, hour)
        text = pc.replace_substring(pc.fill_null(part["second"], ""), ",", ".")
        text = pc.if_else(pc.equal(text, ""), "0", text)
        second = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
        known &= second < 60.0
        return cls(
            np.where(known, fields[0], 0),
            np.where(known, fields[1], 0),
            np.where(known, _whole(part["third"]), 0),
            four[0] & known,
            four[1] & known,
            np.where(known, named, 0),
            np.where(known, marks, ""),
            3600.0 * hour + 60.0 * minute + second,
        )

    @property
    def known(self) -> Mask:
        known: Mask = self.first > 0
        return known

    def fits(self, order: str) -> Mask:
        """Whether each value has its fields in this order, with this mark."""
        mark, _ = ORDERS[order]
        fits: Mask = self.known & (self.marks == mark)
        if order.startswith("year"):
            return fits & self.four_first & (self.named != 1)
        other = 2 if order.startswith("month") else 1
        return fits & ~self.four_first & (self.named != other)

    def days(self, order: str) -> Vector:
        """Return days since 1970, NaN where a value is no date in this order."""
        _, names = ORDERS[order]
        field = dict(zip(names, (self.first, self.second, self.third), strict=True))
        year, month, day = field["year"], field["month"], field["day"]
        short = ~(self.four_first | self.four_last)
        year = np.where(short, year + np.where(year < PIVOT, 2000, 1900), year)
        fits = self.fits(order) & (year > 0) & (month >= 1) & (month <= 12) & (day >= 1)
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        ends = (months + 1).astype("datetime64[D]")
        dates = months.astype("datetime64[D]") + (day - 1)
        fits &= dates < ends
        return np.where(fits, dates.astype(np.float64) + self.seconds / 86_400.0, np.nan)


def _float(text: str) -> float:
    try:
        return np.nan if "_" in text else float(text)
    except ValueError:
        return np.nan


def _months(names: pa.Array) -> AnyArray:
    """Return the numbers of months from their names, 0 where there is none."""
    lower = pc.utf8_lower(pc.fill_null(names, ""))
    found = np.zeros(len(lower), dtype=np.int64)
    for number, starts in enumerate(MONTHS, 1):
        pattern = f"^(?:{'|'.join(starts)})"
        found[matches(lower, pattern)] = number
    return found


def _whole(texts: pa.Array) -> AnyArray:
    """Return whole numbers, 0 where there is none."""
    digits = pc.match_substring_regex(pc.fill_null(texts, ""), "^[0-9]+$")
    return pc.if_else(digits, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)


def _among(values: pa.Array, words: frozenset[str]) -> Mask:
    return _mask(pc.is_in(pc.utf8_lower(values), pa.array(sorted(words))))


def matches(values: pa.Array, pattern: str) -> Mask:
    """Return which values match a pattern."""
    return _mask(pc.match_substring_regex(values, pattern))


def _mask(found: pa.Array) -> Mask:
    """Return a mask that is false where nothing is known."""
    mask: Mask = np.asarray(pc.fill_null(found, False))
    return mask
