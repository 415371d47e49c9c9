"""Which local workers train where nobody else can reach their ports."""

import json
from pathlib import Path
from typing import Any

import pytest

from accel_engine import network_namespace
from accel_engine.devices.device_types import Device
from accel_engine.devices.preemption import PROVIDERS
from accel_engine.errors import PlanError
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve

WORKERS = Plan(strategy="multi-worker", local_workers=2)
CPU = Device("cpu:0", "cpu", "")


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_namespace, "why_not", str)


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text("def load(): ...")
    return f"{tmp_path / 'mine.py'}:load"


def test_workers_on_files_of_this_machine_are_isolated() -> None:
    assert isolation.is_isolated(resolve(WORKERS))
    assert isolation.is_isolated(resolve(WORKERS.replace(strategy="parameter-server")))
    assert isolation.warning(resolve(WORKERS)) == ""


def test_a_plan_without_local_workers_needs_nothing() -> None:
    config = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}
    cluster = resolve(Plan(strategy="multi-worker"), environment={"TF_CONFIG": json.dumps(config)})
    for resolved in (resolve(Plan()), cluster):
        assert not isolation.is_isolated(resolved)
        assert isolation.warning(resolved) == ""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"data": "mnist"}, "reading mnist"),
        ({"data": "gs://bucket/a.tfrecord"}, "reading a"),
        ({"data": "FUNCTION"}, "the function mine:load"),
        ({"model": "FUNCTION"}, "the code of your model"),
        ({"model": "ResNet50", "initial_weights": "imagenet"}, "downloading ImageNet weights"),
    ],
)
def test_what_may_need_the_network_keeps_it_unless_told(changes: dict[str, Any], named: str, mine: str) -> None:
    plan = WORKERS.replace(**{name: mine if value == "FUNCTION" else value for name, value in changes.items()})
    assert not isolation.is_isolated(resolve(plan))
    warned = isolation.warning(resolve(plan))
    assert "can run code as you" in warned
    assert f"{named} may need the network; if not, use --isolate-workers on" in warned
    assert isolation.is_isolated(resolve(plan.replace(isolate_workers="on")))


def test_a_cloud_is_asked_from_outside_of_the_workers_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = WORKERS.replace(preemption_notice="auto")
    monkeypatch.setattr(isolation, "find_provider", lambda choice: PROVIDERS["aws"] if choice == "auto" else None)
    assert not isolation.is_isolated(resolve(asked))
    assert "asking for a preemption notice may need the network" in isolation.warning(resolve(asked))
    assert isolation.is_isolated(resolve(WORKERS))
    with pytest.raises(PlanError, match="the cloud cannot be asked from the workers' own network"):
        resolve(asked.replace(isolate_workers="on"), [CPU]).check()


def test_where_it_is_not_allowed_it_is_warned_of_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def errors(resolved: ResolvedPlan) -> list[str]:
        return [str(error) for error in resolved.plan_errors]

    assert errors(resolve(WORKERS.replace(isolate_workers="on"), [CPU]).with_survey()) == []
    monkeypatch.setattr(network_namespace, "why_not", lambda: "not allowed here")
    assert isolation.warning(resolve(WORKERS)).endswith(": not allowed here")
    assert errors(resolve(WORKERS, [CPU]).with_survey()) == []
    (error,) = errors(resolve(WORKERS.replace(isolate_workers="on"), [CPU]).with_survey())
    assert "isolate_workers" in error
    assert "must be auto or off: not allowed here" in error
    wanted = isolation.warning(resolve(WORKERS.replace(isolate_workers="on")))
    assert wanted.endswith(": --isolate-workers on is not possible: not allowed here")


def test_off_is_warned_of() -> None:
    assert "--isolate-workers is off" in isolation.warning(resolve(WORKERS.replace(isolate_workers="off")))
