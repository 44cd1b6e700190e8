"""Zip archives from outside: read whole, or refused with a reason."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from neverworse.tables._errors import TableError

LARGEST = 4 * 2**30  # bytes of all members, unpacked
FREE, HIGHEST_RATIO = 100 * 2**20, 100  # a member of more bytes must not shrink more than this
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first moment that zip archives know
AGAIN = "Fetch it again from where it came, or fit the model again."
WITH_SKOPS = "Save the model with skops.io.dump(model, 'model.skops') where it was fitted."

_PICKLE = b"\x80"  # followed by the version of the protocol
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x04\x22M\x18", b"x\x01", b"x\x9c", b"x\xda")


class ModelFileError(ValueError):
    """A model file that is refused; the message says why, and what to do."""


@contextmanager
def refusing(what: str, otherwise: str) -> Iterator[None]:
    """Turn every error into a `ModelFileError`.

    Every one, as a file that somebody made up can bring zip, JSON, NumPy and scikit-learn to raise
    anything.

    Parameters
    ----------
    what : str
        What is refused; put before the reason of a `ModelFileError`.
    otherwise : str
        The message for all other errors.
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{what}: {error}") from None
    except Exception as error:
        raise ModelFileError(otherwise) from error


@contextmanager
def believing(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn what goes wrong while a model from a file is used into a `ModelFileError`.

    Its parts are of the right types, but a file that somebody changed may say anything in them.

    Parameters
    ----------
    what : str
        What could not be done, at the beginning of the message.
    *others : types of exceptions
        Which are left as they are.
    """
    kept: tuple[type[Exception], ...] = (ModelFileError, TableError, MemoryError, OSError, *others)
    try:
        yield
    except kept:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{what}: what the file says does not go together ({type(error).__name__}). {AGAIN}"
        ) from error


def read_file(path: Path) -> bytes:
    """Return the contents of a file that may be a zip archive."""
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder. Give a file, for example model.skops in it.")
    if not path.exists():
        raise ModelFileError(f"There is no file {path}. Check the name and the folder.")
    if not path.is_file():
        raise ModelFileError(f"{path} is no ordinary file. Give the file itself.")
    if path.stat().st_size > LARGEST:
        raise ModelFileError(f"{path} is larger than {LARGEST // 2**30} GiB, as no model is.")
    contents = path.read_bytes()
    if not contents:
        raise ModelFileError(f"{path} is empty. {AGAIN}")
    if contents.startswith(_PICKLE):
        raise ModelFileError(
            f"{path} is a pickle, of pickle or joblib. It could run anything when it is opened, so "
            f"it was not opened. {WITH_SKOPS}"
        )
    if contents.startswith(_COMPRESSED):
        raise ModelFileError(
            f"{path} is compressed, perhaps a pickle of joblib; it was not opened. {WITH_SKOPS}"
        )
    if not contents.startswith(b"PK"):
        raise ModelFileError(f"{path} is no model file, which is a zip archive. {WITH_SKOPS}")
    return contents


def unzipped(contents: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name, if they are few and small enough."""
    with ZipFile(io.BytesIO(contents)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) < len(names):
            raise ModelFileError("two of its members have the same name, as skops never writes.")
        for member in members:
            _check_member(member)
        if sum(member.file_size for member in members) > LARGEST:
            raise ModelFileError(f"unpacked, it is larger than {LARGEST // 2**30} GiB.")
        return {member.filename: archive.read(member) for member in members}


def _check_member(member: ZipInfo) -> None:
    if not member.filename.isprintable() or {"/", "\\", ":"} & set(member.filename):
        raise ModelFileError("a member has a path for a name, as skops never writes.")
    # The other methods unpack all of a member at once, however large it turns out to be.
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ModelFileError(f"{member.filename} is compressed in a way that skops does not use.")
    if member.file_size > FREE and member.file_size > HIGHEST_RATIO * member.compress_size:
        raise ModelFileError(
            f"{member.filename} would unpack to {member.file_size / 2**20:,.0f} MiB from "
            f"{member.compress_size / 2**20:,.1f}, which looks like an attack."
        )


def zipped(members: dict[str, bytes]) -> bytes:
    """Return an archive of these members, with the same bytes at any time of any day."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, contents in members.items():
            info = ZipInfo(name, LONG_AGO)
            # Text shrinks to a tenth; numbers do not.
            info.compress_type = ZIP_DEFLATED if name.endswith(".json") else ZIP_STORED
            archive.writestr(info, contents)
    return buffer.getvalue()
