"""Measures what the Search screen does on the event loop with a thousand trials of thirty epochs.

    python benchmarks/searches.py [--trials 1000] [--epochs 30] [--polls 20]
    python benchmarks/searches.py --runs 10000      the same for keys in the list of so many runs
    python benchmarks/searches.py --directories 1500 [--against CHECKOUT --turns 5]
                                                    the same for opening that list with so many directories; with a
                                                    checkout, in turns with the program in it, each in its own process

A study made by a script is opened at 200x50 while another process adds reports and changes trials. Every callback of
the event loop is timed: its processor time is the screen's own work, its wall-clock time includes waiting for other
threads and processes.
"""

import argparse
import asyncio
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from accel_tui.app_protocol import Screens

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))  # after those of another checkout

SIZE = (200, 50)

WRITER = """
import sys, time
from pathlib import Path
from dataclasses import replace
from accel_engine.run.directory.lock import WriterLock
from accel_engine.search.study_paths import LOCK
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import TrialReport

directory = Path(sys.argv[1])
with WriterLock(directory, LOCK), StudyWriter(directory) as study:
    epoch = 100
    while True:
        for trial in study.live:
            study.add_report(epoch, TrialReport(trial.number, epoch, 50 * epoch, time.time(), 0.9))
            study.put(replace(trial, reason=f"epoch {epoch}"))
        epoch += 1
        time.sleep(0.25)
"""


