"""Saves a run's checkpoints, and its trained model in a form that other programs can load."""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import takewhile
from typing import TypeVar

import keras
from keras.optimizers import schedules

from accel_engine.data.standardization_model import in_units, shape_in_units
from accel_engine.data.structure import flatten, map_structure
from accel_engine.events import CheckpointSaved, Phase, Warned
from accel_engine.files import replacing
from accel_engine.keras_support.model_structure import model_input, model_output
from accel_engine.keras_support.optimizers import inner_optimizer
from accel_engine.plan.interval import MAX_CHECKPOINT_TIME_SHARE
from accel_engine.private_names.keras_names import schedule_of, whole_configs
from accel_engine.run.directory.checkpoint_files import by_preference
from accel_engine.run.directory.disk_problem import disk_problem
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.training.checkpoints.checkpoint import Checkpoints, NotFiniteError
from accel_engine.training.checkpoints.saved_model_proof import has_own_classes, saving_faults
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.recipe.optimizer import CLIPPING_ARGUMENTS, clips_over_replicas
from accel_engine.training.core.recipe.rate_schedule import JoinedSchedule, MultipliedSchedule
from accel_engine.training.progress.due_actions import DueActions
from accel_engine.training.reporting.error_explanation import is_out_of_memory
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.user_code import reason

PARTIAL_MODEL = "partial.keras"
"""The model's file until it is complete; one name for all processes, so that a killed one leaves one at most."""

PROVEN_AFTER = 10.0
"""Seconds of an engine's work on a run from which its saved model is loaded again, which mostly takes less than a
second. After a shorter run, only a model with the user's own classes is, as these may lose arguments in silence; a
model that cannot be loaded is then no fault."""

Result = TypeVar("Result")


