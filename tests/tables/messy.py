"""Small tables as people have them, with known truth: formats of many places, and of many habits.

`TABLES` holds them by name. Each is made from a seed: the class of every row is drawn first,
columns that carry signal depend on it, and most labels are hidden. Tables that are to be refused
say in which words.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field

import numpy as np

NBSP, NARROW = "\u00a0", "\u202f"


@dataclass(frozen=True)
class MessyTable:
    """A table, and what is known about it.

    Attributes
    ----------
    csv : bytes
        The file.
    target : str
        Column of the labels, empty in most rows.
    truth : tuple of str
        The class of every row.
    kinds : dict of str to str
        What every column but the target is read as, in the words of the print-out.
    options : tuple of str
        Words for the command line that it needs.
    look : frozenset of str
        Columns that people should look at.
    refused : str
        What the message says, if the table is to be refused with these options.
    """

    csv: bytes
    target: str
    truth: tuple[str, ...]
    kinds: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    look: frozenset[str] = frozenset()
    refused: str = ""


class _Maker:
    """Rows of some classes, and columns that depend on them."""

    def __init__(self, seed, n=240, classes=("no", "yes"), shares=None):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.codes = self.rng.choice(len(classes), n, p=shares)
        self.truth = tuple(classes[k] for k in self.codes)
        self.columns = []
        self.kinds = {}
        self.look = set()

    def signal(self, shift=1.5, scale=1.0, mean=0.0):
        """Numbers whose mean depends on the class."""
        return mean + scale * (self.rng.normal(size=self.n) + shift * self.codes)

    def noise(self, scale=1.0, mean=0.0):
        return mean + scale * self.rng.normal(size=self.n)

    def add(self, name, cells, kind, look=False):
        self.columns.append((name, list(cells)))
        self.kinds[name] = kind
        if look:
            self.look.add(name)

    def gaps(self, cells, word="", share=0.05):
        return [
            word if gap else c
            for c, gap in zip(cells, self.rng.random(self.n) < share, strict=True)
        ]

    def done(self, target="label", n_labeled=40, delimiter=",", encoding="utf-8", **about):
        kept = set(self.rng.permutation(self.n)[:n_labeled].tolist())
        for code in range(max(self.codes) + 1):  # of every class, there are two labels at least
            kept.update(np.flatnonzero(self.codes == code)[:2].tolist())
        labels = [label if k in kept else "" for k, label in enumerate(self.truth)]
        columns = [*self.columns, (target, labels)]
        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow([name for name, _ in columns])
        writer.writerows(zip(*(cells for _, cells in columns), strict=True))
        content = file.getvalue().encode(encoding)
        assert len(content) < 100_000
        return MessyTable(
            content, target, self.truth, self.kinds, look=frozenset(self.look), **about
        )


def _us(value, decimals=2):
    return f"{value:,.{decimals}f}"


def _german(value, decimals=2):
    return _us(value, decimals).translate(str.maketrans(",.", ".,"))


def _french(value, decimals=1, space=NARROW):
    return _us(value, decimals).replace(",", space).replace(".", ",")


def _days(made, first, span=900, shift=0):
    days = made.rng.integers(0, span, made.n) + shift * made.codes
    return (np.datetime64(first) + days).astype(object)


def us_sales():
    """Dollars, thousands, and dates with the month first."""
    made = _Maker(1)
    made.add(
        "revenue", (f"${_us(v)}" for v in made.signal(2, 900, 5000)), "numbers in $, thousands ','"
    )
    made.add("units", (_us(abs(v), 0) for v in made.signal(1, 800, 1500)), "numbers, thousands ','")
    made.add("sold", (f"{d:%m/%d/%Y}" for d in _days(made, "2019-06-01")), "dates month/day/year")
    zips = made.rng.choice(["02134", "01002", "10001", "60614", "94103"], made.n)
    made.add("zip", zips, "codes", look=True)
    made.add("member", made.rng.choice(["Yes", "No"], made.n), "yes/no")
    return made.done("churned")


def german_clinic(options=("--missing", "k.A."), **about):
    """Decimal commas, thousands with points, days first, ja and nein, and a word for gaps."""
    made = _Maker(2, classes=("gesund", "krank"))
    made.add(
        "Kosten",
        (_german(abs(v)) for v in made.signal(1.5, 9000, 20000)),
        "numbers, thousands '.', decimal ','",
    )
    made.add(
        "Wert",
        made.gaps([f"{v:.1f}".replace(".", ",") for v in made.signal(1.5, 2, 8)], "k.A."),
        "numbers, decimal ','",
    )
    made.add(
        "Schritte",
        (_german(abs(v), 0) for v in made.signal(1, 2000, 6000)),
        "numbers, thousands '.', decimal ','",
    )
    made.add(
        "Aufnahme", (f"{d:%d.%m.%Y}" for d in _days(made, "2020-01-01")), "dates day.month.year"
    )
    made.add("Raucher", made.rng.choice(["ja", "nein"], made.n), "yes/no")
    made.add(
        "PLZ", made.rng.choice(["01067", "50667", "80331", "10115"], made.n), "codes", look=True
    )
    made.add(
        "Anteil",
        (f"{v:.1f} %".replace(".", ",") for v in abs(made.noise(10, 40))),
        "percent, decimal ','",
    )
    return made.done("Befund", delimiter=";", encoding="utf-8-sig", options=options, **about)


def german_clinic_unsaid():
    """The same, but nobody said what the word for gaps is."""
    return german_clinic((), refused="k.A.")


def french_shop():
    """Narrow spaces for thousands, oui and non, percent, and euros behind the number."""
    made = _Maker(3, classes=("perdu", "resté"))
    made.add(
        "chiffre",
        (_french(abs(v)) for v in made.signal(1.5, 4000, 9000)),
        "numbers, thousands ' ', decimal ','",
    )
    made.add(
        "panier",
        (f"{_french(abs(v), 2, NBSP)}{NBSP}€" for v in made.signal(1, 300, 900)),
        "numbers in €, thousands ' ', decimal ','",
    )
    made.add(
        "remise",
        (f"{abs(v):.1f}{NBSP}%".replace(".", ",") for v in made.noise(2, 5)),
        "percent, decimal ','",
    )
    made.add("client", made.rng.choice(["oui", "non", "Oui"], made.n), "yes/no")
    made.add("visite", (f"{d:%d/%m/%Y}" for d in _days(made, "2021-03-01")), "dates day/month/year")
    return made.done("issue", delimiter=";")


def swiss_bank():
    """Apostrophes for thousands, and francs before the number."""
    made = _Maker(4, classes=("offen", "bezahlt"))
    made.add(
        "Betrag",
        (f"CHF {_us(v).replace(',', chr(39))}" for v in made.signal(2, 1500, 6000)),
        "numbers in CHF, thousands '''",
    )
    made.add(
        "Saldo",
        (_us(v).replace(",", "\u2019") for v in made.signal(1, 3000, 200)),
        "numbers, thousands '''",
    )
    made.add("Kanton", made.rng.choice(["ZH", "BE", "GE", "VD"], made.n), "categories")
    return made.done("Status")


def accounting():
    """Negative amounts in parentheses."""
    made = _Maker(5, classes=("sound", "failing"))
    for name, shift in (("result", -2.0), ("cash flow", -1.0)):
        values = made.signal(shift, 4000, 3000)
        made.add(
            name,
            (f"({_us(-v)})" if v < 0 else _us(v) for v in values),
            "numbers, thousands ',', (1) is -1",
        )
    made.add(
        "margin",
        (f"({-v:.1f})" if v < 0 else f"{v:.1f}" for v in made.signal(-1, 3, 2)),
        "numbers, (1) is -1",
    )
    return made.done("outlook")


def units():
    """Each column has its unit in its cells."""
    made = _Maker(6, classes=("light", "heavy"))
    made.add("weight", (f"{v:.1f} kg" for v in made.signal(2, 8, 65)), "numbers in kg")
    made.add("height", (f"{v:.0f}cm" for v in made.signal(1, 9, 170)), "numbers in cm")
    made.add("temperature", (f"{v:.1f} °C" for v in made.noise(0.5, 37)), "numbers in °C")
    made.add("pressure", (f"{v:.0f} mmHg" for v in made.signal(1, 12, 120)), "numbers in mmHg")
    return made.done("group")


def mixed_units():
    """Kilograms and grams in one column: nobody can guess that these are the same."""
    made = _Maker(7)
    values = made.signal(2, 0.8, 6)
    made.add(
        "weight",
        (f"{v:.2f} kg" if k % 3 else f"{1000 * v:.0f} g" for k, v in enumerate(values)),
        "",
    )
    return made.done(refused="kg")


def two_decimal_marks():
    """Half of a column has points, the other half commas."""
    made = _Maker(8)
    values = [f"{v:.2f}" for v in made.signal(2, 3, 20)]
    made.add("dose", (v if k % 2 else v.replace(".", ",") for k, v in enumerate(values)), "")
    return made.done(refused="dose")


def excel_export():
    """An index without a name, upper-case truth, and two empty columns at the end."""
    made = _Maker(9)
    made.add("", range(made.n), "dropped")
    made.add("Score", (f"{v:.3f}" for v in made.signal(2)), "numbers")
    made.add("Active", made.rng.choice(["TRUE", "FALSE"], made.n), "true/false")
    made.add("Since", (f"{d:%Y-%m-%d}" for d in _days(made, "2015-01-01", 2000)), "dates")
    table = made.done("Result", delimiter=";", encoding="utf-8-sig")
    lines = table.csv.decode("utf-8-sig").splitlines()
    content = "\r\n".join(f"{line};;" for line in lines).encode("utf-8-sig")
    return MessyTable(content, table.target, table.truth, table.kinds, look=frozenset({""}))


def windows_text():
    """Tabs and the code page of Windows, as older programs export text."""
    made = _Maker(10, classes=("schlecht", "gut"))
    made.add(
        "Größe",
        (f"{v:.1f}".replace(".", ",") for v in made.signal(2, 6, 170)),
        "numbers, decimal ','",
    )
    made.add("Stadt", made.rng.choice(["Köln", "Düsseldorf", "Bonn"], made.n), "categories")
    made.add(
        "Preis",
        (f"{_german(abs(v))} €" for v in made.signal(1, 700, 2000)),
        "numbers in €, thousands '.', decimal ','",
    )
    return made.done("Urteil", delimiter="\t", encoding="cp1252", options=("--encoding", "cp1252"))


def zip_codes():
    """Codes that differ in what they say; one kind has leading zeros, and the other has not."""
    made = _Maker(11)
    codes = np.array(["01001", "01002", "02101", "03301", "20001", "30301", "60601", "90001"])
    made.add(
        "zip",
        codes[np.minimum(7, made.rng.integers(0, 6, made.n) + 2 * made.codes)],
        "codes",
        look=True,
    )
    made.add(
        "postcode", made.rng.choice([80331, 50667, 60311, 20095], made.n), "numbers", look=True
    )
    made.add("age", made.rng.integers(18, 90, made.n) + 6 * made.codes, "numbers")
    return made.done()


def spelled_in_many_ways():
    """Yes and no in two languages and all cases, and spaces around categories."""
    made = _Maker(12)
    yes, no = ["yes", "Yes", "YES", "ja", "y"], ["no", "No", "NO", "nein", " no "]
    agrees = made.rng.random(made.n) < np.where(made.codes, 0.8, 0.2)
    made.add("consent", (made.rng.choice(yes if a else no) for a in agrees), "yes/no")
    colours = made.rng.choice(["red", "red ", " blue", "blue", "green"], made.n)
    made.add("colour", colours, "categories")
    made.add("size", made.rng.choice(["S", "M", "L", "m"], made.n), "categories")
    made.add("x", (f" {v:.3f} " for v in made.signal(1.5)), "numbers")
    return made.done()


def sentinels():
    """Numbers and words that stand for gaps; the number is not said to be one."""
    made = _Maker(13)
    made.add(
        "lab",
        made.gaps([f"{v:.0f}" for v in made.signal(1.5, 10, 80)], "-999", 0.1),
        "numbers",
        look=True,
    )
    made.add("dose", made.gaps([f"{v:.1f}" for v in made.signal(1.5, 2, 9)], "n/a", 0.1), "numbers")
    made.add("visits", made.gaps(made.rng.poisson(3 + made.codes), "unknown", 0.1), "numbers")
    made.add("smoker", made.gaps(made.rng.choice(["yes", "no"], made.n), "unknown", 0.2), "yes/no")
    return made.done(options=("--missing", "unknown"))


def sentinels_said():
    """The same number is said to mark gaps, and written with decimals."""
    made = _Maker(14)
    made.add(
        "lab", made.gaps([f"{v:.1f}" for v in made.signal(1.5, 10, 80)], "-999.0", 0.1), "numbers"
    )
    made.add("count", made.gaps(made.rng.poisson(20 + 8 * made.codes), "-999", 0.1), "numbers")
    return made.done(options=("--missing", "-999"))


def ids():
    """A number of the row, a number of its own for each customer, and a code with zeros."""
    made = _Maker(15)
    made.add("row", range(1, made.n + 1), "dropped", look=True)
    made.add("customer_id", made.rng.permutation(90_000)[: made.n] + 10_000, "numbers", look=True)
    made.add(
        "account",
        (f"{k:08d}" for k in made.rng.permutation(9_999_999)[: made.n]),
        "dropped",
        look=True,
    )
    made.add("balance", (f"{v:.2f}" for v in made.signal(2, 500, 1000)), "numbers")
    return made.done()


def leak():
    """A column that was made from the target."""
    made = _Maker(16, classes=("stays", "leaves"))
    made.add(
        "reason given", np.where(made.codes == 1, "price", "none given"), "categories", look=True
    )
    made.add("calls", made.rng.poisson(2 + 2 * made.codes), "numbers")
    made.add("tenure", (f"{v:.1f}" for v in made.noise(10, 40)), "numbers")
    return made.done()


def hollow():
    """A constant, an empty column, and one that is mostly missing."""
    made = _Maker(17)
    made.add("country", ["DE"] * made.n, "dropped", look=True)
    made.add("remarks", [""] * made.n, "dropped", look=True)
    made.add(
        "second test",
        made.gaps([f"{v:.2f}" for v in made.signal(2)], "", 0.93),
        "numbers",
        look=True,
    )
    made.add("first test", (f"{v:.2f}" for v in made.signal(1.5)), "numbers")
    return made.done()


def free_text():
    """A sentence in every row, which is not used, and people are told."""
    made = _Maker(18, classes=("fine", "angry"))
    words = ["late", "box", "broken", "thanks", "quick", "rude", "lovely", "never", "again"]
    made.add(
        "comment",
        (" ".join(made.rng.choice(words, 7)) for _ in range(made.n)),
        "dropped",
        look=True,
    )
    made.add("stars", np.clip(np.rint(made.signal(-2, 0.8, 4.5)), 1, 5).astype(int), "numbers")
    made.add("waited", (f"{abs(v):.0f} min" for v in made.signal(1, 9, 20)), "numbers in min")
    return made.done("mood")


def many_categories():
    """Eighty places, of which half belong to each class more often."""
    made = _Maker(19, n=600)
    place = made.rng.integers(0, 40, made.n) + 40 * (
        made.rng.random(made.n) < 0.15 + 0.7 * made.codes
    )
    made.add("place", (f"place {k}" for k in place), "categories", look=True)
    made.add("x", (f"{v:.2f}" for v in made.signal(1)), "numbers")
    return made.done(n_labeled=80)


def fraud():
    """Two of a hundred payments are wrong, and can be told."""
    made = _Maker(20, n=1200, classes=("ok", "fraud"), shares=[0.98, 0.02])
    made.add(
        "amount",
        (f"${_us(abs(v))}" for v in made.signal(3.5, 400, 900)),
        "numbers in $, thousands ','",
    )
    made.add("distance", (f"{abs(v):.1f} km" for v in made.signal(2.5, 30, 40)), "numbers in km")
    made.add(
        "night", np.where(made.rng.random(made.n) < 0.15 + 0.5 * made.codes, "Y", "N"), "yes/no"
    )
    return made.done("verdict", n_labeled=400)


def same_names():
    """Two columns with one name."""
    made = _Maker(21)
    made.add("x", (f"{v:.2f}" for v in made.signal()), "numbers")
    made.add("x", (f"{v:.2f}" for v in made.signal()), "numbers")
    return made.done(refused="same name")


def four_classes():
    """Species of which all differ in two measures."""
    made = _Maker(22, n=320, classes=("ash", "birch", "elm", "oak"))
    made.add("leaf", (f"{v:.1f} cm" for v in made.signal(1.6, 1, 6)), "numbers in cm")
    made.add(
        "bark",
        (f"{v:.2f}".replace(".", ",") for v in made.signal(-1.3, 0.5, 4)),
        "numbers, decimal ','",
    )
    made.add(
        "seen", (f"{d:%d.%m.%Y}" for d in _days(made, "2022-04-01", 120)), "dates day.month.year"
    )
    return made.done("species", n_labeled=60, delimiter=";")


def noise():
    """Nothing says anything about the classes."""
    made = _Maker(23, n=300)
    for k in range(6):
        made.add(f"x{k}", (f"{v:.3f}" for v in made.noise()), "numbers")
    made.add("group", made.rng.choice(["a", "b", "c"], made.n), "categories")
    return made.done(n_labeled=60)


def undecided_dates(options=(), **about):
    """No day after the twelfth: nobody knows whether the month is first."""
    made = _Maker(24)
    days, months = made.rng.integers(1, 13, made.n), made.rng.integers(1, 13, made.n)
    made.add(
        "seen",
        (f"{d:02d}/{m:02d}/2020" for d, m in zip(days, months, strict=True)),
        "dates day/month/year",
    )
    made.add("x", (f"{v:.2f}" for v in made.signal(2)), "numbers")
    return made.done(options=options, **about)


def undecided_dates_refused():
    """The same, and nobody says what is first."""
    return undecided_dates(refused="--dates")


def moments():
    """Dates with a time, a time of the day, and two-digit years."""
    made = _Maker(25, classes=("on time", "late"))
    hours = made.rng.integers(0, 12, made.n) + 8 * made.codes
    days = _days(made, "2023-01-01", 300)
    made.add(
        "booked",
        (
            f"{d:%d.%m.%Y} {h:02d}:{m:02d}"
            for d, h, m in zip(days, hours, made.rng.integers(0, 60, made.n), strict=True)
        ),
        "dates day.month.year",
    )
    made.add(
        "due", (f"{d:%m/%d/%y}" for d in _days(made, "2023-02-01", 300)), "dates month/day/year"
    )
    made.add("opened", (f"{h:02d}:30:00" for h in made.rng.integers(6, 12, made.n)), "times of day")
    made.add("km", (f"{abs(v):.1f}" for v in made.signal(1.5, 20, 60)), "numbers")
    return made.done("arrival")


def rings():
    """One class surrounds the other: no line tells them apart, and other methods do."""
    made = _Maker(26, n=500, classes=("inner", "outer"))
    angle = made.rng.uniform(0, 2 * np.pi, made.n)
    radius = made.noise(0.35, 1) + 2.2 * made.codes
    made.add("east", (f"{v:.3f}" for v in radius * np.cos(angle)), "numbers")
    made.add("north", (f"{v:.3f}" for v in radius * np.sin(angle)), "numbers")
    return made.done(n_labeled=100)


def few_labels():
    """Twelve labels, many measures, and very many rows without a label."""
    made = _Maker(27, n=700)
    for k in range(10):
        made.add(f"x{k}", (f"{v:.2f}" for v in made.signal(0.9)), "numbers")
    return made.done(n_labeled=12)


def indian_lakhs():
    """Groups of two digits, rupees, and days first with dashes."""
    made = _Maker(28, classes=("repaid", "default"))

    def lakhs(value):
        lakh, rest = divmod(round(value), 100_000)
        return f"₹{lakh},{rest // 1000:02d},{rest % 1000:03d}"

    made.add(
        "income",
        (lakhs(v) for v in made.signal(-2, 90_000, 900_000)),
        "numbers in ₹, thousands ','",
    )
    made.add("opened", (f"{d:%d-%m-%Y}" for d in _days(made, "2018-01-01")), "dates day-month-year")
    made.add("rate", (f"{v:.2f}%" for v in made.signal(1, 1.5, 9)), "percent")
    return made.done("loan")


TABLES = {
    made.__name__: made()
    for made in (
        *(us_sales, german_clinic, german_clinic_unsaid, french_shop, swiss_bank, accounting),
        *(units, mixed_units, two_decimal_marks, excel_export, windows_text, zip_codes),
        *(spelled_in_many_ways, sentinels, sentinels_said, ids, leak, hollow, free_text),
        *(many_categories, fraud, same_names, four_classes, noise, undecided_dates_refused),
        *(moments, rings, few_labels, indian_lakhs),
    )
}
TABLES["dates_settled"] = undecided_dates(("--dates", "day-first"))
