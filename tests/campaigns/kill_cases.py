"""What the campaign of kills trains: short runs under every strategy, with streams, schedules and early stopping."""

import json
from dataclasses import dataclass
from pathlib import Path

from accel_engine.plan import Plan

SOURCES = Path(__file__).parents[1] / "engine" / "training" / "source_models.py"
"""Python sources of every kind, and a model that fits them."""

_SHORT = Plan(data="digits", model="mlp", batch_size=64, epochs=4, steps_per_epoch=20, xla="off")

_RECIPE = Plan(
    data="digits",
    model="cnn",
    batch_size=128,
    epochs=4,
    optimizer="adamw",
    learning_rate=0.01,
    weight_decay=0.01,
    ema_momentum=0.9,
    global_clip_norm=1.0,
    schedule="cosine",
    warmup=0.1,
    label_smoothing=0.1,
    augmentation=("crop", "mixup"),
    freeze=("conv2d",),
    unfreeze_epoch=2,
    validation_every="7 steps",
    xla="off",
)

_VARIANTS = {
    "plain": _SHORT,
    "uneven batches": _SHORT.replace(steps_per_epoch=None, batch_size=100, metrics=("auc",), gradient_norm="on"),
    "schedule": _SHORT.replace(schedule="one-cycle", optimizer="sgd", learning_rate=0.1, momentum=0.9),
    "drops": _SHORT.replace(
        schedule="steps", rate_drops=("25%", "60%"), optimizer="rmsprop", validation_every="9 steps"
    ),
    "early stopping": _SHORT.replace(
        epochs=30, steps_per_epoch=8, patience=2, min_delta=0.02, restore_best="on", learning_rate=0.01
    ),
    "EMA": _SHORT.replace(ema_momentum=0.9, restore_best="on", patience=20, validation_every="6 steps"),
    "micro-batches": _SHORT.replace(micro_batches=4, model="cnn", steps_per_epoch=6),
    "recipe": _RECIPE,
    "validation at the end": _SHORT.replace(validation="end", validation_split=0.2),
    "XLA": _SHORT.replace(xla="on", epochs=3),
}
"""Plans of arrays, which every strategy trains."""

_STREAM = Plan(model=f"{SOURCES}:model", batch_size=32, epochs=4, xla="off")

_STREAMS = {
    "tf.data": _STREAM.replace(data=f"{SOURCES}:tf_data"),
    "endless tf.data": _STREAM.replace(data=f"{SOURCES}:endless_tf_data", steps_per_epoch=13),
    "PyDataset": _STREAM.replace(data=f"{SOURCES}:py_dataset"),
    "generator": _STREAM.replace(data=f"{SOURCES}:generator"),
    "endless generator": _STREAM.replace(data=f"{SOURCES}:endless_generator", steps_per_epoch=13),
}

_PLACEMENTS = {
    "default": (30, {}),
    "one-device": (2, {}),
    "mirrored": (8, {"virtual_cpus": 2, "checkpoint_every": "5 steps"}),
    "sharded": (
        3,
        {"strategy": "mirrored", "virtual_cpus": 2, "checkpoint_every": "5 steps", "optimizer_state": "sharded"},
    ),
    "host": (2, {"strategy": "one-device", "virtual_cpus": 2, "devices": ("cpu:1",), "optimizer_state": "host"}),
    "central-storage": (2, {"virtual_cpus": 2, "checkpoint_every": "5 steps"}),
    "pipeline": (2, {"virtual_cpus": 2, "checkpoint_every": "5 steps"}),
    "multi-worker": (1, {"local_workers": 2, "checkpoint_every": "5 steps"}),
    # With one worker, steps run in order; with several, two runs of a plan differ.
    "parameter-server": (1, {"local_workers": 1}),
}
"""Of each strategy and place of the optimizer's state: how often it is tried, and the fields that it needs here."""

_REFUSED = {
    "mirrored": ("XLA",),
    "sharded": ("XLA",),
    "host": ("XLA",),
    "pipeline": ("XLA",),
    "central-storage": ("XLA", "EMA", "recipe"),
    "multi-worker": ("XLA",),
    "parameter-server": ("XLA", *_STREAMS),
}
"""What a strategy does not train, on CPUs."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is trained.

    Attributes:
        name: ``STRATEGY/VARIANT``, or another name of the placement.
        plan: Its plan.
        weight: How often it is tried, in proportion.
        with_means: Whether a continued epoch has exactly the same means.
    """

    name: str
    plan: Plan
    weight: float
    with_means: bool


def cases(folder: Path) -> list[Case]:
    """All cases.

    Args:
        folder: Where the TFRecord files are written that some of them read.
    """
    variants = {**_VARIANTS, **_STREAMS, "TFRecord": _SHORT.replace(data=str(_write_records(folder)))}
    return [
        Case(f"{name}/{variant}", plan.replace(**{"strategy": name, **fields}), weight, variant not in _STREAMS)
        for name, (weight, fields) in _PLACEMENTS.items()
        for variant, plan in variants.items()
        if variant not in _REFUSED.get(name, ())
    ]


def _write_records(folder: Path) -> Path:
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    path = folder / "examples.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as file:
        for label in random.integers(0, 3, 400).tolist():
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=random.normal(label, 1.0, 8))),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            file.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    description = {"features": {"x": {"shape": [8]}, "label": {"dtype": "int64"}}, "target": "label"}
    (folder / "examples.features.json").write_text(json.dumps(description))
    return path
