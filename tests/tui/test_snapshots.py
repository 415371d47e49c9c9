"""The screens that matter most, as whole pages of text, compared with ``snapshots/``.

Where a change is meant, write them anew, and read what git shows of it:

    ACCEL_TUI_SNAPSHOTS=write .venv/bin/pytest tests/tui/test_snapshots.py
"""

import difflib
import os
import random
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.engine_process import Installation
from accel_engine.run.diagnostics import ClassificationReport, SamplePrediction, ValidationReport
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.media import LoggedText, histogram_of
from accel_engine.run.runs import creation
from accel_engine.run.store.annotations import set_tags
from accel_engine.search.study_paths import LOCK as STUDY_LOCK
from accel_tui.app_protocol import Screens
from accel_tui.plan import memory_text
from accel_tui.screens import hosts_screen
from accel_tui.screens.compare_screen import CompareScreen
from accel_tui.screens.deploy_screen import DeployScreen
from accel_tui.widgets import key_bar
from accel_tui.widgets.chart.chart import Chart
from example_profile import PROFILE
from example_study import confirm, write_study
from tui.example_reports import histograms
from tui.fake_engine import FakeEngine
from tui.fake_script import FakeScript
from tui.stand_in_deployments import deployed
from tui.stand_in_findings import MEMORY, POOR, SLOW, find
from tui.stand_in_hosts import StandInHosts, busy_host, lost_host
from tui.stand_ins import BareApp, StubApp, begun, more, shows, text_of, until

FOLDER = Path(__file__).with_name("snapshots")
WRITE = os.environ.get("ACCEL_TUI_SNAPSHOTS") == "write"

SMALL, WIDE = (80, 24), (120, 40)

BEGINNING = 1_800_000_000.0
"""When the clock stands still at first, in seconds since the Unix epoch."""

SETTLED = 100
"""Looks of 10 ms that a page has to stay as it is before it is written."""


