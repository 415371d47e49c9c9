"""Notes on batches that are not as the plan says."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.step_counts import count_steps
from accel_engine.training.core.uneven_batches import batch_notes, uneven_note

from .streams import Recorded


def notes(batch: int, replicas: int = 1, *, workers: int = 0, coordinated: bool = False, stream: bool = False) -> Any:
    """Of 100 examples."""
    plan, split = Plan(batch_size=batch), Split(np.zeros(100))
    cluster = SimpleNamespace(coordinated=coordinated, workers=("worker",) * workers) if workers else None
    counts = count_steps(plan, 100, replicas)
    resolved = SimpleNamespace(plan=plan, step_counts=counts, cluster=cluster, coordinated=coordinated)
    return batch_notes(cast(ResolvedPlan, resolved), Recorded(split) if stream else split)


@pytest.mark.parametrize("fields", [{"batch": 100}, {"batch": 99, "replicas": 3}, {"batch": 32, "stream": True}])
def test_whole_batches_need_no_note(fields: dict[str, Any]) -> None:
    assert notes(**fields) == []


def test_the_batch_size_may_be_too_large() -> None:
    assert notes(101) == ["the batch size 101 is larger than the data: a step takes all 100 examples"]


def test_replicas_take_as_many_examples_each() -> None:
    (note,) = notes(32, 3)
    assert note == "the batch size 32 is not divisible by 3 replicas: each takes 10, so the global batch is 30"
    assert notes(32, 3, stream=True) == []  # each counts once


def test_examples_on_several_replicas_may_count_on_each() -> None:
    counts, split = count_steps(Plan(batch_size=30), 100, 3), Split(np.zeros(100))
    assert uneven_note(counts, split, "the loss is odd") == [
        "3 replicas cannot divide the last batch of 10 evenly: some examples are on several of them, and count on "
        "each, as the loss is odd; last_batch = drop leaves it out"
    ]
    (note,) = uneven_note(counts, Recorded(split), "the loss is odd")
    assert note.startswith("3 replicas cannot divide each batch evenly: some examples")
    assert note.endswith("as the loss is odd")
    assert uneven_note(counts, split, "") == uneven_note(count_steps(Plan(batch_size=30), 99, 3), split, "odd") == []


@pytest.mark.parametrize("stream", [False, True])
def test_coordinated_workers_train_asynchronously(stream: bool) -> None:
    (note,) = notes(32, 2, workers=2, coordinated=True, stream=stream)
    assert note.startswith("2 workers run steps of 32 examples asynchronously")
    assert notes(32, workers=1, coordinated=True) == []
    assert notes(32, workers=2) == []
