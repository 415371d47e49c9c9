import pytest

from accel_engine.finders.batch_effects import batch_effects
from accel_engine.finders.throughput import MeasuredSize
from accel_engine.plan import Plan
from accel_tui.formatting.finders import effect_notes, size_rows


@pytest.mark.parametrize(
    ("size", "warning"), [(192, "45 times fewer updates than the plan: it may learn less"), (32, "")]
)
def test_a_batch_with_few_updates_comes_with_a_warning(size: int, warning: str) -> None:
    plan = Plan(batch_size=4, epochs=10)
    notes = list(effect_notes(batch_effects(plan, size, 1, optimizer="Adam", rate=0.001, examples=360)))
    found = next((note for note in notes if "fewer updates" in note), "")
    assert found.startswith(warning)
    assert bool(found) is bool(warning)


def test_a_column_of_sizes_has_one_unit() -> None:
    sizes = MeasuredSize(16, 16, 900.0, memory=700.0 * 2**20), MeasuredSize(64, 64, 2500.0, memory=1.3 * 2**30)
    rows = size_rows((*sizes, MeasuredSize(128, 128, problem="out of memory")))
    assert [row[2] for row in rows] == ["0.90k", "2.50k", ""]
    assert [row[4] for row in rows] == ["0.68 GiB", "1.30 GiB", ""]
    assert rows[2][5] == "out of memory"
