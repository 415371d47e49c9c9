"""Rates of disks and networks, from what the system counts."""

from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from accel_engine.devices.host_traffic import HostTraffic

Disk = namedtuple("Disk", ["read_bytes", "write_bytes"])
Card = namedtuple("Card", ["bytes_recv", "bytes_sent"])


class Machine:
    """Counts what it is told to count, at a time of its own."""

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
