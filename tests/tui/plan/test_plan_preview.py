from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import DataOptions
from accel_engine.devices import installation
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import Installation
from accel_engine.requests.describe_model import Description
from accel_tui.plan import form, plan_preview

CPU = (Device("cpu:0", "cpu", "AMD EPYC"),)
COUNTED = Description(1_000, 900, 2_000, 2_000, operations=100, layers=4, input_shape=(8, 8, 1), classes=10)


def said(texts: dict[str, str], description: Description | None = COUNTED) -> dict[str, str]:
    return {fact.name: fact.text for fact in plan_preview.rows(form.resolve_form(texts, CPU), description, "counting…")}


def test_a_plan_is_put_in_figures() -> None:
    facts = said({"epochs": "3"})
    assert facts["parameters"] == "1,000 in 4 layers"
    assert facts["input"] == "8x8x1 → 10 classes"
    assert facts["examples"] == "1,437 + 360 validation"
    assert facts["steps"] == "23 per epoch, 69 total"
    assert facts["last batch"] == "29 examples"
    assert facts["batch"] == "64 on cpu:0"
    assert facts["memory"] == "553 MiB to 849 MiB"


def test_a_last_batch_that_is_dropped_is_said() -> None:
    assert said({"last_batch": "drop"})["dropped"] == "29 examples per epoch"
    assert "dropped" not in said({"last_batch": "drop", "batch_size": "479"})


def test_replicas_share_the_batch() -> None:
    assert said({"strategy": "mirrored", "virtual_cpus": "2"})["batch"] == "32 on each of cpu:0, cpu:1"


def test_micro_batches_are_smaller() -> None:
    assert said({"micro_batches": "4"})["batch"] == "64 on cpu:0, 16 per micro-batch"


def test_micro_batches_that_do_not_divide_take_back_the_steps() -> None:
    told = said({"micro_batches": "5"})
    assert {told[name] for name in ("steps", "batch")} == {"—"}


def test_what_is_done_to_pixels_is_said(tmp_path: Path) -> None:
    def told(x: np.ndarray, scale: str = "auto", description: Description | None = COUNTED) -> tuple[str, str]:
        path = tmp_path / "mine.npz"
        np.savez(path, x=x, y=np.arange(len(x)) % 5, sample_weight=np.ones(len(x)))
        texts = {
            "model": "EfficientNetB0" if x.ndim == 4 else "mlp",
            "data": str(path),
            "batch_size": "9",
            "scale": scale,
        }
        filled = form.resolve_form(texts, CPU, data.survey(data.find(str(path)), DataOptions()))
        warned = plan_preview.warnings(filled, description)
        fact = next(fact for fact in plan_preview.rows(filled, description, "counting…") if fact.name == "scaling")
        return fact.text, "".join(warned)

    images, tokens = np.zeros((50, 32, 32, 3), np.uint8), np.zeros((50, 8), np.uint8)
    assert said({})["scaling"] == said({}, None)["scaling"] == "pixels scaled by 1/255"
    assert told(images, description=None) == ("counting…", "")
    noted = "uint8 examples look like images: pixels scaled by 1/255 (turn this off with scale none)"
    assert told(images) == ("pixels scaled by 1/255", noted)
    raw = replace(COUNTED, preprocessing="Rescaling")
    assert told(images, description=raw) == ("pixels not scaled: the model has the layer Rescaling", "")
    assert told(images, "none", None) == ("pixels not scaled", "")
    assert told(tokens, description=None) == ("values not scaled", "")
    assert told(tokens, "0-1") == ("values scaled by 1/255", "")
    assert told(tokens.astype(np.float32), "0-1") == ("—", "")


def test_until_the_model_is_counted_that_is_said() -> None:
    facts = plan_preview.rows(form.resolve_form({}, CPU), None, "counting…")
    pending = {fact.name for fact in facts if fact.pending}
    assert pending == {"parameters", "memory"}


def test_a_wrong_field_takes_back_what_depends_on_it_and_no_more() -> None:
    facts = said({"batch_size": "x"})
    assert facts["steps"] == facts["memory"] == "—"
    assert facts["parameters"] == "1,000 in 4 layers"
    wrong = said({"model": "x"})
    assert wrong["parameters"] == wrong["steps"] == wrong["memory"] == "—"
    assert wrong["input"] == "8x8x1 → 10 classes"


def test_a_model_that_cannot_be_counted_warns() -> None:
    bad = Description(problem="mine.py raised ValueError: no")
    assert plan_preview.warnings(form.resolve_form({}, CPU), bad) == ("mine.py raised ValueError: no",)
    assert said({}, bad)["parameters"] == "—"


