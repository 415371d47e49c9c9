"""Numbers for the tests of reports."""

import numpy as np
import pytest


@pytest.fixture
def numbers() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(7)
