import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import RunEnded, TensorFlowDevice, WorkCounted, from_stored
from accel_engine.measure.cache import key_of
from accel_engine.plan import Plan
from accel_engine.run.directory.run_paths import home
from accel_engine.training.core import device_visibility
from accel_engine.training.model_analysis.flops import FlopCount
from accel_engine.training.reporting import mfu
from accel_engine.training.reporting.mfu import MfuMeter

from ..conftest import MACHINE, Gym

PLAN = Plan(model="mlp", epochs=1, batch_size=32, last_batch="drop", validation="off", precision="float32")
STEP = 32 * 2 * (2 * 64 * 128 + 3 * 128 * 10)
"""Operations of a step, without a gradient of the images."""

NAME = MACHINE.devices[0].name


class Told:
    """A substitute for a ``RunReporter`` that keeps its events."""

    def __init__(self) -> None:
        self.last: dict[str, Any] = {}

    def emit(self, kind: type[WorkCounted], **values: Any) -> None:
        assert kind is WorkCounted
        self.last = values


def on(
    devices: tuple[str, ...],
    hardware: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    *,
    replicas: int = 0,
    dtype: str = "float32",
    counted: FlopCount | None = None,
) -> tuple[MfuMeter, Told]:
    """The utilization meter of simulated devices, and its events."""
    monkeypatch.setattr(mfu, "count_flops", lambda *_, **__: counted or FlopCount(100e12))
    assembly: Any = SimpleNamespace(
        devices=devices,
        on_cpu=devices[0].startswith("CPU"),
        single_process=not replicas,
        replicas=replicas or len(devices),
        step_counts=SimpleNamespace(global_batch=32),
        simultaneous_steps=1,
        stages=None,
        coordinated=False,
        model=SimpleNamespace(compute_dtype=dtype),
    )
    told = Told()
    made = MfuMeter(assembly, told, hardware)  # type: ignore[arg-type]
    made.count_flops(None, 32)  # type: ignore[arg-type]
    return made, told


def test_a_short_run_counts_flops_without_a_measurement(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfu, "SETTLED_SECONDS", 600.0)

    trained = gym.train(PLAN)

    work = trained.only(WorkCounted)
    assert (work.flops, work.peak) == (STEP, None)
    assert work.reason == "a CPU's peak is measured after 600 s of training"
    assert trained.ended.flops_per_second == pytest.approx(STEP * trained.ended.steps_per_second)
    assert trained.ended.mfu is None
    assert not (home() / "mfu.json").exists()


def test_a_cpu_is_measured_once_without_changing_the_run(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLAN.replace(model="cnn", steps_per_epoch=8)
    undisturbed = gym.train(plan)
    monkeypatch.setattr(mfu, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(mfu, "SECONDS", 0.01)
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 0.0)
    measure = mfu.measure_peak
    monkeypatch.setattr(mfu, "measure_peak", lambda name: 1e6 * (measure(name) or 0.0))  # nothing is faster

    first = gym.train(plan)
    before, after = first.all(WorkCounted)

    assert before.peak is None
    assert after.source.startswith("in float32, measured")
    assert after.peak > 0
    assert first.ended.mfu == pytest.approx(first.ended.flops_per_second / after.peak)
    assert first.series["loss"].tolist() == undisturbed.series["loss"].tolist()
    monkeypatch.setattr(mfu, "cached_peak", lambda _: 1e18)  # so that nothing could be faster
    assert gym.train(PLAN).only(WorkCounted).peak == 1e18


def test_an_exceeded_peak_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfu, "SECONDS", 0.01)
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 0.0)
    mfu._PEAKS.save({key_of(["a processor"]): 1.0})
    cpu, told = on(("CPU:0",), ("a processor",), monkeypatch)
    assert told.last["peak"] == 1.0

    cpu.update_peak(10.0, 1e-12)  # 100 FLOP/s

    assert told.last["peak"] > 100
    assert mfu.cached_peak("a processor") == told.last["peak"]


def test_a_peak_measured_beside_other_programs_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfu, "SECONDS", 0.01)
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 1e9)
    cpu, told = on(("CPU:0",), ("another processor",), monkeypatch)

    cpu.update_peak(10.0, 1e-12)

    assert (told.last["peak"], told.last["reason"]) == (None, mfu.CPU_IN_USE)
    assert cpu.achieved(1e-12) == (100.0, None)
    assert mfu.cached_peak("another processor") is None
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 0.0)
    cpu.update_peak(99.0, 1e-12)  # too early to spend time on it again
    assert told.last["peak"] is None
    cpu.update_peak(100.0, 1e-12)
    assert cpu.achieved(1e-12) == (100.0, 100.0 / told.last["peak"])


