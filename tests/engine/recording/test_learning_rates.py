"""The learning rate that each step was taken with."""

import threading
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.events import LearningRateChanged, Outcome, RunEnded, Warned
from accel_engine.recording import fit_session as fitting
from accel_engine.recording import learning_rates
from accel_engine.recording.learning_rates import (
    FIRST_READS,
    LearningRates,
    RateSchedule,
    learning_rate_series_name,
    optimizers_in_use,
)

from .conftest import Read, examples, tiny

STEPS = 39

Schedules = keras.optimizers.schedules


@keras.saving.register_keras_serializable()
class Halves(Schedules.LearningRateSchedule):  # type: ignore[misc]
    """Takes one number alone, as many of users' own do."""

    def __call__(self, step: Any) -> Any:
        return keras.ops.cond(step < 20, lambda: 0.2 + 0 * keras.ops.cast(step, "float32"), lambda: 0.1)

    def get_config(self) -> dict[str, Any]:
        return {}


class PerBatch(keras.callbacks.Callback):  # type: ignore[misc]
    """Sets the rate at each batch, and notes what each step was taken with."""

    def __init__(self, hook: str) -> None:
        super().__init__()
        self.taken: list[float] = []
        self.step = 0
        setattr(self, hook, self.change)

    def change(self, batch: int, logs: Any = None) -> None:
        self.step += 1
        self.model.optimizer.learning_rate = 0.1 / (1 + self.step)


