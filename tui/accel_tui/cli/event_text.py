"""Formats the events of a run as log lines of up to 80 columns."""

from collections.abc import Mapping

from accel_engine import events
from accel_engine.events import Event, Outcome, Phase
from accel_engine.plan import DEFAULTS
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.text import shell_command
from accel_engine.words import numbers
from accel_tui.formatting.runs import metric_ranges, plan_change_text
from accel_tui.run_state.state import RunState
from accel_tui.run_state.worker_follower import reduction_name, worker_locations

OPENING = (Phase.IMPORTING, Phase.BUILDING, Phase.TRACING)
"""The phases before the first step, each shown as a line."""


def format_event(event: Event, state: RunState) -> str:
    """Format an event as one or two lines; return an empty text for an event that is not shown.

    Args:
        event: The event.
        state: The run after the event, and perhaps after later ones.
    """
    match event:
        case events.RunStarted():
            title = event.name or " on ".join(
                str(value) for field in ("model", "data") if (value := event.plan.get(field))
            )
            onwards = f", from step {event.first_step:,}" if event.first_step else ""
            worker = f", {event.worker}" if event.worker else ""
            return f"run {event.run}: {title}{worker}{onwards}"
        case events.PhaseChanged(phase=phase) if phase in OPENING:
            return f"{phase} {event.detail}".rstrip()
        case events.PartStarted():
            return f"part {event.part}: {event.name}"
        case events.PartEnded():
            return _format_part_end(event)
        case events.PhaseChanged(phase=Phase.TRAINING) if event.detail:
            return event.detail  # of a parameter server, which trains nothing itself
        case events.WorkersMet():
            return f"workers: {worker_locations(event)}; all-reduce: {reduction_name(event)}"
        case events.DevicesFound():
            names = ", ".join(device.name for device in event.devices)
            strategy = state.started.plan.get("strategy") if state.started else event.strategy
            where = f" at {event.address}" if event.address else ""
            return f"training on {names}{where} ({strategy})"
        case events.ModelBuilt():
            dropped = numbers.counted(event.dropped_examples, "example")
            drops = f"\ndrops the last partial batch: {dropped} per epoch" if event.dropped_examples else ""
            steps = f" of {numbers.counted(event.steps_per_epoch, 'step')}" if event.steps_per_epoch else ""
            batch = f", batch size {event.global_batch}" if event.global_batch else ""
            scaling = f"\n{event.scaling}" if event.scaling else ""
            count = event.parameters
            parameters = "parameters unknown" if count is None else numbers.counted(count, "parameter")
            optimizer = f"; {event.optimizer}" if event.optimizer else ""
            if not event.epochs:  # a script's loop
                return numbers.counted(event.steps_per_epoch or 0, "step")
            epochs = numbers.counted(event.epochs - state.before_part[1], "epoch")
            return f"{parameters}; {epochs}{steps}{batch}{optimizer}{drops}{scaling}"
        case events.EpochEnded() if not _is_validated(state):
            return f"{_epoch_of(event, state)}  {means(event.metrics)}{_without_improvement(event, state)}"
        case events.Validated():
            own = state.epoch if _is_validated(state) and state.epoch and state.epoch.epoch == event.epoch else None
            trained = f"{means(own.metrics)}  " if own else ""
            ends_epoch = state.epoch is not None and state.epoch.step == event.step > state.before_part[0]
            when = _epoch_of(event, state) if own or ends_epoch else f"step {event.step:,}"
            waited = _without_improvement(event, state)
            return f"{when}  {trained}validation {means(event.metrics)}{waited}"
        case events.LearningRateChanged():
            schedule = f", then {event.schedule}" if event.schedule else ""
            return f"learning rate {numbers.learning_rate(event.learning_rate)} from step {event.step:,}{schedule}"
        case events.ThreadsChosen():
            return f"{numbers.counted(event.threads, 'thread')} per operation{_rates(event)}"
        case events.XlaTried():
            source, mode = _source(event), "on" if event.xla else "off"
            if not event.compiled:
                reason = f": {event.reason}" if event.reason else ""
                return f"XLA {mode}: it cannot compile the steps{source}{reason}"
            with_xla, without = numbers.compact(event.compiled), numbers.compact(event.plain)
            return f"XLA {mode}: {with_xla} steps/s with it, {without} without{source}"
        case events.MicroBatchesTried():
            source = _source(event)
            mode = f"{event.micro_batches} per step" if event.micro_batches > 1 else "off"
            split, whole = numbers.compact(event.split), numbers.compact(event.whole)
            return f"micro-batches {mode}: {split} steps/s with {event.tried}, {whole} without{source}"
        case events.WorkCounted(flops=None):
            return f"FLOPs per step unknown: {event.reason}"
        case events.WorkCounted(flops=float(flops)):
            peak = event.reason if event.peak is None else f"peak {numbers.flops(event.peak)}/s ({event.source})"
            return f"FLOPs per step {numbers.flops(flops)}; {peak}"
        case events.CommandAnswered():
            why = f" ({event.reason})" if event.reason else ""
            return f"{event.command.replace('_', ' ')} requested by {event.who}{why}: {event.answer}"
        case events.Recovered():
            return f"recovered from {event.trouble}: {event.reason}\n{event.action}, from step {event.step:,}"
        case events.PlanChanged():
            return plan_change_text(event)
        case events.Warned():
            return f"{'note' if event.severity == 'information' else 'warning'}: {event.message}"
        case events.RunEnded():
            return _format_end(event, state)
    return ""


