"""How the distinct texts of a column are read: as numbers, dates, or yes and no."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Mask, Vector

SPACES = "[\u00a0\u2007\u2009\u202f]"  # that do not break: all count as a space
CURRENCIES = (
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "INR", "JPY"),
    *("KRW", "MXN", "NOK", "NZD", "PLN", "SEK", "SGD", "TRY", "USD", "ZAR", "Fr\\.?", "Rs\\.?"),
)
DIGITS = r"[.,]?[0-9](?:[0-9.,' ]*[0-9.,])?"
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
    r" ?(?:(?P<half>[AaPp])\.?[Mm]\.?)?(?P<zone>Z|[-+][0-9]{2}:?[0-9]{2})?)?"
)
MONTHS = (  # in English, German, French and Spanish, as far as the first letters tell
    *("jan|ene|jän", "feb|fév|fev", "mar|mär|mrz|mae", "apr|avr|abr", "may|mai", "jun|juin"),
    *("jul|juil", "aug|aoû|aou|ago", "sep", "oct|okt", "nov", "dec|dez|déc|dic"),
)
GAP = r"(?:[.,]? |[-./])"  # beside the name of a month
YES = ("yes", "y", "true", "t", "ja", "j", "oui", "sí", "si", "sì", "sim", "wahr", "vrai")
NO = ("no", "n", "false", "f", "nein", "non", "não", "nao", "nee", "falsch", "faux")
THOUSANDS = ("", ",", ".", " ", "'")
DAY = 86_400.0  # seconds
ISO = "year-month-day"
PIVOT = 69  # of two-digit years, those from here on are of the last century, as in POSIX

KINDS = ("number", "category", "date", "yes/no", "drop")
ORDERS = {
    mark.join(fields): (mark, fields)
    for fields in (("day", "month", "year"), ("month", "day", "year"), ("year", "month", "day"))
    for mark in "./- "
}
WORDS = {"category": "categories", "date": "dates", "yes/no": "yes/no", "drop": "dropped"}
NATIVE_WORDS = {"bool": "true/false", "time": "times of day", "duration": "durations"}
ALLOWED: dict[str, tuple[Any, ...]] = {
    "kind": KINDS,
    "decimal": (".", ","),
    "thousands": THOUSANDS,
    "parentheses": (False, True),
    "order": ("", *ORDERS),
}


@dataclass(frozen=True)
class Reading:
    """What the cells of a column are, and how they are written."""

    kind: str
    decimal: str = "."  # before the decimals of a number
    thousands: str = ""  # between groups of digits
    unit: str = ""  # before or behind every number
    parentheses: bool = False  # whether a number in parentheses is negative
    order: str = ""  # of a date, such as "day.month.year"; as in ISO 8601 if empty
    native: str = ""  # the type that the column had when the model was fitted, if it was not text

    def __post_init__(self) -> None:
        for key, allowed in ALLOWED.items():
            if getattr(self, key) not in allowed:
                shown = ", ".join(map(repr, allowed))
                raise ValueError(f"{key} is one of {shown}, not {getattr(self, key)!r}")
        if self.thousands == self.decimal or not isinstance(self.unit, str):
            raise ValueError("thousands and decimal must differ, and unit must be text")

    @property
    def words(self) -> str:
        if self.kind != "number" or self._native in NATIVE_WORDS:
            return NATIVE_WORDS.get(self._native) or f"{WORDS[self.kind]} {self.order}".rstrip()
        parts = {
            "percent" if self.unit == "%" else f"numbers in {self.unit}": self.unit,
            "numbers": not self.unit,
            f"thousands '{self.thousands}'": self.thousands,
            "decimal ','": self.decimal == ",",
            "(1) is -1": self.parentheses,
        }
        return ", ".join(part for part, applies in parts.items() if applies)

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the plain reading of this kind."""
        default = vars(Reading(self.kind))
        return {k: v for k, v in vars(self).items() if k == "kind" or v != default[k]}

    def parse(self, values: pa.Array) -> Vector:
        """Return numbers, or days since 1970, of strings; NaN for those not written in this way."""
        values = normalised(values)
        if self.kind == "yes/no" or self._native == "bool":
            lower = pc.utf8_lower(values)
            meant = (("true", "1"), ("false", "0")) if self._native == "bool" else (YES, NO)
            yes, no = (_mask(pc.is_in(lower, pa.array(words))) for words in meant)
            return np.where(yes, 1.0, np.where(no, 0.0, np.nan))
        if self._native == "time":  # in seconds
            return DAY * days(pc.binary_join_element_wise("1970-01-01", values, " "), ISO)
        if self.kind == "date":
            return days(with_numbered_months(values), self.order or ISO, zoned="tz=" in self.native)
        found = Numbers(values)
        fits = _mask(pc.equal(found.units, self.unit)) & (self.parentheses | ~found.enclosed)
        return np.where(fits, found.floats(self.thousands, self.decimal), np.nan)

    @property
    def _native(self) -> str:
        """The native type without its unit and size."""
        return self.native.partition("[")[0].rstrip("3264")


CATEGORY, DATES, DROP, NUMBERS = map(Reading, ("category", "date", "drop", "number"))


def normalised(values: pa.Array) -> pa.Array:
    """Return text with one kind of space, apostrophe and minus, and none around it."""
    values = pc.replace_substring_regex(values.cast(pa.string()), SPACES, " ")
    values = pc.replace_substring(pc.replace_substring(values, "\u2019", "'"), "\u2212", "-")
    return pc.utf8_trim_whitespace(values)


