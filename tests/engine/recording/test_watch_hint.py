"""How to watch a run."""

import io
import sys

import pytest

from accel_engine.recording import watch_hint


def test_it_is_printed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    stream = io.TextIOWrapper(output)
    monkeypatch.setattr(sys, "stdout", stream)

    watch_hint.print_hint(None)

    assert output.getvalue() == b"there is no run yet: it begins with the training\n"
