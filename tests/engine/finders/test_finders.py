"""What the finders ask of trial processes, which stand-ins answer."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.errors import PlanError, RunError, UsageError
from accel_engine.finders import batch_size_finder, learning_rate_finder
from accel_engine.finders.batch_size_finder import find_batch_size
from accel_engine.finders.learning_rate_finder import RampOptions, RampProgress, find_learning_rate, find_rate_of_run
from accel_engine.finders.throughput import SizeOptions, SizeProgress
from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.measure.trial_process import TrialCancelledError, TrialFailedError
from accel_engine.plan import Plan
from accel_engine.process.run_change import PauseNote
from accel_engine.requests.try_plan import TrialReady
from accel_engine.run.directory.run_paths import hosts_directory
from accel_engine.strategies.cluster_spec import ClusterSpec

from .trials import Trials, stand_in

PLAN = Plan(epochs=10, batch_size=32, seed=7)
READY = TrialReady(1.0, 1.0, 32, 100, ("CPU:0",), True, 1, 0.001, "Adam", 1000)


def use(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> type[Trials]:
    made = stand_in(**settings)
    for module in (learning_rate_finder, batch_size_finder):
        monkeypatch.setattr(module, "PlanTrials", made)
    monkeypatch.setattr(batch_size_finder, "available_memory", lambda: 1e9)
    return made


def test_each_seed_begins_anew_and_ends_with_an_explosion(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    progress: list[RampProgress] = []
    found = find_learning_rate(PLAN, progress.append)
    assert [ramp.seed for ramp in found.ramps] == [7, 8, 9]
    assert all(ramp.has_exploded and len(ramp.rates) < 119 for ramp in found.ramps)
    assert found.learning_rate == pytest.approx(0.019, rel=0.4)
    assert (found.rate, found.factor, found.step) == (0.001, 1.0, 0)
    assert len(found.compared) == 4
    assert found.compared_steps == 200
    shares = [each.share for each in progress]
    assert shares == sorted(shares)


def test_the_answer_is_the_rate_of_the_plan_not_of_the_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ready=TrialReady(1.0, 1.0, 32, 100, ("CPU:0", "CPU:1"), True, 2))
    plan = PLAN.replace(strategy="mirrored", virtual_cpus=2, rate_scaling="linear")
    found = find_learning_rate(plan)
    best = found.best
    assert best is not None
    assert found.factor == 2
    assert found.learning_rate == pytest.approx(best.rate / 2, rel=0.01)


def test_ramps_are_no_longer_than_the_plan_and_differ_by_their_initial_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ready=TrialReady(1.0, 1.0, 32, 5, ("CPU:0",), False))
    found = find_learning_rate(PLAN)
    assert len(found.ramps) == 3
    assert len(found.ramps[0].rates) <= 50
    assert any("50 steps" in note for note in found.notes)


def test_from_a_checkpoint_without_orders_one_ramp_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, ready=TrialReady(1.0, 1.0, 32, 5, ("CPU:0",), False))
    info = SimpleNamespace(status=SimpleNamespace(live=False))
    monkeypatch.setattr(learning_rate_finder, "_recorded", lambda _: (info, PLAN, 0))
    monkeypatch.setattr(learning_rate_finder, "latest_checkpoint", lambda _: 6)
    monkeypatch.setattr(learning_rate_finder, "paused", lambda *_: nullcontext(PauseNote()))
    found = find_rate_of_run(tmp_path)
    assert (len(found.ramps), found.step) == (1, 6)
    assert any("one ramp only" in note for note in found.notes)


def test_plans_for_which_a_rate_means_nothing_are_refused() -> None:
    with pytest.raises(PlanError, match="the plan takes 10 steps"):
        learning_rate_finder.check_plan(PLAN, 10)


@pytest.mark.parametrize("check", [learning_rate_finder.check_plan, batch_size_finder.check_plan])
def test_local_workers_are_tried_and_a_cluster_is_not(monkeypatch: pytest.MonkeyPatch, check: Any) -> None:
    check(PLAN.replace(strategy="multi-worker", local_workers=2))
    monkeypatch.setenv("TF_CONFIG", ClusterSpec(("a:1", "b:1")).to_tf_config())
    with pytest.raises(PlanError, match="unset TF_CONFIG, and use --local-workers 2"):
        check(PLAN.replace(strategy="multi-worker"))
    monkeypatch.delenv("TF_CONFIG")
    slurm = {
        "NTASKS": "2",
        "PROCID": "0",
        "STEP_NODELIST": "a,b",
        "STEP_TASKS_PER_NODE": "1(x2)",
        "JOB_ID": "1",
        "STEP_ID": "0",
    }
    for name, value in slurm.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    with pytest.raises(PlanError, match="measure outside a job of several tasks, and use --local-workers 2"):
        check(PLAN.replace(strategy="multi-worker"))


def test_the_rate_of_asynchronous_workers_has_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    found = find_learning_rate(PLAN.replace(strategy="parameter-server", local_workers=2))
    assert any("one step after the other" in note for note in found.notes)


def test_a_run_of_several_processes_has_no_checkpoint_to_start_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = PLAN.replace(strategy="multi-worker", local_workers=2)
    info = SimpleNamespace(id="m8w3", require_plan=lambda _: plan)
    monkeypatch.setattr(learning_rate_finder, "read_run", lambda _: info)
    with pytest.raises(RunError, match="run m8w3 trains in several processes"):
        find_rate_of_run(tmp_path)


def test_the_rate_of_a_run_of_a_host_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimpleNamespace(id="gpu1:m8w3", require_plan=lambda _: PLAN)
    monkeypatch.setattr(learning_rate_finder, "read_run", lambda _: info)
    with pytest.raises(RunError, match="is on gpu1: this machine has no checkpoint of it"):
        find_rate_of_run(hosts_directory() / "gpu1" / "runs" / "m8w3")


@pytest.mark.parametrize("options", [{"lowest": 1.0, "highest": 0.1}, {"lowest": 0.0}, {"steps": 19}])
def test_an_empty_or_reversed_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        RampOptions(**options)
    with pytest.raises(UsageError):
        SizeOptions(smallest=9, largest=8)


@pytest.mark.parametrize("find", [find_learning_rate, find_batch_size])
def test_it_stops_when_it_is_asked_to(monkeypatch: pytest.MonkeyPatch, find: Any) -> None:
    use(monkeypatch)
    with pytest.raises(TrialCancelledError):
        find(PLAN, should_stop=lambda: True)


def test_sizes_double_up_to_the_data_and_the_answer_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = use(monkeypatch)
    progress: list[SizeProgress] = []
    found = find_batch_size(PLAN, progress.append)
    assert [start.plan.batch_size for start in made.made] == [8, 16, 32, 64, 128, 256, 512, 192, 192]
    assert found.chosen is not None
    assert (found.batch_size, found.chosen.largest.batch_size) == (192, 512)
    assert "1,000 training examples" in found.stopped
    assert found.effects is not None
    assert found.effects.learning_rate == pytest.approx(0.00245)
    assert all(each.validation_seconds == 0.5 for each in found.measured)
    assert progress[0].detail == "measuring batch size 8: starting an engine process"
    assert (progress[0].size, progress[0].seconds_left) == (8, None)
    later = [each for each in progress if each.size]
    assert all(each.seconds_left is not None for each in later if each.size > 8)
    assert [each.size for each in later if each.confirms] == [192] * 3


def test_the_time_left_is_that_of_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def take_turns(_: Trials, seconds: float, on_progress: Any) -> None:
        nonlocal now
        on_progress(0.0, seconds)
        now += 4.0 + seconds
        on_progress(seconds, seconds)

    use(monkeypatch, take_turns=take_turns)
    monkeypatch.setattr(batch_size_finder, "RemainingTime", lambda: RemainingTime(lambda: now))
    ends: dict[tuple[int, bool], float] = {}

    def note(progress: SizeProgress) -> None:
        if progress.seconds_left is not None:
            ends.setdefault((progress.size, progress.confirms), now + progress.seconds_left)

    find_batch_size(PLAN, note)
    exact = [ends.pop((192, False)), ends.pop((192, True))]
    assert exact == [now, now]
    assert set(ends.values()) == {now + 6.0}, "one size more was expected around the knee"


def test_out_of_memory_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    full = TrialFailedError("out of memory: the system killed the process", out_of_memory=True)
    use(monkeypatch, outcome=staticmethod(lambda size: full if size > 100 else (100.0 * size, 1e6 * size)))
    found = find_batch_size(PLAN)
    assert found.batch_size == 96
    assert [each.batch_size for each in found.measured if each.out_of_memory] == [128]
    assert "128 cannot be trained: out of memory" in found.stopped


def test_smaller_sizes_are_tried_where_the_first_one_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    full = TrialFailedError("out of memory", out_of_memory=True)
    made = use(monkeypatch, outcome=staticmethod(lambda size: full if size > 2 else (100.0 * size, 1e6 * size)))
    found = find_batch_size(PLAN)
    assert [start.plan.batch_size for start in made.made] == [8, 4, 2, 1, 3, 2]
    assert found.batch_size == 2


def test_a_size_that_would_not_fit_on_the_host_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = use(monkeypatch, outcome=staticmethod(lambda size: (100.0 * size, 7e6 * size)))
    found = find_batch_size(PLAN)
    assert max(start.plan.batch_size for start in made.made) == 128
    assert [each.batch_size for each in found.measured if each.was_skipped] == [192, 256]
    assert "would take about 1.7 GiB" in found.stopped


def test_an_answer_that_does_not_fit_again_is_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def outcome(size: int) -> Any:
        seen.append(size)
        full = TrialFailedError("out of memory", out_of_memory=True)
        return full if size == 96 and seen.count(96) > 1 else (1e4 * size / (size + 20), 1e6 * size)

    use(monkeypatch, outcome=staticmethod(outcome))
    found = find_batch_size(PLAN, options=SizeOptions(largest=128))
    assert seen[-3:] == [96, 96, 128]
    assert found.batch_size == 128
    assert [each.batch_size for each in found.measured if each.problem] == [96]


def test_an_answer_that_changes_each_time_agrees_with_the_figures_that_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def outcome(size: int) -> Any:
        seen.append(size)
        return {8: 100.0, 16: 200.0, 24: 290.0, 32: 300.0, 64: 310.0}[size] / seen.count(size), 1e6 * size

    use(monkeypatch, outcome=staticmethod(outcome))
    found = find_batch_size(PLAN, options=SizeOptions(largest=64))
    assert seen[-4:] == [24, 32, 64, 16]
    assert {each.batch_size: each.throughput for each in found.measured} == {8: 100, 16: 100, 24: 145, 32: 150, 64: 155}
    assert found.chosen is not None
    assert (found.batch_size, found.chosen.knee.throughput, found.chosen.fastest.throughput) == (24, 145, 155)


def test_what_is_not_about_the_size_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = TrialFailedError("the model cannot be built", out_of_memory=False)
    use(monkeypatch, outcome=staticmethod(lambda _: broken))
    with pytest.raises(TrialFailedError, match="cannot be built"):
        find_batch_size(PLAN)


def test_a_stream_with_batches_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ready=TrialReady(1.0, 1.0, 50, 0, ("CPU:0",), False))
    with pytest.raises(RunError, match="batches of 50 examples"):
        find_batch_size(PLAN)


def test_sizes_are_multiples_of_replicas_and_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = TrialReady(1.0, 1.0, 24, 10, ("CPU:0", "CPU:1"), True, 2, None, "SGD", 200)
    made = use(monkeypatch, ready=ready)
    plan = PLAN.replace(strategy="mirrored", virtual_cpus=2, micro_batches=3, batch_size=30)
    found = find_batch_size(plan)
    sizes = [start.plan.batch_size for start in made.made]
    assert sizes[:4] == [24, 48, 96, 192]
    assert all(size % 6 == 0 for size in sizes)
    assert found.confirmed is not None
    assert found.confirmed.per_replica * 2 == found.confirmed.batch_size