class Numbers:
    """Parts of texts that are numbers; other texts have no body."""

    def __init__(self, values: pa.Array) -> None:
        found = pc.extract_regex(values, NUMBER)
        part = {field.name: pc.struct_field(found, field.name) for field in found.type}
        there = {name: _mask(pc.not_equal(cells, "")) for name, cells in part.items()}
        known = ~np.asarray(found.is_null())
        # A parenthesis has its partner; there is one sign, and one unit.
        known &= there["open"] == there["close"]
        known &= ~(there["sign"] & there["inner"]) & ~(there["before"] & there["after"])
        known &= ~(there["open"] & (there["sign"] | there["inner"]))
        units = pc.binary_join_element_wise(part["before"], part["after"], "")
        signs = pc.binary_join_element_wise(part["sign"], part["inner"], "")
        self.bodies = pc.if_else(pa.array(known), part["body"], pa.scalar(None, pa.string()))
        self.powers, self.enclosed = part["power"], there["open"]
        self.units = pc.fill_null(pc.utf8_trim_whitespace(units), "")
        self.negative = _mask(pc.equal(signs, "-")) | self.enclosed

    def fits(self, thousands: str, decimal: str) -> Mask:
        """Whether each value is a number with these marks, either of which it may lack."""
        whole = "[0-9]+" if not thousands else f"[0-9]+|{GROUPED[thousands]}"
        pattern = rf"^(?:(?:{whole})(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)$"
        return matches(self.bodies, pattern)

    def floats(self, thousands: str, decimal: str) -> Vector:
        """Return numbers with these marks; NaN for all others."""
        texts = pc.replace_substring(self.bodies, thousands, "") if thousands else self.bodies
        texts = pc.replace_substring(texts, decimal, ".")
        texts = pc.binary_join_element_wise(texts, self.powers, "")
        fits = pa.array(self.fits(thousands, decimal))
        texts = pc.if_else(fits, texts, pa.scalar(None, pa.string()))
        values: Vector = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return np.where(self.negative, -values, values)

    @cached_property
    def marks(self) -> dict[str, Mask]:
        """The marks that there are between digits, and which values have them."""
        found = {mark: _mask(pc.match_substring(self.bodies, mark)) for mark in ",.' "}
        return {mark: mask for mark, mask in found.items() if mask.any()}


def with_numbered_months(values: pa.Array) -> pa.Array:
    """Return normalised dates with numbers for names of months: "16 #1 2020" for 16-Jan-2020."""
    if matches(values, f"(?i){'|'.join(MONTHS)}").any():
        for number, names in enumerate(MONTHS, 1):
            pattern = rf"(?i)(?:^|{GAP})(?:{names})\p{{L}}{{0,6}}{GAP}"
            values = pc.replace_substring_regex(values, pattern, f" #{number} ")
        first = rf"^ (#[0-9]+ [0-9]{{1,2}})(?:st|nd|rd|th)?{GAP}"
        values = pc.replace_substring_regex(values, first, r"\1 ")
    return pc.utf8_trim_whitespace(values)


def days(values: pa.Array, order: str, *, zoned: bool = False) -> Vector:
    """Return days since 1970 of dates in this order, all or none with a time zone; else NaN."""
    mark, names = ORDERS[order]
    digits = "[0-9]{4}" if names[0] == "year" else "[0-9]{4}|[0-9]{2}"
    field = {
        "day": "(?P<day>[0-9]{1,2})",
        "month": ("#?" if mark == " " else "") + "(?P<month>[0-9]{1,2})",
        "year": f"(?P<year>{digits})",
    }
    pattern = f"[{mark}]".join(field[name] for name in names)
    found = pc.extract_regex(values, f"^{pattern}{TIME}$")
    if found.null_count == len(found):
        return np.full(len(found), np.nan)
    part = {each.name: pc.fill_null(pc.struct_field(found, each.name), "") for each in found.type}
    year, month, day, hour, minute = (
        _floats(part[name]).astype(np.int64) for name in ("year", "month", "day", "hour", "minute")
    )
    second = _floats(pc.replace_substring(part["second"], ",", "."))
    half = np.asarray(pc.utf8_lower(part["half"]))
    zone = pc.replace_substring(pc.replace_substring(part["zone"], "Z", "+0000"), ":", "")
    offset = _floats(zone)  # +0530 is five hours and a half
    offset = 60.0 * (np.trunc(offset / 100.0) * 60.0 + np.fmod(offset, 100.0))
    fits = (year > 0) & (month >= 1) & (month <= 12) & (day >= 1)
    fits &= (hour < 24) & (minute < 60) & (second < 60.0)
    fits &= np.asarray(pc.not_equal(zone, "")) == zoned
    fits &= (half == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    short = np.asarray(pc.equal(pc.utf8_length(part["year"]), 2))
    year = np.where(short, year + np.where(year < PIVOT, 2000, 1900), year)
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + (day - 1)
    fits &= dates < (months + 1).astype("datetime64[D]")
    seconds = 3600.0 * hour + 60.0 * minute + second - offset
    return np.where(fits, dates.astype(np.float64) + seconds / DAY, np.nan)


def _floats(texts: pa.Array) -> Vector:
    """Return numbers, 0 for empty text."""
    return np.asarray(pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.float64()))


def matches(values: pa.Array, pattern: str) -> Mask:
    """Return which values match a pattern."""
    return _mask(pc.match_substring_regex(values, pattern))


def _mask(found: pa.Array) -> Mask:
    """Return a mask that is false where nothing is known."""
    return np.asarray(pc.fill_null(found, False))
