"""Fixtures for trials that do not depend on time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from accel_engine.training.autotuning import autotuner, mode_choice
from accel_engine.training.autotuning.autotuner import AutoTuner
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ChunkResult, ExecutionMode


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as early as possible, and wait for it, so that the step of the trial does not depend on time."""
    monkeypatch.setattr(autotuner, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "WORTHWHILE_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "COMPILE_FACTOR", 0.0)
    monkeypatch.setattr(mode_choice, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(mode_choice, "TURN_CHUNKS", 1)
    compile_ = autotuner.LoopCompilation.__init__

    def wait(self: autotuner.LoopCompilation, *arguments: object, background: bool) -> None:
        del background
        compile_(self, *arguments, background=False)  # type: ignore[arg-type]
        self.seconds = 0.0

    monkeypatch.setattr(autotuner.LoopCompilation, "__init__", wait)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the rate that chunks in another mode than the plan's seem to have: with XLA, or in micro-batches.

    Those in the plan's have 100 steps per second.
    """

    def have(alternative: float) -> None:
        observe = AutoTuner.observe

        def with_rate(self: AutoTuner, chunk: ChunkResult, segment: Segment) -> None:
            rate = 100.0 if self.loop_for(segment).mode == ExecutionMode() else alternative
            observe(self, replace(chunk, seconds=chunk.count / rate), segment)

        monkeypatch.setattr(AutoTuner, "observe", with_rate)

    return have
