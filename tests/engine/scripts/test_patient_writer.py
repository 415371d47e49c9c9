"""Writing in a thread that waits for a full disk."""

from collections.abc import Callable

import pytest

from accel_engine.errors import DatabaseError, RunError
from accel_engine.scripts import patient_writer
from accel_engine.scripts.patient_writer import PatientWriter


class Disk:
    """Takes writes, unless it is full."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.tries = 0
        self.written: list[int] = []

    def write(self, number: int) -> Callable[[], None]:
        def write() -> None:
            self.tries += 1
            if self.full:
                raise DatabaseError("disk full")
            self.written.append(number)

        return write


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_writer, "RETRY_SECONDS", 0.001)


def test_writes_are_executed_in_order_before_the_end() -> None:
    disk, writer = Disk(), PatientWriter(pytest.fail, lambda _: None, lambda _: True)
    for number in range(100):
        writer.put(disk.write(number), size=1)
    writer.finish()

    assert disk.written == list(range(100))


def test_what_does_not_fit_in_memory_is_counted(
    monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    monkeypatch.setattr(patient_writer, "MAX_BYTES", 10)
    disk, reports = Disk(full=True), list[str]()
    writer = PatientWriter(reports.append, lambda _: None, lambda _: True)
    for number, size in enumerate((6, 6, 0, 4)):
        writer.put(disk.write(number), size)
    wait_until(lambda: disk.tries > 3, "another try")
    disk.full = False
    writer.finish()

    assert disk.written == [0, 2, 3]
    assert reports == [
        "disk full: waiting to write the run; the script continues",
        "the run can be written again; 1 records that did not fit in memory are missing",
    ]


def test_it_gives_up_some_time_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_writer, "GIVE_UP_SECONDS", 0.0)
    disk, reports = Disk(full=True), list[str]()
    writer = PatientWriter(reports.append, lambda _: None, lambda _: True)
    writer.put(disk.write(0))
    writer.finish()

    assert reports[-1] == "disk full: nothing more is recorded; the script continues"


def test_a_write_that_is_refused_stops_no_other() -> None:
    disk, refused = Disk(), list[str]()

    def too_large() -> None:
        raise RunError("the image is too large")

    def mistaken() -> None:
        raise ValueError("arrays differ in length")

    reports = list[str]()
    writer = PatientWriter(reports.append, lambda _: None, lambda _: True)
    writer.put(mistaken)
    writer.put(too_large, 1, refused.append)
    writer.put(disk.write(1))
    writer.finish()

    assert (refused, disk.written) == (["the image is too large"], [1])
    assert reports == ["one record is missing, as it cannot be written: ValueError: arrays differ in length"]


def test_an_error_of_the_database_that_will_not_pass_is_refused() -> None:
    disk, refused, reports = Disk(full=True), list[str](), list[str]()
    writer = PatientWriter(reports.append, lambda _: None, lambda _: False)
    writer.put(disk.write(0), 1, refused.append)
    writer.put(disk.write(1))
    writer.finish()

    assert (refused, disk.tries) == (["disk full"], 2)
    assert reports == ["disk full: nothing more is recorded; the script continues"]
