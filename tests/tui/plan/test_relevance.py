from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.plan import RULES, SPECS, Plan
from accel_engine.plan.plan_checks import ignored, valid_fields
from accel_engine.plan.resolved_plan import resolve
from accel_engine.plan.task_choices import DECAYING
from accel_tui.plan import form
from accel_tui.plan.form import drop_irrelevant, is_relevant, needs

CPU = (Device("cpu:0", "cpu", "AMD EPYC", cores=4),)
GPU = (*CPU, Device("gpu:0", "gpu", "NVIDIA L4"))
GPUS = (*GPU, Device("gpu:1", "gpu", "NVIDIA L4"))
TPU = (*CPU, Device("tpu:0", "tpu", "TPU v5e"))

ALWAYS = {
    "model", "data", "name", "strategy", "precision", "xla", "batch_size", "micro_batches", "epochs", "steps_per_epoch",
    "optimizer", "learning_rate", "seed", "validation", "gradient_norm", "tensorboard",
    "loss", "label_smoothing", "metrics", "monitor", "weight_decay", "ema_momentum", "clip_norm", "global_clip_norm",
    "clip_value", "schedule", "augmentation", "initial_weights", "freeze", "validation_every", "patience",
    "restore_best", "time_limit", "checkpoint_every", "keep_checkpoints", "remat",
    "on_oom", "on_nan", "skip_steps", "keep_alive", "preemption_notice", "deterministic", "learning_rate_factor",
}  # fmt: skip
CPUS = {"devices", "virtual_cpus", "layer_kernels", "threads"}
GPU_FIELDS = {"layer_kernels", "memory_growth", "memory_limit", "tf32"}


@pytest.mark.parametrize(
    ("plan", "devices", "others"),
    [
        (Plan(), CPU, CPUS),
        (Plan(), None, CPUS),
        (Plan(), GPUS, {"devices", "optimizer_state", *GPU_FIELDS}),
        (Plan(), GPU, {"devices", "virtual_cpus", "optimizer_state", *GPU_FIELDS}),
        (Plan(devices=("gpu:0",)), GPU, {"devices", "optimizer_state", *GPU_FIELDS}),
        (Plan(devices=("cpu:0",)), GPUS, CPUS),
        (Plan(virtual_cpus=2), GPUS, CPUS),
        (Plan(strategy="mirrored"), GPUS, {"devices", "reduction", "rate_scaling", "optimizer_state", *GPU_FIELDS}),
        (Plan(strategy="central-storage"), CPU, {*CPUS, "rate_scaling"}),
        (
            Plan(strategy="multi-worker"),
            CPU,
            {*CPUS, "reduction", "local_workers", "rate_scaling"},
        ),
        (Plan(strategy="tpu"), TPU, {"tpu", "rate_scaling", "tf32"}),
        (Plan(strategy="tpu", devices=("gpu:0",)), GPUS, {"tpu", "rate_scaling", "tf32"}),
        (Plan(precision="mixed_float16"), CPU, {*CPUS, "force"}),
        (Plan(precision="mixed_float16"), GPUS, {"devices", "optimizer_state", *GPU_FIELDS}),
        (Plan(precision="mixed_float16", devices=("cpu:0",)), GPUS, {*CPUS, "force"}),
        (Plan(memory_limit=4), None, {*CPUS, "memory_limit"}),
    ],
)
def test_what_means_something(plan: Plan, devices: tuple[Device, ...] | None, others: set[str]) -> None:
    assert {name for name in SPECS if is_relevant(name, resolve(plan), devices)} == ALWAYS | others


def test_an_image_size_is_for_a_folder(tmp_path: Path) -> None:
    assert is_relevant("image_size", resolve(Plan(data=str(tmp_path))), CPU)
    assert not is_relevant("image_size", resolve(Plan(data="mnist")), CPU)


