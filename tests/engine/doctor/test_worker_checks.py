"""Whether local workers can have a network of their own."""

import pytest

from accel_engine import network_namespace
from accel_engine.doctor import Machine, Verdict
from accel_engine.doctor.worker_checks import check_ports


def test_a_system_without_namespaces_warns_with_what_others_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_namespace, "why_not", str)
    assert check_ports(Machine()).verdict is Verdict.PASS
    monkeypatch.setattr(network_namespace, "why_not", lambda: "not allowed here")
    found = check_ports(Machine())
    assert found.verdict is Verdict.WARN
    assert "not allowed here" in found.cause
    assert "firewall" in found.fix
