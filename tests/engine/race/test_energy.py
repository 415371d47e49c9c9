from pathlib import Path

import pytest

from accel_engine.race import energy
from accel_engine.race.energy import Meters, find_meters

from .stand_ins import CPU, GPUS


def counter(powercap: Path, name: str, microjoules: int, what: str = "package-0") -> Path:
    folder = powercap / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{what}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    (folder / "max_energy_range_uj").write_text("1000000000\n")
    return folder


def test_processors_have_counters_that_start_again_at_zero(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", 999_000_000)
    counter(tmp_path, "intel-rapl:1", 5_000_000)
    counter(tmp_path, "intel-rapl:0:0", 7, "core")  # a part of the first one
    counter(tmp_path, "intel-rapl:2", 7_000_000, "psys")  # of all the computer, with the processors
    meters = find_meters(CPU, ("cpu:0",), tmp_path)
    assert (len(meters.meters), meters.problem) == (2, "")
    meters.start()
    counter(tmp_path, "intel-rapl:0", 2_000_000)
    counter(tmp_path, "intel-rapl:1", 9_000_000)
    assert meters.stop() == pytest.approx(3.0 + 4.0)


def test_a_counter_that_cannot_be_read_later_tells_nothing(tmp_path: Path) -> None:
    folder = counter(tmp_path, "intel-rapl:0", 1)
    meters = find_meters(CPU, ("cpu:0",), tmp_path)
    meters.start()
    (folder / "energy_uj").write_text("damaged")
    assert meters.stop() is None


def test_without_counters_the_reason_is_told(tmp_path: Path) -> None:
    assert find_meters(CPU, ("cpu:0",), tmp_path).problem == (
        "the energy of this CPU cannot be read: Linux has no counter (RAPL) of it"
    )
    counter(tmp_path, "intel-rapl:0", 1).joinpath("energy_uj").unlink()
    assert find_meters(CPU, ("cpu:0",), tmp_path).problem == "the energy of this CPU can be read by root only"
    assert "TPU" in find_meters(CPU, ("tpu:0",), tmp_path).problem


def test_gpus_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    class Meter:
        def start(self) -> None: ...

        def stop(self) -> float:
            return 2.5

    asked = []
    monkeypatch.setattr(energy, "energy_meter", lambda address: asked.append(address) or Meter())
    assert find_meters(GPUS, ("gpu:0", "gpu:1")).stop() == 5.0
    assert asked == ["0000:01:00.0", "0000:02:00.0"]
    monkeypatch.setattr(energy, "energy_meter", lambda _: None)
    assert "cannot be read" in find_meters(GPUS, ("gpu:0",)).problem
    assert Meters(problem="none").stop() is None
