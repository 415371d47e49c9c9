import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import Event, ThreadsChosen, Warned, XlaTried
from accel_engine.inference.measurement.window import LAST
from accel_engine.measure import cache
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.training.autotuning import run_threads
from accel_engine.training.autotuning.mode_choice import ModeTrial, TrialSpeeds
from accel_engine.training.autotuning.run_threads import (
    WINDOW_SECONDS,
    RunThreads,
    SettledRate,
    ThreadSource,
    load_rates,
    rates_key,
)
from accel_engine.training.core.device_visibility import VARIABLE
from accel_engine.training.core.loop import ChunkResult, ExecutionMode
from accel_engine.training.reporting.run_reporter import RunReporter

from ..conftest import MACHINE, Gym

PLAN = Plan(model="fashion-cnn", validation="off")
GPU = Inventory((*MACHINE.devices, Device("gpu:0", "gpu", "A card", 8 << 30)))

WHOLE, SPLIT = ExecutionMode(), ExecutionMode(micro_batches=4)


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (run_threads, cache):
        monkeypatch.setattr(module, "processors", lambda: 2)
    monkeypatch.delenv(VARIABLE, raising=False)


class Run:
    """A run that begins, and the events that it writes."""

    def __init__(self, plan: Plan = PLAN, inventory: Inventory = MACHINE) -> None:
        self._directory: Path = create(plan)
        self._writer = RunWriter(self._directory)
        self._writer.begin()
        self.threads = RunThreads(resolve(plan, inventory.devices), inventory, RunReporter(self._writer, 0))
        self.threads.report()

    def train(self, *rates: float, mode: ExecutionMode = ExecutionMode()) -> None:  # noqa: B008 (immutable)
        """Take steps at these rates, each long enough to count, after a warm-up."""
        seconds, windows = run_threads.WINDOW_SECONDS, LAST
        for rate in (1.0, *(each for each in rates for _ in range(windows))):
            self.threads.observe(ChunkResult(round(rate * seconds), 0.0, seconds, {}, 64), mode)

    def events(self, kind: type[Event]) -> list[Event]:
        """The events of a kind."""
        self._writer.close()
        reader = RunReader(self._directory)
        try:
            return [event for event in reader.poll().events if isinstance(event, kind)]
        finally:
            reader.close()


def test_the_next_run_begins_with_the_number_that_was_faster() -> None:
    Run(PLAN.replace(threads=1)).train(128)
    Run().train(99)

    run = Run(PLAN.replace(epochs=3, name="another"))

    assert (run.threads.choice.setting, run.threads.choice.source) == (1, ThreadSource.EARLIER_RUNS)
    (event,) = run.events(ThreadsChosen)
    assert isinstance(event, ThreadsChosen)
    assert (event.threads, event.default, event.source) == (1, 2, "earlier runs")
    assert (event.rate, event.default_rate) == (128, 99)
    assert Run(PLAN.replace(batch_size=32)).threads.choice.source is ThreadSource.TENSORFLOW


def test_a_deterministic_run_has_the_same_number_each_time() -> None:
    plan = PLAN.replace(deterministic="on")
    Run(plan.replace(threads=1)).train(128)
    Run(plan).train(99)

    assert Run(plan).threads.choice.source is ThreadSource.TENSORFLOW


def test_it_begins_with_tensorflows_own_number_if_the_other_was_no_faster() -> None:
    Run(PLAN.replace(threads=1)).train(105)
    Run().train(99)

    run = Run()

    assert run.threads.choice.setting is None
    assert run.events(ThreadsChosen) == []


def test_the_same_number_as_tensorflows_own_counts_as_such() -> None:
    Run(PLAN.replace(threads=2)).train(50)
    Run(PLAN.replace(threads=1)).train(100)

    assert Run().threads.choice.count == 1
    assert Run(PLAN.replace(threads=2)).events(ThreadsChosen) == []


def test_a_choice_that_is_slower_than_tensorflows_own_number_is_forgotten() -> None:
    Run(PLAN.replace(threads=1)).train(128)
    Run().train(99)

    run = Run()
    run.train(98, 200)  # what comes later changes nothing

    assert Run().threads.choice.source is ThreadSource.TENSORFLOW
    (note,) = run.events(Warned)
    assert isinstance(note, Warned)
    assert note.severity == "information"
    assert note.message == ("--threads 1 is no longer chosen by itself: 98 steps/s, but 99 in an earlier run with 2")


def test_a_choice_that_stays_faster_is_kept() -> None:
    Run(PLAN.replace(threads=1)).train(128)
    Run().train(99)

    run = Run()
    run.train(120)

    assert (Run().threads.choice.count, Run().threads.choice.rate) == (1, 120)
    assert run.events(Warned) == []


def test_a_plans_number_is_remembered_even_if_it_is_slow() -> None:
    Run().train(99)
    run = Run(PLAN.replace(threads=1))
    run.train(20)

    assert Run().threads.choice.source is ThreadSource.TENSORFLOW
    assert run.events(Warned) == []
    Run(PLAN.replace(threads=1)).train(120)
    assert Run().threads.choice.count == 1


