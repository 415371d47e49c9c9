"""What a user is told of a model that is compiled, and what a custom ``train_step`` cannot do."""

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.losses import tversky_note
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.task import probabilities_of

from .streams import ROWS, dataset

MODELS = """
import keras
import tensorflow as tf

class Losing(keras.Model):
    def compute_loss(self, *args, **options):
        return super().compute_loss(*args, **options) / 2

class Own(keras.Model):
    def train_step(self, batch):
        return super().train_step(batch)

class Several(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.other_optimizer = keras.optimizers.Adam(0.1)

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(self(batch[0], training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.other_optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}

def of(kind, optimizer="sgd"):
    inputs = keras.Input((6,))
    model = kind(inputs=inputs, outputs=keras.layers.Dense(3, activation="softmax")(inputs))
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model

def plain():
    return of(keras.Model)

def averaging():
    return of(keras.Model, keras.optimizers.SGD(use_ema=True))

def doubled():
    model = of(keras.Model)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def dice():
    model = of(keras.Model)
    model.compile("sgd", "dice")
    return model

def tversky(alpha=0.5, beta=0.5):
    model = of(keras.Model)
    model.compile("sgd", keras.losses.Tversky(alpha=alpha, beta=beta))
    return model

def uneven_tversky():
    return tversky(0.3, 0.7)

def adjusted():
    model = of(keras.Model)
    model.compile("sgd", "mse", metrics=[keras.metrics.R2Score(num_regressors=3)])
    return model

def masked_ctc(mask=True):
    model = keras.Sequential([
        keras.Input((6,), dtype="int32"),
        keras.layers.Embedding(10, 4, mask_zero=mask),
        keras.layers.LSTM(4, return_sequences=True),
        keras.layers.Dense(5),
    ])
    model.compile("sgd", keras.losses.CTC())
    return model

def unmasked_ctc():
    return masked_ctc(False)

def losing():
    return of(Losing)

def own():
    return of(Own)

def averaging_own():
    return of(Own, keras.optimizers.SGD(use_ema=True))

def several():
    return of(Several)
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    (tmp_path / "net.py").write_text(MODELS)
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS))
    return Plan(model=f"{tmp_path / 'net.py'}:plain", batch_size=32, validation="off")


def assembled(plan: Plan, name: str, replicas: int = 1) -> Assembly:
    plan = plan.replace(
        model=plan.model.replace("plain", name),
        strategy="mirrored" if replicas > 1 else "default",
        virtual_cpus=replicas,
    )
    return assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(replicas)), None)


@pytest.mark.parametrize(
    ("name", "replicas", "said"),
    [
        ("plain", 2, ()),
        ("averaging", 1, ()),
        ("doubled", 1, ("has from_logits=True, but the model ends with a softmax: leave out one of the two",)),
        ("dice", 1, ()),
        ("tversky", 1, ()),
        ("dice", 2, ("each of 2 replicas computes dice over the examples that it takes, not over the whole batch",)),
        ("losing", 1, ()),
        ("losing", 2, ("compute_loss must divide the loss by 2",)),
        ("own", 1, ()),
        ("own", 2, ("recorded as the mean over 2 replicas",)),
        ("averaging_own", 1, ("saved with the moving averages of its optimizer",)),
    ],
)
def test_what_depends_on_replicas_and_the_step_is_noted(
    plan: Plan, name: str, replicas: int, said: tuple[str, ...]
) -> None:
    notes = assembled(plan, name, replicas).notes

    assert len(notes) == len(said), notes
    assert all(words in note for words, note in zip(said, notes, strict=True)), notes


def test_what_keras_would_measure_wrongly_in_silence_is_refused(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"num_regressors: Keras 3\.15 cannot adjust it in a graph"):
        assembled(plan, "adjusted")
    texts = Split(np.ones((40, 6), np.int32), np.ones((40, 3), np.int32))
    monkeypatch.setattr(data, "load", lambda *_: dataset(texts))
    with pytest.raises(ModelError, match="CTC takes no mask, but the model's outputs have one, of mask_zero=True"):
        assembled(plan, "masked_ctc")
    assert assembled(plan, "unmasked_ctc").model.compiled


def test_coefficients_that_keras_exchanges_are_told(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = assembled(plan, "uneven_tversky").notes
    assert "exchange alpha=0.3 and beta=0.7" in note

    def right(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Any:
        both = keras.ops.sum(y_true * y_pred)
        positives, negatives = keras.ops.sum((1 - y_true) * y_pred), keras.ops.sum(y_true * (1 - y_pred))
        return 1 - both / (both + alpha * positives + beta * negatives)

    monkeypatch.setattr(sys.modules[keras.losses.Tversky.__module__], "tversky", right)
    assert not tversky_note(keras.losses.Tversky(alpha=0.3, beta=0.7))


def test_a_softmax_is_taken_for_probabilities_whatever_the_loss_says(plan: Plan) -> None:
    """A confident prediction stays one: Keras' loss, too, takes what comes before the softmax."""
    task = assembled(plan, "doubled").task

    assert probabilities_of([[0.9, 0.1, 0.0]], task).numpy().tolist() == [pytest.approx([0.9, 0.1, 0.0])]


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_optimizers_of_a_custom_step_are_built_before_it_runs_on_replicas(plan: Plan, replicas: int) -> None:
    assert assembled(plan, "several", replicas).model.other_optimizer.built is (replicas > 1)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("several", {"schedule": "cosine"}, "schedule = .*with several optimizers"),
        ("several", {"label_smoothing": 0.1}, "label_smoothing = .*which decides this itself"),
        ("own", {"gradient_norm": "on"}, "gradient_norm = .*which decides this itself"),
    ],
)
def test_a_custom_step_refuses_what_it_decides(plan: Plan, name: str, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        assembled(plan.replace(**changes), name)


def test_a_custom_step_with_one_optimizer_takes_a_schedule(plan: Plan) -> None:
    assert not assembled(plan.replace(schedule="cosine"), "own").has_constant_rate
