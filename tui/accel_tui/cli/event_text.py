"""What happens in a run, in words that fit a line of 80 columns."""

import math
from collections.abc import Mapping

from accel_engine.events import (
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    LearningRateChanged,
    MicroBatchesTried,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
    WorkCounted,
    WorkersMet,
    XlaTried,
)
from accel_tui.cli.durations import duration
from accel_tui.formatting import figures, units
from accel_tui.formatting.metrics import ranges
from accel_tui.run.state import RunState
from accel_tui.run.worker_follower import means_of, whereabouts

OPENING = (Phase.IMPORTING, Phase.BUILDING, Phase.TRACING)
"""The phases before the first step, in which nothing else is heard."""


def worded(event: Event, state: RunState) -> str:
    """An event as a line, or two; nothing for one that is not worth it.

    Args:
        event: What happened.
        state: The run after it, and perhaps after more.
    """
    match event:
        case RunStarted():
            title = event.name or f"{event.plan.get('model')} on {event.plan.get('data')}"
            onwards = f", from step {event.first_step:,} on" if event.first_step else ""
            worker = f", {event.worker}" if event.worker else ""
            return f"run {event.run}: {title}{worker}{onwards}"
        case PhaseChanged(phase=phase) if phase in OPENING:
            return f"{phase} {event.detail}".rstrip()
        case PhaseChanged(phase=Phase.TRAINING) if event.detail:  # a server's, who trains nothing itself
            return event.detail
        case WorkersMet():
            return f"workers: {whereabouts(event)}; gradients summed by {means_of(event)}"
        case DevicesFound():
            names = ", ".join(device["name"] for device in event.devices)
            strategy = state.started.plan.get("strategy") if state.started else event.strategy
            where = f" at {event.address}" if event.address else ""
            return f"training on {names}{where} ({strategy})"
        case ModelBuilt():
            left_out = f", {event.dropped_examples:,} examples left out" if event.dropped_examples else ""
            steps = f" of {event.steps_per_epoch:,} steps" if event.steps_per_epoch else ""
            batch = f" of {event.global_batch}" if event.global_batch else ""
            scaling = f"\n{event.scaling}" if event.scaling else ""
            parameters = "parameters unknown" if event.parameters is None else f"{event.parameters:,} parameters"
            optimizer = f"; {event.optimizer}" if event.optimizer else ""
            return f"{parameters}; {event.epochs} epochs{steps}{batch}{left_out}{optimizer}{scaling}"
        case EpochEnded() if not _is_validated(state):
            return f"{epoch_of(event.epoch, state)}  {means(event.metrics)}"
        case Validated():
            own = state.epoch if _is_validated(state) and state.epoch and state.epoch.epoch == event.epoch else None
            trained = f"{means(own.metrics)}  " if own else ""
            return f"{epoch_of(event.epoch, state)}  {trained}validation {means(event.metrics)}"
        case LearningRateChanged():
            onwards = f", then follows {event.schedule}" if event.schedule else " on"
            return f"learning rate {event.learning_rate:g} from step {event.step:,}{onwards}"
        case XlaTried():
            source = ", as an earlier run found" if event.remembered else ""
            way = "with" if event.xla else "without"
            with_it, without = figures.compact(event.compiled), figures.compact(event.plain)
            return f"going on {way} XLA{source}: {with_it} steps/s with it, {without} without"
        case MicroBatchesTried():
            source = ", as an earlier run found" if event.remembered else ""
            way = f"in {event.micro_batches} micro-batches" if event.micro_batches > 1 else "with whole batches"
            split, whole = figures.compact(event.split), figures.compact(event.whole)
            return f"going on {way}{source}: {split} steps/s in {event.tried}, {whole} whole"
        case WorkCounted(flops=None):
            return f"the operations of a step are not counted: {event.reason}"
        case WorkCounted(flops=float(flops)):
            peak = event.reason if event.peak is None else f"the peak is {units.flops(event.peak)}/s ({event.source})"
            return f"a step is {units.flops(flops)}; {peak}"
        case CommandAnswered():
            return f"{event.command.replace('_', ' ')}, asked by {event.who}: {event.answer}"
        case Warned():
            return f"warning: {event.message}"
        case RunEnded():
            return _ending(event, state)
    return ""


def epoch_of(epoch: int, state: RunState) -> str:
    """``epoch  3/10``."""
    if state.built is None:
        return f"epoch {epoch}"
    return f"epoch {epoch:{len(str(state.built.epochs))}}/{state.built.epochs}"


def means(metrics: Mapping[str, float]) -> str:
    """``loss 0.2310  accuracy 0.931``: the loss first, so that a word before it is read as said of it."""
    ordered = sorted(ranges(metrics), key=lambda item: item[0] != "loss")  # Keras' own logs are in another order
    words = [(name, " to ".join(number(value, name) for value in values)) for name, values in ordered]
    return "  ".join(f"{name.replace('_', ' ')} {values}" for name, values in words)


def number(value: float, name: str = "") -> str:
    """A metric's value with as many digits as mean something."""
    if not math.isfinite(value):
        return str(value)
    if name.endswith("accuracy"):
        return f"{value:.3f}"
    return f"{value:.4f}" if 0.001 <= abs(value) < 1000 or value == 0 else f"{value:.2e}"


def _is_validated(state: RunState) -> bool:
    """Whether each epoch is followed by a validation, whose line tells of both."""
    mode = state.started.plan.get("validation") if state.started else None
    return mode == "epoch" and bool(state.built and state.built.validation_examples)


def _ending(event: RunEnded, state: RunState) -> str:
    speed = f"{figures.compact(event.steps_per_second)} steps/s" if event.steps_per_second else ""
    where = "" if event.outcome is Outcome.FINISHED and not event.steps else f" at step {event.steps:,}"
    took = figures.time_taken("after", event.seconds, state.worked, state.resumed_at, duration)
    end = f"{event.outcome}{where}{took}"
    return ", ".join(filter(None, (end, speed, units.speed(event.flops_per_second, event.mfu))))
