"""Watches the losses of a run for values that are not finite, and for one that explodes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Split
from accel_engine.errors import RunError
from accel_engine.events import Warned
from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.private_names.keras_names import output_losses
from accel_engine.run import RunReader
from accel_engine.run.store.series_names import series_name
from accel_engine.training.checkpoints.checkpoint import NotFiniteError
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.float16_range import CURE, LARGEST
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.words import numbers

SCALED_STEPS = 20
"""Steps in a row whose losses may not be finite with ``mixed_float16``: the loss scale is halved at each of them."""


SMALLEST_SCALE = 2.0**-20
"""A loss scale that is only reached where no gradient is finite: it begins at ``2 ** 15`` and is halved each time."""


@dataclass(frozen=True, slots=True)
class LossTrouble:
    """A loss or weights that are not finite, or a loss that explodes."""

    step: int
    """The first step, counted from 0, whose loss is not finite or explodes. If weights are not finite, the one that
    would have been next."""
    text: str
    """The trouble in words, for the user."""
    explodes: bool = False
    """Whether the loss is finite, but explodes."""
    grew_from: int | None = None
    """The step from which on the loss grew to far above what it had been; ``None`` if it did not."""


class NotANumberError(RunError):
    """Losses or weights are not finite, or the loss explodes.

    Args:
        trouble: What was seen.
    """

    def __init__(self, trouble: LossTrouble) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble


class LossWatch:
    """Watches the losses of one run.

    With ``on_nan`` set to ``continue`` it warns once of losses that are not finite; else it raises an error.

    Args:
        assembly: The plan and the kind of step.
        reporter: The run's step.
    """

    def __init__(self, assembly: Assembly, reporter: RunReporter) -> None:
        self._reporter = reporter
        self._goes_on = assembly.plan.on_nan == "continue"
        self._warned = False
        # An optimizer that scales the loss leaves out updates that are not finite, and lowers the scale.
        self._optimizer = optimizer = assembly.model.optimizer
        self._warned_of_scale = False
        self._tolerated = SCALED_STEPS if optimizer is not None and inner_optimizer(optimizer) is not optimizer else 1
        self._in_a_row = 0
        is_custom = assembly.has_custom_train_step  # which may have losses that it computes in some steps only
        of_outputs = [] if is_custom else [series_name(each.name) for each in output_losses(assembly.model)]
        self._names = ["loss", *of_outputs]
        factor = CUSTOM_FACTOR if is_custom else FACTOR
        before = _losses_before(reporter.run.directory, reporter.step)
        self._exploding = ExplodingLoss(reporter.step, factor, _steps_in_order(assembly), before)

    def observe(self, series: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Take note of the series of the chunk that has just been taken.

        Raises:
            NotANumberError: A loss is not finite or explodes, and the plan does not say to continue.
        """
        losses = {name: series[name] for name in self._names if name in series}
        found = self._first_of_row(~np.all([np.isfinite(values) for values in losses.values()], axis=0))
        loss = series["loss"]
        explosion = None if self._goes_on else self._exploding.add(loss if found is None else loss[: max(found, 0)])
        first = self._reporter.step - len(loss)
        if found is not None:
            at = max(found, 0)
            name = next((name for name, values in losses.items() if not np.isfinite(values[at])), "loss")
            self._not_finite(name, first + found, float(losses[name][at]))
        elif explosion:
            text = (
                f"the loss explodes from step {explosion.step:,} on: it is far above its highest level before, "
                f"{numbers.metric(explosion.level)}, and was {numbers.metric(explosion.loss)} at last"
            )
            raise NotANumberError(LossTrouble(explosion.step, text, explodes=True, grew_from=explosion.step))

    def skip(self) -> None:
        """Take note of a step without an update, which has no loss; the steps after it keep their numbers."""
        self._exploding.add(np.full(1, np.nan, np.float32))
        self._in_a_row += self._in_a_row > 0

    def _first_of_row(self, wrong: npt.NDArray[np.bool_]) -> int | None:
        """The first step of a row of steps, long enough, with losses that are not finite; ``None`` if there is none.

        Args:
            wrong: Whether the losses of each step are not finite, ``[steps]``.

        Returns:
            Its index, negative if it was in an earlier chunk.
        """
        if not wrong.any():
            self._in_a_row = 0
            return None
        for index, is_wrong in enumerate(wrong.tolist()):
            self._in_a_row = self._in_a_row + 1 if is_wrong else 0
            if self._in_a_row >= self._tolerated:
                return index + 1 - self._in_a_row
        return None

    def weights_not_finite(self, error: NotFiniteError) -> None:
        """Take note of weights that are not finite, so that no checkpoint was saved.

        Raises:
            NotANumberError: The plan does not say to continue.
        """
        if not self._goes_on:
            grew_from = self._exploding.grew_from
            raise NotANumberError(LossTrouble(self._reporter.step, str(error), grew_from=grew_from)) from error

    def observe_scale(self) -> None:
        """Warn once if the loss scale tells that updates are left out for ever, although losses are finite."""
        scale = getattr(self._optimizer, "dynamic_scale", None)
        if scale is None or self._warned_of_scale or not float(keras.ops.convert_to_numpy(scale)) < SMALLEST_SCALE:
            return
        self._warned_of_scale = True
        message = f"gradients are not finite in float16, which ends at {LARGEST:,}: steps do not change the weights"
        self._reporter.emit(Warned, message=f"{message}; {CURE}")

    def _not_finite(self, name: str, step: int, value: float) -> None:
        shown = "NaN" if np.isnan(value) else "infinite"
        noun = "loss" if name == "loss" else f"series {name}"
        if not self._goes_on:
            text, grew_from = f"the {noun} of step {step:,} is {shown}", self._exploding.grew_from
            raise NotANumberError(LossTrouble(step, text, grew_from=grew_from))
        if not self._warned:
            self._warned = True
            message = f"the {noun} of step {step} is NaN or infinite: try a lower learning rate"
            self._reporter.emit(Warned, message=message)


