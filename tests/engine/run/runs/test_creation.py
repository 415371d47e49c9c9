"""The run whose weights another run starts from."""

from pathlib import Path

import pytest

from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.run import create
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.run.runs.creation import with_found_weights


@pytest.mark.parametrize("source", ["", "imagenet", "own.keras", "own.weights.h5"])
def test_what_is_no_run_stays_as_it_is(source: str) -> None:
    assert with_found_weights(Plan(initial_weights=source)).initial_weights == source


def test_a_run_is_found_by_its_id_once_it_has_weights(directory: Path) -> None:
    plan = Plan(initial_weights=directory.name[:4])
    with pytest.raises(PlanError, match=f"run {directory.name} has no weights yet"):
        with_found_weights(plan)
    (directory / MODEL).touch()
    assert with_found_weights(plan).initial_weights == str(directory)


def test_an_unknown_run_is_an_error_in_words() -> None:
    with pytest.raises(PlanError, match="must be imagenet, a run, "):
        create(Plan(initial_weights="none"))
