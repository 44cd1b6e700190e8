"""What tests of studies share."""

from __future__ import annotations

import pytest

from tests.study.fits import quickly


@pytest.fixture(scope="module")
def quick():
    with quickly():
        yield