class RunSaver:
    """Saves the checkpoints and the model of one run.

    Args:
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        checkpoints: The run's checkpoints; the one that it continues from is restored.
        due_actions: Knows the step at which the monitored metric is at its best, whose checkpoint is kept.

    Attributes:
        model_step: The step whose weights ``model.keras`` has, if they are not the last ones.
    """

    def __init__(
        self, assembly: Assembly, reporter: RunReporter, checkpoints: Checkpoints, due_actions: DueActions
    ) -> None:
        self._assembly = assembly
        self._reporter = reporter
        self._checkpoints = checkpoints
        self._due_actions = due_actions
        self._saved = self._current
        self._due = -math.inf
        self._began = time.perf_counter()
        self._warned = False
        self.model_step: int | None = None
        with suppress(OSError):  # there is none, or the next one can be written all the same
            (reporter.run.directory / PARTIAL_MODEL).unlink()

    @property
    def is_due(self) -> bool:
        """Whether another checkpoint keeps within :data:`MAX_CHECKPOINT_TIME_SHARE`; the first always does."""
        return time.perf_counter() >= self._due

    def save_checkpoint(self, on_failure: Callable[[NotFiniteError], None] = lambda _: None) -> str:
        """Write a checkpoint, unless there is already one of this step and learning rate.

        Args:
            on_failure: Called if weights are not finite; it may raise an error.

        Returns:
            Why a missing checkpoint is not written; empty if it is, or if there is one.

        Raises:
            RunError: The run's directory is gone.
            Exception: Memory runs out, unless the plan adapts and epochs are left; or what ``on_failure`` raises.
        """
        reporter = self._reporter
        reporter.run.check_directory()
        if self._saved == self._current:
            return ""
        reporter.enter_phase(Phase.CHECKPOINTING)
        began = time.perf_counter()
        try:
            path = self._save()
        except NotFiniteError as error:
            on_failure(error)
            return self._report_unsaved(str(error))
        except Exception as error:
            if not self._survives(error) or reporter.epochs == self._assembly.plan.epochs:
                raise
            return self._report_unsaved("memory ran out")
        self._saved, self._warned = self._current, False
        ended = time.perf_counter()
        seconds = ended - began
        best = self._due_actions.best_among(self._checkpoints.steps)
        reporter.run.wait_for_disk(partial(self._checkpoints.prune, best))
        self._due = ended + seconds / MAX_CHECKPOINT_TIME_SHARE
        is_best = reporter.step == self._due_actions.best_step
        reporter.emit(
            CheckpointSaved, epoch=reporter.epochs, step=reporter.step, path=path, seconds=seconds, best=is_best
        )
        return ""

    def _save(self) -> str:
        """Write a checkpoint; if memory runs out, try once more after a garbage collection."""
        try:
            return self._checkpoints.save(self._reporter.step, self._write)
        except Exception as error:
            if not self._survives(error):
                raise
        gc.collect()
        return self._checkpoints.save(self._reporter.step, self._write)

    def _survives(self, error: Exception) -> bool:
        """Whether training continues although a checkpoint was not saved: no step has failed."""
        adapts = self._assembly.plan.on_oom == "adapt" and self._assembly.single_process
        return adapts and is_out_of_memory(error)

    def _report_unsaved(self, why: str) -> str:
        steps = self._checkpoints.steps
        last = f"the last one remains at step {steps[-1]:,}" if steps else "there is none to continue from"
        message = f"no checkpoint is saved, as {why}: {last}"
        if not self._warned:
            self._warned = True
            self._reporter.emit(Warned, message=message)
        return message

    def save_model(self, *, prove: bool = False) -> None:
        """Write ``model.keras`` atomically, at the end of training; only the chief does.

        With ``restore_best``, it has the weights of the best step, and with ``ema_momentum`` their averages. Weights
        that are not finite are replaced by the weights of the last checkpoint.

        Args:
            prove: Whether to load it again, if it has classes of the user's own or has trained for some time, and to
                warn if it is another model.
        """
        if not self._assembly.chief:
            return
        self._reporter.run.check_directory()
        self._restore_best()
        if self._restore_finite():
            with averages_as_weights(self._assembly), portable_optimizer(self._assembly):
                if self._write(self._save_model) and prove:
                    self._prove_model()

    def _prove_model(self) -> None:
        """Warn if the saved model, loaded again, differs from the trained one."""
        file, is_short = self._reporter.run.directory / MODEL, time.perf_counter() - self._began < PROVEN_AFTER
        try:
            is_known = is_short and not has_own_classes(file)
            fault = "" if is_known else saving_faults(self._assembly, file, silent_only=is_short)
        except Exception as error:  # noqa: BLE001 (the model is saved, and may have code that does not like this)
            fault = "" if is_short else f"loaded again, it cannot be compared with the trained model: {reason(error)}"
        if fault:
            self._reporter.emit(Warned, message=f"model.keras: {fault}")

    def _restore_finite(self) -> bool:
        """Restore weights that are finite, if these are not; returns whether there are any."""
        weights = {id(weight) for weight in self._assembly.model.weights}
        wrong = [variable.path for variable in self._checkpoints.not_finite() if id(variable) in weights]
        if not wrong:
            return True
        reporter, checkpoints = self._reporter, self._checkpoints
        last = checkpoints.restore_first_weights(reversed(checkpoints.steps))
        message = f"{wrong[0]} is not finite after step {reporter.step:,}: "
        if last is None:
            reporter.emit(Warned, message=f"{message}the model is not saved")
            return False
        self.model_step = last
        reporter.emit(Warned, message=f"{message}the model has the weights of its last checkpoint, of step {last:,}")
        return True

    def _restore_best(self) -> None:
        best, reporter = self._due_actions.best_step, self._reporter
        if self._assembly.plan.restore_best == "off" or best in (None, reporter.step):
            return
        steps = by_preference([*self._checkpoints.steps, reporter.step], self._due_actions.best_among)
        restored = self._checkpoints.restore_first_weights(takewhile(lambda step: step != reporter.step, steps))
        if restored is not None:
            self.model_step = restored
        if restored == best:
            message = f"the model has the weights of its best step, {best:,}"
            reporter.emit(Warned, message=message, severity="information")
        else:
            message = (
                f"the checkpoint of the best step, {best:,}, is missing or damaged: the model has the weights of step "
            )
            reporter.emit(Warned, message=f"{message}{restored or reporter.step:,}")

    def _save_model(self) -> bool:
        """Write the file; returns whether it could be written."""
        directory = self._reporter.run.directory
        try:
            model = _complete(self._assembly)
            with replacing(directory / MODEL, directory / PARTIAL_MODEL) as partial_model, whole_configs(model):
                model.save(partial_model)
        except Exception as error:
            if disk_problem(error, directory) or not directory.exists():
                raise
            self._reporter.emit(Warned, message=f"the model could not be saved as model.keras: {reason(error)}")
            return False
        return True

    def _write(self, write: Callable[[], Result]) -> Result:
        """Call a function that writes files of the run, unless its directory is gone, which would be made again."""

        def check_and_write() -> Result:
            self._reporter.run.check_directory()
            return write()

        return self._reporter.run.wait_for_disk(check_and_write)

    @property
    def _current(self) -> tuple[int, float | None]:
        """The step and the learning rate, which identify the content of a checkpoint."""
        return self._reporter.step, self._assembly.learning_rate


