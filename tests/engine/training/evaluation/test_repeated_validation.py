"""A validation depends on the model and the data only: not on earlier ones, nor on how replicas share the examples."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.errors import DataError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run.diagnostics.packing import pack
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.compiled_chunk import ChunkSize
from accel_engine.training.evaluation import validation as validation_module
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.model_analysis.activations import output_sizes

from ..core.streams import ROWS, Recorded, X, dataset

MODELS = """
import keras

class Own(keras.Model):
    def train_step(self, batch):
        return super().train_step(batch)

def layers():
    inputs = keras.Input((6,))
    return inputs, keras.layers.Dense(3, activation="softmax", kernel_initializer="ones")(inputs * inputs)

class Telling(Own):
    def test_step(self, batch):
        return {"size": keras.ops.mean(batch[0]), **super().test_step(batch), "most": 4.0}

def telling():
    model = Telling(*layers())
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model

class Failing(Own):
    def test_step(self, batch):
        raise ValueError("it rains")

def failing():
    model = Failing(*layers())
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model

def own():
    model = Own(*layers())
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model

def plain():
    model = keras.Model(*layers())
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "net.py").write_text(MODELS)
    return Plan(model=f"{tmp_path / 'net.py'}:plain", batch_size=33, shuffle="off", xla="off")


def assembled(plan: Plan) -> Assembly:
    return assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)


@pytest.mark.parametrize("name", ["plain", "own"])
def test_a_second_validation_measures_the_weights_of_now(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, ROWS))
    assembly = assembled(plan.replace(model=plan.model.replace("plain", name)))
    validation = Validation(assembly, None)
    validation.run()
    report = validation.report()
    for weight in assembly.model.weights:
        weight.assign(np.random.default_rng(3).normal(size=weight.shape))

    again = validation.run()

    loss, accuracy = assembly.model.evaluate(ROWS.inputs, ROWS.targets, verbose=0)
    assert (again["loss"], again["accuracy"]) == pytest.approx((loss, accuracy), rel=1e-5)
    for first, second in zip(report[0].outputs, validation.report()[0].outputs, strict=True):
        assert first.examples == second.examples == len(ROWS)


@pytest.mark.parametrize("streamed", [True, pytest.param(False, marks=pytest.mark.campaign)])
def test_examples_that_replicas_cannot_share_count_once(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    """Every batch of seven leaves one for both replicas; of 199 rows, the last one."""
    rows = Split(*ROWS.take(np.arange(199)))
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, Recorded(rows, 7) if streamed else rows))
    assembly = assembled(plan.replace(strategy="mirrored", virtual_cpus=2))

    measured = Validation(assembly, None).run()

    loss, accuracy = assembly.model.evaluate(rows.inputs, rows.targets, verbose=0)
    assert (measured["loss"], measured["accuracy"]) == pytest.approx((loss, accuracy), rel=1e-5)


@pytest.mark.parametrize("strategy", ["default", "mirrored"])
def test_batches_that_run_together_give_what_each_gives_alone(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, ROWS))
    monkeypatch.setattr(validation_module, "MAX_BATCH", 0)
    assembly = assembled(plan.replace(batch_size=8, strategy=strategy, virtual_cpus=1 + (strategy == "mirrored")))

    def validated(together: int) -> tuple[object, ...]:
        monkeypatch.setattr(ChunkSize, "steps", property(lambda _: together, lambda *_: None), raising=False)
        validation, pauses = Validation(assembly, None), list[int]()
        metrics = validation.run(lambda: pauses.append(1))
        return metrics, pack(validation.report()), len(pauses)

    *alone, each = validated(1)
    *together, few = validated(6)
    assert together == alone
    assert (each, few) == (25, 5)  # the first batch tells how large a result is


def test_a_gpu_takes_as_large_batches_as_fit(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, ROWS))
    assembly = assembled(plan.replace(batch_size=8, model="mlp"))
    monkeypatch.setattr(type(assembly), "on_gpu", True)
    example = sum(output_sizes(assembly.model)) + 4 * (6 + 1)  # the input and the target

    def largest(examples: float) -> int:
        validation = Validation(assembly, int(examples * example / validation_module.GPU_MEMORY_SHARE))
        validation.run()
        return 2 * validation.halve_batches()

    assert [largest(most) for most in (1, 100.5, 1e6)] == [32, 100, 200]


@pytest.mark.parametrize("replicas", [1, 2])
def test_what_a_custom_test_step_returns_is_weighted_by_examples(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    """132 and 68 examples, on two replicas 64 and 4 times 2 and 68."""
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, ROWS))
    plan = plan.replace(model=plan.model.replace("plain", "telling"), virtual_cpus=replicas)
    measured = Validation(assembled(plan.replace(strategy="mirrored" if replicas == 2 else "default")), None).run()

    assert (measured["size"], measured["most"]) == pytest.approx((float(X.mean()), 4.0), rel=1e-5)


NONE = Split(*ROWS.take(np.arange(0)))


@pytest.mark.parametrize(
    ("name", "examples", "problem"),
    [
        ("plain", ROWS, ""),
        ("own", Recorded(), ""),
        ("plain", NONE, "there are no validation examples"),
        ("own", Recorded(NONE), "there are no validation examples"),
        ("failing", ROWS, "the model's test_step cannot run: ValueError: it rains"),
    ],
)
def test_what_cannot_be_validated_is_known_before(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, name: str, examples: Split | Recorded, problem: str
) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, examples))

    assert Validation(assembled(plan.replace(model=plan.model.replace("plain", name))), None).problem() == problem


def test_a_stream_without_examples_is_an_error(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS, Recorded(NONE)))  # an iterator that was read to its end

    with pytest.raises(DataError, match="the validation data gave no batches"):
        Validation(assembled(plan), None).run()
