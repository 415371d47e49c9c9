"""A run from its plan to its result."""

import math
import time
import traceback

import numpy as np
import numpy.typing as npt

from accel_engine.devices.reading import Inventory
from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    LearningRateChanged,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    Validated,
    Warned,
    XlaTried,
)
from accel_engine.models.user_code import reason
from accel_engine.plan import Plan
from accel_engine.run.reader import Command
from accel_engine.run.writer import RunWriter
from accel_engine.training import placement, xla
from accel_engine.training.assembly import Assembly, assemble
from accel_engine.training.checkpoint import Checkpoints
from accel_engine.training.control import Mailbox, StopRequested
from accel_engine.training.diagnosis import diagnose
from accel_engine.training.feed import epoch_order
from accel_engine.training.loop import Loop, Measured
from accel_engine.training.means import Means
from accel_engine.training.summary import summarize
from accel_engine.training.validation import Validation


class Trainer:
    """Trains one plan, tells the run all about it, and obeys commands between two chunks.

    Args:
        plan: What to train.
        run: Where everything is written.
        mailbox: Where commands arrive.
        inventory: The machine's devices.
        first_step: The step of the checkpoint that training goes on from; 0 for none.
        began: When the engine took the run up, by ``time.monotonic()``; now, unless it is given.
    """

    _assembly: Assembly
    _checkpoints: Checkpoints
    _loop: Loop
    _validation: Validation | None

    def __init__(
        self,
        plan: Plan,
        run: RunWriter,
        mailbox: Mailbox,
        inventory: Inventory,
        first_step: int = 0,
        began: float | None = None,
    ) -> None:
        self._plan = plan
        self._run = run
        self._mailbox = mailbox
        self._inventory = inventory
        self._step = first_step
        self._epochs = 0
        self._saved_step = first_step
        self._began = time.monotonic() if began is None else began
        self._means = Means()
        self._metrics: dict[str, float] = {}
        self._phase = Phase.STARTING
        self._warm = False
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._diverged = False
        self._may_try_xla = False

    def train(self) -> RunEnded:
        """Train to the end, whichever it is, and return the event that ends the run."""
        try:
            self._prepare()
            self._train_epochs()
            self._save_model()
        except StopRequested as stop:
            return self.ended(Outcome.STOPPED, str(stop))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a user's model raises is the run's failure)
            traceback.print_exc()
            return self.ended(Outcome.FAILED, *diagnose(error, self._plan))
        return self.ended(Outcome.FINISHED)

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends the run as things stand now."""
        return RunEnded(
            time=time.time(),
            outcome=outcome,
            steps=self._step,
            epochs=self._epochs,
            seconds=time.monotonic() - self._began,
            steps_per_second=self._rate,
            metrics=self._metrics,
            reason=reason,
            hint=hint,
        )

    def _prepare(self) -> None:
        self._enter(Phase.BUILDING)
        names = placement.configure(self._plan, self._inventory)
        memory = placement.memory(names, self._inventory)
        self._assembly = assembly = assemble(self._plan, names, memory)
        self._checkpoints = Checkpoints(assembly, self._run.directory)
        if self._step:
            self._checkpoints.restore(self._step)
        self._tell_assembly(names)
        self._validation = None
        if self._plan.validation != "off" and assembly.dataset.validation is not None:
            self._validation = Validation(assembly, memory)
        self._obey()
        self._choose_loop()

    def _train_epochs(self) -> None:
        steps = self._assembly.schedule.steps_per_epoch
        self._epochs = self._step // steps
        done = self._step % steps
        self._means.add(*self._run.recorded(self._step - done, self._step))
        if self._epochs >= self._plan.epochs:  # its engine died between the last checkpoint and the end
            self._validate()
        while self._epochs < self._plan.epochs:
            self._enter(Phase.TRAINING)
            self._obey()
            self._train_epoch(done)
            self._end_epoch()
            done = 0

    def _train_epoch(self, done: int) -> None:
        order = self._order(self._epochs)
        while done < len(order):
            for measured in self._loop.run(order, done):
                self._record(measured)
                done += measured.count
                if done < len(order):  # else the epoch is over, which is to be said before anything is obeyed
                    self._obey()
                if self._may_try_xla and self._is_trial_due():
                    self._try_xla(order)
                    break  # the loop that goes on may be another

    def _choose_loop(self) -> None:
        """Take the way that the plan asks for, or that an earlier run of the kind found the faster."""
        assembly = self._assembly
        self._may_try_xla = xla.may_try(assembly)
        rates = xla.remembered(assembly) if self._may_try_xla else None
        use_xla = self._plan.xla == "on"
        if rates is not None:
            self._may_try_xla = False
            use_xla = rates.pays and self._is_long(rates.plain)
        self._enter(Phase.TRACING, "compiling with XLA" if use_xla else "")
        self._loop = Loop(assembly, xla=use_xla)
        self._loop.trace(self._order(0))
        if rates is not None:
            self._tell_trial(rates, remembered=True)

    def _is_trial_due(self) -> bool:
        return self._timed_seconds >= xla.SETTLED_SECONDS and self._is_long(self._rate)

    def _is_long(self, rate: float) -> bool:
        """Whether what is left takes long enough, at this many steps a second, for compiling to pay."""
        steps_left = self._plan.epochs * self._assembly.schedule.steps_per_epoch - self._step
        return rate > 0 and steps_left / rate > xla.WORTHWHILE_SECONDS

    def _try_xla(self, order: npt.NDArray[np.int32]) -> None:
        self._may_try_xla = False
        self._enter(Phase.TRACING, "trying XLA")
        self._loop, rates = xla.try_both(self._assembly, self._loop, order)
        xla.remember(self._assembly, rates)
        self._tell_trial(rates, remembered=False)
        self._enter(Phase.TRAINING)

    def _tell_trial(self, rates: xla.Rates, *, remembered: bool) -> None:
        self._say(
            XlaTried,
            step=self._step,
            xla=self._loop.xla,
            plain=rates.plain,
            compiled=rates.compiled,
            remembered=remembered,
        )

    @property
    def _rate(self) -> float:
        """Steps a second while training, after the first chunk; 0 before there was another."""
        return self._timed_steps / self._timed_seconds if self._timed_seconds else 0.0

    def _end_epoch(self) -> None:
        self._epochs += 1
        self._metrics |= self._means.value
        self._say(
            EpochEnded, epoch=self._epochs, step=self._step, metrics=self._means.value, seconds=self._means.seconds
        )
        self._means = Means()
        self._obey()
        if self._epochs == self._plan.epochs or self._plan.validation == "epoch":
            self._validate()
        self._save()

    def _validate(self) -> None:
        if self._validation is None:
            return
        self._enter(Phase.VALIDATING)
        began = time.perf_counter()
        metrics = self._validation.run(self._obey)
        self._metrics |= {f"validation_{name}": value for name, value in metrics.items()}
        seconds = time.perf_counter() - began
        self._say(Validated, epoch=self._epochs, step=self._step, metrics=metrics, seconds=seconds)

    def _record(self, measured: Measured) -> None:
        first, self._step = self._step, self._step + measured.count
        self._run.chunk(first, measured.started, measured.started + measured.seconds, measured.series)
        self._means.add(measured.series, measured.seconds)
        if self._warm:
            self._timed_steps += measured.count
            self._timed_seconds += measured.seconds
        self._warm = True
        wrong = ~np.isfinite(measured.series["loss"])
        if wrong.any() and not self._diverged:
            self._diverged = True
            step = first + int(np.argmax(wrong))
            self._say(Warned, message=f"the loss of step {step} is not a number: try a lower learning rate")

    def _obey(self) -> None:
        while command := self._mailbox.take():
            self._do(command)

    def _do(self, command: Command) -> None:
        match command.name:
            case "stop" | "stop_now":
                stop = StopRequested(command)
                if self._step and not stop.now:
                    self._save()
                    self._save_model()
                self._answer(command, obeyed=True, answer=f"stopped after step {self._step}")
                raise stop
            case "pause" if self._phase is Phase.PAUSED:
                self._answer(command, obeyed=False, answer="the run is paused already")
            case "pause":
                self._answer(command, obeyed=True, answer=f"paused after step {self._step}")
                self._pause()
            case "resume":
                self._answer(command, obeyed=False, answer="the run is not paused")
            case "checkpoint" if not self._step:
                self._answer(command, obeyed=False, answer="no step has been taken yet")
            case "checkpoint":
                phase = self._phase
                self._save()
                self._enter(phase)
                self._answer(command, obeyed=True, answer=f"checkpoint written at step {self._step}")
            case "learning_rate":
                self._set_learning_rate(command)
            case name:
                self._answer(command, obeyed=False, answer=f"this engine knows no command {name}")

    def _pause(self) -> None:
        phase = self._phase
        self._enter(Phase.PAUSED)
        while (command := self._mailbox.wait()).name != "resume":
            self._do(command)
        self._answer(command, obeyed=True, answer=f"going on from step {self._step}")
        self._enter(phase)

    def _set_learning_rate(self, command: Command) -> None:
        rate = command.argument
        if rate is None or not 0 < rate < math.inf:
            self._answer(command, obeyed=False, answer="a learning rate must be a number above 0")
            return
        try:
            self._assembly.model.optimizer.learning_rate = rate
        except (AttributeError, TypeError, ValueError) as error:
            self._answer(command, obeyed=False, answer=f"the optimizer refuses it: {' '.join(str(error).split())}")
            return
        self._say(LearningRateChanged, step=self._step, learning_rate=rate)
        self._answer(command, obeyed=True, answer=f"learning rate {rate:g} from step {self._step} on")

    def _answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        self._run.answer(command, obeyed=obeyed, answer=answer)
        self._say(CommandAnswered, command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=self._step)

    def _save(self) -> None:
        if self._step == self._saved_step:
            return
        self._enter(Phase.CHECKPOINTING)
        began = time.perf_counter()
        path = self._checkpoints.save(self._step)
        self._saved_step = self._step
        self._say(CheckpointSaved, epoch=self._epochs, step=self._step, path=path, seconds=time.perf_counter() - began)

    def _save_model(self) -> None:
        written, final = (self._run.directory / name for name in ("partial.keras", "model.keras"))
        try:
            self._assembly.model.save(written)
            written.replace(final)
        except Exception as error:  # noqa: BLE001 (a user's own layers may refuse; the checkpoints are there)
            written.unlink(missing_ok=True)
            self._say(Warned, message=f"the model could not be saved as model.keras: {reason(error)}")

    def _order(self, epoch: int) -> npt.NDArray[np.int32]:
        assembly = self._assembly
        return epoch_order(
            self._plan.seed,
            epoch,
            len(assembly.dataset.train),
            assembly.schedule.steps_per_epoch,
            assembly.replicas,
            assembly.schedule.per_replica_batch,
        )

    def _tell_assembly(self, names: tuple[str, ...]) -> None:
        assembly = self._assembly
        self._say(
            DevicesFound,
            devices=placement.found(names, self._inventory),
            strategy=type(assembly.strategy).__name__,
        )
        self._run.event(summarize(assembly))
        self._say(LearningRateChanged, step=self._step, learning_rate=assembly.learning_rate)
        for note in assembly.notes:
            self._say(Warned, message=note)

    def _enter(self, phase: Phase, detail: str = "") -> None:
        self._phase = phase
        self._say(PhaseChanged, phase=phase, detail=detail)

    def _say(self, kind: type[Event], **values: object) -> None:
        self._run.event(kind.parse({"time": time.time(), **values}))
