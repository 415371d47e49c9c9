from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.events import MicroBatchesTried, XlaTried
from accel_engine.measure import cache
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.directory.run_paths import make_private
from accel_engine.training.autotuning import autotuner
from accel_engine.training.autotuning.autotuner import AutoTuner
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ChunkResult, ExecutionMode, Loop

from ..conftest import RANDOM, Gym

pytestmark = pytest.mark.usefixtures("at_once")

PLAN = Plan(model="linear", epochs=4, batch_size=64, last_batch="drop", validation="off")
"""88 steps, in chunks of two."""

_memory: list[str] = []


@pytest.fixture
def after_a_trial(at_once: None, gym: Gym, measured: Callable[[float], None]) -> None:
    """Remember the trial of a run, in which XLA was three times as fast; it is trained once."""
    measured(300.0)
    if _memory:
        make_private(autotuner.TRIALS.path.parent)
        autotuner.TRIALS.path.write_text(_memory[0])
    else:
        gym.train(PLAN)
        _memory.append(autotuner.TRIALS.path.read_text())


@pytest.mark.parametrize("model", ["build", pytest.param("unseeded", marks=pytest.mark.campaign)])
def test_the_steps_of_a_trial_are_those_of_the_run(
    gym: Gym, measured: Callable[[float], None], random_model: str, model: str
) -> None:
    measured(90.0)
    plan = PLAN.replace(model=random_model.replace(":build", f":{model}"))

    tried = gym.train(plan)

    event = tried.only(XlaTried)
    assert (event.xla, event.plain, event.compiled, event.remembered) == (False, 100.0, pytest.approx(90.0), False)
    assert 0 < event.step < tried.ended.steps
    plain = gym.train_once(plan.replace(xla="off"))
    np.testing.assert_allclose(tried.series["loss"], plain.series["loss"], atol=1e-5)
    np.testing.assert_array_equal(tried.series["loss"][:4], plain.series["loss"][:4])


def test_the_faster_mode_is_used_and_remembered(gym: Gym, measured: Callable[[float], None]) -> None:
    measured(300.0)

    first, second = gym.train(PLAN), gym.train(PLAN)

    assert (first.only(XlaTried).xla, first.only(XlaTried).remembered) == (True, False)
    assert (second.only(XlaTried).xla, second.only(XlaTried).remembered) == (True, True)
    assert second.only(XlaTried).step < first.only(XlaTried).step
    plain = gym.train_once(PLAN.replace(xla="off"))
    for trained in (first, second):
        np.testing.assert_allclose(trained.series["loss"], plain.series["loss"], atol=1e-5)
    assert plain.all(XlaTried) == []


