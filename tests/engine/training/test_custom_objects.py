"""A saved model with layers of the user trains, continues and is validated again, with the file that defines them."""

from pathlib import Path

import keras
import numpy as np

from accel_engine.events import Outcome, Warned
from accel_engine.models.saved_model import custom_objects
from accel_engine.plan import Plan
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.trained.diagnose import revalidate

from .conftest import Gym

SOURCE = """
from keras import layers

class Scale(layers.Layer):
    def call(self, x):
        return x * 2.0
"""


def test_a_saved_model_with_custom_layers_trains_and_is_validated_again(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "scale_layer.py").write_text(SOURCE)
    scale = custom_objects(str(tmp_path / "scale_layer.py"))["Scale"]
    layers = [scale(), keras.layers.Flatten(), keras.layers.Lambda(lambda x: x + 1.0), keras.layers.Dense(10)]
    keras.Sequential([keras.Input((8, 8, 1)), *layers]).save(tmp_path / "mine.keras")
    plan = Plan(model=str(tmp_path / "mine.keras"), data="digits", epochs=1, batch_size=256, last_batch="drop")

    assert "--custom-objects FILE.py" in gym.train(plan).ended.reason
    plan = plan.replace(custom_objects=str(tmp_path / "scale_layer.py"))
    assert "--unsafe-load on" in gym.train(plan).ended.reason
    plan = plan.replace(unsafe_load="on")
    whole = gym.train(plan)
    stopped = gym.train(plan, at={2: [("stop",)]})
    resumed = gym.train(plan, run=stopped.directory)

    assert whole.ended.outcome is resumed.ended.outcome is Outcome.FINISHED, whole.ended.reason
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert any("load only files that you trust" in warned.message for warned in whole.all(Warned))
    assert revalidate(RevalidationRequest(whole.directory)).step == whole.ended.steps
