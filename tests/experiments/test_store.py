"""Results survive whatever happens to the program and to its files."""

import zlib

import pytest

from neverworse.experiments._runner import Store

HEADER = {"experiment": "table", "seed": 0}
RECORDS = [{"method": "Supervised", "error": 0.1 + 0.2}, {"method": "ICLS", "error": 1e-17}]


@pytest.fixture
def said():
    return []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some" / "folder" / "WDBC.jsonl"


def store(path, said, header=HEADER):
    return Store(path, header, said.append)


def filled(path, said, n=3):
    new = store(path, said)
    for repeat in range(n):
        new.append(repeat, RECORDS)
    return path.read_bytes()


def test_what_was_stored_comes_back_to_the_last_bit(path, said):
    filled(path, said)
    again = store(path, said)
    assert again.repeats == dict.fromkeys(range(3), RECORDS)
    assert not said


def test_the_line_of_a_killed_program_is_dropped(path, said):
    content = filled(path, said)
    for cut in range(1, 40):
        path.write_bytes(content[:-cut])
        again = store(path, said)
        assert list(again.repeats) == [0, 1]
        again.append(2, RECORDS)
        assert path.read_bytes() == content
    assert not said


def test_a_damaged_line_costs_only_itself(path, said):
    content = filled(path, said)
    middle = content.index(b'"repeat": 1') + 30
    damaged = content[:middle] + b"9" + content[middle + 1 :]
    path.write_bytes(damaged)
    assert list(store(path, said).repeats) == [0, 2]
    (message,) = said
    assert "1 of 3 repeats are damaged" in message
    assert "WDBC.jsonl.damaged-1" in message
    assert path.with_name("WDBC.jsonl.damaged-1").read_bytes() == damaged
    said.clear()
    assert list(store(path, said).repeats) == [0, 2]
    assert not said


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"junk\nmore junk\n", b"00000000 {}\n"])
def test_a_file_of_something_else_is_set_aside(path, said, content):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert store(path, said).repeats == {}
    assert len(said) == 1
    assert "starting over" in said[0]
    assert path.with_name("WDBC.jsonl.damaged-1").read_bytes() == content


def test_results_of_something_else_are_not_reused(path, said):
    filled(path, said)
    assert store(path, said, {**HEADER, "seed": 1}).repeats == {}
    assert "made with another seed" in said[0]
    filled(path, said)
    assert path.with_name("WDBC.jsonl.damaged-2").exists()  # the first is still there


@pytest.mark.parametrize(
    "forged",
    [
        b"[]",
        b"7",
        b"{",
        b"[" * 100_000,
        b'{"repeat": 1}',
        b'{"repeat": [1], "records": []}',
        b'{"repeat": -1, "records": [{"method": "ICLS", "error": 0.1}]}',
        b'{"repeat": 1, "records": 3}',
        b'{"repeat": 1, "records": [3]}',
        b'{"repeat": 1, "records": []}',
        b'{"repeat": 1, "records": [{"method": "ICLS", "error": [1]}]}',
        b'{"repeat": 1, "records": [{"method": "Supervised", "error": "high"}]}',
        b'{"repeat": 1, "records": [{"method": "ICLS"}]}',
    ],
)
def test_a_line_with_a_right_checksum_may_still_be_wrong(path, said, forged):
    lines = filled(path, said).splitlines(keepends=True)
    lines[2] = b"%08x %s\n" % (zlib.crc32(forged), forged)
    path.write_bytes(b"".join(lines))
    assert list(store(path, said).repeats) == [0, 2]
    assert "1 of 3 repeats are damaged" in said[0]
    path.write_bytes(lines[2])
    assert store(path, said).repeats == {}


def test_repeats_may_have_more_records_than_others(path, said):
    new = store(path, said)
    for repeat in range(3):
        new.append(repeat, RECORDS * (1 + repeat))
    assert list(store(path, said).repeats) == [0, 1, 2]
    assert not said


def test_nothing_else_is_left_behind(path, said):
    filled(path, said)
    store(path, said)
    assert [file.name for file in path.parent.iterdir()] == ["WDBC.jsonl"]