def test_a_slower_mode_is_not_compiled_again(
    gym: Gym, measured: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(50.0)
    gym.train(PLAN)
    monkeypatch.setattr(Loop, "compile", lambda *_: pytest.fail("compiled"))

    event = gym.train(PLAN).only(XlaTried)

    assert (event.xla, event.remembered, event.step) == (False, True, 0)


@pytest.mark.usefixtures("after_a_trial")
def test_a_trial_is_forgotten_after_a_week(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now

    monkeypatch.setattr(cache.clock, "now", lambda: now() + cache.MAX_AGE_SECONDS)
    assert not gym.train(PLAN).only(XlaTried).remembered


@pytest.mark.usefixtures("after_a_trial")
def test_a_damaged_memory_is_ignored(gym: Gym) -> None:
    (key,) = autotuner.TRIALS.all()
    assert autotuner.TRIALS.load(key)
    for damaged in ({"default": 0.0, "alternative": 1.0, "compile_seconds": 1.0}, 1, None):
        autotuner.TRIALS.save({key: damaged})
        assert autotuner.TRIALS.load(key) is None
    assert not gym.train(PLAN).only(XlaTried).remembered


@pytest.mark.usefixtures("after_a_trial")
def test_batch_threads_processor_and_version_are_part_of_the_key(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(plan: Plan) -> str:
        assembly = assemble(resolve(plan), ("CPU:0",), None)
        return autotuner.trial_key(assembly, ("a processor",), ExecutionMode(xla=True))

    monkeypatch.setattr(device_visibility, "hardware_names", lambda *_: ("another processor",))
    assert not gym.train(PLAN).only(XlaTried).remembered

    keys = [key(PLAN), key(PLAN.replace(batch_size=128))]
    assert key(PLAN) == keys[0]
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=0")
    keys.append(key(PLAN))
    for module, name, value in (
        (autotuner, "threads_in_use", lambda: 1000),
        (cache, "processors", lambda: 1000),
        (cache, "__version__", "another"),
    ):
        monkeypatch.setattr(module, name, value)
        keys.append(key(PLAN))
    assert len(set(keys)) == len(keys)


def test_a_trial_measures_real_rates(gym: Gym) -> None:
    event = gym.train(PLAN).all(XlaTried)[0]

    assert event.plain > 0
    assert event.compiled > 0
    assert event.xla == (event.compiled > event.plain)


def test_steps_that_xla_cannot_compile_stay_uncompiled(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuner, "alternative_mode", lambda *_: ExecutionMode(xla=True))
    monkeypatch.setattr(Loop, "compile", lambda *_: (_ for _ in ()).throw(ValueError("cannot compile this")))

    trained = gym.train(PLAN)

    tried = trained.only(XlaTried)
    assert (tried.xla, tried.compiled, tried.reason) == (False, 0.0, "ValueError: cannot compile this")
    assert trained.ended.steps == 88


def test_xla_is_not_tried_where_the_user_s_flags_would_end_the_process(
    gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autotuner, "xla_flags_problem", lambda: "Unknown flag in XLA_FLAGS: --xla_a=1")
    monkeypatch.setattr(Loop, "compile", lambda *_: pytest.fail("compiled"))

    trained = gym.train(PLAN)

    reason = "XLA would end the process: Unknown flag in XLA_FLAGS: --xla_a=1"
    assert (trained.only(XlaTried).xla, trained.only(XlaTried).reason) == (False, reason)
    assert trained.ended.steps == 88


def test_a_failed_compilation_does_not_switch_xla_off_for_later_runs(
    gym: Gym, measured: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What XLA lacked may have been installed since."""
    measured(300.0)
    with monkeypatch.context() as without_compiler:
        without_compiler.setattr(Loop, "compile", lambda *_: (_ for _ in ()).throw(ValueError("libdevice not found")))
        gym.train(PLAN)

    tried = gym.train(PLAN).only(XlaTried)

    assert (tried.xla, tried.remembered, tried.reason) == (True, False, "")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "INTERNAL: libdevice not found at ./libdevice.10.bc",
            "XLA finds no libdevice, a part of CUDA: run pip install",
        ),
        ("Couldn't get ptxas version : FAILED_PRECONDITION", "XLA finds no ptxas, a part of CUDA: run pip install"),
        ("no such operation", "ValueError: no such operation"),
    ],
)
def test_why_xla_cannot_compile_is_said_with_the_cure(
    message: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert autotuner.why_not_compiled(ValueError(message)).startswith(reason)


def test_where_no_package_has_cuda_s_compiler_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    words = autotuner.why_not_compiled(ValueError("libdevice not found"))
    assert "NVIDIA's container" in words
    assert "and-cuda" not in words


def test_a_run_does_not_wait_for_the_compiler(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    gym.steps = 2

    class Never:
        has_ended, loop = False, None

    monkeypatch.setattr(autotuner, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "WORTHWHILE_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "COMPILE_FACTOR", 0.0)
    monkeypatch.setattr(autotuner, "LoopCompilation", lambda *_, **__: Never())

    trained = gym.train(PLAN)

    assert trained.ended.steps == 88
    assert trained.all(XlaTried) == []


def test_compiling_changes_nothing_while_another_loop_trains(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, random_model: str
) -> None:
    """XLA compiles by running the program without steps, again and again here, while each chunk of the run runs."""
    import threading

    plan = PLAN.replace(model=random_model, epochs=2)
    expected = gym.train(plan.replace(xla="off"))
    stop = threading.Event()
    threads: list[threading.Thread] = []
    calls = [0]
    run = Loop.run

    def run_beside(self: Loop, segment: Segment, *arguments: object) -> object:
        if not threads:
            other = Loop(self._assembly, ExecutionMode(xla=True))
            other.compile(segment)

            def again() -> None:
                while not stop.is_set():
                    other.compile(segment)
                    calls[0] += 1

            threads.append(threading.Thread(target=again))
            threads[0].start()
        return run(self, segment, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Loop, "run", run_beside)
    trained = gym.train(plan.replace(xla="off"))
    stop.set()
    threads[0].join()

    assert calls[0] > 0
    np.testing.assert_array_equal(trained.series["loss"], expected.series["loss"])
    assert trained.ended.metrics == expected.ended.metrics


def test_a_trial_works_after_the_model_file_is_deleted(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    path.write_text(RANDOM)
    compile_ = Loop.compile

    def compile_without_file(self: Loop, segment: Segment) -> None:
        path.unlink(missing_ok=True)
        compile_(self, segment)

    monkeypatch.setattr(Loop, "compile", compile_without_file)

    assert gym.train(PLAN.replace(model=f"{path}:build")).all(XlaTried)[0].compiled


def test_the_mode_is_looked_at_again_when_the_rate_changes(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {False: 100.0, True: 300.0}
    observe = AutoTuner.observe

    def with_rate(self: AutoTuner, chunk: ChunkResult, segment: Segment) -> None:
        if self._reporter.step > 40:
            rates[True] = 10.0  # other programs
        observe(self, replace(chunk, seconds=30.0 * chunk.count / rates[self.loop_for(segment).mode.xla]), segment)

    monkeypatch.setattr(AutoTuner, "observe", with_rate)

    events = gym.train(PLAN.replace(epochs=8)).all(XlaTried)

    assert [(event.xla, event.step > 40) for event in events] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    "changes", [{"model": "cnn", "epochs": 1}, {"strategy": "mirrored", "virtual_cpus": 2}, {"xla": "off"}]
)
def test_no_trial_where_it_makes_no_sense(gym: Gym, changes: dict[str, object]) -> None:
    assert gym.train(PLAN.replace(**changes)).all(XlaTried) == []


@pytest.mark.parametrize("limit", ["WORTHWHILE_SECONDS", "COMPILE_FACTOR"])
def test_no_trial_where_too_little_is_left(gym: Gym, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(autotuner, limit, 1e9)

    assert gym.train(PLAN).all(XlaTried) == []


SPLIT = Plan(model="fashion-cnn", epochs=2, batch_size=64, last_batch="drop", validation="off")
"""A convolutional network, which may be faster in micro-batches."""


@pytest.mark.parametrize(("split", "taken"), [(300.0, 2), pytest.param(50.0, 1, marks=pytest.mark.campaign)])
def test_micro_batches_are_used_where_they_are_faster(
    gym: Gym, measured: Callable[[float], None], split: float, taken: int
) -> None:
    measured(split)

    first, second = gym.train(SPLIT), gym.train(SPLIT)

    event = first.only(MicroBatchesTried)
    assert (event.micro_batches, event.tried, event.whole, event.split) == (taken, 2, 100.0, pytest.approx(split))
    assert [each.only(MicroBatchesTried).remembered for each in (first, second)] == [False, True]
    assert second.only(MicroBatchesTried).micro_batches == taken
    whole = gym.train_once(SPLIT.replace(micro_batches=1))
    for trained in (first, second):
        np.testing.assert_allclose(trained.series["loss"], whole.series["loss"], atol=1e-5)
    assert not whole.all(MicroBatchesTried)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "mlp"},
        {"strategy": "mirrored", "virtual_cpus": 2},
        pytest.param({"xla": "on"}, marks=pytest.mark.campaign),
    ],
)
def test_no_trial_of_micro_batches_where_it_makes_no_sense(gym: Gym, changes: dict[str, object]) -> None:
    assert not gym.train(SPLIT.replace(epochs=1, **changes)).all(MicroBatchesTried)
