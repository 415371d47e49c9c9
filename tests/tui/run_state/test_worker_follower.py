"""Following the workers of a run beside its chief."""

from collections.abc import Callable, Iterator

import pytest

from accel_engine.events import Outcome, Phase
from accel_engine.run import Status
from accel_engine.run.directory.run_paths import WORKERS
from accel_engine.run.store.database import SCHEMA_VERSION, RunDatabase
from accel_tui.run_state.run_devices import inventory_of, meters_of
from accel_tui.run_state.worker_follower import WorkerFollower, workers_of
from tui.fake_engine import FakeEngine, dead_pid
from tui.run_state.test_run_follower import following
from tui.stand_in_workers import PLAN, Worker, meet

Wait = Callable[..., None]


pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture
def chief() -> Iterator[FakeEngine]:
    one = FakeEngine(PLAN)
    one.begin()
    yield one
    one.close()


def test_a_run_that_is_trained_alone_is_not_looked_through_for_workers(
    monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    monkeypatch.setattr(WorkerFollower, "poll", lambda _: pytest.fail("it looked"))
    engine = FakeEngine()
    engine.begin().build().train(10)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 10)
        assert watched.latest().workers == {}
        assert workers_of(watched.latest()) == ()
    engine.close()


def test_a_worker_that_comes_later_is_followed_but_for_its_steps(chief: FakeEngine, wait_until: Wait) -> None:
    with following(chief.directory) as watched:
        wait_until(lambda: watched.latest().live)
        assert workers_of(watched.latest()) == ()
        worker = Worker(chief, 1, "node2")
        worker.begin().enter(Phase.BUILDING, "waiting for worker 0 (10.0.0.0:2222)")
        worker.sample(55.0)
        worker.train(20)
        wait_until(lambda: "worker 1 cpu:0" in meters_of(watched.latest()))  # once it is known to be on another machine
        state = watched.latest().workers["worker 1"]
        assert state.phase
        assert state.phase.detail == "waiting for worker 0 (10.0.0.0:2222)"
        assert (state.step, state.curves) == (0, {})
        assert meters_of(watched.latest())["worker 1 cpu:0"].utilizations == (55.0,)

        meet(chief, "node2")
        wait_until(lambda: watched.latest().workers_met)
        told = {each.name: (each.host, each.address, each.run) for each in workers_of(watched.latest())}
        assert told["worker 1"] == ("node2", "10.0.0.1:2222", "k3f1-mlp-digits")
        assert list(told) == ["worker 0", "worker 1"]
        worker.end(Outcome.FAILED, "worker 0 is gone")
        wait_until(lambda: watched.latest().workers["worker 1"].has_ended)
        ended = watched.latest().workers["worker 1"].ended
        assert ended
        assert ended.reason == "worker 0 is gone"
    worker.close()


def test_a_worker_that_dies_is_lost_while_the_chief_goes_on(chief: FakeEngine, wait_until: Wait) -> None:
    Worker(chief, 1, pid=dead_pid()).begin().close()
    with following(chief.directory) as watched:
        wait_until(lambda: watched.latest().workers)
        assert watched.latest().workers["worker 1"].lost
        assert watched.latest().live


def test_nothing_new_is_the_same_states(chief: FakeEngine) -> None:
    worker = Worker(chief, 1, "node2")
    worker.begin()
    follower = WorkerFollower(chief.directory)
    before = follower.poll()
    assert before.keys() == {"worker 1"}
    assert follower.poll() is before
    worker.sample(3.0)
    assert follower.poll() is not before
    worker.close()
    follower.close()


def test_what_cannot_be_read_is_passed_over_until_it_can(chief: FakeEngine) -> None:
    worker = Worker(chief, 1, "node2")
    worker.begin()
    (chief.directory / WORKERS / "2").mkdir()
    connection = RunDatabase(worker.directory)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    follower = WorkerFollower(chief.directory)
    assert follower.poll() == {}
    connection.execute("UPDATE main.meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION,))
    assert follower.poll().keys() == {"worker 1"}
    connection.close()
    worker.close()
    follower.close()


def test_a_part_that_leads_elsewhere_now_is_read_anew(chief: FakeEngine) -> None:
    parts = []
    for _ in range(2):
        other = FakeEngine(PLAN)
        other.begin().sample(float(len(parts)))
        parts.append(other)
    place = chief.directory / WORKERS / "1"
    place.parent.mkdir()
    follower = WorkerFollower(chief.directory)
    for number, part in enumerate(parts):
        place.unlink(missing_ok=True)
        place.symlink_to(part.directory)
        assert follower.poll()["worker 1"].meters["cpu:0"].utilizations == (float(number),)
        part.close()
    follower.close()


def test_a_worker_on_its_own_machine_knows_the_others_by_name_only(wait_until: Wait) -> None:
    engine = FakeEngine(PLAN)
    part = Worker(engine, 1)
    part.begin()
    meet(part, "node2")
    with following(part.directory) as watched:
        wait_until(lambda: watched.latest().workers_met)
        chief, mine = workers_of(watched.latest())
        assert (chief.state, mine.state) == (None, watched.latest())
    part.close()
    engine.close()


def test_devices_of_a_machine_are_told_once_however_many_workers_are_on_it(chief: FakeEngine, wait_until: Wait) -> None:
    chief.build().sample(10.0)
    workers = [Worker(chief, index, host) for index, host in enumerate(("", "node2", "node2"), start=1)]
    for worker in workers:
        worker.begin()
        worker.sample(90.0, ["cpu:0", "gpu:10", "gpu:2"])
    with following(chief.directory) as watched:
        wait_until(lambda: len(watched.latest().workers) == 3 and watched.latest().meters)
        state = watched.latest()
        inventory = inventory_of(state, None)
        assert inventory
        ids = [device.id for device in inventory.devices]
        assert ids == ["cpu:0", "worker 2 cpu:0", "worker 2 gpu:2", "worker 2 gpu:10"]
        assert [device.kind for device in inventory.devices] == ["cpu", "cpu", "gpu", "gpu"]
        assert meters_of(state).keys() == set(ids)
        assert all(each.info and each.info.status is Status.RUNNING for each in state.workers.values())
    for worker in workers:
        worker.close()


def test_where_the_workers_are_others_who_writes_the_run_is_their_coordinator(
    chief: FakeEngine, wait_until: Wait
) -> None:
    worker = Worker(chief, 0)
    worker.begin()
    with following(chief.directory) as watched:
        wait_until(lambda: watched.latest().workers)
        assert [each.name for each in workers_of(watched.latest())] == ["coordinator", "worker 0"]
    worker.close()
