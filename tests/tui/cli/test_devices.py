import json
import signal
import time

import pytest

from accel_engine.devices.device_types import CountedItem, Device, Inventory, Reading, Sample, UnavailableKind
from accel_tui.cli.devices import _fit_to_terminal

GIB = 2**30

INVENTORY = Inventory(
    (
        Device("cpu:0", "cpu", "A processor", memory=16 * GIB, cores=8),
        Device("gpu:0", "gpu", "A graphics card", memory=24 * GIB, address="0000:3b:00.0"),
    ),
    (UnavailableKind("tpu", "no TPU chip on the PCI bus"),),
)


def samples(use):
    return (
        Sample(
            time.time(),
            "cpu:0",
            {
                "utilization": Reading(use, "%"),
                "memory_used": Reading(4 * GIB, "B"),
                "memory_total": Reading(16 * GIB, "B"),
            },
        ),
        Sample(
            time.time(),
            "gpu:0",
            {
                "utilization": Reading.missing("not permitted", "%"),
                "temperature": Reading(41.0, "C"),
                "power": Reading(70.4, "W"),
            },
        ),
    )


class Sampler:
    """Stands in for the engine's: two batches, then Ctrl-C."""

    inventory = INVENTORY
    stopped = 0

    def __init__(self, on_samples, interval=1.0):
        self.on_samples = on_samples

    def start(self):
        self.on_samples(samples(10.0))
        self.on_samples(samples(55.0))

    def stop(self):
        Sampler.stopped += 1