_EVERY_EPOCH = DEFAULTS["validation_every"]


def format_epoch(epoch: int, state: RunState) -> str:
    """``epoch 3/10``; ``epoch 3`` if the number of epochs is unknown.

    Args:
        epoch: Counted from 1; in a script, within its part.
        state: The run's state.
    """
    return f"epoch {epoch:,}/{state.epochs:,}" if state.epochs else f"epoch {epoch:,}"


def _rates(event: events.ThreadsChosen) -> str:
    """Why the engine has this number of threads per operation, unless the plan says it."""
    if event.rate:
        rate, default_rate = (numbers.compact(each) for each in (event.rate, event.default_rate))
        return f": {rate} steps/s in an earlier run, {default_rate} with {event.default:,}"
    return " (TF_NUM_INTRAOP_THREADS)" if event.source == "environment" else ""


def _source(event: events.XlaTried | events.MicroBatchesTried) -> str:
    """Where the rates of a trial are from, if not from an undisturbed measurement of this run."""
    if event.remembered:
        return " (measured by an earlier run)"
    return "" if event.settled else " (other programs used the machine; this will be measured again)"


def _epoch_of(event: events.EpochEnded | events.Validated, state: RunState) -> str:
    return format_epoch(event.epoch - state.before_part[1], state)


def means(metrics: Mapping[str, float]) -> str:
    """``loss 0.2310  accuracy 0.9310``: the loss first, so that a preceding "validation" belongs to it."""
    ordered = sorted(metric_ranges(metrics), key=lambda item: item[0] != "loss")  # Keras logs metrics in another order
    texts = [(name, " to ".join(map(numbers.metric, values))) for name, values in ordered]
    return "  ".join(f"{name.replace('_', ' ')} {values}" for name, values in texts)


def _without_improvement(event: events.EpochEnded | events.Validated, state: RunState) -> str:
    """How much of the patience is used; empty after an improvement, and without early stopping."""
    patience = state.started.plan.get("patience") if state.started else None
    return f"  ({event.waited} of {patience} without improvement)" if event.waited and patience else ""


def _is_validated(state: RunState) -> bool:
    """Whether a validation follows each epoch; its line then shows both."""
    plan = state.started.plan if state.started else {}
    each = plan.get("validation") == "epoch" and plan.get("validation_every", _EVERY_EPOCH) == _EVERY_EPOCH
    return each and bool(state.built and state.built.validation_examples)


def _format_part_end(event: events.PartEnded) -> str:
    result = means({name: value for name, value in event.metrics.items() if name.endswith("loss")})
    why = event.reason if event.outcome is not Outcome.FINISHED else ""
    said = "; ".join(filter(None, (why, result)))
    return f"part {event.part} {event.outcome}" + (f": {said}" if said else "")


def _format_end(event: events.RunEnded, state: RunState) -> str:
    speed = f"{numbers.compact(event.steps_per_second)} steps/s" if event.steps_per_second else ""
    step = "" if event.outcome is Outcome.FINISHED and not event.steps else f" at step {event.steps:,}"
    if state.info and state.info.bench:
        step = f" with {numbers.counted(event.steps, 'batch size')}"
    duration = numbers.time_taken("after", event.seconds, state.earlier_seconds, state.resumed_at)
    flops = numbers.speed(event.flops_per_second, event.mfu)
    line = ", ".join(filter(None, (f"{event.outcome}{step}{duration}", speed, flops)))
    if event.reason and event.outcome is not Outcome.FAILED and " requested by " not in event.reason:
        line += f"\n{event.reason}"
    model = state.info and trained_model(state.info.directory)
    return f"{line}\ntrained model: {shell_command([str(model)])}" if model else line