def test_the_roofline_of_a_cpu_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfu, "SECONDS", 0.01)
    monkeypatch.setattr(mfu, "_COPIED_BYTES", 1 << 20)
    assembly: Any = SimpleNamespace(devices=("CPU:0",), on_cpu=True, model=SimpleNamespace(compute_dtype="float32"))
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 1e9)
    assert mfu.roofline(assembly, ("one more processor",)) == mfu.Roofline(None, mfu.CPU_IN_USE)
    monkeypatch.setattr(mfu, "_MIN_CPU_SHARE", 0.0)
    found = mfu.roofline(assembly, ("one more processor",))
    assert found.flops is not None
    assert found.flops > 1e6
    assert found.bytes is not None
    assert found.bytes > 1e6
    assert mfu.roofline(assembly, ("one more processor",)) == found
    half: Any = SimpleNamespace(devices=("CPU:0",), on_cpu=True, model=SimpleNamespace(compute_dtype="bfloat16"))
    of_half = mfu.roofline(half, ("one more processor",))
    assert (of_half.flops, of_half.bytes) == (None, found.bytes)
    assert "in float32 only" in of_half.flops_source


def test_the_roofline_of_a_gpu_is_its_datasheet(monkeypatch: pytest.MonkeyPatch) -> None:
    assembly: Any = SimpleNamespace(devices=("GPU:0",), on_cpu=False, model=SimpleNamespace(compute_dtype="bfloat16"))
    found = mfu.roofline(assembly, ("NVIDIA A100-SXM4-80GB",))
    assert (found.flops, found.bytes) == (312e12, None)
    assert found.flops_source.endswith("datasheet, bfloat16")
    assert mfu.roofline(assembly, ("",)).flops_source == "the devices are unknown"


def test_no_share_of_a_peak_that_training_exceeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of a CPU whose peak was just measured, and of a GPU's, which cannot be measured."""
    monkeypatch.setattr(mfu, "measure_peak", lambda _: 50e12)
    for device, name in (("CPU:0", "a processor"), ("GPU:0", "NVIDIA H100 80GB HBM3")):
        meter, told = on((device,), (name,), monkeypatch)

        assert meter.achieved(1e6)[1] is None
        meter.update_peak(10.0, 1e6)

        assert told.last["peak"] is None
        assert told.last["reason"].startswith("training is faster than the peak that is known (")
        assert meter.achieved(1.0) == (100e12, None)


def test_logical_cpus_share_one_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    mfu._PEAKS.save({key_of(["a processor"]): 5e9})

    _, told = on(("CPU:0", "CPU:1"), ("a processor",) * 2, monkeypatch)

    assert told.last["peak"] == 5e9


def test_the_peaks_of_gpus_are_summed_by_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("NVIDIA H100 80GB HBM3",) * 2

    of_two, told = on(("GPU:0", "GPU:1"), names, monkeypatch, dtype="bfloat16")
    assert (told.last["peak"], told.last["flops"]) == (2 * 989.4e12, 100e12)
    assert told.last["source"] == "NVIDIA H100 architecture whitepaper, bfloat16"
    assert of_two.achieved(4.0) == pytest.approx((400e12, 400 / (2 * 989.4)))
    assert of_two.achieved(0.0) == (None, None)
    _, told = on(("GPU:0", "GPU:1"), names, monkeypatch, replicas=4)  # two workers like this one
    assert (told.last["peak"], told.last["flops"]) == (4 * 494.7e12, 200e12)


def test_tpu_cores_are_traced_once_and_share_their_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    _, told = on(("TPU:0", "TPU:1"), ("TPU v3",) * 2, monkeypatch, dtype="bfloat16")

    assert (told.last["peak"], told.last["flops"]) == (123e12, 200e12)


def test_unknown_values_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, told = on(("GPU:0",), ("Some GPU",), monkeypatch)
    assert told.last["reason"] == "the peak of Some GPU is unknown"
    assert lost.achieved(2.0) == (200e12, None)
    lost, told = on(("GPU:0",), ("Tesla T4",), monkeypatch, counted=FlopCount(None, "the model has a loop"))
    assert (told.last["flops"], told.last["reason"]) == (None, "the model has a loop")
    assert lost.achieved(2.0) == (None, None)
    _, told = on(("CPU:0",), ("a processor",), monkeypatch, dtype="bfloat16")
    assert told.last["reason"] == "a CPU's peak is measured in float32 only, not in bfloat16"
    _, told = on(("CPU:0",), ("a processor",), monkeypatch, replicas=2)
    assert told.last["reason"] == "the number of CPUs of all workers is unknown"


def test_a_corrupt_cache_is_ignored() -> None:
    mfu._PEAKS.save({"other": 1.0})
    path: Path = home() / "mfu.json"
    for words in ("", "[]", json.dumps({key_of(["a processor"]): "fast"})):
        path.write_text(words)
        assert mfu.cached_peak("a processor") is None


def test_hardware_names_fall_back_to_tensorflows() -> None:
    inventory = Inventory((Device("gpu:0", "gpu", "NVIDIA H200"),))
    described = "device: 1, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"
    devices = tuple(
        TensorFlowDevice("GPU:0", "gpu", words, device) for words, device in (("", "gpu:0"), (described, ""), ("", ""))
    )

    assert device_visibility.hardware_names(devices, inventory) == ("NVIDIA H200", "Tesla T4", "")


def test_an_end_that_another_program_wrote_has_no_mfu() -> None:
    written = {"outcome": "finished", "steps": 1, "epochs": 1, "seconds": 1.0, "steps_per_second": 1.0, "metrics": {}}
    event = from_stored("run_ended", 1.0, json.dumps(written))

    assert isinstance(event, RunEnded)
    assert event.mfu is None
