"""Surveys a plan's data: what its names, headers and first rows tell, without TensorFlow."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from accel_engine import data
from accel_engine.data import DataOptions, DatasetEntry
from accel_engine.data.data_options import PLAN_FIELDS
from accel_engine.errors import AccelError, PlanError, Words
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.user_code import reason

SurveySubject: TypeAlias = tuple[str, DataOptions]
"""What a survey depends on."""


@dataclass(frozen=True, slots=True)
class SurveyError:
    """Why the user's data cannot be used as a plan says.

    Attributes:
        subject: The data and its options.
        field: The field that is wrong.
        reason: What is wrong with it.
    """

    subject: SurveySubject
    field: str
    reason: Words


DATA_FIELDS = tuple(name for name in PLAN_FIELDS if name not in ("seed", "batch_size"))
"""The plan's fields that say how data is read and split."""


def survey_subject(plan: Plan) -> SurveySubject:
    """What the survey of a plan's data depends on: neither seed nor batch size."""
    return plan.data, replace(plan.data_options, seed=DEFAULTS["seed"], batch_size=DEFAULTS["batch_size"])


def survey(filled: ResolvedPlan) -> DatasetEntry | SurveyError:
    """Survey the data of a form; may read files, so call it from a thread."""
    subject = survey_subject(filled.plan)
    try:
        return data.survey(data.find(filled.plan.data), filled.plan.data_options)
    except PlanError as error:
        return SurveyError(subject, error.field, error.reason)
    except AccelError as error:
        return SurveyError(subject, "data", (str(error),))
    except Exception as error:  # noqa: BLE001 (of a library, about a file; otherwise the form would wait for ever)
        return SurveyError(subject, "data", (f"cannot be read: {reason(error)}",))
