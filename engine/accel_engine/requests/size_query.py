"""Describes a plan's model, in an engine process of its own."""

from collections.abc import Callable

from accel_engine.plan import Plan
from accel_engine.process.engine_query import EngineQuery
from accel_engine.process.warm_engine import Description


def describe_model(plan: Plan, on_progress: Callable[[int, int], object] = lambda *_: None) -> Description:
    """Build a plan's model without training it. Takes at least as long as importing TensorFlow.

    The data is only loaded where nothing else tells the model's size, such as a vocabulary.

    Args:
        plan: The plan.
        on_progress: Called now and then with the number of examples read, and of all.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The model cannot be built, or the data cannot be loaded; why.
    """
    with EngineQuery(["--describe-model"], {"plan": plan.to_mapping()}) as query:
        return Description.from_reply(query.answer(on_progress))
