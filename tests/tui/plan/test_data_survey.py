"""Surveys of the data in the form."""

from collections.abc import Callable

import pytest

from accel_engine import data
from accel_engine.errors import DataError, PlanError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_tui.plan.data_text import SurveyError, survey_form, survey_subject


def raises(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "field", "said"),
    [
        (PlanError("target", "x", "is no column"), "target", "is no column"),
        (DataError("x.csv is empty"), "data", "x.csv is empty"),
        (ZeroDivisionError("of a library"), "data", "cannot be read: ZeroDivisionError: of a library"),
    ],
)
def test_every_error_is_said_at_its_field(
    monkeypatch: pytest.MonkeyPatch, error: Exception, field: str, said: str
) -> None:
    resolved = resolve(Plan(data="digits"), ())
    monkeypatch.setattr(data, "survey", raises(error))
    assert survey_form(resolved) == SurveyError(survey_subject(resolved.plan), field, (said,))
