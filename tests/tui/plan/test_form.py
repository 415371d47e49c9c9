from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import DataOptions, DatasetEntry
from accel_engine.data.source import EntryColumn
from accel_engine.devices.device_types import Device
from accel_engine.plan import GROUPS, SPECS, Plan
from accel_engine.plan.placement import Placement
from accel_tui.plan import form
from accel_tui.plan.field_labels import label, word

CPU = Device("cpu:0", "cpu", "AMD EPYC", cores=4)
GPUS = (Device("gpu:0", "gpu", "NVIDIA L4"), Device("gpu:1", "gpu", "NVIDIA L4"))


def test_every_field_of_a_plan_is_in_one_group() -> None:
    placed = [name for group in GROUPS.values() for name in group]
    assert sorted(placed) == sorted(SPECS)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(),
        Plan(model="mlp", devices=("cpu:0",), learning_rate=1e-5, steps_per_epoch=7, name="a try"),
        Plan(shuffle="off", monitor="loss"),
        Plan(strategy="multi-worker", reduction="ring", local_workers=2, rate_scaling="linear", memory_growth="off"),
    ],
)
def test_a_plan_survives_being_text(plan: Plan) -> None:
    texts = {name: form.field_text(getattr(plan, name)) for name in SPECS}
    filled = form.resolve_form(texts)
    assert filled.plan == plan
    assert not filled.errors


def test_every_wrong_field_says_what_it_may_be_and_the_others_count() -> None:
    filled = form.resolve_form(
        {"model": "resnet21", "batch_size": "many", "epochs": "0", "optimizer": "adamm", "seed": "7", "xla": ""}
    )
    assert set(filled.errors) == {"model", "batch_size", "epochs", "optimizer", "xla"}
    assert "did you mean resnet20" in word(filled.errors["model"])
    assert "an integer of at least 1" in word(filled.errors["batch_size"])
    assert "at least 1" in word(filled.errors["epochs"])
    assert "did you mean adam" in word(filled.errors["optimizer"])
    assert filled.plan == Plan(seed=7)


def test_a_wrong_name_of_a_list_is_named_with_the_one_meant_before_all_choices() -> None:
    filled = form.resolve_form({"metrics": "recall,precison", "augmentation": "flipp", "schedule": "cosin"})
    errors = {name: word(reason) for name, reason in filled.errors.items()}
    assert errors["metrics"].startswith("'precison': did you mean precision? Must be one or more of accuracy, auc,")
    assert errors["augmentation"].startswith("did you mean flip? Must be one or more of ")
    assert errors["schedule"].startswith("did you mean cosine? Must be one of ")


def test_what_does_not_fit_the_machine_is_an_error_of_its_field() -> None:
    assert "two devices" in word(form.resolve_form({"strategy": "mirrored"}, (CPU,)).errors["strategy"])
    assert "or virtual CPUs set to 2" in word(form.resolve_form({"strategy": "mirrored"}, (CPU,)).errors["strategy"])
    assert "no device gpu:0" in word(form.resolve_form({"devices": "gpu:0"}, (CPU,)).errors["devices"])
    assert form.resolve_form({"strategy": "mirrored", "virtual_cpus": "2"}, (CPU,)).placement == Placement(
        ("cpu:0", "cpu:1")
    )
    assert form.resolve_form({"strategy": "mirrored"}, (CPU, *GPUS)).placement == Placement(("gpu:0", "gpu:1"))


def test_float16_on_a_cpu_is_an_error_of_the_precision_and_of_no_strategy() -> None:
    filled = form.resolve_form({"precision": "mixed_float16"}, (CPU,))
    assert "far slower than float32 on a CPU" in word(filled.errors["precision"])
    assert "use auto (float32), or force on to use" in word(filled.errors["precision"])
    assert {choice.value for choice in form.choices("strategy", filled, (CPU,)) if choice.possible} >= {"default"}
    assert not form.resolve_form({"precision": "mixed_float16", "force": "on"}, (CPU,)).errors


def test_a_strategy_that_another_field_cannot_have_is_offered_with_the_reason_only() -> None:
    filled = form.resolve_form({"ema_momentum": "0.9", "precision": "mixed_float16", "force": "on"}, (CPU, *GPUS))
    offered = {choice.value: choice for choice in form.choices("strategy", filled, (CPU, *GPUS))}
    assert not offered["central-storage"].possible
    assert offered["central-storage"].note.startswith("EMA momentum: central-storage keeps no averages")
    assert offered["mirrored"].possible


def test_a_file_of_initial_weights_must_exist() -> None:
    assert form.resolve_form({"initial_weights": "none.keras"}, (CPU,)).errors["initial_weights"] == ("no such file",)


