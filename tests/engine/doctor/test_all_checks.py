"""How checks are made: at once, in order, each with its own end."""

import threading

import pytest

from accel_engine import network_namespace
from accel_engine.doctor import Check, CheckResult, Machine, checks_of, failed, passed, run_checks
from accel_engine.doctor.all_checks import check_ports


def test_names_are_unique_and_in_subjects() -> None:
    names = [check.name for check in checks_of()]
    assert len(names) == len(set(names))
    assert list(dict.fromkeys(name.partition(".")[0] for name in names)) == [
        "python",
        "tensorflow",
        "nvidia",
        "tpu",
        "system",
        "workers",
        "runs",
    ]


def test_no_check_is_made_before_it_is_asked_for(machine) -> None:
    def fail() -> None:
        raise AssertionError

    given = machine()
    assert checks_of(Machine(home=given.home, driver=fail, tensorflow=fail))


def test_reports_come_in_order_although_checks_are_made_at_once() -> None:
    second_is_done = threading.Event()

    def first() -> object:
        assert second_is_done.wait(120)
        return passed("first")

    def second() -> object:
        second_is_done.set()
        return passed("second")

    reports = list(run_checks([Check("a", first, 60), Check("b", second, 60)]))
    assert [(report.check, report.finding.summary) for report in reports] == [("a", "first"), ("b", "second")]


def test_a_report_does_not_wait_for_those_behind_it() -> None:
    told = threading.Event()

    def second() -> object:
        assert told.wait(120)
        return passed("second")

    reports = run_checks([Check("a", lambda: passed("first"), 60), Check("b", second, 60)])
    assert next(reports).check == "a"
    told.set()
    assert next(reports).check == "b"


def test_a_check_that_hangs_costs_only_itself() -> None:
    end = threading.Event()

    def hang() -> object:
        end.wait()
        return failed("too late", "", "")

    late, fine = run_checks([Check("hangs", hang, 0.05), Check("fine", lambda: passed("well"), 60)])
    end.set()
    assert late.finding.verdict is CheckResult.FAIL
    assert late.finding.summary == "no result within 0.05 s"
    assert "accel-tui doctor hangs" in late.finding.fix
    assert fine.finding.verdict is CheckResult.PASS


def test_a_check_that_breaks_costs_only_itself() -> None:
    def broken() -> object:
        raise ZeroDivisionError("division by zero")

    report, fine = run_checks([Check("broken", broken), Check("fine", lambda: passed("well"))])
    assert (report.finding.verdict, report.finding.cause) == (CheckResult.FAIL, "ZeroDivisionError: division by zero")
    assert fine.finding.verdict is CheckResult.PASS


NOT_NEEDED = {check.name for check in checks_of() if check.name.startswith(("nvidia.", "tpu.", "tensorflow.flags"))} - {
    "tpu.lock"
}


@pytest.mark.parametrize("name", [check.name for check in checks_of()])
def test_a_machine_without_accelerators_is_in_order(machine, name) -> None:
    (check,) = (check for check in checks_of(machine()) if check.name == name)
    finding = check.run()
    assert finding.verdict is not CheckResult.FAIL
    if name not in (
        "python",
        "runs.space",
        "runs.database",
        "runs.lock",
    ):  # these are of the machine that runs the test
        assert finding.verdict is (CheckResult.SKIP if name in NOT_NEEDED else CheckResult.PASS)
        assert not finding.cause + finding.fix


def test_a_system_without_namespaces_warns_with_what_others_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_namespace, "why_not", str)
    assert check_ports(Machine()).verdict is CheckResult.PASS
    monkeypatch.setattr(network_namespace, "why_not", lambda: "not allowed here")
    found = check_ports(Machine())
    assert found.verdict is CheckResult.WARN
    assert "not allowed here" in found.cause
    assert "firewall" in found.fix
