import pytest

from tests.datasets.openml import OpenML


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch, tmp_path):
    """No test sees the data, caches or network of the machine that it runs on."""
    monkeypatch.delenv("NEVERWORSE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))

    def refuse(request, *args, **kwargs):
        raise AssertionError(f"a test asks for {request.full_url}")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)


@pytest.fixture
def openml(monkeypatch, nothing_of_this_machine):
    """A server that speaks as OpenML does, to which scikit-learn is led."""
    with OpenML() as server:
        monkeypatch.setattr("sklearn.datasets._openml.urlopen", server.urlopen)
        yield server
