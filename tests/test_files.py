"""Files are written whole or not at all."""

import pytest

from neverworse._files import write_whole


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
