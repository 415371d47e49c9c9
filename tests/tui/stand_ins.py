"""A machine and an engine for screen tests, and what a test sees and waits for."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from accel_engine.devices.device_types import Device, Inventory, Reading, Sample, UnavailableKind
from accel_engine.plan import Plan
from accel_engine.process.warm_engine import EngineState
from accel_engine.requests.describe_model import Description
from accel_engine.run import RunReader
from accel_tui.app import AccelApp
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from waiting import eventually

GIB = 1 << 30


def more(*sizes: tuple[int, int]) -> list[Any]:
    """Sizes at which a test takes the same way as at another: for the campaign."""
    return [pytest.param(size, marks=pytest.mark.campaign) for size in sizes]


MACHINE = Inventory(
    (Device("cpu:0", "cpu", "AMD EPYC 7B13", 16 * GIB, 4),),
    (UnavailableKind("gpu", "no NVIDIA driver"), UnavailableKind("tpu", "no TPU chip")),
)

READINGS = {
    "utilization": Reading(43.0, "%"),
    "memory_used": Reading(3.1 * GIB, "B"),
    "memory_total": Reading(16.0 * GIB, "B"),
    "load": Reading(1.2),
    **{f"core_{core}": Reading(25.0 * core, "%") for core in range(4)},
}


def sample(device: str = "cpu:0", readings: Mapping[str, Reading] = READINGS) -> Sample:
    return Sample(time.time(), device, readings)


class StubSampler:
    """Finds the machine that it is given, and reads it once."""

    def __init__(self, on_samples: Callable[[tuple[Sample, ...]], None], inventory: Inventory = MACHINE) -> None:
        self._on_samples = on_samples
        self.inventory = inventory

    def start(self) -> None:
        self._on_samples(tuple(sample(device.id) for device in self.inventory.devices))

    def stop(self) -> None: ...


class StubEngine:
    """An engine that counts what it is told to count, and notes what it is handed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.state = EngineState.IMPORTING
        self.versions = {"tensorflow": "2.21.0"}
        self.problem = ""
        self.description = Description(
            parameters=94_634,
            trainable=94_378,
            layers=14,
            saved=34_000,
            largest=34_000,
            operations=346,
            input_shape=(8, 8, 1),
            classes=10,
        )
        self.described: list[Plan] = []
        self.handed: list[Path] = []
        self.closed = False
        self.process = None

    def be(self, state: EngineState, problem: str = "") -> None:
        self.state, self.problem = state, problem
        self._on_change()

    def describe(self, plan: Plan) -> Description:
        self.described.append(plan)
        return self.description

    def train(self, directory: Path) -> None:
        self.handed.append(directory)
        self.state = EngineState.HANDED_OVER

    def close(self) -> None:
        self.closed = True


class StubApp(AccelApp):
    """The real app on stand-ins; its engines are kept, newest last."""

    NOTIFICATION_TIMEOUT = 600.0  # however late a test looks

    def __init__(self, open_run: Path | None = None, inventory: Inventory = MACHINE, *, ready: bool = True) -> None:
        self.engines: list[StubEngine] = []

        def make_engine(on_change: Callable[[], None]) -> Any:
            engine = StubEngine(on_change)
            if ready:
                engine.state = EngineState.READY
            self.engines.append(engine)
            return engine

        def make_sampler(on_samples: Callable[[tuple[Sample, ...]], None]) -> Any:
            return StubSampler(on_samples, inventory)

        super().__init__(open_run, make_engine=make_engine, make_sampler=make_sampler)


class BareApp(StubApp):
    """The app on an empty screen: the form takes a third of a second to open, which other screens can do without."""

    def get_default_screen(self) -> Screen[None]:
        return Screen()


async def begun(pilot: Pilot[None]) -> None:
    """Wait until all is there that comes by itself and has the screen laid out, or painted, once more."""
    app = pilot.app
    assert isinstance(app, StubApp)
    await until(pilot, lambda: app.can_list_runs and app.inventory and app.meters, "what comes by itself")
    await pilot.pause()


def text_of(pilot: Pilot[None]) -> str:
    """What is on screen, as text."""
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


async def until(pilot: Pilot[None], condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    await pilot.pause(0.01)
    await eventually(condition, lambda: f"{what}; on screen:\n{text_of(pilot)}", pilot.pause)


async def shows(pilot: Pilot[None], *words: str) -> None:
    """Wait for words to be on screen."""
    for word in words:
        await until(pilot, lambda word=word: word in text_of(pilot), repr(word))  # type: ignore[misc]


async def hides(pilot: Pilot[None], word: str) -> None:
    """Wait for words not to be on screen."""
    await until(pilot, lambda: word not in text_of(pilot), f"the end of {word!r}")


def followed(directory: Path) -> RunState:
    """A run as its screen has it."""
    with closing(RunReader(directory)) as reader:
        return apply_update(RunState(info=reader.info()), reader.poll())