def _losses_before(directory: Path, step: int) -> Iterator[npt.NDArray[np.floating]]:
    """Read the recorded losses of a run up to a step, but for the last ones, which may explode already."""
    with closing(RunReader(directory)) as reader:
        for batch in reader.steps(0, step - LAG):
            losses = batch.series.get("loss", np.zeros(0))  # records may be lost, and a new worker has none
            yield losses[np.isfinite(losses)]


def _steps_in_order(assembly: Assembly) -> float:
    """The steps of the first pass over data that is not shuffled; 0 if it is, infinite for a stream."""
    if not isinstance(assembly.dataset.train, Split):
        return math.inf
    counts = assembly.step_counts
    return 0.0 if assembly.plan.shuffle == "on" else counts.steps_per_epoch / counts.passes


FACTOR = 100.0
"""How far the loss has to be above its level, as a multiple."""

CUSTOM_FACTOR = 10_000.0
"""The same for a custom ``train_step``, whose losses may be a game of two models, as in a GAN."""

BLOCK = 20
"""Steps whose median is a level."""

SUSTAINED = 20
"""Steps in a row that have to be that far above."""

LAG = 100
"""The number of last steps, which are compared with the steps before them."""

RECENT = 200
"""Steps before the last :data:`LAG`, whose median and spread are compared with."""

FIRST = 100
"""Steps before the first comparison, besides the last ones."""

FALLS, GROWS = 0.5, 2.0
"""The median of the later half of these steps, as a multiple of the earlier half's: a loss that recovers, and one
that grows by 7% at each step."""

Losses = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Explosion:
    """A loss that explodes."""

    step: int
    """The first step, counted from 0, from which on the loss has been above its recent range."""
    level: float
    """The highest level of the loss before."""
    loss: float
    """The loss of the last step."""


