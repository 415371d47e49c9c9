"""The defaults of the settings that fit a run are used; the others do not keep it from starting."""

from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_tui.cli.chosen_plan import with_fitting_defaults

CPU = (Device("cpu:0", "cpu", "a processor", cores=2),)


@pytest.mark.parametrize(
    ("defaults", "chosen", "used", "refused"),
    [
        ({"patience": 3, "min_delta": 0.1}, {}, {"patience", "min_delta"}, []),
        ({"patience": 3, "min_delta": 0.1}, {"validation": "off"}, set(), []),
        ({"validation_every": "5 steps", "monitor_mode": "max"}, {"validation": "end"}, set(), []),
        ({"rate_drop_factor": 0.5, "momentum": 0.9, "epochs": 2}, {}, {"epochs"}, []),
        ({"momentum": 0.9}, {"optimizer": "sgd"}, {"momentum"}, []),
        ({"tokenizer": "bytes", "target": ["y"], "window": 4, "horizon": 2}, {"data": "digits"}, set(), []),
        ({"custom_objects": "no.py", "unsafe_load": "on", "reduction": "nccl"}, {}, set(), []),
        ({"metrics": ["auc"], "monitor": "validation_auc"}, {}, {"metrics", "monitor"}, []),
        (
            {"metrics": ["auc"], "monitor": "validation_auc", "monitor_mode": "max", "loss": "hinge"},
            {"task": "regression", "model": "mlp"},
            set(),
            ["loss", "metrics", "monitor"],
        ),
        ({"label_smoothing": 0.1}, {"loss": "hinge"}, set(), []),
        ({"clip_norm": 1.0}, {"clip_value": 0.5}, set(), []),
        ({"final_rate": 0.0}, {"schedule": "exponential"}, set(), ["final_rate"]),
        ({"ema_momentum": 0.9}, {"strategy": "central-storage", "virtual_cpus": 2}, set(), ["ema_momentum"]),
    ],
)
def test_defaults_are_used_where_they_fit(
    defaults: dict[str, Any], chosen: dict[str, Any], used: set[str], refused: list[str]
) -> None:
    values, errors = with_fitting_defaults(defaults, chosen, CPU)

    assert values == {**{name: defaults[name] for name in used}, **chosen}
    assert sorted(error.field for error in errors) == refused
    resolve_to_train(Plan.from_mapping(values), CPU)


def test_names_and_headers_of_the_data_tell_what_fits(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n" + "1,2,0.5\n3,4,1.5\n" * 10)
    defaults, data = {"metrics": ["auc"], "augmentation": ["flip"], "target": ["y"]}, {"data": str(tmp_path / "a.csv")}
    values, errors = with_fitting_defaults(defaults, data, CPU)
    assert values == {"target": ["y"], **data}
    assert sorted(error.field for error in errors) == ["augmentation", "metrics"]


@pytest.mark.parametrize(
    ("defaults", "chosen"),
    [
        ({"devices": ["gpu:7"]}, {}),
        ({"model": "resnet20"}, {"data": "synthetic:100"}),
        ({"metrics": ["auc"]}, {"metrics": ["r2_score"]}),
        ({"metrics": ["auc"]}, {"data": "nowhere.csv"}),
        ({"epochs": 2}, {"min_delta": 0.1}),
        ({"epochs": 2}, {"model": 3, "unknown": 1}),
    ],
)
def test_what_is_chosen_or_decides_what_is_trained_is_kept(defaults: dict[str, Any], chosen: dict[str, Any]) -> None:
    assert with_fitting_defaults(defaults, chosen, CPU) == ({**defaults, **chosen}, [])
