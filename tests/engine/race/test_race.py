from functools import partial

import pytest

from accel_engine.advice import FasterPlan, find_troubles
from accel_engine.devices.device_types import Inventory
from accel_engine.errors import RunError
from accel_engine.measure import cache, trial_memory
from accel_engine.measure.trial_memory import MemoryBudget, PlacedTrial, find_fitting_plans
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race import remembered_races
from accel_engine.race.comparison import find_best
from accel_engine.race.configuration import Best, ConfigurationKind, ConfigurationState
from accel_engine.race.configurations import find_configurations
from accel_engine.race.race import Race, RaceOptions
from accel_engine.race.remembered_races import remembered_result
from accel_engine.run import create
from accel_engine.run.runs.devices_in_use import DevicesInUse

from .stand_ins import CPU, GPUS, Behaviour, StandInTrials, no_meters

PLENTY = MemoryBudget(available=lambda: 1 << 50)
KINDS = (
    ConfigurationKind.XLA,
    ConfigurationKind.PRECISION,
    ConfigurationKind.REMAT,
    ConfigurationKind.THREADS,
    ConfigurationKind.BATCH_SIZE,
)


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))


def race(
    behaviours,
    *,
    kinds=KINDS,
    budget=PLENTY,
    should_stop=lambda: False,
    plan=None,
    on_result=lambda _: None,
    slowdown=1.0,
):
    resolved = resolve_to_train(plan or Plan(model="cnn"), CPU)
    trials = StandInTrials(behaviours, slowdown)
    raced = Race(
        resolved,
        CPU,
        RaceOptions(seconds=2.0, kinds=kinds),
        on_result,
        should_stop,
        make_trials=trials,
        make_meters=no_meters,
        budget=budget,
    )
    raced.run()
    assert not any(process.is_open for process in trials.processes)
    return {each.title: each for each in raced.results}, trials, raced


def test_configurations_are_measured_combined_and_judged() -> None:
    seen = []
    found, _, raced = race(
        {"xla=on": Behaviour(2000.0), "threads=1": Behaviour(1500.0), "xla=on,threads=1": Behaviour(3000.0)},
        on_result=seen.append,
    )
    combined = found["combined: XLA, 1 thread"]
    assert combined.examples_per_second == pytest.approx(3000.0)
    assert combined.losses.text == "equal to the bit"
    assert find_best(raced.results)[Best.FASTEST] == combined
    states = [each.state for each in seen if each.title == "XLA"]
    assert list(dict.fromkeys(states)) == ["waiting", "compiling", "ready", "measuring", "finished"]
    assert found["this plan"].state is ConfigurationState.FINISHED
    assert found["batch size 32"].losses.text == "other batches"
    assert not raced.was_stopped


def test_a_dominated_configuration_ends_early_and_says_why() -> None:
    found, _, _ = race({"precision=mixed_bfloat16": Behaviour(100.0), "remat=on": Behaviour(400.0, memory=1e7)})
    ended = found["mixed_bfloat16"]
    assert ended.state is ConfigurationState.ENDED_EARLY
    assert ended.reason == "clearly slower than this plan, which takes no more memory"
    assert len(ended.rates) == 6
    assert found["rematerialization"].state is ConfigurationState.FINISHED  # it takes less memory
    assert len(found["rematerialization"].rates) > 6


def test_a_configuration_that_fails_is_a_result() -> None:
    found, _, _ = race(
        {
            "xla=on": Behaviour(problem="XLA cannot"),
            "remat=on": Behaviour(problem="out of memory", fails_after=4, out_of_memory=True),
        }
    )
    assert (found["XLA"].state, found["XLA"].reason) == (ConfigurationState.FAILED, "XLA cannot")
    assert (found["rematerialization"].state, found["rematerialization"].reason) == (
        ConfigurationState.FAILED,
        "out of memory",
    )
    assert found["1 thread"].state is ConfigurationState.FINISHED


def test_a_race_goes_on_without_its_reference() -> None:
    large = Behaviour(problem="no", out_of_memory=True)
    found, _, raced = race({"": large, "xla=on": Behaviour(200.0), "remat=on": Behaviour(100.0)})
    assert found["this plan"].state is ConfigurationState.FAILED
    assert find_best(raced.results)[Best.FASTEST].title == "XLA"
    found, _, _ = race({"": Behaviour(problem="no", fails_after=3), "xla=on": Behaviour(200.0)})
    assert found["XLA"].state is ConfigurationState.FINISHED


def test_a_race_of_a_plan_that_cannot_train_stops_after_its_first_process() -> None:
    found, trials, _ = race({"": Behaviour(problem="shapes do not fit"), "xla=on": Behaviour(200.0)})
    reference = found.pop("this plan")
    assert (reference.state, reference.reason) == (ConfigurationState.FAILED, "shapes do not fit")
    assert len(trials.processes) == 1
    others = [each for each in found.values() if each.state is not ConfigurationState.REFUSED]
    assert {(each.state, each.reason) for each in others} == {("not measured", "this plan cannot train")}


