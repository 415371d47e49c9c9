"""Makes the pictures of this folder: the real screens, showing real runs that are trained for the purpose.

Run it from the project's directory: ``.venv/bin/python screenshots/make.py [NAME...]``. It trains in a temporary
directory and writes ``NAME-THEME-WIDTHxHEIGHT.svg`` here; names are those of ``SHOTS``.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
from textual.pilot import Pilot

from accel_engine import launch
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, create, list_runs, request
from accel_tui.app import AccelApp

HERE = Path(__file__).resolve().parent

SMALL, MEDIUM, LARGE = (80, 24), (120, 40), (200, 50)

PATIENCE = 180.0
"""Seconds to wait for anything before giving up."""

MODEL_THAT_RAISES = """
def build():
    raise ValueError("a model of the user's own may fail too")
"""


@dataclass(frozen=True)
class Runs:
    """The directories of the runs that the pictures show."""

    finished: Path
    failed: Path
    live: Path


@dataclass(frozen=True)
class Shot:
    """A screen to picture.

    Attributes:
        opens: The run that it opens on; the form when left out.
        shows: Words that are there when the screen is complete.
        keys: What is pressed before.
        sizes: Sizes in the dark theme; the first size is also made in the light one when ``light``.
        light: Whether to make a light one.
    """

    opens: Callable[[Runs], Path] | None
    shows: tuple[str, ...]
    keys: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = (MEDIUM,)
    light: bool = False


SHOTS = {
    "plan": Shot(None, ("layers",), sizes=(MEDIUM, SMALL, LARGE), light=True),
    "run-live": Shot(lambda runs: runs.live, ("validation",), sizes=(MEDIUM, SMALL, LARGE), light=True),
    "run-finished": Shot(lambda runs: runs.finished, ("Finished",)),
    "run-failed": Shot(lambda runs: runs.failed, ("Failed",)),
    "runs": Shot(None, ("finished", "failed"), keys=("r",), sizes=(MEDIUM, SMALL), light=True),
    "help": Shot(lambda runs: runs.live, ("closes",), keys=("question_mark",), sizes=(SMALL,)),
}


def main() -> None:
    """Train, then picture what was asked for, or everything."""
    wanted = sys.argv[1:] or list(SHOTS)
    home = Path(tempfile.gettempdir()) / "accel-tui"  # always the same, because pictures show it
    home.mkdir(mode=0o700)
    os.environ["ACCEL_TUI_HOME"] = str(home)
    try:
        runs = train(home)
        for name in wanted:
            asyncio.run(picture(name, SHOTS[name], runs))
        request(runs.live, "stop_now")
        wait(lambda: not status(runs.live).live, "the live run to end")
    finally:
        for process in psutil.Process().children():
            process.kill()
        shutil.rmtree(home)


def train(home: Path) -> Runs:
    """Train what the pictures show."""
    mine = home / "my_model.py"
    mine.write_text(MODEL_THAT_RAISES)
    failed = begin(Plan(model=f"{mine}:build", name="my-own"))
    wait(lambda: not status(failed).live, "the failed run")
    finished = begin(Plan(name="first-try"))
    wait(lambda: not status(finished).live, "the finished run")
    live = begin(Plan(epochs=1000, batch_size=32, learning_rate=1e-4, name="long-one"))
    wait(lambda: validations(live) >= 20, "the live run")
    return Runs(finished, failed, live)


def begin(plan: Plan) -> Path:
    """Start a run."""
    directory = create(plan)
    launch.start(directory)
    return directory


def status(directory: Path) -> Status:
    """How a run stands."""
    with closing(RunReader(directory)) as reader:
        return reader.info().status


def validations(directory: Path) -> int:
    """How often a run was validated."""
    with closing(RunReader(directory)) as reader:
        return sum(event.kind() == "validated" for event in reader.poll().events)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {what}: {[(run.id, run.status) for run in list_runs()]}")
        time.sleep(0.1)


async def picture(name: str, shot: Shot, runs: Runs) -> None:
    """Open the app and picture one screen in its sizes and themes."""
    app = AccelApp(open_run=shot.opens(runs) if shot.opens else None)
    app.animation_level = "none"
    async with app.run_test(size=shot.sizes[0], notifications=False) as pilot:
        await press(pilot, shot.keys)
        await shown(app, pilot.pause, shot.shows)
        for size in shot.sizes:
            await pilot.resize_terminal(*size)
            await pilot.pause(1.5)  # two samples of the devices, and whatever the new size set off
            save(app, f"{name}-dark-{size[0]}x{size[1]}")
        if shot.light:
            await pilot.resize_terminal(*shot.sizes[0])
            app.action_toggle_theme()
            await pilot.pause(1.5)
            save(app, f"{name}-light-{shot.sizes[0][0]}x{shot.sizes[0][1]}")


async def press(pilot: Pilot[None], keys: tuple[str, ...]) -> None:
    """Press keys, once the app is there."""
    await pilot.pause(1.0)
    if keys:
        await pilot.press(*keys)


async def shown(app: AccelApp, pause: Callable[[float], Awaitable[None]], words: tuple[str, ...]) -> None:
    """Wait until all words are on the screen."""
    deadline = time.monotonic() + PATIENCE
    while not all(word in app.export_screenshot() for word in words):
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {words} on the screen")
        await pause(0.2)


def save(app: AccelApp, name: str) -> None:
    """Write the screen as an SVG that fetches no font from anywhere."""
    path = HERE / f"{name}.svg"
    path.write_text(re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(title="accel-tui"), flags=re.DOTALL))
    print(path.name)


if __name__ == "__main__":
    main()
