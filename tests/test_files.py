"""Files are written whole or not at all, and by one program at a time."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neverworse._files import only_one, take_places, write_whole


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "table.md"
    path.write_bytes(b"old")
    write_whole(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_was_there_stays_if_writing_fails(tmp_path, error):
    path = tmp_path / "table.md"
    path.write_bytes(b"old")

    def write(file):
        file.write(b"half of the new")
        raise error

    with pytest.raises(error):
        write_whole(path, write)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_all_files_are_in_their_places(tmp_path, monkeypatch, number):
    names, came, replace = ["a", "b", "c"], [], Path.replace
    for folder in (tmp_path / "out", tmp_path / "new"):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(folder.name)

    def disturbed(self, target):
        moved = replace(self, target)
        if target.name == "a" and self != target:
            os.kill(os.getpid(), number)
        return moved

    def stop(number, _):
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    monkeypatch.setattr(Path, "replace", disturbed)
    try:
        with pytest.raises(KeyboardInterrupt):
            take_places(tmp_path / "out", names, tmp_path / "new")
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert came == [number]
    assert [(tmp_path / "out" / name).read_text() for name in names] == ["new"] * 3


def test_an_interrupted_start_of_a_thread_moves_nothing_behind_the_back(tmp_path, monkeypatch):
    start, replace = threading.Thread.start, Path.replace
    for folder in (tmp_path / "out", tmp_path / "new"):
        folder.mkdir()
        (folder / "a").write_text(folder.name)

    def interrupted(self):
        start(self)
        raise KeyboardInterrupt

    def slowly(self, target):
        time.sleep(0.2)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", slowly)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            take_places(tmp_path / "out", ["a"], tmp_path / "new")
    time.sleep(0.5)
    assert (tmp_path / "out" / "a").read_text() == "out"


def test_no_file_is_moved_if_an_old_one_is_open_on_windows(tmp_path, monkeypatch):
    names, replace = ["a", "b", "c"], Path.replace
    for folder in (tmp_path / "out", tmp_path / "new"):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(folder.name)

    def refused(self, target):
        if target.name == "b":
            raise PermissionError
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PermissionError):
        take_places(tmp_path / "out", names, tmp_path / "new")
    for folder in ("out", "new"):
        assert [(tmp_path / folder / name).read_text() for name in names] == [folder] * 3


@pytest.fixture(params=["as it is", "windows"])
def system(request, monkeypatch):
    """This system, or one with the locks of Windows, and files that stay while they are open."""
    if request.param == "as it is":
        return
    fcntl = pytest.importorskip("fcntl", reason="it is Windows already")
    files, unlink = [], Path.unlink

    def locking(file, *_):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError from None
        files.append(file)

    def is_open(path):
        for file in files:
            with contextlib.suppress(OSError):
                if os.path.samestat(path.stat(), os.fstat(file)):
                    return True
        return False

    def kept_if_open(self, **options):
        if is_open(self):
            raise PermissionError
        unlink(self, **options)

    windows = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr("neverworse._files.sys.platform", "win32")
    monkeypatch.setattr(Path, "unlink", kept_if_open)


def test_two_runs_at_once(system, tmp_path):
    with (
        only_one(tmp_path / "out"),
        pytest.raises(BlockingIOError, match="Another run is writing"),
        only_one(tmp_path / "out"),
    ):
        pass
    with only_one(tmp_path / "out"):
        pass


@pytest.mark.parametrize("leaves", ["a file", "nothing"])
def test_one_run_waits_for_the_other(tmp_path, leaves):
    folder, order = tmp_path / "new" / "out", []
    entered, started = threading.Event(), threading.Event()

    def first():
        with only_one(folder):
            entered.set()
            started.wait(10)
            order.append("first")
            if leaves == "a file":
                (folder / "results").touch()

    def second():
        entered.wait(10)
        started.set()
        with only_one(folder, wait=True):
            order.append("second")
            (folder / "others").touch()

    runs = [threading.Thread(target=run) for run in (first, second)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(20)
    assert order == ["first", "second"]
    left = {"others", "results"} if leaves == "a file" else {"others"}
    assert {path.name for path in folder.iterdir()} == left


def test_runs_that_leave_nothing_do_not_trip_over_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr("neverworse._files._PAUSE", 0.0)
    folder, inside, most = tmp_path / "new" / "newer" / "out", [], []

    def run(_):
        for _ in range(200):
            with only_one(folder, wait=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    with ThreadPoolExecutor(4) as runs:
        list(runs.map(run, range(4)))
    assert len(most) == 800
    assert max(most) == 1


@pytest.mark.parametrize("where", ["file", "link", "link/out"])
def test_a_folder_that_cannot_be_made_is_an_error(system, tmp_path, where):
    (tmp_path / "file").touch()
    if where != "file":
        if os.name == "nt":
            pytest.skip("not everybody may make links on Windows")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match=where.split("/")[0]), only_one(tmp_path / where, wait=True):
        pass


def test_a_run_that_died_blocks_nobody(tmp_path):
    code = "import os, sys; from pathlib import Path; from neverworse._files import only_one\n"
    code += "with only_one(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False, timeout=60)
    assert (tmp_path / "out" / ".lock").exists()
    with only_one(tmp_path / "out"):
        pass
    assert not (tmp_path / "out" / ".lock").exists()