def test_groups_are_as_small_as_the_memory_and_compare_by_the_reference(monkeypatch) -> None:
    monkeypatch.setattr(trial_memory, "MAX_CONCURRENT", 1)
    found, trials, _ = race({"xla=on": Behaviour(2000.0)})
    assert trials.most_open == 2  # the reference and one configuration
    assert found["XLA"].against_reference.value == pytest.approx(2.0)
    monkeypatch.undo()
    _, trials, _ = race({})
    assert trials.most_open == 7


def test_rates_of_all_groups_are_those_beside_all_rounds_of_the_reference(monkeypatch) -> None:
    """The machine gets slower from group to group; configurations that are equally fast have equal rates at the end."""
    shown = {}
    monkeypatch.setattr(trial_memory, "MAX_CONCURRENT", 1)
    found, _, raced = race(
        {},
        slowdown=0.9,
        kinds=(ConfigurationKind.XLA, ConfigurationKind.REMAT, ConfigurationKind.THREADS),
        on_result=lambda result: shown.update({result.title: result}),
    )
    median = found["this plan"].examples_per_second
    rates = [each.examples_per_second for each in raced.results if each.ratios]
    assert len(rates) > 2
    assert rates == pytest.approx([median] * len(rates), rel=0.01)
    assert shown == found


def test_a_configuration_of_fewer_processes_takes_less_memory(monkeypatch) -> None:
    monkeypatch.setattr(trial_memory, "available_memory", lambda: 0)
    monkeypatch.setattr("accel_engine.race.configuration_trial.resident_bytes", lambda _: 2.6e9)
    plan = Plan(model="cnn", strategy="multi-worker", local_workers=2, isolate_workers="off")
    kinds, budget = (ConfigurationKind.DEVICES, ConfigurationKind.PRECISION), MemoryBudget(available=lambda: int(2e9))
    results, *_ = race({"": Behaviour()}, kinds=kinds, budget=budget, plan=plan)
    assert results["cpu:0, one process"].is_measured
    assert results["mixed_bfloat16"].state is ConfigurationState.REFUSED


def test_what_the_host_has_no_memory_for_is_not_started() -> None:
    found, trials, _ = race({}, budget=MemoryBudget(available=lambda: 0))
    assert len(trials.processes) == 1  # the plan itself
    assert found["XLA"].state is ConfigurationState.REFUSED
    assert found["XLA"].reason.endswith("iB of memory, and 0 B are free")
    factor = trial_memory.Usage(resident=1e9, grown=2e8)
    tight = MemoryBudget(available=lambda: int(1.5e9))
    assert (tight.lacking(factor, 1.0), tight.lacking(factor, 0.5)) == ("", "")
    assert tight.lacking(factor, 4.0) == "it takes about 1.8 GiB of memory, and 1.4 GiB are free"


def test_a_live_run_on_the_same_gpu_keeps_its_memory(monkeypatch) -> None:
    asked = []

    def check_trial_memory(trials):
        asked.append(trials)
        return [DevicesInUse("k3fp", ("gpu:0",))]

    monkeypatch.setattr(trial_memory, "check_trial_memory", check_trial_memory)
    found, trials, _ = race({})
    placed = PlacedTrial(devices=("cpu:0",))
    assert asked == [(placed,), (placed, placed)]
    assert trials.most_open == 2
    assert found["batch size 128"].state is ConfigurationState.REFUSED
    assert found["batch size 32"].state is ConfigurationState.FINISHED


def test_configurations_without_room_beside_a_live_run_are_refused(monkeypatch) -> None:
    def check_trial_memory(trials, *, most):
        if sum(trial.processes for trial in trials) > most:
            raise RunError("it does not fit")
        return [DevicesInUse("k3fp", ("gpu:0",))]

    monkeypatch.setattr(isolation, "why_reachable", lambda _: "")
    resolved = resolve_to_train(Plan(model="cnn"), GPUS)
    found = find_configurations(resolved, GPUS, (ConfigurationKind.DEVICES, ConfigurationKind.BATCH_SIZE))
    monkeypatch.setattr(trial_memory, "check_trial_memory", partial(check_trial_memory, most=2))
    fitting = find_fitting_plans(found.reference.plan, {each.title: each.plan for each in found.others}, GPUS)
    assert fitting.has_runs
    larger = "a live run trains on the same device"
    workers = "multi-worker on 2 GPUs"
    assert fitting.refused == {workers: "it does not fit", "batch size 128": larger, "batch size 256": larger}
    monkeypatch.setattr(trial_memory, "check_trial_memory", partial(check_trial_memory, most=1))
    with pytest.raises(RunError, match="it does not fit"):
        find_fitting_plans(found.reference.plan, {each.title: each.plan for each in found.others}, GPUS)


def test_out_of_memory_beside_others_is_tried_again_alone() -> None:
    found, trials, _ = race({"remat=on": Behaviour(problem="out of memory", out_of_memory=True)})
    assert sum(process.plan.remat == "on" for process in trials.processes) == 2
    assert found["rematerialization"].state is ConfigurationState.FAILED


