from dataclasses import replace

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.plan.memory_estimate import MemoryPart, Training
from accel_engine.plan.placement import Placement
from accel_engine.requests.describe_model import Description
from accel_tui.plan import form, memory_text, plan_preview

MIB, GIB = 1 << 20, 1 << 30
CPU = Device("cpu:0", "cpu", "AMD EPYC")
LARGE = Description(1000, 900, 8 * MIB, 8 * MIB, operations=100, layers=4, input_shape=(8, 8, 1), classes=10)
TRAINING = Training(Plan(xla="off"), LARGE, 64, Placement(("gpu:0",), device_memory=GIB))


def test_one_figure_stands_for_a_range_of_equal_ends() -> None:
    assert memory_text.bytes_text(MemoryPart("weights", 2048, 2050)) == "2.0 KiB"
    assert memory_text.bytes_text(MemoryPart("activations", 2048, 3 * MIB)) == "2.0 KiB to 3.0 MiB"


def test_several_accelerators_have_it_each() -> None:
    two = replace(TRAINING, placement=Placement(("gpu:0", "gpu:1")))
    assert memory_text.memory_line(TRAINING) == "1.0 GiB to 1.5 GiB"
    assert memory_text.memory_line(two) == "1.0 GiB to 1.5 GiB per device"
    assert "per device" not in memory_text.memory_line(replace(two, placement=Placement(("cpu:0", "cpu:1"))))


def test_a_shortage_names_the_cheapest_change_in_the_words_of_the_form_or_the_command_line() -> None:
    short = replace(TRAINING, memory=GIB)
    assert memory_text.memory_shortage(short) == (
        "1.0 GiB to 1.5 GiB does not fit in the 1.0 GiB of gpu:0: micro-batches set to 2 fits (512 MiB to 742 MiB)"
    )
    assert "--micro-batches 2 fits" in memory_text.memory_shortage(short, labels=False)
    assert "may not fit" in memory_text.memory_shortage(replace(short, memory=GIB + 200 * MIB))
    assert memory_text.memory_shortage(replace(short, memory=2 * GIB)) == ""
    assert memory_text.memory_shortage(TRAINING) == ""  # how much memory there is, is unknown
    assert memory_text.memory_shortage(replace(short, memory=0)).endswith("is known to fit")


def test_the_form_warns_of_a_plan_that_may_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = form.resolve_form({"xla": "off"}, (CPU,))
    monkeypatch.setattr(memory_text, "available_memory", lambda: 8 * GIB)
    assert plan_preview.warnings(filled, LARGE) == ()
    monkeypatch.setattr(memory_text, "available_memory", lambda: GIB)
    (warning,) = plan_preview.warnings(filled, LARGE)
    assert "does not fit in the 1.0 GiB available on this machine: micro-batches set to" in warning


def test_a_gpu_counts_with_its_memory_or_its_limit() -> None:
    gpus = (CPU, Device("gpu:0", "gpu", "NVIDIA L4", 24 * GIB), Device("gpu:1", "gpu", "NVIDIA T4", 16 * GIB))
    for fields, expected in (({}, 24), ({"strategy": "mirrored"}, 16), ({"memory_limit": "4"}, 4)):
        training = memory_text.training_of(form.resolve_form(fields, gpus), LARGE)
        assert training is not None
        assert training.memory == expected * GIB
    unknown = memory_text.training_of(form.resolve_form({}, (CPU, Device("gpu:0", "gpu", "GPU"))), LARGE)
    assert unknown is not None
    assert (unknown.memory, memory_text.available_memory_text(unknown)) == (None, "")


def test_there_is_no_estimate_without_a_model_or_steps() -> None:
    assert memory_text.training_of(form.resolve_form({}, (CPU,)), Description(problem="no")) is None
    assert memory_text.training_of(form.resolve_form({"micro_batches": "5"}, (CPU,)), LARGE) is None
