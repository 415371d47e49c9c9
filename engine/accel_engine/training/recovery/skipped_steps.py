"""Leaves out the updates of some steps: their batches are read, but do not train the model."""

from collections.abc import Callable, Collection, Iterable, Iterator

from accel_engine.data.structure import map_structure
from accel_engine.keras_support.optimizers import every_optimizer
from accel_engine.plan import Plan
from accel_engine.private_names.keras_names import iterations_of
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Segment


def skipped_steps(plan: Plan) -> frozenset[int]:
    """The steps of a plan that have no update, counted from 0."""
    return frozenset(map(int, plan.skip_steps))


def separated(
    segments: Iterable[Segment], alone: Collection[int], step: Callable[[], int]
) -> Iterator[tuple[Segment, bool]]:
    """Divide segments so that some steps have a segment of their own; yields each with whether it is such a step.

    Args:
        segments: The segments of an epoch.
        alone: The steps, counted from 0.
        step: Returns the steps taken, which must be all before a segment when it is asked for.
    """
    for segment in segments:
        first = step()
        cuts = sorted(each - first for each in alone if first <= each < first + segment.steps)
        done = 0
        for cut in cuts:
            if done < cut:
                yield _part(segment, done, cut), False
            yield _part(segment, cut, cut + 1), True
            done = cut + 1
        if done < segment.steps:
            yield _part(segment, done, segment.steps), False


def advance_optimizers(assembly: Assembly) -> None:
    """Count a step that has no update, so that schedules stay as planned."""
    for optimizer in every_optimizer(assembly.model):
        iterations = iterations_of(optimizer)
        iterations.assign(iterations + 1)


def _part(segment: Segment, first: int, last: int) -> Segment:
    if (first, last) == (0, segment.steps):
        return segment
    order = map_structure(lambda each: each[first:last], segment.order)
    return Segment(order, last - first, segment.examples)
