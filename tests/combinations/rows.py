"""The rows of the table: every plan field away from its default, every task, catalogue model and strategy.

They follow from the registries. What stands here is only what these cannot say: the data that a value makes sense with.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from accel_engine import models, strategies
from accel_engine.data.data_options import TASKS
from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.data_description import IMAGES, SEQUENCES, SOUNDS, TEXTS, TOKENS
from accel_engine.plan import DEFAULTS, SPECS
from accel_engine.plan.task_choices import LOSSES_OF, METRICS_OF
from engine.training import task_models
from field_values import away, with_needs

from .materials import MATERIALS

OF_TASK_MODEL = "task: "
"""Begins the material of a compiled model's task."""


@dataclass(frozen=True)
class Row:
    """What is trained.

    Attributes:
        kind: ``field``, ``choice``, ``task``, ``model`` or ``strategy``.
        name: What it is one of, such as ``clip_norm`` or ``optimizer=sgd``.
        material: The data: one of :data:`MATERIALS`, or a compiled model's with its task.
        fields: The plan's fields that the data does not set.
    """

    kind: str
    name: str
    material: str = "images"
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """How it is called in a test's name."""
        return f"{self.kind}:{self.name}"

    @property
    def is_slow(self) -> bool:
        """Whether its commands take a minute or more: large networks, and strategies of several processes."""
        return self.kind == "application" or self.name == "resnet20" or "local_workers" in self.fields


@dataclass(frozen=True)
class Example:
    """How a field is tried.

    Attributes:
        value: Its value; ``None`` for what its entry says.
        needs: Fields that it needs to have an effect, or to be trained here.
        material: The data.
    """

    value: Any = None
    needs: Mapping[str, Any] = field(default_factory=dict)
    material: str = "images"


TWO = {"strategy": "mirrored", "virtual_cpus": 2}
PIPELINE = {"strategy": "pipeline", "virtual_cpus": 2}
OWN_VALIDATION = {"validation_split": DEFAULTS["validation_split"]}
MOMENTUM = {"optimizer": "sgd", "momentum": 0.9}

EXAMPLES: Mapping[str, Example] = {
    "model": Example("linear"),
    "data": Example("synthetic:8x8x1:6:200", material="drawn"),
    "image_size": Example("10x10", material="image_folder"),
    "scale": Example("none"),
    "tokenizer": Example(material="story"),
    "target": Example(material="table"),
    "features": Example(("area", "city"), material="table"),
    "ignore": Example(material="table"),
    "kinds": Example(material="table"),
    "decimal": Example(".", material="table"),
    "thousands": Example(material="table"),
    "missing": Example(material="table"),
    "time": Example("hour", material="series"),
    "window": Example(4, material="series"),
    "horizon": Example(3, material="series"),
    "group": Example("station", material="series"),
    "test_split": Example(0.1, {"validation_split": 0.1}),
    "split": Example("column:part", OWN_VALIDATION, "table"),
    "validation_data": Example("OTHERS", OWN_VALIDATION),
    "validation_steps": Example(2, material="stream"),
    "batch_size": Example(8),  # a ramp of the learning rate needs 20 steps
    "epochs": Example(2),
    "steps_per_epoch": Example(3),
    "micro_batches": Example(2),
    "remat_layers": Example(("dense*",), {"remat": "on"}),
    "optimizer_state": Example("sharded", TWO),
    "label_smoothing": Example(needs={"loss": "categorical_crossentropy"}),
    "monitor_mode": Example(needs={"monitor": "validation_accuracy"}),
    "rate_scaling": Example(needs=TWO),
    "momentum": Example(needs={"optimizer": "sgd"}),
    "nesterov": Example(needs=MOMENTUM),
    "ema_momentum": Example(0.5),
    "warmup": Example(needs={"schedule": "linear"}),
    "final_rate": Example(needs={"schedule": "linear"}),
    "rate_drops": Example(("25%",), {"schedule": "steps"}),
    "rate_drop_factor": Example(needs={"schedule": "steps"}),
    "initial_weights": Example("WEIGHTS"),
    "unfreeze_epoch": Example(2, {"freeze": ("all-but-head",), "epochs": 3}),
    "custom_objects": Example("LAYERS", {"model": "CUSTOM"}),
    "unsafe_load": Example(needs={"model": "LAMBDA"}),
    "validation_every": Example("2 steps"),
    "min_delta": Example(needs={"patience": 5}),
    "checkpoint_every": Example("2 steps"),
    "skip_steps": Example(("1",)),
    "preemption_notice": Example("auto"),
    "strategy": Example(needs={"virtual_cpus": 2}),
    "devices": Example(("cpu:0",)),
    "stages": Example(("dense_1",), PIPELINE),
    "virtual_cpus": Example(2),
    "force": Example(needs={"precision": "mixed_float16"}),
    "layer_kernels": Example(needs={"model": "cnn"}),
    "reduction": Example("one-device", TWO),
    "local_workers": Example(2, {"strategy": "multi-worker"}),
    "isolate_workers": Example("off", {"strategy": "multi-worker", "local_workers": 2}),
    "memory_limit": Example(1.0),
}
"""Fields whose entry does not say a value that goes with the images here, or that need others."""