def test_a_run_that_gets_faster_is_remembered_so() -> None:
    Run(PLAN.replace(threads=1)).train(100)
    Run().train(60, 62, 95)  # other programs have ended

    assert Run().threads.choice.source is ThreadSource.TENSORFLOW


def test_the_environment_is_preferred_to_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    Run(PLAN.replace(threads=1)).train(128)
    Run().train(99)
    monkeypatch.setenv(VARIABLE, "2")
    assert Run().threads.choice.setting is None
    monkeypatch.setenv(VARIABLE, "4")
    run = Run()

    assert (run.threads.choice.count, run.threads.choice.setting) == (4, None)
    run.train(300)
    monkeypatch.delenv(VARIABLE)
    assert Run().threads.choice.count == 4, "its rate is remembered, too"
    (event,) = run.events(ThreadsChosen)
    assert isinstance(event, ThreadsChosen)
    assert (event.source, event.rate) == ("environment", 0)


def test_runs_on_a_gpu_and_of_several_processes_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu = Run(inventory=GPU)
    on_gpu.train(500)
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}')
    worker = Run(PLAN.replace(strategy="multi-worker", threads=1))
    worker.train(500)

    assert worker.threads.choice.setting == 1
    assert len(worker.events(ThreadsChosen)) == 1
    assert not (Path(os.environ["ACCEL_TUI_HOME"]) / "threads.json").exists()


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ExecutionMode, int]]:
    """The mode and the examples of a step of each chunk whose rate a run observes; all rates count."""
    seen: list[tuple[ExecutionMode, int]] = []
    observe = RunThreads.observe

    def record(self: RunThreads, chunk: ChunkResult, mode: ExecutionMode) -> None:
        seen.append((mode, chunk.examples))
        observe(self, chunk, mode)

    monkeypatch.setattr(RunThreads, "observe", record)
    monkeypatch.setattr(run_threads, "WINDOW_SECONDS", 0.0)
    monkeypatch.setattr(run_threads, "TOLERANCE", float("inf"))
    return seen


TRIED = Plan(model="mlp", epochs=4, batch_size=64, validation="off")
"""92 steps, of which the last one of an epoch has a smaller batch."""


@pytest.mark.usefixtures("at_once")
def test_a_run_remembers_its_rate_in_the_mode_that_it_has_chosen(
    gym: Gym, measured: Callable[[float], None], observed: list[tuple[ExecutionMode, int]]
) -> None:
    measured(300.0)

    trained = gym.train(TRIED)

    assert trained.only(XlaTried).xla
    assert set(observed) == {(ExecutionMode(xla=True), 64)}
    (rate,) = load_rates(rates_key(resolve(TRIED), MACHINE)).values()
    assert rate > 0


@pytest.mark.usefixtures("at_once")
def test_a_run_whose_trial_is_disturbed_remembers_nothing(
    gym: Gym,
    measured: Callable[[float], None],
    observed: list[tuple[ExecutionMode, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(300.0)
    monkeypatch.setattr(ModeTrial, "speeds", TrialSpeeds(100.0, 300.0, settled=False))

    assert not gym.train(TRIED).only(XlaTried).settled

    assert observed == []
    assert load_rates(rates_key(resolve(TRIED), MACHINE)) == {}


def test_a_run_without_a_trial_remembers_its_rate(gym: Gym, observed: list[tuple[ExecutionMode, int]]) -> None:
    plan = TRIED.replace(xla="off", threads=1)

    gym.train(plan)

    assert set(observed) == {(ExecutionMode(), 64)}
    assert list(load_rates(rates_key(resolve(plan), MACHINE))) == [1]


def add(rate: SettledRate, values: Iterable[float], mode: ExecutionMode = WHOLE) -> None:
    """Add chunks of these rates, a window each."""
    for value in values:
        rate.add(ChunkResult(round(value * WINDOW_SECONDS), 0.0, WINDOW_SECONDS, {}, 1), mode)


def test_a_rate_is_the_median_of_windows_that_agree() -> None:
    rate = SettledRate()
    add(rate, [1])  # the warm-up
    add(rate, [100] * (LAST - 1))
    assert rate.value is None

    add(rate, [104])
    assert rate.value == 100

    add(rate, [104])
    assert rate.value == 104, "the latest ones"


@pytest.mark.parametrize("disturbed", [50, 200])
def test_windows_that_disagree_have_no_rate(disturbed: float) -> None:
    rate = SettledRate()
    add(rate, [1, *[100] * LAST, disturbed])
    assert rate.value is None

    add(rate, [100] * LAST)
    assert rate.value == 100


def test_another_mode_begins_anew_with_a_warm_up() -> None:
    rate = SettledRate()
    add(rate, [1, *[100] * LAST])

    add(rate, [1, *[150] * (LAST - 1)], SPLIT)
    assert rate.value is None

    add(rate, [150], SPLIT)
    assert rate.value == 150


def test_short_chunks_make_a_window_together() -> None:
    rate = SettledRate()
    for _ in range(1 + 4 * LAST):
        rate.add(ChunkResult(25, 0.0, WINDOW_SECONDS / 4, {}, 1), WHOLE)
    assert rate.value == pytest.approx(100 / WINDOW_SECONDS)
