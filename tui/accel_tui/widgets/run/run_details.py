"""The details of a run: model, data, batch, optimizer, devices, checkpoint."""

import textwrap
import time
from collections.abc import Iterator

from textual.content import Content

from accel_engine.events import ModelBuilt, Outcome, ThreadsChosen, XlaTried
from accel_engine.run import RunInfo
from accel_engine.run.history.history import Part
from accel_engine.run.store.meta import ImportSource
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.plan import field_labels
from accel_tui.run_state.state import RunState
from accel_tui.run_state.worker_follower import reduction_name, worker_locations
from accel_tui.widgets.run.run_view import RunText

_LABEL, _VALUE = 15, 25
"""Widths of the two columns, in cells, beside a scrollbar."""

_SHOWN_PARTS = 6
"""How many parts of a script are listed, the latest ones."""

_FEEDS = {"resident": "in memory", "streamed": "none: streamed"}


class RunDetails(RunText):
    """A table of what the run trains, and how."""

    DEFAULT_CSS = """
    RunDetails {
        height: auto;
    }
    """

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on."""
        return (
            state.info,
            state.built,
            state.parts,
            state.threads,
            state.xla,
            state.micro_batches,
            state.work,
            state.devices,
            state.workers_met,
            state.checkpoint,
            state.model,
            state.validated,
            state.has_ended,
            _learning_rate(state),
            state.patience_used,
        )

    def build(self, state: RunState) -> Content:
        """A line per known detail."""
        facts = facts_of(state)
        if not facts:
            return Content.styled("the model is not built yet", "$text-muted")
        return Content("\n").join(
            Content.assemble((f"{label if first else '':<{_LABEL}}", "$text-muted"), line)
            for label, value in facts
            for first, line in _lines(value)
        )


def facts_of(state: RunState) -> list[tuple[str, str]]:
    """The run's plan and data as labels and values; lines that belong together follow with empty labels."""
    facts: list[tuple[str, str]] = []
    if state.info and state.info.script:
        limits = "" if state.is_launched else " (only the script can save and continue)"
        facts.append(("script", state.info.script + limits))
    if state.info and state.info.source:
        facts += _imported(state.info.source)
    if state.info and state.info.bench:
        facts += _bench(state.info)
    facts += _parts(state)
    if built := state.built:
        facts += _model(built, state)
    facts += _config(state)
    facts += _work(state)
    if monitor := _monitor(state):
        facts.append(("monitor", monitor))
    if baseline := _baseline(state):
        facts.append(("baseline", baseline))
    if early := state.patience_used:
        unit = "validations" if state.monitor.startswith(VALIDATION_PREFIX) else "epochs"
        facts.append(("early stopping", f"{early[0]} of {early[1]} {unit} without improvement"))
    if rate := _learning_rate(state):
        facts.append(("learning rate", rate))
    facts += _devices(state)
    if saved := state.checkpoint:
        at = time.strftime("%H:%M:%S", time.localtime(saved.time))
        facts.append(("checkpoint", f"step {saved.step:,} at {at}"))
    return facts


def machine_facts(state: RunState) -> list[tuple[str, str]]:
    """The facts of :func:`facts_of` that are about the machine."""
    return [*_work(state), *_devices(state)]


def _parts(state: RunState) -> Iterator[tuple[str, str]]:
    """The latest parts of a script: name, epochs, steps and result."""
    earlier = len(state.parts) - _SHOWN_PARTS
    if earlier > 0:
        yield "parts", f"{earlier:,} earlier"
    for part in state.parts[-_SHOWN_PARTS:]:
        label = f"part {part.started.part}"
        for value in filter(None, (_extent(part), _result(part))):
            yield label, value
            label = ""


def _extent(part: Part) -> str:
    """The part's name, epochs and steps, as far as they are known."""
    started, built, ended = part.started, part.built, part.ended
    last_epoch = ended.epoch if ended else built.epochs if built else started.epoch
    epochs = numbers.counted(last_epoch - started.epoch, "epoch") if last_epoch > started.epoch else ""
    steps = numbers.counted(ended.step - started.step, "step") if ended else ""
    return ", ".join(filter(None, (started.name, epochs, steps)))


def _result(part: Part) -> str:
    """The outcome of an ended part unless it finished, and its loss, of the validation if it has one."""
    if part.ended is None:
        return ""
    outcome = "" if part.ended.outcome is Outcome.FINISHED else str(part.ended.outcome)
    for name, label in ((f"{VALIDATION_PREFIX}loss", "val loss"), ("loss", "loss")):
        if (loss := part.ended.metrics.get(name)) is not None:
            return ", ".join(filter(None, (outcome, f"{label} {numbers.metric(loss)}")))
    return outcome


def _lines(value: str) -> Iterator[tuple[bool, str]]:
    """The wrapped lines of a value, and whether each is the first."""
    for number, line in enumerate(textwrap.wrap(value, _VALUE) or [""]):
        yield not number, line


def _imported(source: ImportSource) -> list[tuple[str, str]]:
    """Where a run was imported from."""
    facts = [("imported from", source.path), ("format", source.format)]
    return [(label, printable_line(value)) for label, value in facts if value]


def _bench(info: RunInfo) -> Iterator[tuple[str, str]]:
    """The measurements of a bench, and its options."""
    for name, value in info.plan_values.items():
        if name != "name":
            yield field_labels.label(name), printable_line(str(value))


