"""Try one source after the other, and say of each why it was of no use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from neverworse._extras import install
from neverworse.datasets._facts import Facts
from neverworse.datasets._folders import VARIABLE, data_folders, user_cache
from neverworse.datasets._openml import read_openml
from neverworse.datasets._packages import read_package
from neverworse.datasets._prepare import Prepared, prepare
from neverworse.datasets._raw import Raw, read_file, write_csv

T = TypeVar("T")


class DataNotFoundError(OSError):
    """No source has a data set; the message says what was tried and what helps.

    Attributes
    ----------
    tried : tuple of (str, str)
        Every source, and why it was of no use.
    """

    def __init__(self, message: str, tried: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.tried = tried


@dataclass(frozen=True)
class Source(Generic[T]):
    """A place that may have a data set, and how to read it there."""

    name: str
    read: Callable[[], T]


@dataclass(frozen=True)
class Found(Generic[T]):
    """Data, where they come from, and which sources were of no use before."""

    data: T
    source: str
    tried: tuple[tuple[str, str], ...]


def first_that_has_it(name: str, sources: Iterable[Source[T]], what_helps: str) -> Found[T]:
    """Return what the first source gives that does not fail."""
    tried: list[tuple[str, str]] = []
    for source in sources:
        try:
            return Found(source.read(), source.name, tuple(tried))
        except Exception as error:  # a bad source must not keep from trying the next one
            tried.append((source.name, _reason(error)))
    lines = [f"  {source}: {reason}" for source, reason in tried]
    raise DataNotFoundError(
        "\n".join([f"The data set {name} was not found. Tried:", *lines, what_helps]), tuple(tried)
    )


def find(facts: Facts, data_home: Any, download_if_missing: bool) -> Found[Prepared]:
    """Find a data set of the paper, prepared and checked."""

    def source(name: str, read: Callable[[], Raw]) -> Source[Prepared]:
        return Source(name, lambda: prepare(read(), facts))

    sources = [
        source(str(folder / facts.file), partial(read_file, folder / facts.file, facts))
        for folder in data_folders(data_home)
    ]
    sources += [
        source(f"package {package}", partial(read_package, package, facts))
        for package in facts.packages
    ]
    if facts.openml is not None:
        read = (lambda: _download(facts)) if download_if_missing else _not_allowed
        sources.append(Source(f"OpenML, data set {facts.openml}", read))
    return first_that_has_it(facts.name, sources, _what_helps(facts, download_if_missing))


def put_file(file: str) -> str:
    """Say where a file can be put."""
    return (
        f"put {file} in {user_cache()}, or in a folder that data_home or the environment variable "
        f"{VARIABLE} names"
    )


def _download(facts: Facts) -> Prepared:
    raw = read_openml(facts)
    prepared = prepare(raw, facts)
    # If the cache is read-only or full, the data are there all the same, only slower next time.
    with suppress(OSError):
        write_csv(user_cache() / facts.file, raw, facts.columns)
    return prepared


def _not_allowed() -> Prepared:
    raise ConnectionError("not asked, since download_if_missing=False")


def _reason(error: Exception) -> str:
    """Return what went wrong, in one line."""
    said = " ".join(str(error).split())
    plain = isinstance(error, ValueError | OSError | ModuleNotFoundError) and said
    return said if plain else f"{type(error).__name__}: {said}"


def _what_helps(facts: Facts, download_if_missing: bool) -> str:
    if any(package != "sklearn" for package in facts.packages):
        return f"{install('paper')}. Or {put_file(facts.file)}."
    if not download_if_missing:
        return f"Pass download_if_missing=True. Or {put_file(facts.file)}."
    return f"Connect to the internet and try again. Or {put_file(facts.file)}."