def _complete(assembly: Assembly) -> keras.Model:
    """The trained model, after the preprocessing of raw columns, and with the targets' units, if the data has them."""
    dataset, model = assembly.dataset, assembly.model
    scaling, specs = dataset.target_scaling, flatten(assembly.outputs)
    shape = dataset.spec.targets.shape if scaling else ()
    if scaling and (len(specs) != 1 or shape_in_units(specs[0].shape[1:], scaling, shape) is None):
        scaling = None
    if dataset.preprocess is not None:
        preprocessing = dataset.preprocess()
        inputs, outputs = preprocessing.inputs, model(preprocessing.outputs[0])
    elif not scaling:
        return model
    elif type(model).__module__.startswith("keras.") and model_input(model) is not None:
        inputs, outputs = model_input(model), model_output(model)
    else:
        inputs = map_structure(lambda spec: keras.Input(spec.shape, dtype=spec.dtype), dataset.spec.inputs)
        outputs = model(inputs)
    if scaling:
        outputs = keras.tree.map_structure(partial(in_units, scaling=scaling, shape=shape), outputs)
    return keras.Model(inputs, outputs, name=model.name)


_OURS = (JoinedSchedule, MultipliedSchedule)


@contextmanager
def averages_as_weights(assembly: Assembly) -> Iterator[None]:
    """Replace the weights by their moving averages, where the optimizer has them, as ``fit`` does at its end."""
    pairs = assembly.averages
    before = [variable.numpy() for variable, _ in pairs]
    with assembly.strategy.scope():
        for variable, average in pairs:
            variable.assign(average)
    try:
        yield
    finally:
        with assembly.strategy.scope():
            for (variable, _), value in zip(pairs, before, strict=True):
                variable.assign(value)


@contextmanager
def portable_optimizer(assembly: Assembly) -> Iterator[None]:
    """Give the optimizer settings with which any program can load it.

    A schedule that only this program has becomes its present rate, and the limit of clipped gradients is for all
    replicas.
    """
    optimizer = inner_optimizer(assembly.model.optimizer)
    schedule = schedule_of(optimizer)
    limits = {name: getattr(optimizer, name, None) for name in CLIPPING_ARGUMENTS}
    if isinstance(schedule, _OURS):
        rate = float(schedule(optimizer.iterations))
        optimizer.learning_rate = schedules.PolynomialDecay(rate, 1, end_learning_rate=rate)
    if clips_over_replicas(assembly.plan, assembly.replicas):
        _set(optimizer, {name: value and value * assembly.replicas for name, value in limits.items()})
    try:
        yield
    finally:
        if isinstance(schedule, _OURS):
            optimizer.learning_rate = schedule
        _set(optimizer, limits)


def _set(optimizer: object, values: dict[str, float | None]) -> None:
    for name, value in values.items():
        if hasattr(optimizer, name):
            setattr(optimizer, name, value)
