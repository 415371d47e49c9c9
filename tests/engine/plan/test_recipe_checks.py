"""Contradictions of the recipe, and what does not fit the task or the steps, are found without TensorFlow."""

from typing import Any

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.interval import Interval, parse_duration, parse_interval
from accel_engine.plan.plan_checks import without_ignored
from accel_engine.plan.resolved_plan import resolve

CPU = (Device("cpu:0", "cpu", "a processor", 8 << 30, 2),)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"clip_norm": 1, "clip_value": 1}, "clip_value", "leave out --clip-norm"),
        ({"momentum": 0.9}, "momentum", "needs the optimizer sgd or rmsprop: use --optimizer sgd"),
        ({"momentum": 1.0, "optimizer": "sgd"}, "momentum", "below 1"),
        (
            {"nesterov": "on", "optimizer": "sgd"},
            "nesterov",
            "sgd with momentum: use --optimizer sgd and --momentum 0.9",
        ),
        ({"warmup": 0.1}, "warmup", "needs a schedule: use --schedule cosine"),
        ({"warmup": 2.5, "schedule": "linear"}, "warmup", "whole number"),
        ({"warmup": "200%", "schedule": "linear"}, "warmup", "a share of all steps below 100%"),
        ({"warmup": "100%", "schedule": "linear"}, "warmup", "a share of all steps below 100%"),
        ({"warmup": "-5%", "schedule": "linear"}, "warmup", "a share of all steps below 100%"),
        ({"final_rate": 0.1}, "final_rate", "needs a schedule other than constant and steps: use --schedule cosine"),
        ({"rate_drops": ("10%",)}, "rate_drops", "needs the schedule steps: use --schedule steps"),
        (
            {"rate_drop_factor": 0.5, "schedule": "cosine"},
            "rate_drop_factor",
            "needs the schedule steps: use --schedule steps",
        ),
        ({"min_delta": 0.1}, "min_delta", "use --patience 5 or --restore-best on"),
        ({"monitor_mode": "min"}, "monitor_mode", "needs a monitor: use --monitor validation_loss"),
        (
            {"validation_every": "5 steps", "validation": "end"},
            "validation_every",
            "validation during training: use --validation epoch",
        ),
        ({"validation_steps": 3, "validation": "off"}, "validation_steps", "needs validation: use --validation epoch"),
        ({"horizon": 2}, "horizon", "needs windows of a time series: use --time or --window"),
        ({"group": "station"}, "group", "needs windows of a time series: use --time or --window"),
        ({"final_rate": 0, "schedule": "exponential"}, "final_rate", "above 0"),
        ({"schedule": "steps", "rate_drops": ("50%", "20%")}, "rate_drops", "increase"),
        ({"schedule": "steps", "rate_drops": ("50%", "2000")}, "rate_drops", "increase"),
        ({"schedule": "steps", "rate_drops": ("x",)}, "rate_drops", "1000,2000"),
        ({"label_smoothing": 0.1, "loss": "hinge"}, "label_smoothing", "categorical_crossentropy"),
        ({"unfreeze_epoch": 3}, "unfreeze_epoch", "needs frozen layers: use --freeze all-but-head"),
        ({"patience": 2, "validation": "off"}, "patience", "during training: use --validation epoch or --monitor loss"),
        ({"patience": 2, "validation": "end"}, "patience", "during training: use --validation epoch or --monitor loss"),
        ({"restore_best": "on", "validation": "off"}, "restore_best", "needs validation: use --validation epoch"),
        ({"validation_every": "2 lightyears"}, "validation_every", "500 steps"),
        ({"checkpoint_every": "0 steps"}, "checkpoint_every", "500 steps"),
        ({"time_limit": "soon"}, "time_limit", "1h30m"),
        ({"time_limit": "20"}, "time_limit", "needs a unit: 20s, 20m or 20h"),
        ({"time_limit": "0s"}, "time_limit", "must be above 0"),
        ({"metrics": ("acuracy",)}, "metrics", "did you mean accuracy"),
        ({"ema_momentum": 1.0}, "ema_momentum", "below 1"),
        ({"ema_momentum": 0.9, "strategy": "central-storage"}, "ema_momentum", "--strategy mirrored"),
        ({"ema_momentum": 0.9, "strategy": "Central_Storage"}, "ema_momentum", "--strategy mirrored"),
        ({"augmentation": ("flip",), "strategy": "central-storage"}, "augmentation", "--strategy mirrored"),
        ({"augmentation": ("mixup", "cutmix"), "data": "json:load"}, "augmentation", "choose one of them"),
        (
            {"augmentation": ("mixup",), "class_weight": ("0=2",), "data": "json:load"},
            "augmentation",
            "leave out --class-weight or mixup",
        ),
        (
            {"test_split": 0.1, "split": "none", "data": "json:load"},
            "test_split",
            "needs another split than --split none",
        ),
        ({"optimizer": "adm"}, "optimizer", "did you mean adam"),
    ],
)
def test_contradictions_are_refused_with_what_would_be_right(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan(**fields)

    assert caught.value.field == field
    assert message in str(caught.value)


def test_a_plan_without_its_fields_of_no_effect_is_valid() -> None:
    values = {"validation": "off", "patience": 2, "min_delta": 0.1, "rate_drops": ["10%"], "unknown": 1, "epochs": 3}
    assert without_ignored(values) == {"validation": "off", "unknown": 1, "epochs": 3}
    assert without_ignored(values, {"min_delta"}) == {"validation": "off", "min_delta": 0.1, "unknown": 1, "epochs": 3}


def test_a_metric_of_training_needs_no_validation() -> None:
    assert Plan(patience=2, validation="off", monitor="loss").patience == 2


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"warmup": 46, "schedule": "linear", "epochs": 2}, "warmup", "below the 46 steps"),
        ({"freeze": ("conv*",), "unfreeze_epoch": 11}, "unfreeze_epoch", "one of the 10 epochs"),
        ({"metrics": ("r2_score",)}, "metrics", "use accuracy, auc"),
        ({"metrics": ("accuracy",), "task": "custom", "model": "mlp"}, "metrics", "compile the model with its"),
        ({"monitor": "val_f1"}, "monitor", "measured are loss, accuracy: use --monitor validation_accuracy"),
        ({"monitor": "val_f1_score", "metrics": ("auc",)}, "monitor", "accuracy, auc: add --metrics auc,f1_score"),
        ({"monitor": "auc"}, "monitor", "measured are loss, accuracy: add --metrics auc"),
        ({"monitor": "r2_score"}, "monitor", "measured are loss, accuracy: use --monitor accuracy"),
        ({"loss": "huber"}, "loss", "not a loss of classification"),
        ({"task": "regression", "model": "mlp", "loss": "dice"}, "loss", "not a loss of regression"),
        ({"task": "regression", "model": "mlp", "label_smoothing": 0.1}, "label_smoothing", "is for regression"),
    ],
)
def test_what_does_not_fit_the_data_is_found_before_the_start(fields: dict[str, Any], field: str, message: str) -> None:
    errors = resolve(Plan(**fields), CPU).errors

    assert message in "".join(map(str, errors[field]))


