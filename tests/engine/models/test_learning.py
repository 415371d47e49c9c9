import keras
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split
from accel_engine.models.build import build
from accel_engine.models.loaded_data import describe_data


def fit(name: str, spec: str, epochs: int) -> list[float]:
    """Validation accuracy of every epoch."""
    dataset = data.load(spec, DataOptions())
    train, validation = dataset.train, dataset.validation
    assert isinstance(train, Split)
    assert isinstance(validation, Split)
    keras.utils.set_random_seed(0)
    model = build(name, describe_data(dataset, "auto"))
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(
        train.inputs / 255,
        train.targets,
        batch_size=64,
        epochs=epochs,
        validation_data=(validation.inputs / 255, validation.targets),
        verbose=0,
    )
    accuracies: list[float] = history.history["val_accuracy"]
    return accuracies


def test_cnn_validates_above_chance_from_the_first_epoch_on_and_soon_very_well() -> None:
    first, *_, last = fit("cnn", "digits", 5)
    assert first > 0.4
    assert last >= 0.97


@pytest.mark.campaign
def test_cnn_generalises_from_the_first_epoch_of_larger_images() -> None:
    assert fit("cnn", "synthetic:24x24x1:10:4500", 1)[0] > 0.5


def test_mlp_learns_digits() -> None:
    assert fit("mlp", "digits", 4)[-1] > 0.85
