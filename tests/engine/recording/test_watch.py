"""When ``fit`` was left, as far as its frames tell."""

import sys
import threading
from types import FrameType

import pytest

from accel_engine.recording.script import ScriptWatch


def test_a_function_that_returns_while_its_callers_are_looked_at_is_no_end_of_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def callback() -> FrameType:
        return sys._getframe()

    def fit() -> tuple[ScriptWatch, bool]:
        watch, over = ScriptWatch(), callback()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "_current_frames", lambda: {threading.get_ident(): over})
            return watch, watch.left

    watch, left = fit()

    assert not left
    assert watch.left