class Clock:
    """What all take for the time."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that stands still, names that are always the same, and no advice."""
    find(monkeypatch)
    one, draw = Clock(), random.Random(0)
    monkeypatch.setattr(time, "time", one.time)
    monkeypatch.setattr(socket, "gethostname", lambda: "lab")
    monkeypatch.setattr(creation, "secrets", SimpleNamespace(choice=draw.choice))
    monkeypatch.setattr(key_bar, "__version__", "0.0.0")
    monkeypatch.setattr(engine_process, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield one
    monkeypatch.undo()
    time.tzset()


def trained(clock: Clock, plan: Plan, steps: int = 300, *, outcome: Outcome | None = None) -> FakeEngine:
    """A run of some epochs, begun a minute after what was before it."""
    clock.now += 60
    engine = FakeEngine(plan)
    engine.begin().build()
    for epoch in range(steps // engine.steps_per_epoch):
        engine.train(engine.steps_per_epoch)
        clock.now = engine.now
        engine.end_epoch(loss=0.9 / (epoch + 1), accuracy=0.8 + 0.03 * epoch)
    engine.sample()
    if outcome:
        engine.end(outcome, "the loss became NaN" if outcome is Outcome.FAILED else "")
    return engine


@pytest.fixture
def runs(clock: Clock) -> Iterator[dict[str, FakeEngine]]:
    """A few runs; the last goes on."""
    made = {
        "flat": trained(clock, Plan(model="mlp", name="flat", epochs=3), outcome=Outcome.FINISHED),
        "steep": trained(clock, Plan(name="steep", epochs=3, learning_rate=0.1), 200, outcome=Outcome.FAILED),
        "gentle": trained(clock, Plan(name="gentle", epochs=3, learning_rate=1e-4), outcome=Outcome.FINISHED),
        "live": trained(clock, Plan(name="live", epochs=5, batch_size=32)),
    }
    set_tags(made["flat"].directory, ["paper"])
    made["live"].writer.write_diagnostics(_examined(), 300)
    yield made
    for engine in made.values():
        engine.close()


def _examined() -> ValidationReport:
    counts = np.diag(np.full(10, 34)).astype(np.int64)
    counts[3, 5] += 7
    counts[8, 1] += 2
    worst = tuple(
        SamplePrediction(
            row=row,
            loss=2.0,
            label=3,
            predicted=5,
            confidence=0.9 - 0.01 * row,
            true_class_probability=0.01 * (row + 1),
        )
        for row in range(7)
    )
    names = tuple(str(digit) for digit in range(10))
    reason = "there are no pictures of these"
    report = ClassificationReport(
        examples=int(counts.sum()), names=names, counts=counts, confidence=histograms(), worst=worst, reason=reason
    )
    return ValidationReport((report,))


@asynccontextmanager
async def opened(
    run: FakeEngine | None, size: tuple[int, int], app: type[StubApp] = BareApp
) -> AsyncIterator[Pilot[None]]:
    async with (StubApp(run.directory) if run else app()).run_test(size=size) as pilot:
        yield pilot


def page(pilot: Pilot[None]) -> str:
    """What is on screen, without what is another in every test: the process, and where its home is."""
    for chart in pilot.app.screen.query(Chart):
        chart._drawing = None  # axes keep to what they were while a run was read, be that in one piece or in several
        chart._repaint()
    lines = (line.rstrip() for line in text_of(pilot).splitlines())
    shown = (re.sub(r"(?<! ) *\blab, process \d+", "  lab, process 1", line) for line in lines)
    return "\n".join(re.sub(r"^ /\S+", " /HOME", line) for line in shown) + "\n"


async def looks_as_before(pilot: Pilot[None], name: str) -> None:
    """Compare the screen with the page of this name, once it is like it; or write that page."""
    path = FOLDER / f"{name}.txt"
    if WRITE:
        seen: list[str] = []

        def settled() -> bool:
            seen.append(page(pilot))
            return len(seen) > SETTLED and len(set(seen[-SETTLED:])) == 1

        await until(pilot, settled, "a screen that stays as it is")
        path.write_text(seen[-1], encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    with suppress(pytest.fail.Exception):
        await until(pilot, lambda: page(pilot) == before, name)
    now = page(pilot)
    if now != before:
        told = difflib.unified_diff(before.splitlines(), now.splitlines(), f"snapshots/{name}.txt", "now", lineterm="")
        pytest.fail("\n".join(["the screen has changed; if that is meant, see the head of this file", *told]), False)


async def test_plan(runs: dict[str, FakeEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "others").mkdir(parents=True)
    (tmp_path / "data" / "houses.csv").write_text("size,price\n1,2\n")
    monkeypatch.chdir(tmp_path / "data")
    monkeypatch.setattr(memory_text, "available_memory", lambda: 16 << 30)
    async with opened(None, WIDE, StubApp) as pilot:
        await shows(pilot, "14 layers", "live", "houses.csv", "about")
        await looks_as_before(pilot, "new-run-120x40")


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_run(runs: dict[str, FakeEngine], size: tuple[int, int]) -> None:
    async with opened(runs["live"], size) as pilot:
        await shows(pilot, "training", "validation")
        await looks_as_before(pilot, f"run-{size[0]}x{size[1]}")


async def test_run_of_a_script(clock: Clock) -> None:
    clock.now += 60
    script = FakeScript().begin().fit("base", epochs=3)
    clock.now = script.now
    script.begin_part("fine_tuning", epochs=4, steps_per_epoch=50, rate=1e-5).train(50)
    script.end_epoch(0.2, 0.95)
    script.train(30).sample()
    log = "".join(f"Epoch {epoch}/4\n50/50 ━━━━━━━━━━ 1s - loss: 0.{16 - epoch}00\n" for epoch in range(1, 2))
    (script.directory / LOG).write_text(f"unfreezing the base\n{log}")
    async with opened(script, WIDE) as pilot:
        await shows(pilot, "part 2 · fine_tuning", "validation")
        await pilot.press("l")
        await shows(pilot, "unfreezing the base")
        await looks_as_before(pilot, "run-script-120x40")


async def test_run_that_failed(runs: dict[str, FakeEngine]) -> None:
    async with opened(runs["steep"], WIDE) as pilot:
        await shows(pilot, "the loss became NaN")
        await looks_as_before(pilot, "run-failed-120x40")


async def test_list_of_runs(runs: dict[str, FakeEngine]) -> None:
    async with opened(None, WIDE) as pilot:
        await pilot.press("r")
        await shows(pilot, "gentle", "/ filter, e.g.")
        await looks_as_before(pilot, "runs-120x40")


@pytest.mark.parametrize("size", [*more(SMALL), WIDE])
async def test_hosts(runs: dict[str, FakeEngine], monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    found = StandInHosts({f"gpu{each}": busy_host(f"gpu{each}", 8, BEGINNING) for each in range(1, 8)})
    found.readings["gpu8"] = lost_host("gpu8")
    monkeypatch.setattr(hosts_screen, "HostFollower", found.follow)
    monkeypatch.setattr(hosts_screen, "read_hosts", found.list)
    async with opened(None, size) as pilot:
        await pilot.press("I")
        await shows(pilot, "7 of 8 hosts connected", "live")
        await looks_as_before(pilot, f"hosts-{size[0]}x{size[1]}")


async def test_runs_side_by_side(runs: dict[str, FakeEngine]) -> None:
    async with opened(None, WIDE) as pilot:
        pilot.app.push_screen(CompareScreen([runs[name].directory for name in ("flat", "steep", "gentle")]))
        await shows(pilot, "Compare 3 runs", "steep")
        await looks_as_before(pilot, "compare-120x40")


async def test_inside_of_a_run(runs: dict[str, FakeEngine]) -> None:
    async with opened(runs["live"], WIDE) as pilot:
        await shows(pilot, "training")
        await pilot.press("w")
        await shows(pilot, "true 3, predicted 5")
        await looks_as_before(pilot, "diagnostics-120x40")


@pytest.mark.parametrize("size", [*more(SMALL), WIDE])
async def test_search(clock: Clock, size: tuple[int, int]) -> None:
    study = write_study(end=clock.now)
    confirm(study, 26)
    with WriterLock(study, STUDY_LOCK):
        async with opened(None, size) as pilot:
            pilot.app.open_screen(Screens.SEARCH, study)  # type: ignore[attr-defined]
            await shows(pilot, "34 of 40 trials")
            await pilot.press("3")
            await shows(pilot, "worst")
            await looks_as_before(pilot, f"search-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [*more(SMALL), WIDE])
async def test_list_of_searches(clock: Clock, size: tuple[int, int]) -> None:
    confirm(write_study(end=clock.now), 26)
    async with opened(None, size) as pilot:
        pilot.app.open_screen(Screens.SEARCHES)  # type: ignore[attr-defined]
        await shows(pilot, "34 of 40", "val accuracy by epoch")
        await looks_as_before(pilot, f"searches-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [*more(SMALL), WIDE])
async def test_deployments(clock: Clock, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    deployed(monkeypatch)
    run = trained(clock, Plan(name="deployed", epochs=3), outcome=Outcome.FINISHED)
    run.save()
    async with opened(None, size) as pilot:
        await begun(pilot)
        app: Any = pilot.app
        app.open_screen(Screens.DEPLOYMENTS)
        await shows(pilot, "digits", "ready", "412")
        await looks_as_before(pilot, f"deployments-{size[0]}x{size[1]}")
        await pilot.press("enter")
        await shows(pilot, "Deployment digits", "serves digits version 2")
        await looks_as_before(pilot, f"deployment-{size[0]}x{size[1]}")
        app.open_screen(Screens.DEPLOY, run.directory)
        await until(pilot, lambda: isinstance(app.screen, DeployScreen), "the form")
        await looks_as_before(pilot, f"deploy-{size[0]}x{size[1]}")
    run.close()


async def test_many_runs(clock: Clock) -> None:
    made = [
        trained(clock, Plan(name=f"seed {seed}", epochs=3, seed=seed), outcome=Outcome.FINISHED) for seed in range(9)
    ]
    async with opened(None, WIDE) as pilot:
        await begun(pilot)
        pilot.app.open_screen(Screens.COMPARE_MANY, [each.directory for each in made])  # type: ignore[attr-defined]
        await shows(pilot, "Compare 9 runs", "10-90%", "median", "0 to 8")
        await looks_as_before(pilot, "compare-many-120x40")
    for each in made:
        each.close()


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_advice(runs: dict[str, FakeEngine], monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    find(monkeypatch, SLOW, POOR, MEMORY)
    async with opened(runs["live"], size) as pilot:
        await shows(pilot, "training", POOR.title)
        await pilot.press("A")
        await shows(pilot, "It fell to 0.41", "--learning-rate 0.0001")
        await looks_as_before(pilot, f"advice-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [*more(SMALL), WIDE])
async def test_profile(runs: dict[str, FakeEngine], size: tuple[int, int]) -> None:
    runs["live"].writer.write_diagnostics(PROFILE, 1)
    async with opened(runs["live"], size) as pilot:
        await shows(pilot, "training")
        pilot.app.open_screen(Screens.PROFILE, runs["live"].directory)  # type: ignore[attr-defined]
        await shows(pilot, "100 steps of 20.0 ms", "conv")
        await looks_as_before(pilot, f"profile-{size[0]}x{size[1]}")


async def test_what_a_run_logged(clock: Clock) -> None:
    run = trained(clock, Plan(name="logged", epochs=3))
    for step in (100, 200, 300):
        values = np.random.default_rng(step).normal(0, step, 10_000)
        run.writer.write_media(step, clock.now, "weights", histogram_of(values))
        run.writer.write_media(step, clock.now, "prediction", LoggedText(f"What the model says at step {step}. " * 20))
    async with opened(run, WIDE) as pilot:
        await shows(pilot, "training")
        await pilot.press("w")
        await shows(pilot, "1 Logged", "prediction  step 300")
        await pilot.press("down", "left")
        await shows(pilot, "weights  step 200")
        await looks_as_before(pilot, "diagnostics-logged-120x40")
    run.close()
