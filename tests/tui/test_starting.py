"""From a plan to a run, where the engine that should have it is in trouble."""

from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process import engine_process, start_run
from accel_engine.process.engine_process import Installation
from accel_engine.process.warm_engine import EngineState
from tui.stand_ins import StubApp, StubEngine, shows, until


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs that a cold engine was started on."""
    started: list[Path] = []
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    monkeypatch.setattr(engine_process, "start_engine", started.append)
    return started


class BrokenEngine(StubEngine):
    """One whose pipe is broken, although it seems to be ready."""

    def train(self, directory: Path) -> None:
        self.state = EngineState.HANDED_OVER
        raise RunError(f"the engine has ended: nobody takes {directory}")


def test_where_a_warm_engine_has_just_ended_a_cold_one_is_started(cold: list[Path]) -> None:
    engine: Any = BrokenEngine(lambda: None)
    directory = start_run.prepare_run(Plan(), ())
    start_run.start_on_engine(directory, engine)
    assert cold == [directory]
    assert engine.closed


async def test_whatever_keeps_a_run_from_being_started_the_next_can_be(
    cold: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise BlockingIOError("no more processes")

    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "engine: ready")
        with monkeypatch.context() as patch:
            patch.setattr(start_run, "prepare_run", refuse)
            await pilot.press("s")
            await until(pilot, lambda: app.launch.problem, "the refusal")
        assert "no more processes" in app.launch.problem
        await shows(pilot, "no more processes")
        assert not app.launch.is_starting
        await pilot.press("s")
        await until(pilot, lambda: app.engines[0].handed, "the next start")
    assert cold == []
