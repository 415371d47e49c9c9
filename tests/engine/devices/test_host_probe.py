"""The host: this machine's own figures, and what the system may refuse."""

import os
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from accel_engine.devices import host_probe
from accel_engine.devices.host_probe import CHILDREN_INTERVAL, EngineUsage, HostProbe, HostTraffic, processor_name

Times = namedtuple("Times", ["user", "system", "idle", "iowait", "guest"])

Disk = namedtuple("Disk", ["read_bytes", "write_bytes"])
Card = namedtuple("Card", ["bytes_recv", "bytes_sent"])


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep a core busy, so that time is counted whatever else the machine does."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    yield
    done.set()
    thread.join()


def counting(monkeypatch: pytest.MonkeyPatch, *looks: list[Times]) -> None:
    """Let the system count these times, one look after the other."""
    remaining = iter(looks)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: next(remaining))


def test_the_cpu_is_described() -> None:
    (device,) = HostProbe().inventory().devices
    assert (device.id, device.kind, device.address) == ("cpu:0", "cpu", "")
    assert device.name
    assert device.cores == psutil.cpu_count()
    assert device.memory == psutil.virtual_memory().total


@pytest.mark.usefixtures("busy")
def test_use_is_known_from_the_second_sample_on(wait_until: Callable[..., None]) -> None:
    probe = HostProbe()
    (first,) = probe.sample()
    assert first.readings["utilization"].value is None
    assert "second reading" in first.readings["utilization"].reason

    def use() -> float | None:
        return probe.sample()[0].readings["utilization"].value

    wait_until(use, "a busy core to show")


@pytest.mark.usefixtures("busy")
def test_every_core_memory_and_load_are_read(wait_until: Callable[..., None]) -> None:
    probe = HostProbe()
    wait_until(lambda: probe.sample()[0].readings["core_0"].value is not None)
    (sample,) = probe.sample()
    assert sample.device == "cpu:0"
    cores = {name for name in sample.readings if name.startswith("core_")}
    assert cores == {f"core_{index}" for index in range(psutil.cpu_count() or 0)}
    assert {reading.unit for name, reading in sample.readings.items() if name in cores} == {"%"}
    used, total = sample.readings["memory_used"], sample.readings["memory_total"]
    assert used.value is not None
    assert total.value is not None
    assert 0 < used.value < total.value
    assert used.unit == total.unit == "B"
    assert sample.readings["load"].value is not None


def test_swap_and_traffic_are_read(wait_until: Callable[..., None]) -> None:
    probe = HostProbe()
    names = ("disk_read", "disk_written", "network_received", "network_sent")

    def rates() -> bool:
        readings = probe.sample()[0].readings
        return all(readings[name].value is not None or "shows no" in readings[name].reason for name in names)

    wait_until(rates, "rates")
    readings = probe.sample()[0].readings
    assert {readings[name].unit for name in names} == {"B/s"}
    assert readings["swap_used"].value is not None
    assert readings["swap_total"].value is not None
    assert "engine_cpu" not in readings


def test_use_is_the_share_of_time_that_was_neither_idle_nor_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # A guest's 5 seconds are among the user's 20; waiting for a disk counts as idle.
    counting(
        monkeypatch,
        [Times(0, 0, 0, 0, 0), Times(100, 0, 0, 0, 0)],
        [Times(20, 10, 60, 10, 5), Times(100, 0, 100, 0, 0)],
    )
    probe = HostProbe()
    probe.sample()
    (sample,) = probe.sample()
    assert sample.readings["core_0"].value == pytest.approx(30)
    assert sample.readings["core_1"].value == pytest.approx(0)
    assert sample.readings["utilization"].value == pytest.approx(15)


def test_a_system_that_counts_no_time_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, [Times(0, 0, 0, 0, 0)], [Times(0, 0, 0, 0, 0)])
    probe = HostProbe()
    probe.sample()
    reading = probe.sample()[0].readings["utilization"]
    assert reading.value is None
    assert "counted no CPU time" in reading.reason


def test_a_core_that_appears_begins_the_measuring_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = [Times(1, 0, 1, 0, 0)], [Times(2, 0, 2, 0, 0), Times(0, 0, 1, 0, 0)]
    three = [Times(4, 0, 2, 0, 0), Times(0, 0, 3, 0, 0)]
    counting(monkeypatch, one, two, three)
    probe = HostProbe()
    probe.sample()
    assert probe.sample()[0].readings["utilization"].value is None
    assert probe.sample()[0].readings["utilization"].value == pytest.approx(50)


def test_one_refusal_costs_one_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not for you")

    monkeypatch.setattr(psutil, "cpu_times", refuse)
    monkeypatch.setattr(os, "getloadavg", refuse)
    readings = HostProbe().sample()[0].readings
    assert "not for you" in readings["utilization"].reason
    assert readings["load"].reason
    assert readings["memory_used"].value is not None
    monkeypatch.setattr(psutil, "virtual_memory", refuse)
    assert "not for you" in HostProbe().sample()[0].readings["memory_used"].reason
    (device,) = HostProbe().inventory().devices
    assert device.memory is None


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (
            "processor\t: 0\nmodel name\t: AMD  EPYC 7B13\n\nprocessor : 1\nmodel name : AMD  EPYC 7B13\n",
            "AMD EPYC 7B13",
        ),
        ("processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"),
    ],
)
def test_linux_names_the_processor(cpuinfo: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    assert processor_name(path) == name


def test_macos_names_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="Apple M2 Max\n"))
    assert processor_name() == "Apple M2 Max"


