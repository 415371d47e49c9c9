"""Cures by the id of their finding."""

from pathlib import Path

import pytest

from accel_engine.advice import Confidence, Cure, Finding, Trouble
from accel_engine.advice.cures import advice_actions
from accel_engine.advice.cures.advice_actions import apply_finding, finding_with_cure, try_finding
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.errors import UsageError

CURES = (Cure("read less"), Cure("XLA", {"xla": "on"}), Cure("more", {"batch_size": 128}))
FINDINGS = (
    Finding("slow-step", Trouble.SLOW, "slow", (), Confidence.LIKELY, "", CURES),
    Finding("rate-low", Trouble.POOR, "poor", (), Confidence.LIKELY, "", (Cure("a", {"learning_rate": 0.1}),)),
    Finding("slow-disk", Trouble.SLOW, "disk", (), Confidence.LIKELY, "", (Cure("use another disk"),)),
)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice_actions, "read_recorded", lambda directory: directory)
    monkeypatch.setattr(advice_actions, "advise", lambda *_: FINDINGS)


def test_the_first_cure_that_changes_the_plan_is_meant() -> None:
    assert finding_with_cure(Path("k3fp"), "slow-step") == (FINDINGS[0], CURES[1])
    assert finding_with_cure(Path("k3fp"), "slow-step", 2) == (FINDINGS[0], CURES[2])


@pytest.mark.parametrize(
    ("finding", "number", "words"),
    [
        ("slow-stop", 1, "no finding slow-stop; found: slow-step, rate-low, slow-disk"),
        ("slow-disk", 1, "no cure that changes the plan: use another disk"),
        ("slow-step", 3, "has 2 cures that change the plan, not 3"),
        ("slow-step", 0, "not 0"),
    ],
)
def test_an_unknown_one_says_what_there_is(finding: str, number: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        finding_with_cure(Path("k3fp"), finding, number)


def test_what_is_compared_is_what_the_finding_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        advice_actions, "try_cure", lambda *given, **named: asked.append((*given[:2], named["quantity"]))
    )
    monkeypatch.setattr(
        advice_actions, "apply_and_settle", lambda *given, **named: asked.append((*given[:2], named["finding"]))
    )
    try_finding(Path("k3fp"), "slow-step", print)
    try_finding(Path("k3fp"), "rate-low", print)
    apply_finding(Path("k3fp"), "rate-low")
    assert asked == [
        (Path("k3fp"), {"xla": "on"}, Quantity.SPEED),
        (Path("k3fp"), {"learning_rate": 0.1}, Quantity.LEARNING),
        (Path("k3fp"), {"learning_rate": 0.1}, "rate-low"),
    ]
