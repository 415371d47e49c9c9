"""Cuts a sequence of layers into stages so that the largest one is smallest, by dynamic programming."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.plan.array_bytes import in_flight

SLACK = 1.05
"""How much larger than necessary the largest stage may be, for fewer values between stages."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The cost of a layer in a step."""

    seconds: float
    """Time for an example, in any unit."""
    weights: int
    """Bytes of its weights, their gradients and the optimizer's state."""
    activations: int
    """Bytes that it saves of one micro-batch for the backward pass."""


def choose_cuts(
    costs: Sequence[LayerCost], crossing: Sequence[int], stages: int, micro_batches: int
) -> tuple[int, ...]:
    """The first layer of each stage but the first.

    The size of a stage is its share of the model's time or of its memory, whichever is larger. If several sets of cuts
    have about the smallest largest stage, the one with the fewest bytes between stages is chosen.

    Args:
        costs: In the order in which the layers run; at least one for each stage.
        crossing: Bytes that cross a cut before each layer.
        stages: Number of stages.
        micro_batches: Micro-batches of a step.
    """
    count = len(costs)
    seconds, weights, activations = (
        np.concatenate([[0.0], np.cumsum([getattr(each, name) for each in costs])])
        for name in ("seconds", "weights", "activations")
    )
    held = [in_flight(stage, stages, micro_batches) for stage in range(stages)]
    memory = weights[-1] + activations[-1] * sum(held) / stages or 1.0

    def sizes(stage: int, last: int) -> npt.NDArray[np.float64]:
        """The size of a stage that ends before ``last``, for every first layer, ``[last]``."""
        time = (seconds[last] - seconds[:last]) / (seconds[-1] or 1.0)
        nbytes = weights[last] - weights[:last] + held[stage] * (activations[last] - activations[:last])
        return np.maximum(time, nbytes / memory)

    smallest = np.full((stages, count + 1), np.inf)
    smallest[0, 1:] = [sizes(0, last)[0] for last in range(1, count + 1)]
    for stage in range(1, stages):
        for last in range(stage + 1, count + 1):
            smallest[stage, last] = np.maximum(smallest[stage - 1, :last], sizes(stage, last)).min()
    limit = SLACK * smallest[-1, count]
    least = np.full((stages, count + 1), np.inf)
    least[0, 1:] = [0.0 if sizes(0, last)[0] <= limit else np.inf for last in range(1, count + 1)]
    before = np.zeros((stages, count + 1), int)
    crossed = np.asarray(crossing, float)
    for stage in range(1, stages):
        for last in range(stage + 1, count + 1):
            total = np.where(sizes(stage, last) <= limit, least[stage - 1, :last] + crossed[:last], np.inf)
            before[stage, last] = total.argmin()
            least[stage, last] = total.min()
    cuts, last = list[int](), count
    for stage in range(stages - 1, 0, -1):
        last = int(before[stage, last])
        cuts.append(last)
    return tuple(reversed(cuts))