def test_a_scale_that_the_data_does_not_allow_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((50, 8), np.float32), y=np.arange(50) % 5)
    texts = {"model": "mlp", "data": str(path), "batch_size": "9", "scale": "0-1"}
    assert "scale" not in form.resolve_form(texts, (CPU,)).errors  # not known before the file was looked into
    filled = form.resolve_form(texts, (CPU,), data.survey(data.find(str(path)), DataOptions()))
    assert "the examples are float32" in word(filled.errors["scale"])
    assert filled.placement is not None


def test_before_the_machine_is_known_nothing_is_said_to_misfit() -> None:
    filled = form.resolve_form({"strategy": "mirrored", "devices": "gpu:0"})
    assert not filled.errors
    assert filled.step_counts is None


def test_batch_and_model_are_checked_against_the_data() -> None:
    assert "at least 2" in word(
        form.resolve_form({"batch_size": "1", "strategy": "mirrored", "virtual_cpus": "2"}, (CPU,)).errors["batch_size"]
    )
    assert "data has 100" in word(form.resolve_form({"model": "cnn", "data": "synthetic:100"}, (CPU,)).errors["model"])


def test_auto_says_what_it_takes_and_only_models_that_fit_are_possible(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def load(): ...")
    filled = form.resolve_form({}, (CPU,))
    assert form.describe_value("model", filled).startswith("auto: cnn. A small convolutional network")
    offered = {choice.value: choice for choice in form.choices("model", filled, (CPU,))}
    assert next(iter(offered)) == "auto"
    assert offered["auto"].note == "cnn, the default for the data"
    assert offered["resnet20"].possible
    assert not offered["gpt"].possible
    assert "gpt is for sequence" in offered["gpt"].note
    unknown = form.resolve_form({"data": f"{tmp_path / 'mine.py'}:load"}, (CPU,))
    assert form.describe_value("model", unknown) == "auto: known once the data is read"
    custom = form.resolve_form({"task": "custom"}, (CPU,))
    assert not form.choices("model", custom, (CPU,))[0].possible
    assert "a custom task has no default model" in word(custom.errors["model"])


def test_the_schedule_is_that_of_the_plan() -> None:
    counts = form.resolve_form({"epochs": "2"}, (CPU,)).step_counts
    assert counts is not None
    assert (counts.steps_per_epoch, counts.total_steps, counts.dropped_examples) == (23, 46, 0)


def test_what_was_found_in_the_users_data_counts_for_that_data_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((50, 4, 4, 1), np.float32), y=np.arange(50) % 5)
    surveyed = data.survey(data.find(str(path)), DataOptions())
    filled = form.resolve_form({"model": "mlp", "data": str(path), "batch_size": "9"}, (CPU,), surveyed)
    assert filled.data == surveyed
    assert filled.step_counts is not None
    assert filled.step_counts.steps_per_epoch == 5
    assert form.resolve_form({"model": "mlp"}, (CPU,), surveyed).data == data.find("digits")


def test_a_strategy_that_does_not_fit_is_offered_with_its_reason_only() -> None:
    offered = {choice.value: choice for choice in form.choices("strategy", form.resolve_form({}, (CPU,)), (CPU,))}
    assert offered["default"].possible
    assert not offered["mirrored"].possible
    assert "two devices of the same kind" in offered["mirrored"].note
    assert offered["multi-worker"].possible  # with its own field filled in, which is shown once it is chosen
    assert "local workers set to 2" in offered["multi-worker"].note
    many = form.resolve_form({"virtual_cpus": "2"}, (CPU,))
    split = {choice.value: choice for choice in form.choices("strategy", many, (CPU,))}
    assert split["mirrored"].possible


def test_a_model_that_does_not_take_the_data_is_offered_with_its_reason_only() -> None:
    offered = {
        choice.value: choice for choice in form.choices("model", form.resolve_form({"data": "synthetic:100"}), ())
    }
    assert offered["mlp"].possible
    assert "data has 100" in offered["cnn"].note


def test_devices_are_offered_alone_and_together() -> None:
    values = [
        choice.value for choice in form.choices("devices", form.resolve_form({"virtual_cpus": "2"}), (CPU, *GPUS))
    ]
    assert values == ["", "gpu:0,gpu:1", "gpu:0", "gpu:1", "cpu:0", "cpu:1"]


def test_fields_with_few_values_offer_them_and_numbers_offer_nothing() -> None:
    filled = form.resolve_form({})
    assert [choice.value for choice in form.choices("xla", filled)] == ["auto", "on", "off"]
    assert form.choices("epochs", filled) == ()


