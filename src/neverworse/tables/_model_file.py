"""Save a fitted model in a file, and open such a file without ever running what it contains.

A model file is one of skops (a zip archive with a description of all objects in ``schema.json``
and their arrays beside it) with one member more: ``neverworse.json`` has facts about the model and
the SHA-256 of everything else, which finds changes, but is no signature. What keeps a file from
doing harm is in `neverworse.tables._trusted`.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import sklearn

from neverworse import __version__
from neverworse._files import write_whole
from neverworse._words import cropped, install, quoted
from neverworse.tables._errors import AGAIN, ModelFileError
from neverworse.tables._trusted import NOT_LISTED, checked_tree, is_trusted

FORMAT = 1
ARRAY = b"\x93NUMPY"  # how a file of an array begins
SCHEMA, FACTS = "schema.json", "neverworse.json"
OLDEST_SKOPS = "0.14"  # files could make those before 0.13 run code
OLDEST_PROTOCOL = 2  # skops reads older ones with other loaders, which are not on our lists
MAX_BYTES = 4 * 2**30  # bytes of all members, unpacked
FREE_BYTES, MAX_RATIO = 100 * 2**20, 100  # a member of more bytes must not shrink more than this
WITH_SKOPS = "Save the model with skops.io.dump(model, 'model.skops') where it was fitted."
DAMAGED = f"it is damaged, or changed since it was written. {AGAIN}"
PICKLE = b"\x80"  # followed by the version of the protocol


@dataclass(frozen=True)
class LoadedModel:
    """A model from a file.

    Attributes
    ----------
    model : estimator
        The fitted model.
    facts : dict
        What was saved with it; empty if it was not saved by neverworse.
    sha256 : str
        Of the file.
    note : str
        A sentence about versions, if they differ from those with which the model was saved.

    Examples
    --------
    See `save_model`.

    >>> from neverworse.tables import LoadedModel
    >>> LoadedModel("any model", {"made": "here"}, "ab12").facts
    {'made': 'here'}
    """

    model: Any
    facts: dict[str, Any]
    sha256: str
    note: str = ""


def save_model(
    model: Any, path: str | Path, *, facts: dict[str, Any] | None = None, compiled: bool = False
) -> str:
    """Save a fitted model, and return the SHA-256 of the file; `load_model` opens it.

    A `ModelFileError` says so if the model contains something that could not be opened again. The
    same model gives the same bytes, unless it contains a set of strings.

    Parameters
    ----------
    model : estimator
        A fitted model, usually a pipeline, of scikit-learn and neverworse.
    path : str or Path
        Where to write the file, which appears there only when it is complete.
    facts : dict, optional
        Further facts about the model, which must be JSON-serialisable.
    compiled : bool
        Whether the model may predict with compiled code, see `load_model`.

    Examples
    --------
    >>> import tempfile
    >>> from neverworse.tables import TableClassifier, load_model, save_model
    >>> table = {"age": [20, 30, 40, 50]}
    >>> clf = TableClassifier().fit(table, ["young", "young", None, "old"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sha256 = save_model(clf, f"{folder}/model.skops")
    ...     loaded = load_model(f"{folder}/model.skops")
    >>> print(loaded.model.predict(table))
    ['young' 'young' 'young' 'old']
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise ModelFileError(f"There is no folder {folder}. Make it, or name another.")
    skops = _skops()
    otherwise = "skops cannot write its contents, or cannot read them back."
    with refusing(f"This {type(model).__name__} cannot be saved", otherwise):
        # What cannot be opened again is known now.
        members, _ = _opened(unzipped(skops.dumps(model)), compiled)
    document = {
        "format": FORMAT,
        "neverworse": __version__,
        "scikit-learn": sklearn.__version__,
        "facts": facts or {},
        "members": {member: _sha256(contents) for member, contents in members.items()},
    }
    document["seal"] = _seal(document)
    contents = zipped(members | {FACTS: json.dumps(document, indent=1).encode()})
    write_whole(Path(path), lambda file: file.write(contents))
    return _sha256(contents)


def load_model(path: str | Path, *, compiled: bool = False, ours: bool = True) -> LoadedModel:
    """Open a file of `save_model`; a `ModelFileError` says why it is refused, if it is.

    Parameters
    ----------
    path : str or Path
    compiled : bool
        Whether to accept models that predict with compiled code of scikit-learn: trees,
        neighbours, kernel machines. Such code trusts the numbers in a file, so that a malicious
        one could crash the process. Pass True only if you know where the file comes from.
    ours : bool
        Whether to refuse other models of scikit-learn, saved with skops alone.

    Examples
    --------
    >>> from neverworse.tables import load_model
    >>> loaded = load_model("neverworse-fit/model.skops")  # doctest: +SKIP
    >>> loaded.model.predict(table)  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no file {path}. Give the model.skops of a fit.")
    _skops()
    facts: dict[str, Any] = {}
    what, note = f"{path} is refused", ""
    with refusing(what, DAMAGED):
        if path.stat().st_size > MAX_BYTES:
            raise ModelFileError(f"it is larger than {MAX_BYTES // 2**30} GiB.")
        contents = path.read_bytes()
        if contents.startswith(PICKLE):
            reason = "it is a pickle (of pickle or joblib), which could run any code when opened."
            raise ModelFileError(f"{reason} {WITH_SKOPS}")
        if not contents.startswith(b"PK"):
            raise ModelFileError(f"it is not a model file, which is a zip archive. {WITH_SKOPS}")
        members = unzipped(contents)
        if SCHEMA not in members:
            raise ModelFileError(f"it is a zip archive, but not a model of skops. {WITH_SKOPS}")
        if ours and FACTS not in members:
            raise ModelFileError("it was not written by neverworse. Give the model.skops of a fit.")
        if FACTS in members:
            document = _unsealed(members)
            facts, note = document["facts"], _note(document)
            what = f"{path}, written by neverworse {document['neverworse']}, is refused"
    with refusing(what, f"neverworse {__version__} cannot open what it describes. {AGAIN}"):
        _, model = _opened(members, compiled)
        if not hasattr(model, "predict"):
            raise ModelFileError(f"a {type(model).__name__} has no method predict. {WITH_SKOPS}")
    return LoadedModel(model, facts, _sha256(contents), note)


@contextmanager
def refusing(what: str, otherwise: str) -> Iterator[None]:
    """Turn every exception, as files can cause any, into a `ModelFileError`."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{what}: {error}") from None
    except Exception as error:
        raise ModelFileError(f"{what}: {otherwise}") from error


def _skops() -> ModuleType:
    """Return skops.io, if it is installed and safe."""
    try:
        import skops.io
        from packaging.version import Version
    except ImportError:
        raise ModelFileError(f"Model files need skops. {install('tables')}") from None
    if Version(skops.__version__) < Version(OLDEST_SKOPS):
        raise ModelFileError(f"skops {skops.__version__} is not safe. {install('tables')}")
    return skops.io


def _opened(members: dict[str, bytes], compiled: bool) -> tuple[dict[str, bytes], Any]:
    """Return those members of a file that were checked, and the model that they describe."""
    from skops.io._protocol import PROTOCOL

    tree, names = checked_tree(json.loads(members[SCHEMA]), compiled=compiled)
    protocol = tree.get("protocol")
    if type(protocol) is not int or not OLDEST_PROTOCOL <= protocol <= PROTOCOL:
        other = f"another skops (protocol {cropped(repr(protocol))})"
        raise ModelFileError(f"it was written by {other}. Upgrade both: pip install -U skops")
    arrays = {number: members.get(name, b"") for name, number in names.items()}
    # NumPy opens other formats as well, one of which is a zip archive of any size.
    if not all(array.startswith(ARRAY) for array in arrays.values()):
        raise ModelFileError(f"a part of it is missing, or is not an array. {AGAIN}")
    # skops reads what was checked, and nothing else that the file may contain.
    checked = {SCHEMA: json.dumps(tree).encode()} | arrays
    skops, archive = _skops(), zipped(checked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions of scikit-learn: a note says so once
        asked = skops.get_untrusted_types(data=archive)
        unknown = sorted(name for name in asked if not is_trusted(name, compiled=compiled))
        if unknown:
            raise ModelFileError(f"it contains {quoted(unknown)}, {NOT_LISTED}")
        return checked, skops.loads(archive, trusted=asked)


def _unsealed(members: dict[str, bytes]) -> dict[str, Any]:
    """Return the facts about the model, if nothing was changed since it was written."""
    document: dict[str, Any] = json.loads(members[FACTS])
    if document["format"] != FORMAT:
        other = f"format {document['format']!r} of neverworse {document['neverworse']}"
        here = f"this neverworse {__version__} reads format {FORMAT}"
        raise ModelFileError(f"it has {other}, and {here}. {install('tables', 'a newer clone')}")
    seal = document.pop("seal")
    found = {name: _sha256(data) for name, data in members.items() if name != FACTS}
    no_features = document["facts"].get("no_features", [])
    is_whole = found == document["members"] and seal == _seal(document)
    if not is_whole or not all(isinstance(name, str) for name in no_features):
        raise ModelFileError(DAMAGED)
    return document


def _note(document: dict[str, Any]) -> str:
    saved = f"neverworse {document['neverworse']} and scikit-learn {document['scikit-learn']}"
    here = f"neverworse {__version__} and scikit-learn {sklearn.__version__}"
    other = f"The model was saved with {saved}, and this is {here}: predictions may differ."
    return "" if saved == here else other


def _seal(document: dict[str, Any]) -> str:
    """Return the SHA-256 of everything in the document but the seal itself."""
    return _sha256(json.dumps(document, sort_keys=True).encode())


def _sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def unzipped(contents: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name, if they are as skops writes them."""
    with ZipFile(io.BytesIO(contents)) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise ModelFileError("two of its members have the same name.")
        for member in members:
            name, size = member.filename, member.file_size
            # Other methods unpack all of a member at once, however large it turns out to be.
            is_known = member.compress_type in (ZIP_STORED, ZIP_DEFLATED)
            if not name.isprintable() or {"/", "\\", ":"} & set(name) or not is_known:
                raise ModelFileError("its members are not named or compressed as skops does it.")
            if size > FREE_BYTES and size > MAX_RATIO * member.compress_size:
                raise ModelFileError(f"{name} would unpack to {size >> 20:,} MiB: an attack.")
        if sum(member.file_size for member in members) > MAX_BYTES:
            raise ModelFileError(f"unpacked, it is larger than {MAX_BYTES // 2**30} GiB.")
        return {member.filename: archive.read(member) for member in members}


def zipped(members: dict[str, bytes]) -> bytes:
    """Return an archive of these members, with the same bytes at any time of any day."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, contents in members.items():
            # Text shrinks to a tenth; numbers do not. Without a date, members are of 1980.
            method = ZIP_DEFLATED if name.endswith(".json") else ZIP_STORED
            archive.writestr(ZipInfo(name), contents, method)
    return buffer.getvalue()
