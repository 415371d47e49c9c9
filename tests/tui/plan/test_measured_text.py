import pytest

from accel_engine.devices.device_types import Device
from accel_engine.measure import cache
from accel_engine.measure.trial_memory import MemoryBudget
from accel_engine.measure.tried_gpus import note_tried
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race import remembered_races
from accel_engine.race.configuration import ConfigurationKind
from accel_engine.race.race import Race, RaceOptions
from accel_tui.plan.data_text import PreviewRow
from accel_tui.plan.measured_text import first_use_rows, measured_rows
from engine.race.stand_ins import CPU, Behaviour, StandInTrials, no_meters


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))


def race(plan: Plan) -> None:
    trials = StandInTrials({"": Behaviour(5000.0, 2.0**30), "xla=on": Behaviour(12500.0, 2.0**30)})
    options = RaceOptions(seconds=2.0, kinds=(ConfigurationKind.XLA,))
    budget = MemoryBudget(available=lambda: 1 << 50)
    Race(resolve_to_train(plan, CPU), CPU, options, make_trials=trials, make_meters=no_meters, budget=budget).run()


def rows_of(plan: Plan) -> tuple[PreviewRow, ...]:
    resolved = resolve_to_train(plan, CPU)
    return measured_rows(remembered_races.remembered_result(resolved, CPU), resolved)


def test_what_a_race_measured_is_told_with_its_age(monkeypatch) -> None:
    plan = Plan(model="cnn", xla="off")
    assert rows_of(plan) == ()
    race(plan)
    now = cache.clock.now()
    monkeypatch.setattr(cache.clock, "now", lambda: now + 2 * 3600 + 60)
    rows = {row.name: row.text for row in rows_of(plan)}
    assert rows == {
        "measured": "5,000 ±0% examples/s, 1.0 GiB (race, 2h ago)",
        "an epoch": "0.29 s of steps",  # 1,437 examples
        "faster": "--xla on: 2.50 times as fast in the race",
    }


def test_a_long_epoch_and_another_plan(monkeypatch) -> None:
    plan = Plan(model="cnn", steps_per_epoch=10_000, xla="on")
    race(plan.replace(xla="off"))
    rows = {row.name: row.text for row in rows_of(plan)}
    assert rows["measured"].startswith("12,500 ±0% examples/s")
    assert rows["an epoch"] == "50 s of steps"
    assert "faster" not in rows
    assert rows_of(plan.replace(batch_size=32)) == ()


def test_a_gpu_on_which_nothing_was_computed_yet_is_told() -> None:
    gpus = tuple(Device(f"gpu:{index}", "gpu", name) for index, name in enumerate(("NVIDIA L4", "NVIDIA T4")))
    resolved = resolve_to_train(Plan(strategy="mirrored"), (*CPU, *gpus))
    (row,) = first_use_rows(resolved, gpus)
    assert (row.name, row.text) == (
        "first use",
        "of NVIDIA L4, NVIDIA T4 here: accel-tui doctor --deep tries it in a minute",
    )
    note_tried(["NVIDIA T4"])
    (row,) = first_use_rows(resolved, gpus)
    assert row.text.startswith("of NVIDIA L4 here")
    note_tried(["NVIDIA L4"])
    assert first_use_rows(resolved, gpus) == ()
    assert first_use_rows(resolve_to_train(Plan(), CPU), gpus) == ()
