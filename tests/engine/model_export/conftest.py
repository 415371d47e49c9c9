import pytest


@pytest.fixture(scope="session", autouse=True)
def laid_out(two_cpus: None) -> None:
    """These tests use TensorFlow."""
