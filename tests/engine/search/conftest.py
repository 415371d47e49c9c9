"""What tests of searches share."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna waits for the disk after each line of a journal, which no test needs: none loses its power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
