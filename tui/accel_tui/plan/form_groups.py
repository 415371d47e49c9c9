"""Where the fields of a plan stand on New run, without widgets."""

from accel_engine.plan import GROUPS, WORDS
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.resolved_plan import ResolvedPlan

_PLACES = sorted((words.first, name) for name, words in WORDS.items() if words.first is not None)

DATA, DECISIONS, OUTCOME = (tuple(name for (panel, _), name in _PLACES if panel == number) for number in range(3))
"""The fields that are always shown in each of the three panels."""

FIRST = (*DATA, *DECISIONS, *OUTCOME)
"""All of these."""

_OTHERS = {group: tuple(name for name in names if name not in FIRST) for group, names in GROUPS.items()}

OTHERS: dict[str, tuple[str, ...]] = {group: names for group, names in _OTHERS.items() if names}
"""The fields that are found by typing, by group; the second panel has those that are not at their default."""

ORDER: tuple[str, ...] = (*DATA, *DECISIONS, *(name for names in OTHERS.values() for name in names), *OUTCOME)
"""All fields in the order of the screen."""

NEXT = (
    *(name for _, name in sorted((words.next, name) for name, words in WORDS.items() if words.next is not None)),
    *(name for name in ORDER if name not in FIRST and WORDS[name].next is None),
)
"""All others, whose defaults stand below the decisions as far as there is room, in the order of their use."""


def is_changed(name: str, filled: ResolvedPlan, defaults: PlanFields) -> bool:
    """Whether a field of a form differs from its default, or is invalid."""
    return name in filled.errors or getattr(filled.plan, name) != getattr(defaults, name)