class Loop:
    """Times the callbacks of an event loop."""

    def __init__(self) -> None:
        self._times: list[tuple[float, float]] = []

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time all callbacks in the block."""
        run, times = asyncio.Handle._run, self._times  # noqa: SLF001 - the loop has no public hook

        def timed_run(handle: asyncio.Handle) -> None:
            began, used = time.perf_counter(), time.thread_time()
            run(handle)
            times.append((time.perf_counter() - began, time.thread_time() - used))

        asyncio.Handle._run = timed_run  # type: ignore[method-assign]  # noqa: SLF001
        try:
            yield
        finally:
            asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001

    def sum_and_longest(self) -> tuple[float, float]:
        """The processor time so far, and of the longest callback, in seconds."""
        own = [each[1] for each in self._times]
        return sum(own), max(own)

    def row(self, name: str) -> str:
        """A row about the callbacks since the last one."""
        times, self._times[:] = list(self._times), []
        walls, own = ([1000 * each[index] for each in times] for index in (0, 1))
        return f"| {name} | {len(times)} | {sum(own):.0f} | {max(own):.1f} | {max(walls):.1f} |"


async def measure(arguments: argparse.Namespace, directory: Path) -> None:
    """Open the study and use its screen."""
    from accel_tui.screens.search_screen import SearchScreen
    from accel_tui.widgets.search.study_view import VIEWS, StudyView
    from tui.stand_ins import StubApp

    loop, app = Loop(), StubApp()
    async with app.run_test(size=SIZE) as pilot:
        await asyncio.sleep(2.0)

        async def until(condition: Callable[[], object]) -> None:
            deadline = time.monotonic() + 60
            while not condition() and time.monotonic() < deadline:
                await asyncio.sleep(0.02)

        def drawn() -> bool:
            return app.screen.query_one(StudyView).is_drawn

        print("| what | callbacks | processor time, ms | longest, ms | longest with waits, ms |")
        print("|---|---|---|---|---|")
        with loop.timed():
            began = time.perf_counter()
            app.open_screen(Screens.SEARCH, directory)
            await until(lambda: isinstance(app.screen, SearchScreen) and app.screen.state.trials and drawn())
            seconds = time.perf_counter() - began
            print(loop.row(f"opening, {seconds:.2f} s until the curves are drawn"))
            await asyncio.sleep(0.5 * arguments.polls)
            print(loop.row(f"{arguments.polls} polls with 2 changed trials each, curves"))
            for _ in range(20):
                await pilot.press("down")
            await asyncio.sleep(1.0)
            print(loop.row("20 moves of the cursor"))
            for _ in range(4):
                await pilot.press("greater_than_sign")
            await asyncio.sleep(1.0)
            print(loop.row("sorting by 4 columns"))
            for number, name in enumerate(list(VIEWS)[:6], 1):
                await pilot.press(str(number))
                await asyncio.sleep(3.0)
                print(loop.row(f"view {name}, and 6 polls"))
    print()
    print("| drawn in a thread | median of 5, ms |")
    print("|---|---|")
    for name, seconds in _drawings(directory):
        print(f"| {name} | {1000 * seconds:.0f} |")


def write_runs(count: int) -> None:
    """Write runs of five epochs on three datasets, and copy them to so many directories."""
    from accel_engine.events import EpochEnded, Outcome, RunEnded, Validated
    from accel_engine.plan import Plan
    from accel_engine.run import RunWriter, create
    from live_run import begin
    from recorded_run import put

    made = []
    for number in range(6):
        plan = Plan(model="mlp", data=("digits", "mnist", "cifar10")[number % 3], epochs=5, name=f"model {number}")
        writer = RunWriter(create(plan))
        begin(writer, plan, 100)
        for epoch in range(1, 6):
            now, metrics = time.time(), {"loss": 2.0 / epoch, "accuracy": 1.0 - 0.5 / (epoch + number)}
            writer.write_chunk(
                100 * epoch - 100, now - 1, now, {name: [value] * 100 for name, value in metrics.items()}
            )
            ended = EpochEnded(time=now, epoch=epoch, step=100 * epoch, metrics=metrics, seconds=1.0)
            writer.write_event(ended)
            writer.write_event(Validated(time=now, epoch=epoch, step=100 * epoch, metrics=metrics, seconds=0.1))
        writer.write_event(RunEnded(time=time.time(), outcome=Outcome.FINISHED, steps=500, epochs=5, seconds=5.0))
        writer.close()
        made.append(writer.directory)
    for number in range(count - len(made)):
        source = made[number % len(made)]
        copy = shutil.copytree(source, source.with_name(f"r{number:05}-copy"))
        put(copy, created=time.time() - 60 * number)


async def measure_opening(count: int) -> None:
    """Open the list of runs once; prints what it took as JSON."""
    from tui.stand_ins import StubApp

    loop, app = Loop(), StubApp()
    async with app.run_test(size=SIZE) as pilot:
        while not app.can_list_runs:  # its modules are imported
            await asyncio.sleep(0.05)
        await asyncio.sleep(2.0)
        with loop.timed():
            began = time.perf_counter()
            app.open_screen(Screens.RUNS)
            found = {}
            for name, least in {"first": 1, "all": count}.items():
                while not (tables := app.screen.query("RunsTable")) or len(tables.first().runs or ()) < least:  # type: ignore[attr-defined]
                    await asyncio.sleep(0.005)
                await pilot.pause()
                seconds, (own, longest) = time.perf_counter() - began, loop.sum_and_longest()
                found |= {
                    f"{name} rows, s": seconds,
                    f"{name} rows, loop, s": own,
                    f"until {name}, longest, s": longest,
                }
            print(json.dumps(found))


def compare_openings(count: int, checkout: Path | None, turns: int, home: Path) -> None:
    """Open a list of runs with this program, and with the one of another checkout, in turns.

    Each has its own runs, with the same events, as an earlier program does not read what a later one has written.
    """
    trees = [HERE.parent, *([checkout] if checkout else [])]
    times: list[list[dict[str, float]]] = [[] for _ in trees]

    def child(tree: Path, action: str) -> bytes:
        paths = os.pathsep.join(str(tree / part) for part in ("engine", "tui", "tests"))
        environment = {**os.environ, "PYTHONPATH": paths, "ACCEL_TUI_HOME": str(home / str(trees.index(tree)))}
        command = [sys.executable, __file__, "--directories", str(count), "--child", action]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout

    for tree in trees:
        child(tree, "write")
    for turn in range(turns + 1):
        for tree, taken in zip(trees, times, strict=True):
            found = json.loads(child(tree, "open").splitlines()[-1])
            if turn:  # the first one warms the file cache
                taken.append(found)
    print("| opening, median | here | there | here / there |")
    print("|---|---|---|---|")
    for name in times[0][0]:
        here, *there = (statistics.median(each[name] for each in taken) for taken in times)
        ratio = f"{there[0]:.3f} | {here / there[0]:.2f}" if there else " | "
        print(f"| {name} | {here:.3f} | {ratio} |")


async def measure_runs(count: int) -> None:
    """Press keys in the list of runs."""
    from dataclasses import replace

    from accel_engine.plan import Plan
    from accel_engine.run import RunList, create, list_runs
    from accel_tui.widgets.runs_table import RunsTable
    from tui.stand_ins import StubApp

    for data in ("digits", "mnist", "cifar10"):
        create(Plan(model="mlp", data=data, name=data))
    made = list_runs()
    runs = tuple(replace(made[number % len(made)], id=f"r{number}", best=float(number % 89)) for number in range(count))

    listing = RunList()
    listing._sorted = runs  # noqa: SLF001 - they are in no directories
    listing.refresh = lambda limit=None: True  # type: ignore[method-assign]  # noqa: ARG005
    RunsTable.listing = listing
    loop, app = Loop(), StubApp()
    async with app.run_test(size=SIZE) as pilot:
        await asyncio.sleep(2.0)
        app.open_screen(Screens.RUNS)
        await asyncio.sleep(3.0)
        print("| keys | callbacks | processor time, ms | longest, ms | longest with waits, ms |")
        print("|---|---|---|---|---|")
        with loop.timed():
            for name, keys in {
                "20 times down": ["down"] * 20,
                "4 times end, home": ["end", "home"] * 4,
                "4 times sort": ["greater_than_sign"] * 4,
                "filter digi": ["slash", *"digi"],
            }.items():
                await pilot.press(*keys)
                await asyncio.sleep(0.5)
                print(loop.row(name))


def _drawings(directory: Path) -> Iterator[tuple[str, float]]:
    """Reading the study, and drawing each view, with nothing else going on."""
    from accel_engine.search.launch import open_study
    from accel_tui.study_state.state import StudyState
    from accel_tui.study_state.study_follower import read_study
    from accel_tui.widgets.search.study_view import VIEWS, Importance, ViewInputs, draw_view

    began = time.perf_counter()
    with open_study(directory) as study:
        state = read_study(study, StudyState())
        yield "reading the whole study, once", time.perf_counter() - began
        began = time.perf_counter()
        read_study(study, state)
        yield "a poll without news, once", time.perf_counter() - began
    for view in VIEWS:
        times = []
        for _ in range(5):
            began = time.perf_counter()
            draw_view(ViewInputs(view, state, 3, 0, Importance(), 190, 25))
            times.append(time.perf_counter() - began)
        yield view, statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--polls", type=int, default=20)
    parser.add_argument("--runs", type=int, default=0, help="measure the list of so many runs instead")
    parser.add_argument("--directories", type=int, default=0, help="measure opening the list of so many runs instead")
    parser.add_argument("--against", type=Path, help="another checkout, with the earlier program")
    parser.add_argument("--turns", type=int, default=5, help="how often each program opens the list")
    parser.add_argument("--child", choices=("write", "open"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        os.environ["ACCEL_TUI_SETTINGS"] = os.devnull
        gc.disable()  # as below
        if arguments.child == "write":
            write_runs(arguments.directories)
        else:
            asyncio.run(measure_opening(arguments.directories))
        return
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as home:
        os.environ |= {"ACCEL_TUI_HOME": home, "ACCEL_TUI_SETTINGS": os.devnull}
        from example_study import write_study

        print(f"{os.cpu_count()} logical CPUs with a load of {os.getloadavg()[0]:.1f} before")
        print()
        gc.disable()  # as the command that opens the dashboard does; the app enables it again
        if arguments.directories:
            compare_openings(arguments.directories, arguments.against, arguments.turns, Path(home))
            return
        if arguments.runs:
            asyncio.run(measure_runs(arguments.runs))
            return
        directory = write_study(arguments.trials, arguments.epochs, end=time.time())
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(directory)])
        try:
            asyncio.run(measure(arguments, directory))
        finally:
            writer.kill()


if __name__ == "__main__":
    main()