def test_a_device_for_one_process_has_no_two() -> None:
    found, trials, raced = race(
        {"xla=on": Behaviour(2000.0), "threads=1": Behaviour(1500.0), "xla=on,threads=1": Behaviour(3000.0)},
        budget=MemoryBudget(is_exclusive=True),
    )
    assert trials.most_open == 1
    assert find_best(raced.results)[Best.FASTEST].title == "combined: XLA, 1 thread"
    assert found["XLA"].against_reference.value == pytest.approx(2.0)
    assert found["this plan"].state is ConfigurationState.FINISHED
    assert found["XLA"].examples_per_second == pytest.approx(2000.0)


def test_a_race_that_is_stopped_has_results() -> None:
    seen = []
    stop = lambda: any(each.title == "1 thread" and len(each.rates) == 3 for each in seen)  # noqa: E731
    found, _, raced = race({}, should_stop=stop, on_result=seen.append)
    assert raced.was_stopped
    assert found["XLA"].state is ConfigurationState.MEASURING
    assert found["batch size 128"].state is ConfigurationState.NOT_MEASURED
    assert found["XLA"].examples_per_second is not None


def test_a_process_that_cannot_be_started_is_a_result(monkeypatch) -> None:
    add = StandInTrials.add

    def refuse(self, start):
        if start.plan.remat == "on":
            raise OSError(12, "Cannot allocate memory")
        return add(self, start)

    monkeypatch.setattr(StandInTrials, "add", refuse)
    found, _, _ = race({})
    assert found["rematerialization"].reason == "no process can be started: Cannot allocate memory"
    assert found["1 thread"].state is ConfigurationState.FINISHED


def test_only_the_reference_is_measured_where_there_is_no_other_configuration() -> None:
    found, _, _ = race({}, kinds=())
    assert found["this plan"].state is ConfigurationState.FINISHED
    assert found["this plan"].examples_per_second == pytest.approx(1000.0)


def test_what_was_found_is_remembered(monkeypatch) -> None:
    race({"xla=on": Behaviour(2000.0, memory=3e8)})
    same = resolve_to_train(Plan(model="cnn", xla="off", seed=3, epochs=2, name="x"), CPU)
    found = remembered_result(same, CPU)
    assert found.examples_per_second == pytest.approx(1000.0)
    assert (found.faster_changes, found.factor) == ({"xla": "on"}, pytest.approx(2.0))
    assert found.epoch_seconds(same) == pytest.approx(1437 / 1000, rel=0.01)
    low, high = found.between
    assert low <= 1000.0 <= high
    auto = remembered_result(resolve_to_train(Plan(model="cnn"), CPU), CPU)
    assert auto == found  # as it was measured, which is without XLA
    compiled = remembered_result(resolve_to_train(Plan(model="cnn", xla="on"), CPU), CPU)
    assert (compiled.examples_per_second, compiled.memory) == (pytest.approx(2000.0), 3e8)
    assert remembered_result(resolve_to_train(Plan(model="mlp"), CPU), CPU) is None
    assert (
        remembered_result(resolve_to_train(Plan(model="cnn", batch_size=32, xla="off"), CPU), CPU) is not None
    )  # a configuration of the race
    now = cache.clock.now()
    monkeypatch.setattr(cache.clock, "now", lambda: now + 8 * 24 * 3600)
    assert remembered_result(same, CPU) is None


def test_a_failed_compilation_and_what_other_flags_measured_are_not_remembered(monkeypatch) -> None:
    compiled, plain = (
        resolve_to_train(Plan(model="cnn", xla="on"), CPU),
        resolve_to_train(Plan(model="cnn", xla="off"), CPU),
    )
    race({"xla=on": Behaviour(problem="libdevice not found")})
    assert remembered_result(compiled, CPU) is None
    assert remembered_result(plain, CPU).faster_changes == {}
    race({"xla=on": Behaviour(2000.0)})
    assert remembered_result(compiled, CPU).examples_per_second == pytest.approx(2000.0)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert remembered_result(compiled, CPU) is None
    assert remembered_result(plain, CPU) is None
    monkeypatch.delenv("XLA_FLAGS")
    assert remembered_result(plain, CPU).faster_changes == {"xla": "on"}


def test_advice_on_a_run_has_what_a_race_of_its_plan_found(monkeypatch) -> None:
    monkeypatch.setattr(remembered_races, "detect", lambda: Inventory(CPU))
    run = create(Plan(model="cnn", xla="off", name="x"))
    assert remembered_races.read_with_races(run).faster is None
    race({"xla=on": Behaviour(2000.0, memory=3e8)})
    recorded = remembered_races.read_with_races(run)
    assert recorded.faster == FasterPlan({"xla": "on"}, pytest.approx(2.0))
    (finding,) = find_troubles(recorded)
    assert finding.evidence[0].text == "--xla on: 2.00 times the examples per second, in turns on this machine"
    assert remembered_races.read_with_races(create(Plan(model="mlp", xla="off"))).faster is None


def test_a_damaged_file_is_ignored(tmp_path) -> None:
    (tmp_path / "races.json").write_text('{"a": 1, "b": {"examples_per_second": -1}}')
    race({})
    assert remembered_result(resolve_to_train(Plan(model="cnn", xla="off"), CPU), CPU) is not None