class ExplodingLoss:
    """Follows the losses of a run.

    Args:
        step: The number of the first step that will be added.
        factor: How far the loss has to be above its level.
        in_order: How many of the next steps may have unlike examples, as the data is not shuffled: the steps of the
            first pass over it; 0 for shuffled data, ``math.inf`` for a stream, whose order is unknown.
        before: The finite losses of earlier steps, in parts: what was usual then is no explosion.
    """

    def __init__(
        self, step: int, factor: float = FACTOR, in_order: float = 0, before: Iterable[npt.NDArray[np.floating]] = ()
    ) -> None:
        self._next = step
        self._factor = factor
        self._must_grow_until = step + in_order
        self._recent: Losses = np.zeros(0)
        self._block: Losses = np.zeros(0)
        self._level = 0.0
        for losses in before:
            self._add_to_level(losses)
        self._count = 0

    def add(self, losses: npt.NDArray[np.float32]) -> Explosion | None:
        """Add the losses of some steps, ``[n]``; returns the explosion if there is one.

        Losses that are not finite do not count.
        """
        for start in range(0, len(losses), SUSTAINED):  # as often as it may be decided, whatever the size of a chunk
            if explosion := self._add(np.asarray(losses[start : start + SUSTAINED], np.float64)):
                return explosion
        return None

    @property
    def grew_from(self) -> int | None:
        """The step from which on the losses grew to far above what they had been; ``None`` if the last one is usual.

        Unlike :meth:`add`, this looks at the last loss only, after which losses are not finite.
        """
        sizes = np.abs(self._recent)
        if not len(sizes) or sizes[-1] <= FACTOR * np.median(sizes):
            return None
        return self._began(10 * float(np.quantile(sizes, 0.1)))

    def _add(self, losses: Losses) -> Explosion | None:
        self._next += len(losses)
        every = np.concatenate([self._recent, self._filled(losses)])
        self._recent = every[-(RECENT + LAG) :]
        older = every[-(len(losses) + LAG) : -LAG]
        self._count += len(older)
        self._add_to_level(older)
        reference, last = self._recent[:-LAG], self._recent[-SUSTAINED:]
        limit = self._factor * self._level
        if self._count < FIRST or not limit or last.min() <= limit:
            return None
        lowest, middle, highest = np.quantile(reference, [0.1, 0.5, 0.9])
        if last.min() <= middle + self._factor * (highest - lowest) or self._recovers(last):
            return None
        return Explosion(self._began(highest), self._level, float(last[-1]))

    def _recovers(self, last: Losses) -> bool:
        """Whether the last losses fall; or, while they may be of other examples, whether they grow no more."""
        half = len(last) // 2
        growth = float(np.median(last[half:]) / np.median(last[:half]))
        return growth <= (GROWS if self._next <= self._must_grow_until else FALLS)

    def _filled(self, losses: Losses) -> Losses:
        """Losses with a usual one in place of each that is not finite."""
        is_finite = np.isfinite(losses)
        if is_finite.all():
            return losses
        usual = losses[is_finite] if is_finite.any() else self._recent[-1:]
        return np.where(is_finite, losses, np.median(usual) if len(usual) else 0.0)

    def _add_to_level(self, losses: npt.NDArray[np.floating]) -> None:
        """Add losses that are older than the last :data:`LAG` to the highest level."""
        every = np.concatenate([self._block, losses])
        whole, self._block = np.split(every, [len(every) // BLOCK * BLOCK])
        levels = np.median(np.abs(whole).reshape(-1, BLOCK), axis=1)
        self._level = max([self._level, *levels.tolist()])

    def _began(self, usual: float) -> int:
        """The step after the last one whose loss was usual or lower."""
        (before,) = np.nonzero(self._recent <= usual)
        return self._next - len(self._recent) + (int(before[-1]) + 1 if len(before) else 0)