class Note(keras.callbacks.Callback):  # type: ignore[misc]
    """Notes the rate that each step is taken with: the last callback before a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.taken.append(float(self.model.optimizer.learning_rate))


def fit(model: keras.Model, *callbacks: Any, **options: Any) -> None:
    model.fit(
        *examples(), **{"batch_size": 8, "epochs": 3, "shuffle": False, "verbose": 0, **options}, callbacks=callbacks
    )


@pytest.fixture(params=[0.0, 60.0], ids=["each batch", "each epoch"])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", request.param)


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(Schedules.ExponentialDecay(0.1, 10, 0.9), marks=pytest.mark.campaign),
        Schedules.CosineDecay(0.0, 30, warmup_target=0.1, warmup_steps=15),
        pytest.param(Schedules.PiecewiseConstantDecay([5, 20], [0.3, 0.2, 0.1]), marks=pytest.mark.campaign),
        Halves(),
    ],
    ids=lambda schedule: type(schedule).__name__,
)
def test_a_schedule_has_the_rate_of_every_step(looks: None, schedule: Any) -> None:
    recorder = RunRecorder()

    fit(tiny(optimizer=keras.optimizers.SGD(schedule)), recorder)

    read = Read(recorder.directory)
    np.testing.assert_allclose(
        read.series("learning_rate"), [float(schedule(step)) for step in range(STEPS)], rtol=1e-6, atol=1e-9
    )
    assert not read.all(LearningRateChanged)
    assert not read.all(Warned)


def test_a_schedule_goes_on_where_the_optimizer_was() -> None:
    schedule = Schedules.ExponentialDecay(0.1, 10, 0.9)
    model, recorder = tiny(optimizer=keras.optimizers.SGD(schedule)), RunRecorder()
    fit(model)

    fit(model, recorder)

    expected = [float(schedule(step)) for step in range(STEPS, 2 * STEPS)]
    np.testing.assert_allclose(Read(recorder.directory).series("learning_rate"), expected, rtol=1e-6)


def test_several_steps_an_execution_have_a_rate_each() -> None:
    schedule = Schedules.ExponentialDecay(0.1, 10, 0.9)
    recorder = RunRecorder()

    fit(tiny(optimizer=keras.optimizers.SGD(schedule), steps_per_execution=4), recorder)

    expected = [float(schedule(step)) for step in range(STEPS)]
    np.testing.assert_allclose(Read(recorder.directory).series("learning_rate"), expected, rtol=1e-6)


def test_accumulated_gradients_have_the_rate_that_keras_asks_the_schedule_for() -> None:
    schedule = Schedules.ExponentialDecay(0.1, 10, 0.9)
    recorder = RunRecorder()

    fit(tiny(optimizer=keras.optimizers.SGD(schedule, gradient_accumulation_steps=2)), recorder)

    expected = [float(schedule(step)) for step in range(STEPS)]
    np.testing.assert_allclose(Read(recorder.directory).series("learning_rate"), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (1 + epoch)),
        pytest.param(
            keras.callbacks.ReduceLROnPlateau(monitor="loss", min_delta=10.0, patience=1), marks=pytest.mark.campaign
        ),
    ],
    ids=lambda change: type(change).__name__,
)
@pytest.mark.parametrize(
    ("place", "execution"),
    [
        ("before", 1),
        ("after", 4),
        pytest.param("before", 4, marks=pytest.mark.campaign),
        pytest.param("after", 1, marks=pytest.mark.campaign),
    ],
)
def test_a_callback_that_changes_the_rate_between_epochs_is_followed(
    looks: None, change: Any, place: str, execution: int
) -> None:
    recorder, note = RunRecorder(), Note()

    fit(tiny(steps_per_execution=execution), *((change, recorder) if place == "before" else (recorder, change)), note)

    read = Read(recorder.directory)
    taken = note.taken if execution == 1 else list(np.repeat(note.taken, [4, 4, 4, 1] * 3))  # thirteen an epoch
    assert len(set(taken)) > 1
    np.testing.assert_array_equal(read.series("learning_rate"), np.float32(taken))
    changes = read.all(LearningRateChanged)
    assert [event.step for event in changes] == [step for step in (0, 13, 26) if step in _changes(taken)]


def _changes(taken: list[float]) -> set[int]:
    return {0, *(step for step in range(1, len(taken)) if taken[step] != taken[step - 1])}


@pytest.mark.parametrize("hook", ["on_train_batch_begin", "on_train_batch_end"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_callback_that_changes_the_rate_at_each_batch_is_followed(looks: None, hook: str, place: str) -> None:
    recorder, note, change = RunRecorder(), Note(), PerBatch(hook)

    fit(tiny(), *((change, recorder) if place == "before" else (recorder, change)), note)

    rates = Read(recorder.directory).series("learning_rate")
    if (hook, place) == ("on_train_batch_begin", "after"):  # one step late, as its documentation says
        np.testing.assert_array_equal(rates[1:], np.float32(note.taken[:-1]))
    else:
        np.testing.assert_array_equal(rates, np.float32(note.taken))


def test_between_two_looks_that_differ_rates_are_missing_and_then_read_at_each_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 60.0)
    recorder, note = RunRecorder(), Note()

    class Late(keras.callbacks.Callback):  # type: ignore[misc]
        steps = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.steps += 1
            if self.steps > 16:  # in the second epoch
                self.model.optimizer.learning_rate = 0.1 / self.steps

    fit(tiny(), recorder, Late(), note)

    rates = Read(recorder.directory).series("learning_rate")
    known = np.isfinite(rates)
    np.testing.assert_array_equal(rates[known], np.float32(note.taken)[known])
    assert known.tolist() == [True] * 14 + [False] * 12 + [True] * 13


def test_a_schedule_that_raises_when_it_is_asked_is_missing_and_training_goes_on() -> None:
    class Once(Schedules.LearningRateSchedule):  # type: ignore[misc]
        calls = 0

        def __call__(self, step: Any) -> Any:
            self.calls += 1
            if self.calls > 2:
                raise LookupError("asked too often")
            return 0.1

    recorder = RunRecorder()

    fit(tiny(optimizer=keras.optimizers.SGD(Once())), recorder)

    read = Read(recorder.directory)
    assert read.all(RunEnded)[0].outcome is Outcome.FINISHED
    assert len(read.series("loss")) == STEPS
    assert "asked too often" in read.all(Warned)[0].message


def test_of_a_schedule_that_cannot_be_computed_the_run_is_warned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    asked = []

    class InGraphs(Schedules.LearningRateSchedule):  # type: ignore[misc]
        def __call__(self, step: Any) -> Any:
            if threading.current_thread().name == "recorder":
                asked.append(step)
                raise LookupError("not outside of training")
            return 0.1

    recorder = RunRecorder()

    fit(tiny(optimizer=keras.optimizers.SGD(InGraphs())), recorder)

    read = Read(recorder.directory)
    (warned,) = read.all(Warned)
    assert warned.message.startswith("learning_rate is missing from step 0 on")
    assert "not outside of training" in warned.message
    assert len(asked) == 1
    assert len(read.series("loss")) == STEPS


def test_an_optimizer_that_is_never_used_has_no_rate() -> None:
    class Plain(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3)

        def train_step(self, data: Any) -> dict[str, Any]:
            return {"loss": keras.ops.mean(self.dense(data[0]))}

    recorder, model = RunRecorder(), Plain()
    model.compile()

    fit(model, recorder)

    read = Read(recorder.directory)
    assert "learning_rate" not in {name for chunk in read.update.chunks for name in chunk.series}
    assert not read.all(LearningRateChanged)


@pytest.mark.parametrize("way", ["as it is", "vectorized", "one by one"])
def test_each_way_to_compute_many_rates_gives_those_of_single_steps(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    def refuse(*_: Any) -> Any:
        raise TypeError("not this way")

    schedule: Any = Schedules.ExponentialDecay(0.1, 10, 0.9) if way == "as it is" else Halves()
    if way == "one by one":
        monkeypatch.setattr(learning_rates, "_vectorized", refuse)
        monkeypatch.setattr(learning_rates, "SINGLE_SECONDS", 60.0)
    many = RateSchedule(schedule)

    for first in (0, 7, 100):
        numbers = np.arange(first, first + 30 + first)
        np.testing.assert_allclose(many.rates(numbers), [float(schedule(number)) for number in numbers], rtol=1e-6)


def test_what_there_is_no_time_for_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(step: Any) -> Any:
        if np.ndim(step):
            raise TypeError("one only")
        return keras.ops.cast(step, "float32")

    monkeypatch.setattr(learning_rates, "_vectorized", lambda *_: slow)
    monkeypatch.setattr(learning_rates, "SINGLE_SECONDS", 1e-9)

    rates = RateSchedule(slow).rates(np.arange(50, dtype=np.int32))

    assert np.isfinite(rates).tolist() == [True] + [False] * 49


def test_rates_that_are_computed_one_by_one_are_evenly_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def single(step: Any) -> Any:
        if np.ndim(step):
            raise TypeError("one only")
        return keras.ops.cast(step, "float32") + 1.0

    ticks = count()
    monkeypatch.setattr(learning_rates, "_vectorized", lambda *_: single)
    monkeypatch.setattr(learning_rates, "SINGLE_SECONDS", 2.5)
    monkeypatch.setattr(learning_rates, "time", Mock(wraps=time, perf_counter=lambda: float(next(ticks))))
    schedule = RateSchedule(single)

    assert schedule.rates(np.array([7])).tolist() == [8.0]
    missing = np.nan
    np.testing.assert_array_equal(
        schedule.rates(np.arange(10)), [1.0, missing, missing, missing, 5.0, missing, missing, missing, 9.0, missing]
    )


def test_a_vectorized_schedule_that_gives_other_rates_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def collapses(step: Any) -> Any:
        return keras.ops.max(keras.ops.cast(step, "float32")) + 0.0 * keras.ops.cast(step, "float32")

    rates = RateSchedule(collapses).rates(np.arange(20))

    np.testing.assert_array_equal(rates[np.isfinite(rates)], np.arange(20.0)[np.isfinite(rates)])


@pytest.mark.parametrize(
    ("attribute", "series"),
    [
        ("optimizer", "learning_rate"),
        ("d_optimizer", "d_learning_rate"),
        ("_optimizer_g", "learning_rate_g"),
        ("opt", "opt_learning_rate"),
        ("my opt-1", "my_opt_1_learning_rate"),
        ("2nd optimizer", "metric_2nd_learning_rate"),
    ],
)
def test_a_rate_is_called_after_its_optimizer(attribute: str, series: str) -> None:
    assert learning_rate_series_name(attribute) == series


def test_an_attribute_of_any_name_and_one_optimizer_with_two_attributes_have_one_series_each() -> None:
    class Two(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3)
            self.same = keras.optimizers.SGD(0.1)
            setattr(self, "my opt-1", keras.optimizers.Adam(0.5))
            self._optimizer = keras.optimizers.SGD(0.2)

        def train_step(self, data: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                loss = keras.ops.mean(self.dense(data[0]))
            gradients = tape.gradient(loss, self.dense.trainable_variables)
            for optimizer in (self.same, vars(self)["my opt-1"], self._optimizer):
                optimizer.apply(gradients, self.dense.trainable_variables)
            return {"loss": loss}

    recorder, model = RunRecorder(), Two()
    model.compile(model.same)

    fit(model, recorder)

    read = Read(recorder.directory)
    assert read.all(RunEnded)[0].outcome is Outcome.FINISHED
    rates = {"learning_rate": 0.1, "my_opt_1_learning_rate": 0.5, "learning_rate_2": 0.2}
    assert {name for name in read.names | {"learning_rate"} if "rate" in name} == set(rates)
    for name, rate in rates.items():
        np.testing.assert_array_equal(read.series(name), np.full(STEPS, np.float32(rate)))


def test_an_optimizer_that_is_never_used_takes_no_name_from_another() -> None:
    class Other(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3)
            self._optimizer = keras.optimizers.SGD(0.2)

        def train_step(self, data: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                loss = keras.ops.mean(self.dense(data[0]))
            variables = self.dense.trainable_variables
            self._optimizer.apply(tape.gradient(loss, variables), variables)
            return {"loss": loss}

    recorder, model = RunRecorder(), Other()
    model.compile()

    fit(model, recorder)

    read = Read(recorder.directory)
    assert read.names == {"loss"}
    np.testing.assert_array_equal(read.series("learning_rate"), np.full(STEPS, np.float32(0.2)))


def test_a_rate_that_a_command_set_is_that_of_the_next_step(
    wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel_engine.run import send_command

    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    recorder, note = RunRecorder(), Note()

    class Ask(keras.callbacks.Callback):  # type: ignore[misc]
        asked = False

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if not self.asked:
                self.asked = True
                assert recorder.directory
                send_command(recorder.directory, "learning_rate", 0.5)
                wait_until(lambda: recorder._fit._commands._mailbox.has_pending, "the command")  # type: ignore[union-attr]

    fit(tiny(), recorder, Ask(), note)

    read = Read(recorder.directory)
    np.testing.assert_array_equal(read.series("learning_rate"), np.float32(note.taken))
    assert [event.learning_rate for event in read.all(LearningRateChanged)] == [0.1, 0.5]


class Tracked:
    """The rates of a model with one optimizer, and steps that it takes."""

    def __init__(self, rate: float = 0.1) -> None:
        self.optimizer = keras.optimizers.SGD(rate)
        self.model = SimpleNamespace(optimizer=self.optimizer)
        self.rates = LearningRates(self.model)

    def take(self, steps: int) -> list[float] | None:
        self.optimizer.iterations.assign_add(steps)
        rates = self.rates.take(self.model, steps).get("learning_rate")
        return None if rates is None else np.round(rates, 6).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [False, True])
def test_whether_a_rate_changes_is_decided_after_some_batches(changes: bool) -> None:
    tracked = Tracked()
    assert tracked.rates.due
    assert tracked.rates.names == {"learning_rate"}
    for step in range(FIRST_READS):
        assert tracked.rates.due
        if changes and step == FIRST_READS - 1:
            tracked.optimizer.learning_rate = 0.2
        tracked.rates.read(step)

    assert tracked.rates.due == changes
    assert tracked.take(FIRST_READS) == [0.1] * (FIRST_READS - 1) + [0.2 if changes else 0.1]
    assert tracked.rates.due == changes


def test_between_two_reads_that_differ_only_the_first_step_is_known() -> None:
    tracked = Tracked()
    tracked.rates.read(0)
    tracked.rates.read(1)
    assert tracked.take(2) == [0.1, 0.1]
    assert not tracked.rates._changing
    tracked.optimizer.learning_rate = 0.2
    np.testing.assert_array_equal(tracked.take(3), [np.nan] * 3)  # type: ignore[arg-type]
    assert tracked.rates.due
    tracked.rates.read(0)
    tracked.optimizer.learning_rate = 0.3
    np.testing.assert_array_equal(tracked.take(3), [0.2, np.nan, np.nan])  # type: ignore[arg-type]
    assert tracked.rates._changing
    tracked.rates.read(0)
    assert tracked.take(2) == [0.3, 0.3]
    assert tracked.rates._changing
    tracked.rates.read(0)
    tracked.rates.read(1)
    assert tracked.take(2) == [0.3, 0.3]
    assert not tracked.rates._changing


def test_an_unread_rate_that_stays_is_that_of_all_steps() -> None:
    tracked = Tracked()
    assert not tracked.rates.take(tracked.model, 2)  # the optimizer has taken no step yet

    assert tracked.take(2) == [0.1, 0.1]
    assert tracked.take(1) == [0.1]


def test_of_several_optimizers_those_that_have_taken_steps_are_in_use() -> None:
    used, built, unused = (keras.optimizers.SGD(0.1) for _ in range(3))
    built.build([])
    model = SimpleNamespace(d_optimizer=used, g_optimizer=built, optimizer=unused)

    assert optimizers_in_use(model) == {"g_optimizer": built}
    used.iterations.assign_add(1)
    assert optimizers_in_use(model) == {"d_optimizer": used}
    assert optimizers_in_use(SimpleNamespace()) == {}