def test_a_name_that_is_a_range_warns() -> None:
    (warning,) = plan_preview.warnings(form.resolve_form({"name": "1e-4..1e-1:log"}, CPU), COUNTED)
    assert warning == "the name 1e-4..1e-1:log looks like a range: type it in the field that is to vary"
    assert plan_preview.warnings(form.resolve_form({"name": "v1..2 of mine"}, CPU), COUNTED) == ()


def test_a_batch_larger_than_the_data_warns() -> None:
    filled = form.resolve_form({"data": "synthetic:8x8x1:10:50", "batch_size": "64"}, CPU)
    assert plan_preview.warnings(filled, None) == ("batch size 64 is larger than the data: the global batch is 50",)


def test_uneven_shares_and_long_epochs_warn() -> None:
    uneven = form.resolve_form({"batch_size": "65", "strategy": "mirrored", "virtual_cpus": "2"}, CPU)
    assert "the global batch is 64" in plan_preview.warnings(uneven, None)[0]
    long = form.resolve_form({"steps_per_epoch": "46"}, CPU)
    assert plan_preview.warnings(long, None) == ("each epoch uses the data 2 times",)
    assert plan_preview.warnings(form.resolve_form({}, CPU), COUNTED) == ()


CHIP = Device("tpu:0", "tpu", "TPU v3")


@pytest.fixture
def for_tpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A TensorFlow that can drive the chips of its own machine."""
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow-tpu", "2.20.0"))


@pytest.mark.usefixtures("for_tpus")
def test_the_cores_of_a_chip_share_the_batch_and_compute_with_bfloat16() -> None:
    filled = form.resolve_form({"strategy": "tpu"}, (*CPU, CHIP))
    facts = {fact.name: fact.text for fact in plan_preview.rows(filled, COUNTED, "")}
    assert facts["batch"] == "32 on each of 2 cores of tpu:0"
    assert facts["precision"] == "mixed_bfloat16"
    assert form.describe_value("precision", filled) == "mixed_bfloat16"
    assert "a batch size of 256 (128 per core)" in plan_preview.warnings(filled, COUNTED)[0]


def test_what_only_a_tpu_elsewhere_knows_is_not_made_up() -> None:
    filled = form.resolve_form({"strategy": "tpu", "tpu": "10.0.0.2"}, CPU)
    facts = {fact.name: fact.text for fact in plan_preview.rows(filled, COUNTED, "")}
    assert facts["examples"] == "1,437 + 360 validation"
    assert facts["steps"] == "known after connecting"
    assert facts["batch"] == "64 over the cores of grpc://10.0.0.2:8470"
    assert facts["memory"] == "—"
    assert form.resolved_placeholder("devices", filled) == "auto: grpc://10.0.0.2:8470"
    assert plan_preview.warnings(filled, COUNTED) == ()


def test_plain_float32_goes_without_saying() -> None:
    assert "precision" not in said({})
    assert said({"precision": "mixed_bfloat16"})["precision"] == "mixed_bfloat16"


def test_a_field_is_noted_with_what_its_value_means_unless_it_is_wrong() -> None:
    filled = form.resolve_form({}, CPU)
    notes = plan_preview.field_notes(filled, plan_preview.rows(filled, COUNTED, ""))
    assert notes["model"].startswith("cnn: ")
    assert (notes["data"], notes["epochs"]) == ("8x8x1 → 10 classes", "23 per epoch, 230 total")
    assert notes["batch_size"] == "64 on cpu:0, last 29"
    wrong = form.resolve_form({"data": "x", "epochs": "many"}, CPU)
    found = plan_preview.field_notes(wrong, plan_preview.rows(wrong, None, ""))
    assert not {"data", "epochs"} & found.keys()
    assert found["batch_size"] == ""


def test_what_a_run_writes_is_estimated_once_its_model_is_known() -> None:
    filled = form.resolve_form({}, CPU)
    assert [row.text for row in plan_preview.file_rows(filled, None)] == ["3 checkpoints"]
    (row,) = plan_preview.file_rows(filled, COUNTED)
    assert row.text.endswith("MiB, 3 checkpoints")


def test_more_than_the_disk_has_free_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.run.directory.disk_space.free_bytes", lambda _: 1 << 20)
    (warning,) = plan_preview.warnings(form.resolve_form({}, CPU), COUNTED)
    assert warning.endswith("on the disk, which has 1.0 MiB free: training waits when it is full")
