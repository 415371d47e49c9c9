"""Frozen layers train as with Keras' own ``trainable``, and start to train at their epoch, also in a continued run."""

from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from accel_engine import data
from accel_engine.errors import ModelError
from accel_engine.events import ModelBuilt, Outcome, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import count_steps
from accel_engine.run.diagnostics import read
from accel_engine.training.core.batches import epoch_orders
from accel_engine.training.core.recipe.freezing import Freezing, freeze, head_of

from ...conftest import Gym

MODELS = """
import keras
from keras import layers

def backbone():
    inputs = keras.Input((8, 8, 1))
    hidden = layers.Dense(16, name="hidden", kernel_regularizer="l2")(layers.Flatten(name="flat")(inputs))
    return keras.Model(inputs, layers.BatchNormalization(name="norm")(hidden), name="backbone")

def build():
    inputs = keras.Input((8, 8, 1))
    return keras.Model(inputs, layers.Dense(10, activation="softmax", name="head")(backbone()(inputs)))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("frozen") / "models.py"
    path.write_text(MODELS)
    return f"{path}:build"


def built() -> keras.Model:
    code: dict[str, object] = {}
    exec(MODELS, code)
    return code["build"]()


def fit_losses(plan: Plan) -> tuple[list[float], list[float]]:
    """The losses of ``train_on_batch``, and of ``evaluate`` after each epoch.

    The model is frozen, and compiled again with its old optimizer once it trains.
    """
    dataset = data.load(plan.data, plan.data_options)
    keras.utils.set_random_seed(plan.seed)
    model = built()
    optimizer = keras.optimizers.Adam(plan.learning_rate)
    optimizer.build(model.trainable_variables)
    model.get_layer("backbone").trainable = False
    losses, validated = [], []
    held_out = dataset.validation.take(np.arange(len(dataset.validation)))
    for epoch in range(plan.epochs):
        if epoch + 1 == plan.unfreeze_epoch:
            model.get_layer("backbone").trainable = True
        model.compile(optimizer, "sparse_categorical_crossentropy")
        for order in epoch_orders(count_steps(plan, len(dataset.train), 1), len(dataset.train), plan.seed, epoch):
            for rows in order[:, 0]:
                x = dataset.train.inputs[rows] * np.float32(1 / 255)
                losses.append(float(model.train_on_batch(x, dataset.train.targets[rows])))
                model.reset_metrics()
        validated.append(model.evaluate(held_out.inputs * np.float32(1 / 255), held_out.targets, verbose=0))
    return losses, validated


def thawing(model: str) -> Plan:
    """Nine steps, three of them with a frozen backbone."""
    return Plan(
        model=model,
        epochs=3,
        batch_size=256,
        last_batch="drop",
        optimizer="adam",
        learning_rate=0.01,
        steps_per_epoch=3,
        freeze=("backbone",),
        unfreeze_epoch=2,
        checkpoint_every="1 epoch",
    )


def test_steps_equal_those_of_keras_in_both_phases(gym: Gym, model: str) -> None:
    plan = thawing(model)

    whole = gym.train_once(plan)

    assert whole.ended.outcome is Outcome.FINISHED, whole.ended.reason
    losses, validated = fit_losses(plan)
    np.testing.assert_allclose(whole.series["loss"], losses, atol=1e-5)
    np.testing.assert_allclose([event.metrics["loss"] for event in whole.all(Validated)], validated, rtol=1e-5)
    assert whole.only(ModelBuilt).trainable == 16 * 10 + 10
    (thawed,) = [warned for warned in whole.all(Warned) if "start to train" in warned.message]
    assert thawed.message == "epoch 2: the frozen layers start to train, with 1,072 parameters: backbone"
    assert [each.message for each in whole.all(Warned) if "frozen layers:" in each.message] == [
        "frozen layers: backbone"
    ]
    table = {layer.name: layer.trainable for layer in read(whole.directory).layers.layers if layer.trainable}
    assert table == {"backbone": 1072, "hidden": 1040, "norm": 32, "head": 170}


# A whole recipe continues after its layers have thawed in test_recipe_resuming.py.
@pytest.mark.parametrize(
    ("steps", "trainable", "noted"), [(2, 170, 2), pytest.param(5, 1242, 1, marks=pytest.mark.campaign)]
)
def test_a_run_continues_exactly_in_both_phases(gym: Gym, model: str, steps: int, trainable: int, noted: int) -> None:
    plan = thawing(model)
    whole = gym.train_once(plan)
    stopped = gym.train(plan, at={steps: [("stop",)]})
    assert stopped.ended.steps < 9
    resumed = gym.train(plan, run=stopped.directory)
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == whole.ended.metrics
    assert resumed.all(ModelBuilt)[-1].trainable == trainable
    assert sum("frozen layers:" in each.message for each in resumed.all(Warned)) == noted  # only while they are frozen


def test_the_head_is_the_last_layer_with_weights() -> None:
    model = built()
    plan = Plan(freeze=("all-but-head",))

    frozen = freeze(model, plan)

    assert head_of(model).name == "head"
    assert [variable.path for variable in model.trainable_variables] == ["head/kernel", "head/bias"]
    assert [variable.path for variable in frozen.variables] == ["head/kernel", "head/bias"]
    nested = keras.Sequential([keras.Input((8, 8, 1)), built(), layers.Softmax()])
    freeze(nested, plan)
    assert [variable.path for variable in nested.trainable_variables] == ["head/kernel", "head/bias"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("bakbone", "no layer is named 'bakbone'; did you mean backbone?"),
        ("*", "freezes all layers that have weights"),
    ],
)
def test_wrong_names_are_refused(gym: Gym, model: str, names: str, words: str) -> None:
    refused = gym.train(Plan(model=model, freeze=(names,), epochs=1))

    assert refused.ended.outcome is Outcome.FAILED
    assert words in refused.ended.reason


@pytest.mark.campaign
def test_everything_at_once_continues_exactly(gym: Gym, model: str) -> None:
    plan = Plan(
        model=model,
        epochs=3,
        batch_size=128,
        steps_per_epoch=3,
        augmentation=("light", "cutmix"),
        freeze=("all-but-head",),
        unfreeze_epoch=2,
        ema_momentum=0.9,
        global_clip_norm=1.0,
        weight_decay=0.01,
        schedule="cosine",
        warmup=2,
        label_smoothing=0.1,
    )

    whole = gym.train(plan)
    killed = gym.train(plan, at={5: [("stop_now",)]})
    assert killed.ended.steps == 5
    resumed = gym.train(plan, run=killed.directory)

    assert whole.ended.outcome is resumed.ended.outcome is Outcome.FINISHED, whole.ended.reason
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])
    assert resumed.ended.metrics == whole.ended.metrics


def test_frozen_layers_keep_every_bit_on_three_replicas(gym: Gym, model: str) -> None:
    plan = Plan(model=model, epochs=1, batch_size=255, steps_per_epoch=2, validation="off")
    source = gym.train(plan)  # with statistics other than 0 and 1
    plan = plan.replace(initial_weights=str(source.directory), freeze=("all-but-head",))

    frozen = gym.train(plan.replace(strategy="mirrored", virtual_cpus=3))

    assert frozen.ended.outcome is Outcome.FINISHED, frozen.ended.reason
    before, after = (keras.models.load_model(run.directory / "model.keras") for run in (source, frozen))
    for ours, theirs in zip(after.layers[1].weights, before.layers[1].weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(after.layers[2].get_weights()[0], before.layers[2].get_weights()[0])


def test_layers_start_to_train_although_the_file_of_the_model_is_gone(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    end = Freezing.end

    def moved(freezing: Freezing) -> str:
        path.unlink()
        return end(freezing)

    monkeypatch.setattr(Freezing, "end", moved)
    plan = Plan(model=f"{path}:build", epochs=2, steps_per_epoch=1, freeze=("backbone",), unfreeze_epoch=2)

    trained = gym.train(plan.replace(validation="off"))

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason


def test_layers_have_the_same_names_in_every_run_of_a_process(gym: Gym, random_model: str) -> None:
    plan = Plan(model=random_model, epochs=1, steps_per_epoch=1, freeze=("dense",), validation="off")

    for _ in range(2):
        trained = gym.train(plan)
        assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
        names = [layer.name for layer in read(trained.directory).layers.layers]
        assert names == ["flatten", "dense", "batch_normalization", "dropout", "dense_1"]


@pytest.mark.parametrize(("names", "said"), [("abcd", "a, b, c, d"), ("abcdef", "a, b, c, d and 2 more")])
def test_a_note_names_the_first_frozen_layers(names: str, said: str) -> None:
    chain = keras.Sequential([keras.Input((1,)), *(layers.Dense(1, name=name) for name in "abcdefg")])

    assert freeze(chain, Plan(freeze=tuple(names))).notes == [f"frozen layers: {said}"]


def test_a_custom_step_cannot_let_layers_train_later() -> None:
    class Own(keras.Sequential):
        def train_step(self, batch: object) -> object:
            return super().train_step(batch)

    own = Own([keras.Input((1,)), layers.Dense(1, name="a"), layers.Dense(1)])

    with pytest.raises(ModelError, match="leave out --unfreeze-epoch"):
        freeze(own, Plan(freeze=("a",), unfreeze_epoch=2))
