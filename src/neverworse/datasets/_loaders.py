"""One loader for each data set of the paper, all made from the table of facts."""

from __future__ import annotations

import textwrap
from difflib import get_close_matches
from importlib import import_module
from inspect import cleandoc
from typing import Any, Protocol

from sklearn.utils import Bunch

from neverworse.datasets._prepare import Facts, read_facts
from neverworse.datasets._sources import find

FACTS = read_facts()
PAPER_DATASETS = tuple(FACTS)


class Loader(Protocol):
    """How every data set of the paper is loaded."""

    __name__: str

    def __call__(
        self,
        *,
        data_home: Any = None,
        return_X_y: bool = False,
        as_frame: bool = False,
        download_if_missing: bool = True,
    ) -> Any: ...


def load_paper_dataset(
    name: str,
    *,
    data_home: Any = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Load a data set of the paper by its name.

    Parameters
    ----------
    name : str
        One of `PAPER_DATASETS`, in upper or lower case.
    data_home : path, optional
        A folder that may have the file of the data set. The folder that the environment variable
        NEVERWORSE_DATA names and the user's cache are looked into as well.
    return_X_y : bool, default=False
        Whether to return features and targets only.
    as_frame : bool, default=False
        Whether features and targets are a DataFrame and a Series of pandas.
    download_if_missing : bool, default=True
        Whether OpenML may be asked for a set that it has and that is nowhere on this machine.

    Returns
    -------
    data : Bunch
        With `data` (n_rows, n_features), `target` (0 for the first class, 1 for the second),
        `target_names`, `feature_names`, `frame` (features and target, if `as_frame`), `name`,
        `DESCR`, `source` (where the data come from) and `tried` (sources before it, and why they
        were of no use). For sets of the book also `labeled_idx_10` and `labeled_idx_100`, the
        labeled rows of its 12 official splits, if the source has them.
        With `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If no source has the data set: the message says what was tried, and what helps.

    References
    ----------
    .. [1] Krijthe, J. H. and Loog, M. (2017). Projected estimators for robust semi-supervised
           classification. Machine Learning 106, 993-1008.

    Examples
    --------
    >>> from neverworse.datasets import load_paper_dataset
    >>> cancer = load_paper_dataset("WDBC")
    >>> cancer.data.shape, cancer.target_names
    ((569, 30), ['Malignant', 'Benign'])
    """
    facts = _facts_of(name)
    found = find(facts, data_home, download_if_missing)
    data: Any = found.data.X
    target: Any = found.data.y
    frame = None
    if as_frame:
        try:
            pd = import_module("pandas")
        except ImportError as error:
            raise ImportError("as_frame=True needs pandas. Run: pip install pandas") from error
        frame = pd.DataFrame(data, columns=found.data.feature_names).assign(target=target)
        data, target = frame[found.data.feature_names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        target_names=facts.target_names,
        feature_names=found.data.feature_names,
        name=facts.name,
        DESCR=describe(facts),
        source=found.source,
        tried=found.tried,
        **found.data.splits,
    )


def _facts_of(name: Any) -> Facts:
    names = {known.casefold(): known for known in FACTS}
    asked = str(name).casefold()
    if asked in names:
        return FACTS[names[asked]]
    near = get_close_matches(asked, names, n=1)
    hint = f"Did you mean {names[near[0]]!r}? " if near else ""
    raise ValueError(
        f"There is no data set {name!r} in the paper. {hint}It has {', '.join(PAPER_DATASETS)}."
    )


def describe(facts: Facts) -> str:
    """Return what there is to know of a data set, as text."""
    classes = " and ".join(
        f"{count} {name!r}" for name, count in zip(facts.target_names, facts.counts, strict=True)
    )
    # In the order in which they are tried.
    sources = [f"a file {facts.file}", *(f"the package {package}" for package in facts.packages)]
    if facts.openml is not None:
        sources.append(f"OpenML (data set {facts.openml})")
    paragraphs = [
        facts.about,
        f"{facts.n_rows} rows ({classes}), {facts.n_features} features.",
        f"Preparation: {facts.preparation}",
        f"Sources: {', or else '.join(sources)}.",
        f"Licence: {facts.licence}",
    ]
    text = "\n\n".join(textwrap.fill(paragraph, 92) for paragraph in paragraphs)
    reference = textwrap.fill(
        facts.citation, 92, initial_indent=".. [1] ", subsequent_indent="       "
    )
    return f"{facts.name}: {facts.title}\n\n{text}\n\nReferences\n----------\n{reference}\n"


def _loader(name: str) -> Loader:
    """Make the loader of one data set, with a signature and documentation of its own."""

    def load(
        *,
        data_home: Any = None,
        return_X_y: bool = False,
        as_frame: bool = False,
        download_if_missing: bool = True,
    ) -> Any:
        return load_paper_dataset(
            name,
            data_home=data_home,
            return_X_y=return_X_y,
            as_frame=as_frame,
            download_if_missing=download_if_missing,
        )

    load.__name__ = load.__qualname__ = f"load_{name.lower()}"
    load.__doc__ = _documentation(FACTS[name])
    return load


def _documentation(facts: Facts) -> str:
    """Return what there is to know of a data set, with parameters and results of all loaders."""
    title, rest = describe(facts).split("\n\n", 1)
    about, references = rest.split("References\n", 1)
    shared = cleandoc(load_paper_dataset.__doc__ or "").partition("data_home :")[2]
    shared = shared.partition("References\n")[0]
    return (
        f"Load {title}.\n\n{about}Parameters\n----------\ndata_home :{shared}"
        f"References\n{references}"
    )


load_bci = _loader("BCI")
load_coil2 = _loader("COIL2")
load_diabetes = _loader("Diabetes")
load_digit1 = _loader("Digit1")
load_g241c = _loader("g241c")
load_g241d = _loader("g241d")
load_haberman = _loader("Haberman")
load_ionosphere = _loader("Ionosphere")
load_mammography = _loader("Mammography")
load_parkinsons = _loader("Parkinsons")
load_sonar = _loader("Sonar")
load_spect = _loader("SPECT")
load_spectf = _loader("SPECTF")
load_transfusion = _loader("Transfusion")
load_usps = _loader("USPS")
load_wdbc = _loader("WDBC")
