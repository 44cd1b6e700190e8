"""One fit for all tests of labeling, and copies of its results."""

from __future__ import annotations

import shutil

import pytest

from tests.study.labeling import asked


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The results of a fit, its study, its table, and the classes of all rows."""
    folder = tmp_path_factory.mktemp("made")
    table, truth = asked.mails()
    return folder, asked.results(folder, table), table, truth


@pytest.fixture
def opening(made, tmp_path):
    """Opens results of its own, again and again."""
    folder, study, table, _ = made
    shutil.copytree(folder, tmp_path / "results")
    return lambda: asked.opened(tmp_path / "results", study, table)
