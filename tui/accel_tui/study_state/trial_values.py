"""The plan of a trial, for the form."""

from accel_engine.plan import Plan
from accel_engine.plan.field_needs import without_ignored
from accel_engine.search.trial import Trial
from accel_tui.study_state.state import StudyState


def plan_of(state: StudyState, trial: Trial) -> Plan:
    """The plan of the search with the values of a trial.

    Raises:
        PlanError: The values contradict each other, or another version allowed them.
    """
    shared = {} if state.definition is None else {"seed": state.definition.seed, **state.definition.plan}
    return Plan.from_mapping(without_ignored({**shared, **trial.values}))
