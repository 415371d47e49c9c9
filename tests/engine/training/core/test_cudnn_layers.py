"""cuDNN's operations exist on GPUs only: these tests look at what Keras' layers would use."""

from pathlib import Path

import keras
import pytest
from keras import layers

from accel_engine.plan import Plan
from accel_engine.training.core.cudnn_layers import without_cudnn

from ..conftest import Gym

RECURRENT = """
import keras

class Recorded(keras.layers.{kind}):
    def call(self, sequences, initial_state=None, mask=None, training=False):
        with open({file!r}, "a") as file:
            print(self.use_cudnn, file=file)
        return super().call(sequences, initial_state=initial_state, mask=mask, training=training)

def build():
    return keras.Sequential([keras.Input((28, 28)), Recorded(4), keras.layers.Dense(10, activation="softmax")])
"""
"""A model that notes, whenever it is traced, whether its recurrent layer may use cuDNN."""


def test_nested_layers_use_no_cudnn_and_then_their_own_choice_again() -> None:
    inner = keras.Sequential(
        [keras.Input((5, 3)), layers.LSTM(2, return_sequences=True), layers.GRU(2, use_cudnn=False)]
    )
    both = layers.Bidirectional(layers.GRU(2, return_sequences=True, use_cudnn=True))
    model = keras.Sequential([keras.Input((5, 3)), both, layers.Dense(3), inner])
    recurrent = [both.forward_layer, both.backward_layer, *inner.layers]
    own = [layer.use_cudnn for layer in recurrent]

    with without_cudnn(model):
        assert [layer.use_cudnn for layer in recurrent] == [False] * 4

    assert [layer.use_cudnn for layer in recurrent] == own == [True, True, "auto", False]


@pytest.mark.parametrize(
    ("xla", "kind"),
    [
        ("on", "GRU"),
        ("off", "LSTM"),
        pytest.param("on", "LSTM", marks=pytest.mark.campaign),
        pytest.param("off", "GRU", marks=pytest.mark.campaign),
    ],
)
def test_steps_that_xla_compiles_use_no_cudnn(gym: Gym, tmp_path: Path, kind: str, xla: str) -> None:
    file, model = tmp_path / "traced", tmp_path / "model.py"
    model.write_text(RECURRENT.format(kind=kind, file=str(file)))
    data = "synthetic:28x28:10:64"

    gym.train_once(Plan(model=f"{model}:build", data=data, epochs=1, validation="off", xla=xla))

    assert set(file.read_text().split()) == {"False" if xla == "on" else "auto"}