@pytest.fixture(autouse=True)
def sampler(monkeypatch):
    monkeypatch.setattr("accel_tui.cli.devices.Sampler", Sampler)
    monkeypatch.setattr("accel_tui.cli.devices.SLOW_DEVICE_TIMEOUT", 0.0)
    monkeypatch.setattr(Sampler, "stopped", 0)


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C comes when there are no more samples."""

    class Batches(list):
        put = list.append

        def get(self, timeout=None):
            if not self:
                signal.raise_signal(signal.SIGINT)
            return self.pop(0)

    monkeypatch.setattr("accel_tui.cli.devices.queue.SimpleQueue", Batches)


def test_devices_with_their_readings_and_reasons(run_command):
    result = run_command("devices")
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.lines)
    cpu, gpu = result.lines[1:3]
    assert cpu.split()[:2] == ["cpu:0", "55%"]
    assert "4.0 / 16.0 GiB" in cpu
    assert "8 cores" in cpu
    assert gpu.split()[:2] == ["gpu:0", "-"]
    assert "41 \N{DEGREE SIGN}C" in gpu
    assert "70 W" in gpu
    assert "no TPU: no TPU chip on the PCI bus" in result.out
    assert "gpu:0: no utilization: not permitted" in result.out
    assert Sampler.stopped == 1


def test_one_reason_for_many_devices_is_said_once(run_command, monkeypatch):
    idle = Reading.missing("no program uses the chip", "%")
    chips = tuple(Device(f"tpu:{index}", "tpu", "TPU v5e", memory=16 * GIB, cores=1) for index in range(4))
    read = tuple(Sample(0.0, chip.id, {"utilization": idle, "memory_used": idle}) for chip in chips)
    monkeypatch.setattr(Sampler, "inventory", Inventory(chips))
    monkeypatch.setattr(Sampler, "start", lambda self: [self.on_samples(read) for _ in range(2)])
    result = run_command("devices")
    assert result.lines[1].split()[:5] == ["tpu:0", "-", "-", "/", "16.0"]
    assert result.lines[-1] == "tpu:0, tpu:1, tpu:2, tpu:3: no utilization, memory used: no program uses the chip"


def test_devices_as_json(run_command):
    lines = [json.loads(line) for line in run_command("devices --json").lines]
    assert [line["id"] for line in lines] == ["cpu:0", "gpu:0", None]
    assert lines[0]["readings"]["utilization"] == {"value": 55.0, "unit": "%"}
    assert lines[1]["readings"]["utilization"] == {"value": None, "unit": "%", "reason": "not permitted"}
    assert lines[2] == {"id": None, "kind": "tpu", "problem": "no TPU chip on the PCI bus"}


def test_watching_goes_on_until_ctrl_c(run_command, interrupted):
    result = run_command("devices --watch")
    assert (result.status, result.err) == (0, "")
    uses = [line.split()[1] for line in result.lines if line.startswith("cpu:0")]
    assert uses == ["10%", "55%"]
    assert "\x1b" not in result.out
    assert Sampler.stopped == 1


def test_watching_as_json_is_a_device_a_line(run_command, interrupted):
    lines = [json.loads(line) for line in run_command("devices --watch --json").lines]
    assert [(line["event"], line["device"]) for line in lines] == [("sample", "cpu:0"), ("sample", "gpu:0")] * 2


def test_devices_that_say_nothing_in_time_are_shown_without_readings(run_command, monkeypatch):
    monkeypatch.setattr(Sampler, "start", lambda self: None)
    monkeypatch.setattr("accel_tui.cli.devices.TIMEOUT", 0.01)
    result = run_command("devices")
    assert result.status == 0
    assert result.lines[1].split()[:2] == ["cpu:0", "-"]


def test_a_device_that_is_late_keeps_its_reading(run_command, monkeypatch):
    def start(sampler):
        sampler.on_samples(samples(10.0))
        sampler.on_samples([Sample(2.0, "cpu:0", {"utilization": Reading.missing("no response for 0.1 s", "%")})])

    monkeypatch.setattr(Sampler, "start", start)
    assert run_command("devices").lines[1].split()[:2] == ["cpu:0", "10%"]


def test_what_else_is_known_is_said_below_the_table(run_command, monkeypatch):
    parts = {
        "throttling": (CountedItem("thermal slowdown"), CountedItem("power limit")),
        "instances": (CountedItem("MIG 3g.40gb", "MIG-1", 3 * GIB, 40 * GIB),),
        "processes": (CountedItem("python", "4242", 61 * GIB), CountedItem("?", "7")),
    }
    gpu = {
        "utilization": Reading(87.0, "%"),
        "power": Reading(312.5, "W"),
        "power_limit": Reading(400.0, "W"),
        "clock_sm": Reading(1410.0, "MHz"),
        "fan": Reading.missing("this GPU does not report it", "%"),
        "ecc_corrected": Reading(2.0),
        "ecc_uncorrected": Reading(0.0),
        **{name: Reading.counted(counted) for name, counted in parts.items()},
    }
    host = {"disk_read": Reading(2.0**20, "B/s"), "swap_used": Reading(0.0, "B"), "swap_total": Reading(8.0 * GIB, "B")}
    read = (Sample(0.0, "cpu:0", host), Sample(0.0, "gpu:0", gpu))
    monkeypatch.setattr(Sampler, "start", lambda self: [self.on_samples(read) for _ in range(2)])
    monkeypatch.setenv("COLUMNS", "120")
    result = run_command("devices")
    assert "312 / 400 W" in result.out
    assert "CLOCK" in result.lines[0]
    assert "1410 MHz" in result.lines[2]
    assert "FAN" not in result.out
    assert "swap: 0.0 / 8.0 GiB   disk: 1.0 MiB/s read" in result.lines
    for line in (
        "gpu:0: throttled: thermal slowdown, power limit",
        "gpu:0: 2 corrected memory errors",
        "gpu:0: MIG 3g.40gb, 3.0 GiB / 40.0 GiB, MIG-1",
        "process 4242 python: gpu:0 61.0 GiB",
        "process 7 ?: gpu:0",
    ):
        assert line in result.lines
    monkeypatch.setenv("COLUMNS", "80")
    assert "CLOCK" not in run_command("devices").out
    wire = json.loads(run_command("devices --json").lines[1])["readings"]
    assert wire["throttling"] == {
        "value": 2.0,
        "unit": "",
        "parts": [{"name": "thermal slowdown"}, {"name": "power limit"}],
    }
    assert wire["processes"]["parts"][0] == {"name": "python", "id": "4242", "memory": 61 * GIB}


def test_a_device_that_is_slow_to_answer_is_waited_for_a_little(run_command, monkeypatch):
    silent = (*samples(10.0)[:1], Sample(0.0, "gpu:0", {"utilization": Reading.missing("no answer for 0.1 s", "%")}))

    def start(self):
        for read in (silent, silent, samples(55.0)):
            self.on_samples(read)

    monkeypatch.setattr(Sampler, "start", start)
    assert run_command("devices").lines[1].split()[:2] == ["cpu:0", "55%"]


def test_a_program_on_many_devices_is_one_line(run_command, monkeypatch):
    readings = {
        "utilization": Reading(50.0, "%"),
        "throttling": Reading.counted((CountedItem("thermal slowdown"),)),
        "processes": Reading.counted((CountedItem("python", "4242", 61 * GIB),)),
    }
    read = tuple(Sample(0.0, f"gpu:{index}", readings) for index in range(3))
    monkeypatch.setattr(Sampler, "start", lambda self: [self.on_samples(read) for _ in range(2)])
    told = run_command("devices").lines
    assert "process 4242 python: gpu:0 61.0 GiB, gpu:1 61.0 GiB, gpu:2 61.0 GiB" in told
    assert "gpu:0, gpu:1, gpu:2: throttled: thermal slowdown" in told


def test_what_does_not_fit_a_watched_terminal_is_counted(monkeypatch):
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "80")
    told = _fit_to_terminal("\n".join(map(str, range(30)))).splitlines()
    assert told == [*map(str, range(8)), "… 22 more lines"]
    assert _fit_to_terminal("one\ntwo") == "one\ntwo"
