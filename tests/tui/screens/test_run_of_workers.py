"""The screen of a run that many workers train."""

import socket
from collections.abc import Iterator

import pytest

from accel_engine.events import Outcome, Phase, TimeMeasured
from accel_engine.run.directory.run_paths import WORKERS
from accel_tui.widgets.log import log_view
from accel_tui.widgets.run.worker_list import WorkerTable
from tui.fake_engine import FakeEngine, dead_pid
from tui.screens.test_run_screen import opened
from tui.stand_in_workers import PLAN, Worker, meet
from tui.stand_ins import hides, shows, text_of, until

SIZES = [(80, 24), (200, 50)]
HERE = socket.gethostname()


@pytest.fixture(autouse=True)
def _soon(hurried: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "POLL_SECONDS", 0.01)


@pytest.fixture
def chief() -> Iterator[FakeEngine]:
    one = FakeEngine(PLAN)
    one.begin()
    yield one
    one.close()


@pytest.mark.parametrize("size", SIZES)
async def test_workers_are_told_from_their_coming_to_their_end(chief: FakeEngine, size: tuple[int, int]) -> None:
    chief.enter(Phase.BUILDING, "waiting for worker 1 (10.0.0.1:2222)")
    async with opened(chief.directory, size) as pilot:
        await shows(pilot, "waiting for worker 1 (10.0.0.1:2222)")
        assert "workers" not in text_of(pilot)
        worker = Worker(chief, 1, "node2")
        worker.begin().enter(Phase.IMPORTING, "TensorFlow")
        await shows(pilot, "2 workers   ● building: worker 0   ● importing: worker 1")
        meet(chief, "node2")
        for engine, use in ((chief, 37.0), (worker, 91.0)):
            engine.build().sample(use, ["cpu:0", "gpu:0"] if size[1] > 24 else ["cpu:0"])
        chief.train(50)
        await shows(
            pilot, "2 workers, all-reduce ring   ● active: all", "step 50/400", "worker 1 cpu:0", " 91%", " 37%"
        )
        if size[1] > 24:
            await shows(pilot, "worker 1 gpu:0", "all-reduce     ring", f"2 on {HERE}, node2")
            await shows(pilot, "● worker 0   37", "● worker 1   91", "gpu:0")  # the heat map
            for engine, waited in ((chief, 0.1), (worker, 0.5)):
                spent = {"steps": 1.0, "input": waited}
                engine.say(TimeMeasured, first_step=0, step=50, seconds=2.0, spent=spent)
            await shows(pilot, "steps wait for input: slowest worker 1", "median 30%, fastest worker 0")
            await pilot.press("tab")
            assert isinstance(pilot.app.focused, WorkerTable)
            await pilot.press("down")
            await shows(pilot, "node2, 10.0.0.1:2222")
        worker.end(Outcome.FAILED, "out of memory")
        await shows(pilot, "✗ failed: worker 1   ● active: worker 0")
        if size[0] == 80:
            await pilot.press("i", "end")
            await until(pilot, lambda: pilot.app.screen.query_one("#details").has_class("-toggled"), "the details")
            pilot.app.screen.query_one("#facts").scroll_end(animate=False)
        await shows(pilot, "worker 1  ✗ failed", "out of memory")
    worker.close()


async def test_a_worker_that_dies_is_said_before_the_run_ends(chief: FakeEngine) -> None:
    meet(chief, "node2", "node3")
    Worker(chief, 1, pid=dead_pid()).begin().close()
    other = Worker(chief, 2, "node3")
    other.begin().build()
    chief.build()
    async with opened(chief.directory) as pilot:
        await shows(pilot, "✗ lost: worker 1   ● active: worker 0, worker 2")
        reason = "worker 1 (10.0.0.1:2222) was lost: it has refused connections for 10 s"
        chief.end(Outcome.FAILED, reason)
        other.end(Outcome.FAILED, reason)
        await shows(pilot, "✗ lost: worker 1   ✗ failed: worker 0, worker 2", reason)
    other.close()


async def test_of_a_worker_that_cannot_be_seen_it_is_said_where_its_log_is(chief: FakeEngine) -> None:
    meet(chief, "node2", reduction="nccl")
    chief.build()
    async with opened(chief.directory, (200, 50)) as pilot:
        await shows(pilot, "2 workers, all-reduce NCCL   ● active: worker 0   not visible from this machine: worker 1")
        await shows(
            pilot, "worker 1  not visible from this machine", "on its machine:", "accel-tui watch k3f1-mlp-digits"
        )


async def test_a_run_that_is_trained_alone_has_no_line_of_workers() -> None:
    engine = FakeEngine()
    engine.begin().build().train(10)
    async with opened(engine.directory, (200, 50)) as pilot:
        await shows(pilot, "step 10/400")
        assert "orkers" not in text_of(pilot)
    engine.close()


@pytest.mark.parametrize("size", SIZES)
async def test_the_devices_of_many_machines_do_not_overflow(chief: FakeEngine, size: tuple[int, int]) -> None:
    hosts = [f"node{index}" for index in range(1, 8)]
    meet(chief, *hosts)
    workers = [Worker(chief, index, host) for index, host in enumerate(hosts, start=1)]
    for worker in workers:
        worker.begin()
    for engine in (chief, *workers):
        engine.build().sample(91.0, ["cpu:0", *(f"gpu:{index}" for index in range(8))])
    async with opened(chief.directory, size) as pilot:
        await shows(pilot, "8 workers, all-reduce ring   ● active: all")
        if size[1] == 24:
            await shows(pilot, "worker 0 ▇▇▇▇▇▇▇▇ 91%", "worker 7 ▇▇▇▇▇▇▇▇ 91%")
        else:
            await shows(pilot, "worker 7 gpu:7")
        panel = pilot.app.screen.query_one("DevicePanel")
        assert panel.region.bottom <= size[1] - 1, "the keys are below"
        await shows(pilot, "Pause")
    for worker in workers:
        worker.close()


async def test_the_log_is_that_of_all_workers(chief: FakeEngine) -> None:
    (chief.directory / "log.txt").write_text("begun\n")
    async with opened(chief.directory) as pilot:
        await pilot.press("l")
        await shows(pilot, "begun")
        visible_steps = chief.directory / WORKERS / "1"
        visible_steps.mkdir(parents=True)
        (visible_steps / "log.txt").write_text("hello\n")
        await shows(pilot, "worker 1 │ hello")
        with (chief.directory / "log.txt").open("a") as log:
            log.write("and mine\n")
        await shows(pilot, "and mine")
        assert "│ and mine" not in text_of(pilot)
        await pilot.press("l")
        await hides(pilot, "hello")
