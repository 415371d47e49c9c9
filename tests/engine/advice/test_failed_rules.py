"""A rule that fails does not silence the others, and is not silent itself."""

from collections.abc import Iterator

import numpy as np
import pytest

from accel_engine import advice
from accel_engine.advice import FailedRule, Finding, find_troubles, quality
from accel_engine.advice.quality.learning import Learning
from accel_engine.advice.rule import RulesFailedError

from .recorded_example import falling, learned

RUN = learned([2.0, 1.9, np.nan, np.nan, np.nan])


@pytest.fixture(params=["CAUSES", "OTHERS"])
def failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_rule(learning: Learning) -> Iterator[Finding]:
        raise ZeroDivisionError(learning.loss_name)

    monkeypatch.setattr(quality, request.param, (failing_rule, *getattr(quality, request.param)))


@pytest.mark.usefixtures("failing")
def test_the_findings_of_the_others_stay() -> None:
    failed = list[FailedRule]()

    assert [finding.id for finding in find_troubles(RUN, failed)] == ["not-a-number"]
    assert [str(each) for each in failed] == ["failing_rule (ZeroDivisionError: loss)"]


@pytest.mark.usefixtures("failing")
def test_without_a_list_it_is_an_error_with_its_cause() -> None:
    with pytest.raises(RulesFailedError, match="failing_rule") as raised:
        find_troubles(RUN)

    assert isinstance(raised.value.__cause__, RulesFailedError | ZeroDivisionError)


def test_a_rule_that_fails_after_a_finding_has_found_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (known,) = find_troubles(RUN)

    def rule(_: object) -> Iterator[Finding]:
        yield known
        raise KeyError("x")

    monkeypatch.setattr(advice, "RULES", (rule, rule))
    failed = list[FailedRule]()

    assert find_troubles(learned(falling()), failed) == (known, known)
    assert len(failed) == 2