def test_a_scale_is_for_what_the_user_brings(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    assert not is_relevant("scale", resolve(Plan()), CPU)
    assert is_relevant("scale", resolve(Plan(data=str(tmp_path))), CPU)
    assert is_relevant("scale", resolve(Plan(model=f"{tmp_path / 'mine.py'}:build")), CPU)
    assert is_relevant("scale", resolve(Plan(scale="none")), CPU)


def test_what_means_nothing_counts_as_its_default() -> None:
    texts = {"reduction": "nccl", "local_workers": "x", "tpu": "local", "memory_limit": "4", "image_size": "8x8"}
    filled = form.resolve_form({**texts, "epochs": "3"}, CPU)
    assert filled.plan == Plan(epochs=3)
    assert not filled.errors
    assert form.resolve_form({**texts, "strategy": "mirrored"}, GPUS).plan.memory_limit == 4
    assert form.resolve_form({**texts, "strategy": "mirrored"}, GPUS).plan.reduction == "nccl"


def test_what_is_left_means_as_much_as_before() -> None:
    plan = Plan(
        devices=("gpu:0",), virtual_cpus=4, memory_limit=4, reduction="ring", local_workers=2, tpu="local",
        rate_scaling="linear", image_size="8x8",
    )  # fmt: skip
    for strategy in ("default", "mirrored", "multi-worker", "tpu"):
        for devices in (None, CPU, GPU, GPUS, TPU):
            given = plan.replace(strategy=strategy)
            once = drop_irrelevant(given, devices)
            assert drop_irrelevant(once, devices) == once
            assert [is_relevant(name, resolve(given), devices) for name in SPECS] == [
                is_relevant(name, resolve(once), devices) for name in SPECS
            ]


@pytest.mark.parametrize(
    ("plan", "shown", "hidden"),
    [
        (Plan(optimizer="adam"), set(), {"momentum", "nesterov"}),
        (Plan(optimizer="rmsprop", momentum=0.9), {"momentum"}, {"nesterov"}),
        (Plan(optimizer="sgd"), {"momentum"}, {"nesterov"}),
        (Plan(optimizer="sgd", momentum=0.9), {"momentum", "nesterov"}, set()),
        (Plan(), set(), {"warmup", "final_rate", "rate_drops", "rate_drop_factor"}),
        (Plan(schedule="constant"), {"warmup"}, {"final_rate", "rate_drops"}),
        *((Plan(schedule=name), {"warmup", "final_rate"}, {"rate_drops"}) for name in DECAYING),
        (Plan(schedule="steps"), {"warmup", "rate_drops", "rate_drop_factor"}, {"final_rate"}),
        (Plan(freeze=("all-but-head",)), {"unfreeze_epoch"}, set()),
        (Plan(remat="on"), {"remat_layers"}, set()),
        (Plan(), set(), {"remat_layers"}),
        (Plan(), set(), {"unfreeze_epoch", "min_delta", "monitor_mode", "custom_objects", "unsafe_load"}),
        (Plan(patience=3), {"min_delta"}, set()),
        (Plan(restore_best="on"), {"min_delta"}, set()),
        (Plan(monitor="validation_loss"), {"monitor_mode"}, set()),
        (Plan(validation="end"), {"restore_best"}, {"patience", "min_delta", "validation_every"}),
        (Plan(validation="off"), set(), {"patience", "restore_best", "validation_every"}),
        (Plan(validation="off", monitor="loss", patience=2), {"patience", "min_delta", "restore_best"}, set()),
        (Plan(loss="hinge"), set(), {"label_smoothing"}),
        (Plan(schedule="steps", rate_drops=("10%",), strategy="mirrored"), {"rate_drops"}, set()),
        (Plan(task="regression"), set(), {"label_smoothing"}),
        (Plan(data="synthetic:100"), set(), {"augmentation"}),
        (Plan(data="synthetic:100", augmentation=("flip",)), {"augmentation"}, set()),
    ],
)
def test_the_recipe_shows_what_its_other_fields_allow(plan: Plan, shown: set[str], hidden: set[str]) -> None:
    resolved = resolve(plan)
    relevant = {name for name in SPECS if is_relevant(name, resolved, CPU)}
    assert relevant >= shown
    assert not relevant & hidden
    once = drop_irrelevant(plan, CPU)
    assert {name for name in SPECS if is_relevant(name, resolve(once), CPU)} == relevant


def test_code_for_saved_models_is_for_those(tmp_path: Path) -> None:
    (tmp_path / "mine.keras").touch()
    saved, initialized = Plan(model=str(tmp_path / "mine.keras")), Plan(initial_weights=str(tmp_path / "mine.keras"))
    for name in ("custom_objects", "unsafe_load"):
        assert is_relevant(name, resolve(saved), CPU)
        assert not is_relevant(name, resolve(initialized), CPU)  # its file is only read for its weights


def test_a_value_that_contradicts_a_hidden_field_is_no_error() -> None:
    texts = {"optimizer": "adam", "momentum": "0.9", "nesterov": "on", "schedule": "steps", "final_rate": "0.1"}
    filled = form.resolve_form(texts, CPU)
    assert not filled.errors
    assert filled.plan == Plan(optimizer="adam", schedule="steps")


def test_every_field_that_may_be_hidden_says_what_it_needs() -> None:
    hidden = {name for name, rules in RULES.items() if rules.needs or rules.only_for}
    assert {name for name in SPECS if needs(name)} == hidden
    assert {name: needs(name) for name in hidden if len(needs(name)) > 56} == {}


@pytest.mark.parametrize(
    ("name", "text", "shown", "hidden"),
    [
        ("a.csv", "", {"target", "features", "ignore", "kinds", "time", "split"}, {"window", "group", "image_size"}),
        ("a.npz", "", {"target", "features", "window", "split"}, {"kinds", "time", "horizon", "tokenizer"}),
        ("a.txt", "", {"tokenizer", "window", "validation_split"}, {"target", "horizon", "time"}),
        ("a.py", "a.py:load", {"task", "image_size", "validation_split", "window"}, {"target", "horizon", "tokenizer"}),
    ],
)
def test_fields_follow_the_data(tmp_path: Path, name: str, text: str, shown: set[str], hidden: set[str]) -> None:
    (tmp_path / name).write_text("")
    resolved = resolve(Plan(data=str(tmp_path / (text or name))))
    relevant = {name for name in SPECS if is_relevant(name, resolved, CPU)}
    assert relevant >= {*shown, "task", "last_batch", "shuffle", "monitor", "invalid_examples"}
    assert not relevant & hidden


def test_a_split_of_its_own_needs_no_settings(tmp_path: Path) -> None:
    resolved = resolve(Plan(data=str(tmp_path)))
    whole = replace(resolved, data=replace(resolved.data, own_splits=("validation", "test")))
    own = {"split", "validation_split", "split_seed", "validation_data", "test_split"}
    assert all(is_relevant(name, resolved, CPU) for name in own)
    assert not any(is_relevant(name, whole, CPU) for name in own)


def test_a_value_of_a_field_that_built_in_data_rarely_needs_keeps_it_in_the_form() -> None:
    assert not is_relevant("shuffle", resolve(Plan()), CPU)
    assert is_relevant("shuffle", resolve(Plan(shuffle="off")), CPU)
    assert form.resolve_form({"target": "x", "shuffle": "off"}, CPU).plan == Plan(shuffle="off")


def relevant_fields(plan: Plan, devices: tuple[Device, ...] = CPU, **data: Any) -> set[str]:
    resolved = resolve(plan)
    found = replace(resolved, data=replace(resolved.data, **data))
    return {name for name in SPECS if is_relevant(name, found, devices)}


def test_fields_that_have_an_effect_are_shown(tmp_path: Path) -> None:
    for name in ("a.npz", "a.csv", "mine.py"):
        (tmp_path / name).write_text("")
    arrays, folder = Plan(data=str(tmp_path / "a.npz"), window=4), Plan(data=str(tmp_path))
    assert relevant_fields(arrays) >= {"time", "group", "horizon"}
    assert relevant_fields(Plan(data=f"{tmp_path / 'mine.py'}:load", window=4)) >= {"time", "group", "target"}
    assert "window" in relevant_fields(folder, reader="folders.audio_folder:AudioFolder")
    assert relevant_fields(Plan(data="gs://bucket/train.tfrecord")) >= {"target", "features", "ignore", "image_size"}
    for task in ("sequence", "segmentation"):
        assert "label_smoothing" in relevant_fields(folder, task=task)
    assert "force" in relevant_fields(Plan(xla="on"), GPU)
    assert "window" not in relevant_fields(Plan(data=str(tmp_path / "a.csv")))
    assert "window" in relevant_fields(Plan(data=str(tmp_path / "a.csv"), window=4))  # rows in the order of the file
    assert "test_split" in relevant_fields(Plan(test_split=0.2))


def test_fields_that_have_no_effect_are_hidden(tmp_path: Path) -> None:
    folder = Plan(data=str(tmp_path))
    readers = ("prepared.hugging_face:HuggingFace", "prepared.tensorflow_datasets:TensorFlowDatasets")
    for reader in (*readers, "prepared.tfrecord:TFRecord"):
        assert not relevant_fields(folder, reader=reader) & {"kinds", "time"}
    assert "validation_data" in relevant_fields(folder, reader=readers[0])
    assert "validation_data" not in relevant_fields(folder, reader=readers[1])
    for fields in ({"validation_data": "b.csv"}, {"split": "none"}, {"split": "column:a"}):
        assert "validation_split" not in relevant_fields(folder.replace(**fields))


VALUES = {
    "target": "y", "features": "x", "ignore": "x", "kinds": "x=number", "time": "day", "window": "4", "horizon": "2",
    "group": "house", "tokenizer": "bytes", "image_size": "8x8", "validation_split": "0.2", "test_split": "0.2",
    "split": "ordered", "split_seed": "3", "validation_data": "b.csv", "validation_steps": "3",
    "custom_objects": "layers.py", "unsafe_load": "on", "label_smoothing": "0.1", "virtual_cpus": "2",
    "memory_growth": "off", "memory_limit": "4", "layer_kernels": "off", "rate_scaling": "linear", "reduction": "ring",
    "local_workers": "2", "tpu": "local", "threads": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "devices"),
    [
        ("digits", CPU),
        ("synthetic", GPUS),
        ("a.csv", CPU),
        ("a.npz", GPU),
        ("a.txt", CPU),
        ("a.py:load", CPU),
        (".", CPU),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"window": 4}, {"time": "day"}, {"task": "regression", "devices": ("cpu:0",)}])
def test_the_form_leaves_out_what_a_new_run_would_be_refused_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, devices: tuple[Device, ...], fields: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a.npz", "a.txt", "a.py"):
        (tmp_path / name).write_text("")
    for name, text in VALUES.items():
        values = {"data": data, **fields, name: SPECS[name].parse(name, text)}
        if name in ignored(valid_fields(values)):
            continue
        plan = Plan.from_mapping(values)
        is_refused = name in resolve(plan, devices).errors
        is_shown = is_relevant(name, resolve(plan), devices)
        # What the first two ask for is so anyway; a horizon is shown where a window may still be set.
        assert is_shown is not is_refused or name in ("layer_kernels", "rate_scaling", "horizon"), name