def test_a_processor_that_nothing_names_has_a_name_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(host_probe.platform, "processor", lambda: "")
    monkeypatch.setattr(host_probe.platform, "machine", lambda: "riscv64")
    assert processor_name(tmp_path / "missing") == "riscv64"


class Machine:
    """Counts what it is told to count, at a time that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.disk: Disk | None = Disk(1000, 2000)
        self.cards = {"lo": Card(9000, 9000), "eth0": Card(500, 600), "docker0": Card(70, 80)}
        monkeypatch.setattr(psutil, "disk_io_counters", lambda nowrap: self.disk)
        monkeypatch.setattr(psutil, "net_io_counters", lambda pernic, nowrap: self.cards)

    def traffic(self, sysfs: Path) -> HostTraffic:
        return HostTraffic(sysfs, lambda: self.now)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def values(traffic: HostTraffic) -> Mapping[str, float | None]:
    return {name: reading.value for name, reading in traffic.read().items()}


def test_rates_are_of_the_time_between_two_looks(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "class/net/eth0/device").mkdir(parents=True)
    traffic = machine.traffic(tmp_path)
    assert set(values(traffic).values()) == {None}
    machine.now += 2
    machine.disk = Disk(5000, 2000)
    machine.cards |= {"lo": Card(19000, 19000), "eth0": Card(700, 1000), "docker0": Card(9999, 9999)}
    assert values(traffic) == {"disk_read": 2000, "disk_written": 0, "network_received": 100, "network_sent": 200}


def test_without_true_cards_all_but_the_loopback_count(machine: Machine, tmp_path: Path) -> None:
    traffic = machine.traffic(tmp_path)
    values(traffic)
    machine.now += 1
    machine.cards = {"lo": Card(19000, 19000), "eth0": Card(510, 620), "docker0": Card(70, 80)}
    found = values(traffic)
    assert (found["network_received"], found["network_sent"]) == (10, 20)


def test_a_disk_that_is_taken_away_gives_no_negative_rate(machine: Machine, tmp_path: Path) -> None:
    traffic = machine.traffic(tmp_path)
    values(traffic)
    machine.now += 1
    machine.disk = Disk(0, 0)
    assert values(traffic)["disk_read"] == 0


def test_what_the_system_does_not_show_has_a_reason(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError("not for you")

    machine.disk = None
    monkeypatch.setattr(psutil, "net_io_counters", refuse)
    readings = machine.traffic(tmp_path).read()
    assert readings["disk_read"].reason == "the system reports no disk"
    assert "not for you" in readings["network_sent"].reason


BUSY = "import sys; print(flush=True)\nwhile True: pass"

PARENT = f"""
import subprocess, sys
for line in sys.stdin:
    if line == "begin\\n":
        child = subprocess.Popen([sys.executable, "-c", {BUSY!r}])
    else:
        child.kill()
        child.wait()
        print(flush=True)
"""


@pytest.fixture
def ask() -> Iterator[Callable[[str], int]]:
    """Have a process that does nothing else ``begin`` or ``end`` a child that works; gives the process' id."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        told, heard = process.stdin, process.stdout

        def ask(what: str) -> int:
            told.write(f"{what}\n")
            told.flush()
            assert heard.readline() == "\n"
            return process.pid

        yield ask
        process.communicate("end\n")


class Clock:
    """A time that passes only when a test lets it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_this_process_is_read(wait_until: Callable[..., None]) -> None:
    use = EngineUsage(os.getpid())
    first = use.read()
    assert "second reading" in first["engine_cpu"].reason
    assert first["engine_memory"].value is not None
    assert first["engine_memory"].value > 2**20
    wait_until(lambda: use.read()["engine_cpu"].value, "this test's own use")


def test_children_count(ask: Callable[[str], int], wait_until: Callable[..., None]) -> None:
    use = EngineUsage(ask("begin"))
    use.read()
    wait_until(lambda: (use.read()["engine_cpu"].value or 0) > 5, "the child's work")


def test_a_new_child_is_seen_in_time_and_its_past_is_not_counted(ask: Callable[[str], int]) -> None:
    clock = Clock()
    ask("begin")
    use = EngineUsage(ask("end"), clock)
    use.read()
    ask("begin")
    clock.now += 1
    before = use.read()["engine_memory"].value
    clock.now += CHILDREN_INTERVAL
    after = use.read()["engine_memory"].value
    assert before is not None
    assert after is not None
    assert after - before > 2**20
    ask("end")
    clock.now += 1
    assert use.read()["engine_memory"].value is not None  # although the child has ended


def test_an_engine_that_has_ended_is_said() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    readings = EngineUsage(process.pid).read()
    assert {reading.reason for reading in readings.values()} == {"the engine has exited"}