def test_remarks_say_what_was_chosen() -> None:
    filled = form.resolve_form({})
    assert "input: images of at least 8x8" in form.describe_value("model", filled)
    assert "8x8x1, 10 classes, 1,437 examples" in form.describe_value("data", filled)
    assert form.describe_value("epochs", filled) == ""
    assert form.describe_dataset(DatasetEntry("mine", "", "npz")) == ""


def test_an_empty_field_says_what_that_means() -> None:
    assert form.resolved_placeholder("devices", form.resolve_form({}, (CPU,))) == "auto: cpu:0"
    assert form.resolved_placeholder("learning_rate", form.resolve_form({})) == "auto"
    assert form.resolved_placeholder("epochs", form.resolve_form({})) == ""


def test_what_a_field_is_for_fits_a_line_of_a_small_terminal() -> None:
    assert [name for name in SPECS if len(SPECS[name].doc) > 78 or len(form.default_reason(name)) > 78] == []


def test_a_default_is_told_with_its_reason() -> None:
    assert form.default_reason("epochs").startswith("default 10: ")
    assert form.default_reason("patience").startswith("default never: ")
    assert form.default_reason("name").startswith("default none: ")


@pytest.mark.parametrize(
    ("task", "offered", "not_offered"),
    [
        ("auto", "categorical_crossentropy", "huber"),  # of digits, which have classes
        ("regression", "huber", "categorical_crossentropy"),
        ("multi-label", "binary_crossentropy", "categorical_hinge"),
    ],
)
def test_losses_and_metrics_are_those_of_the_task(task: str, offered: str, not_offered: str) -> None:
    filled = form.resolve_form({"task": task})
    losses = [choice.value for choice in form.choices("loss", filled)]
    assert losses[0] == "auto"
    assert offered in losses
    assert not_offered not in losses
    metrics = {choice.value for choice in form.choices("metrics", filled)}
    assert ("accuracy" in metrics, "r2_score" in metrics) == (task != "regression", task == "regression")
    custom = form.resolve_form({"task": "custom"})
    assert {choice.value for choice in form.choices("loss", custom)} == set(SPECS["loss"].choices)


def test_what_is_measured_is_offered_as_monitor() -> None:
    offered = {
        metric: [
            choice.value for choice in form.choices("monitor", form.resolve_form({"task": task, "metrics": metric}))
        ]
        for task, metric in (("classification", "auc"), ("regression", "r2_score"))
    }
    measured = {
        "auc": ["loss", "accuracy", "auc"],
        "r2_score": ["loss", "mean_absolute_error", "root_mean_squared_error", "r2_score"],
    }
    assert offered == {
        metric: [*(f"validation_{name}" for name in names), *names] for metric, names in measured.items()
    }


def test_usual_values_are_offered_where_any_text_is_taken() -> None:
    filled = form.resolve_form({})
    for name in ("freeze", "initial_weights", "class_weight", "monitor"):
        assert form.has_choices(name)
        assert SPECS[name].example in {choice.value for choice in form.choices(name, filled)}


@pytest.mark.parametrize("name", ["data", "model", "strategy", "epochs"])
def test_a_field_that_may_not_be_empty_says_so(name: str) -> None:
    assert form.resolve_form({name: ""}).errors[name]


def test_the_options_of_a_table_survive_being_text_and_empty_lists_are_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n1,2\n")
    for more in ({}, {"target": ("b",), "features": ("a", "c"), "split": "column:b", "test_split": 0.2}):
        plan = Plan(data=str(path), **more)
        filled = form.resolve_form({name: form.field_text(getattr(plan, name)) for name in SPECS})
        assert filled.plan == plan
        assert "auto" not in filled.plan.command()


def test_columns_are_offered_where_they_are_named() -> None:
    columns = (EntryColumn("zip", "category", "input", detail="a, b"), EntryColumn("area", "number", "input"))
    filled = form.resolve_form({})
    filled = replace(filled, data=replace(filled.data, columns=columns))
    assert form.choices("target", filled)[0] == form.FieldChoice("zip", "category; a, b")
    assert [choice.value for choice in form.choices("kinds", filled)] == ["zip=category", "area=number"]
    assert [choice.value for choice in form.choices("split", filled)][-1] == "column:zip"
    assert form.is_list("target")
    assert not form.is_list("time")
    assert not form.is_list("devices")


def test_no_label_touches_its_field() -> None:
    assert [name for name in SPECS if len(label(name)) >= 16] == []


def test_labels_of_a_benchs_settings_stand_in_lists_with_commas() -> None:
    assert [label(name) for name in ("seconds", "target_latency")] == ["time limit (s)", "target p99 (s)"]