def _model(built: ModelBuilt, state: RunState) -> list[tuple[str, str]]:
    batch = f"{built.global_batch:,}" if built.global_batch else ""
    if built.replicas > 1 and batch:
        batch += f" = {built.replicas} × {built.per_replica_batch:,}"  # noqa: RUF001
    facts = [
        ("parameters", _parameters(built)),
        ("data", _data(built)),
        ("scaling", built.scaling),
        ("task", built.task if built.task != "auto" else ""),
        ("classes", f"{built.classes:,}" if built.classes else ""),
        ("outputs", "" if built.classes else built.outputs),
        ("global batch", batch),
        ("micro-batches", _micro_batches(state)),
        ("precision", built.precision),
        ("data cache", _FEEDS.get(built.feed, "")),
        ("XLA", _xla(built, state.xla)),
        ("optimizer", built.optimizer),
    ]
    if built.dropped_examples:
        facts.insert(
            8, ("dropped", f"last partial batch: {numbers.counted(built.dropped_examples, 'example')} per epoch")
        )
    return [(label, value) for label, value in facts if value]  # a script's run lacks some


def _config(state: RunState) -> list[tuple[str, str]]:
    """The settings that a script or another tool has logged."""
    config = state.info.plan_values.get("config") if state.info else None
    lines = [printable_line(f"{name}: {value}") for name, value in config.items()] if isinstance(config, dict) else []
    return [("" if number else "config", line) for number, line in enumerate(lines)]


def _monitor(state: RunState) -> str:
    """The metric that counts; empty while it is neither named nor validated."""
    is_known = state.best or (state.built and state.built.monitor)
    return state.monitor.replace("_", " ") if is_known else ""


def _baseline(state: RunState) -> str:
    """The metrics of the baseline on the validation examples; empty if unknown."""
    if state.validated is None or not state.validated.baseline_name:
        return ""
    reached = (f"{name.replace('_', ' ')} {numbers.metric(each)}" for name, each in state.validated.baseline.items())
    return f"{printable_line(state.validated.baseline_name)}: {', '.join(reached)}"


def _learning_rate(state: RunState) -> str:
    """The current learning rate and its schedule."""
    if state.learning_rate is None:
        return ""
    return ", ".join(filter(None, (numbers.learning_rate(state.learning_rate), state.schedule)))


def _parameters(built: ModelBuilt) -> str:
    """Number of parameters and layers; a script's model may not be built, and its own loop tells of none."""
    if not built.epochs:
        return ""
    layers = f" in {numbers.counted(built.layers, 'layer')}" if built.layers is not None else ""
    return ("unknown" if built.parameters is None else f"{built.parameters:,}") + layers


def _data(built: ModelBuilt) -> str:
    parts = [
        numbers.counted(built.examples, "example") if built.examples else "",
        numbers.shape(built.input_shape) if built.input_shape else built.inputs,
    ]
    return ", ".join(filter(None, parts))


def _xla(built: ModelBuilt, tried: XlaTried | None) -> str:
    """Whether XLA is on, and the rates of the trial in steps per second."""
    if tried is None and built.xla is None:
        return ""
    if tried is None:
        return "on" if built.xla else "off"
    if not tried.compiled:
        return f"off: it cannot compile the steps{f': {tried.reason}' if tried.reason else ''}"
    slower, faster = (numbers.compact(rate) for rate in sorted((tried.plain, tried.compiled)))
    return f"on: {faster} steps/s, {slower} without" if tried.xla else f"off: {faster} steps/s, {slower} with XLA"


def _micro_batches(state: RunState) -> str:
    """Micro-batches per step and the rates of the trial; empty if none were requested."""
    if tried := state.micro_batches:
        whole, split = (numbers.compact(rate) for rate in (tried.whole, tried.split))
        if tried.micro_batches > 1:
            return f"{tried.tried}: {split} steps/s, {whole} without"
        return f"off: {whole} steps/s, {split} with {tried.tried}"
    asked = state.info.plan_values.get("micro_batches") if state.info else None
    return str(asked or "")


def _threads(chosen: ThreadsChosen) -> str:
    """Threads per operation, and the rates for which they were chosen."""
    if not chosen.rate:
        return f"{chosen.threads:,} per operation"
    rate, default_rate = (numbers.compact(each) for each in (chosen.rate, chosen.default_rate))
    return f"{chosen.threads:,} per operation: {rate} steps/s, {default_rate} with {chosen.default:,}"


def _work(state: RunState) -> list[tuple[str, str]]:
    """FLOPs of a step and peak of the devices, or why they are unknown."""
    work = state.work
    if work is None:
        return []
    if work.flops is None:
        return [("FLOPs per step", f"unknown: {work.reason}")]
    peak = work.reason if work.peak is None else f"{numbers.flops(work.peak)}/s, {work.source}"
    if state.has_ended:  # before the engine could measure it
        peak = peak.replace("a CPU's peak is measured after", "not measured: run shorter than")
    return [("FLOPs per step", numbers.flops(work.flops)), ("peak", peak)]


def _devices(state: RunState) -> Iterator[tuple[str, str]]:
    """The devices, threads and workers that the run trains on."""
    if found := state.devices:
        yield "strategy", str(state.info.plan_values.get("strategy", "")) if state.info else ""
        yield "devices", ", ".join(device.name for device in found.devices)
        if found.address:
            yield "address", found.address
    if state.threads:
        yield "threads", _threads(state.threads)
    if met := state.workers_met:
        yield from (("workers", worker_locations(met)), ("all-reduce", reduction_name(met)))
