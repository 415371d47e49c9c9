"""The app on one run, as tests of its screen open it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from accel_engine.devices.device_types import Device, Inventory
from accel_tui.app import AccelApp
from accel_tui.app_protocol import Screens
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.screens.run_screen import RunScreen
from tui.stand_ins import StubApp, until

SMALL, WIDE = (80, 24), (120, 40)


class StillSampler:
    """A sampler of a machine on which nothing happens."""

    inventory = Inventory((Device("cpu:0", "cpu", "AMD EPYC 7B13"),))

    def start(self) -> None: ...

    def stop(self) -> None: ...


class RunApp(AccelApp):
    """The real app on a machine of stand-ins, that notes where it was sent and what it told."""

    def __init__(self, directory: Path) -> None:
        def no_engine(_: Callable[[], None]) -> Any:
            raise AssertionError("a run on screen needs no other engine")

        super().__init__(directory, make_engine=no_engine, make_sampler=lambda _: StillSampler())  # type: ignore[arg-type, return-value]
        self.went: list[str] = []
        self.resumed: list[tuple[Path, int | None]] = []
        self.told: list[str] = []
        self.launcher.continue_run = self._continue_run  # type: ignore[method-assign]

    def _continue_run(self, directory: Path, epochs: int | None = None) -> None:
        self.resumed.append((directory, epochs))

    def notify(self, message: str, **options: Any) -> None:
        self.told.append(message)
        super().notify(message, **options)

    def open_screen(self, screen: Screens, *subject: Any) -> None:
        if screen is Screens.RUNS:
            self.went.append("runs")
        else:
            super().open_screen(screen, *subject)


@asynccontextmanager
async def opened(directory: Path, size: tuple[int, int] = SMALL) -> AsyncIterator[Pilot[None]]:
    app = RunApp(directory)
    async with app.run_test(size=size) as pilot:
        yield pilot


def app_of(pilot: Pilot[None]) -> RunApp:
    assert isinstance(pilot.app, RunApp)
    return pilot.app


def screen_of(pilot: Pilot[None]) -> RunScreen:
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, RunScreen))


def told(pilot: Pilot[None]) -> str:
    """The words of all notifications, also of those that have gone since: some stay for three seconds only."""
    return " | ".join(app_of(pilot).told)


@asynccontextmanager
async def opened_diagnostics(directory: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[Pilot[None]]:
    """The app on the diagnostics of a run."""
    async with StubApp(directory).run_test(size=size) as pilot:
        await until(pilot, lambda: getattr(pilot.app.screen, "state", None) and pilot.app.screen.state.info, "the run")  # type: ignore[attr-defined]
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, DiagnosticsScreen), "the screen")
        yield pilot