NEED_OF_CHOICE: Mapping[tuple[str, str], Example] = {
    ("precision", "mixed_float16"): Example(needs={"force": "on"}),
    ("monitor_mode", "min"): Example(needs={"monitor": "loss"}),
    ("task", "multi-label"): Example(material="labels"),
    ("task", "regression"): Example(material="numbers"),
    ("task", "segmentation"): Example(material="masks"),
    ("task", "reconstruction"): Example(needs={"model": "autoencoder"}),
    ("task", "sequence"): Example(material="story"),
    ("decimal", ","): Example(needs={"target": ("city",)}, material="table"),  # the prices have points
    ("thousands", "."): Example(needs={"target": ("city",)}, material="table"),
    ("reduction", "ring"): Example(needs={"strategy": "multi-worker", "local_workers": 2}),
}
"""What single values of a field need besides."""

FORMS: Mapping[str, str] = {
    "": "columns",
    IMAGES: "photos",
    SEQUENCES: "sequences",
    SOUNDS: "sounds",
    TEXTS: "reviews",
    TOKENS: "story",
}
"""Data for a model of the catalogue, by the form that it takes."""

OF_TASK: Mapping[str, str] = {"segmentation": "masks"}
"""Data for models of a task, where its form alone does not tell."""

MATERIAL_OF_TASK: Mapping[str, str] = {
    "classification": "columns",
    "multi-label": "labels",
    "regression": "numbers",
}
"""Data of the tasks that a plan may name losses for, apart from images and tokens."""


def field_rows() -> Iterator[Row]:
    """A row for every field of a plan."""
    for name in SPECS:
        example = EXAMPLES.get(name, Example())
        value = away(name) if example.value is None else example.value
        needed = example.needs if name in EXAMPLES else with_needs({name: value})
        yield Row("field", name, example.material, {**needed, name: value})


def choice_rows() -> Iterator[Row]:
    """A row for every other value of fields with choices, but for those that depend on the task."""
    for name, spec in SPECS.items():
        if not spec.choices or spec.type is tuple or name in ("loss", "task"):
            continue
        tried = EXAMPLES.get(name, Example())
        used = away(name) if tried.value is None else tried.value
        for choice in spec.choices:
            if choice in (DEFAULTS[name], used, "auto") or name == "preemption_notice":  # which server is asked
                continue
            own = NEED_OF_CHOICE.get((name, choice), tried)
            if "local_workers" in own.needs:  # these take minutes: the field and the strategy have a row
                continue
            yield Row("choice", f"{name}={choice}", own.material, {**tried.needs, **own.needs, name: choice})
    for choice in SPECS["augmentation"].choices[1:]:
        yield Row("choice", f"augmentation={choice}", "images", {"augmentation": (choice,)})
    for task, material in MATERIAL_OF_TASK.items():
        for loss in LOSSES_OF[task]:
            yield Row("choice", f"loss={loss} of {task}", material, {"loss": loss, "task": task})
        several = "drawn" if task == "classification" else material  # one of the metrics needs more than five classes
        yield Row("choice", f"metrics of {task}", several, {"metrics": METRICS_OF[task], "task": task})


def task_rows() -> Iterator[Row]:
    """A row for every value of the field ``task``, and for every form of task that a compiled model may have."""
    for task in TASKS:
        if task in ("auto", "custom"):  # the default, and the task of compiled models
            continue
        own = NEED_OF_CHOICE.get(("task", task), Example())
        yield Row("task", task, own.material, {**own.needs, "task": task})
    for task in task_models.TASKS:
        yield Row("task", f"compiled-{task}", f"{OF_TASK_MODEL}{task}")


def model_rows() -> Iterator[Row]:
    """A row for every model of the catalogue; of Keras' applications, the smallest of each architecture."""
    smallest: dict[str, str] = {}
    for entry in APPLICATIONS:
        smallest.setdefault(entry.summary.partition(";")[0], entry.name)
    large = {entry.name for entry in APPLICATIONS}
    for name, entry in models.CATALOGUE.items():
        if name in large and name not in smallest.values():
            continue
        material = next((OF_TASK[task] for task in entry.tasks if task in OF_TASK), FORMS[entry.form])
        if entry.minimum_size > 32:
            material = "large_photos"
        kind = "application" if name in large else "model"
        task = {"task": "reconstruction"} if entry.tasks == ("reconstruction",) else {}
        yield Row(kind, name, material, {"model": name, **task})


def material_rows() -> Iterator[Row]:
    """A row for every kind of data, with the model that ``auto`` chooses."""
    for name in MATERIALS:
        if name != "large_photos":
            yield Row("data", name, name, {"model": "auto"})


STRATEGY_NEEDS: Mapping[str, Mapping[str, Any]] = {
    "multi-worker": {"local_workers": 2},
    "parameter-server": {"local_workers": 1},
    "tpu": {},
}
"""What strategies of several processes need, and of no CPUs; others that take several devices get two virtual CPUs."""


def strategy_rows() -> Iterator[Row]:
    """A row for every strategy."""
    for name, entry in strategies.CATALOGUE.items():
        needs = STRATEGY_NEEDS.get(name, {"virtual_cpus": 2} if entry.maximum_devices != 1 else {})
        yield Row("strategy", name, "images", {"strategy": name, **needs})


def all_rows() -> tuple[Row, ...]:
    """All rows, without those whose plan another one has."""
    rows = (
        *field_rows(),
        *choice_rows(),
        *task_rows(),
        *model_rows(),
        *material_rows(),
        *strategy_rows(),
    )
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault((row.material, tuple(sorted(map(str, row.fields.items())))), row)
    return tuple(found.values())


ROWS = all_rows()
BY_ID = {row.id: row for row in ROWS}
