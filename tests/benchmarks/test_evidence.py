"""The studies of evidence run, and go on where they ended."""

import pytest


@pytest.fixture
def run(load, tmp_path, capsys):
    def run(*arguments):
        out = tmp_path / "evidence.jsonl"
        assert load("evidence").main(["--datasets", "WDBC", "--out", str(out), *arguments]) == 0
        return capsys.readouterr().out, out

    return run


def test_suggested_labels_are_compared(run):
    text, out = run("--studies", "labels", "--repeats", "2")
    assert "| WDBC | 0." in text
    assert "of 1." in text
    assert len(out.read_text().splitlines()) == 2
    assert run("--studies", "labels", "--repeats", "3")[0].startswith("## labels")
    assert len(out.read_text().splitlines()) == 3  # the first two were there
