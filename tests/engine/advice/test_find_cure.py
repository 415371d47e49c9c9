"""Cures by the id of their finding."""

import pytest

from accel_engine.advice import Category, Confidence, Cure, Finding, find_cure
from accel_engine.errors import UsageError

CURES = (Cure("read less"), Cure("XLA", {"xla": "on"}), Cure("more", {"batch_size": 128}))
FINDINGS = (
    Finding("slow-step", Category.SPEED, "slow", (), Confidence.LIKELY, "", CURES),
    Finding("rate-low", Category.QUALITY, "poor", (), Confidence.LIKELY, "", (Cure("a", {"learning_rate": 0.1}),)),
    Finding("slow-disk", Category.SPEED, "disk", (), Confidence.LIKELY, "", (Cure("use another disk"),)),
)


def test_the_first_cure_that_changes_the_plan_is_meant() -> None:
    assert find_cure("k3fp", FINDINGS, "slow-step") == (FINDINGS[0], CURES[1])
    assert find_cure("k3fp", FINDINGS, "slow-step", 2) == (FINDINGS[0], CURES[2])


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
        find_cure("k3fp", FINDINGS, finding, number)