@pytest.mark.parametrize(
    ("fields", "chosen", "refused"),
    [
        ({"loss": "huber", "metrics": ("r2_score",), "monitor": "validation_auc"}, (), ""),
        ({"task": "regression", "model": "mlp", "label_smoothing": 0.1}, (), ""),
        ({"task": "regression", "model": "mlp", "label_smoothing": 0.1}, ("label_smoothing",), "is for regression"),
        ({"monitor": "validation_auc"}, ("monitor",), "accuracy: use --monitor validation_accuracy"),
        ({"monitor": "validation_auc", "patience": 2}, ("epochs",), "accuracy: use --monitor validation_accuracy"),
    ],
)
def test_what_a_run_was_trained_with_does_not_keep_it_from_continuing(
    fields: dict[str, Any], chosen: tuple[str, ...], refused: str
) -> None:
    errors = resolve(Plan(**fields), CPU, chosen=chosen).plan_errors

    assert [refused in str(error) for error in errors] == ([True] if refused else [])


@pytest.mark.parametrize("monitor", ["val_loss", "validation_accuracy", "loss", "auc", "gradient_norm", "recall"])
def test_what_is_measured_can_be_monitored(monitor: str) -> None:
    plan = Plan(monitor=monitor, metrics=("recall",) if monitor == "recall" else ())
    assert ("monitor" in resolve(plan, CPU).errors) == (monitor == "auc")


@pytest.mark.parametrize(
    ("text", "interval"), [("2 epochs", Interval(2, "epochs")), ("500steps", Interval(500, "steps"))]
)
def test_intervals(text: str, interval: Interval) -> None:
    assert parse_interval("validation_every", text) == interval


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("10s", 10)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration("time_limit", text) == seconds


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("500", 500.0), ("1", 1.0)])
def test_a_share_may_be_written_in_percent(text: str, share: float) -> None:
    assert Plan.from_mapping({"schedule": "cosine", "warmup": text}).warmup == pytest.approx(share)


def test_a_last_learning_rate_may_be_all_of_the_highest() -> None:
    assert Plan.from_mapping({"schedule": "cosine", "final_rate": "100%"}).final_rate == 1
