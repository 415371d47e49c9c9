import pytest

from accel_engine.finders.batch_effects import batch_effects
from accel_engine.plan import Plan
from accel_tui.formatting.finders import effect_notes


@pytest.mark.parametrize(
    ("size", "warning"), [(192, "45 times fewer updates than the plan: it may learn less"), (32, "")]
)
def test_a_batch_with_few_updates_comes_with_a_warning(size: int, warning: str) -> None:
    plan = Plan(batch_size=4, epochs=10)
    notes = list(effect_notes(batch_effects(plan, size, 1, optimizer="Adam", rate=0.001, examples=360)))
    found = next((note for note in notes if "fewer updates" in note), "")
    assert found.startswith(warning)
    assert bool(found) is bool(warning)
