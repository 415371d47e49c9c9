"""Describes data that only a program can tell about, such as what a user's function returns."""

from collections.abc import Callable
from typing import Any

from accel_engine.plan import Plan
from accel_engine.process.engine_query import EngineQuery


def describe_data(plan: Plan, on_progress: Callable[[int, int], object] = lambda *_: None) -> dict[str, Any]:
    """Load a plan's data in an engine process. Takes at least as long as importing TensorFlow.

    Args:
        plan: Names the data, and how it is read and split.
        on_progress: Called now and then with the number of examples read, and of all.

    Returns:
        What :func:`accel_engine.data.dataset_entry.to_json` returns.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The data cannot be loaded; why.
    """
    with EngineQuery(["--describe-data"], {"plan": plan.to_mapping()}) as query:
        return query.answer(on_progress)
