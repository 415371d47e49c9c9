"""What the plan came to."""

import textwrap
import time
from collections.abc import Iterator

from textual.content import Content

from accel_engine.events import DevicesFound, ModelBuilt, WorkCounted, XlaTried
from accel_tui.formatting import figures, units
from accel_tui.run.state import RunState
from accel_tui.run.worker_follower import means_of, whereabouts
from accel_tui.widgets.run.run_text import RunText

_LABEL, _VALUE = 15, 26
"""Cells of the two columns, which together are what the screen of a run has room for beside its charts."""


class RunDetails(RunText):
    """A table of what is trained, on what, and how."""

    DEFAULT_CSS = """
    RunDetails {
        height: auto;
    }
    """

    def parts(self, state: RunState) -> tuple[object, ...]:
        """What is told."""
        tried = (state.xla, state.micro_batches)
        rare = (state.info, state.built, *tried, state.work, state.devices, state.met, state.checkpoint)
        return *rare, _learning_rate(state)

    def words(self, state: RunState) -> Content:
        """A line for each fact that is known."""
        facts: list[tuple[str, str]] = []
        if state.info and state.info.script:
            facts.append(("script", f"{state.info.script} (it alone can save or resume)"))
        if built := state.built:
            facts += _model(built, state)
        if state.work:
            facts += _work(state.work)
        if rate := _learning_rate(state):
            facts.append(("learning rate", rate))
        if state.devices:
            facts += _devices(state, state.devices)
        if met := state.met:
            facts += [("workers", whereabouts(met)), ("gradients", f"summed by {means_of(met)}")]
        if saved := state.checkpoint:
            at = time.strftime("%H:%M:%S", time.localtime(saved.time))
            facts.append(("checkpoint", f"step {saved.step:,} at {at}"))
        if not facts:
            return Content.styled("the model is not built yet", "$text-muted")
        return Content("\n").join(
            Content.assemble((f"{label if first else '':<{_LABEL}}", "$text-muted"), line)
            for label, value in facts
            for first, line in _lines(value)
        )


def _lines(value: str) -> Iterator[tuple[bool, str]]:
    """The lines of a value, which stay beside its label, and whether each is the first."""
    for number, line in enumerate(textwrap.wrap(value, _VALUE) or [""]):
        yield not number, line


def _model(built: ModelBuilt, state: RunState) -> list[tuple[str, str]]:
    batch = f"{built.global_batch:,}" if built.global_batch else ""
    if built.replicas > 1 and batch:
        batch += f" = {built.replicas} × {built.per_replica_batch:,}"  # noqa: RUF001
    facts = [
        ("parameters", _parameters(built)),
        ("data", _data(built)),
        ("scaling", built.scaling),
        ("classes", f"{built.classes:,}" if built.classes else ""),
        ("batch", batch),
        ("micro-batches", _micro_batches(state)),
        ("precision", built.precision),
        ("feed", f"{built.feed} data"),
        ("XLA", _xla(built, state.xla)),
        ("optimizer", built.optimizer),
    ]
    if built.dropped_examples:
        facts.insert(6, ("left out", f"{built.dropped_examples:,} examples an epoch"))
    return [(label, value) for label, value in facts if value]  # of a script's run some are not known


def _learning_rate(state: RunState) -> str:
    """That of the latest step, and what it follows."""
    if state.learning_rate is None:
        return ""
    return ", ".join(filter(None, (figures.learning_rate(state.learning_rate), state.schedule)))


def _parameters(built: ModelBuilt) -> str:
    """How many there are, and in how many layers; a script's model may not be built."""
    layers = f" in {built.layers} layers" if built.layers is not None else ""
    return ("unknown" if built.parameters is None else f"{built.parameters:,}") + layers


def _data(built: ModelBuilt) -> str:
    parts = [
        f"{built.examples:,}" if built.examples else "",
        units.shape(built.input_shape) if built.input_shape else "",
    ]
    return " of ".join(filter(None, parts))


def _xla(built: ModelBuilt, tried: XlaTried | None) -> str:
    """Whether XLA compiles the step, and in steps a second what it was tried against."""
    if tried is None and built.xla is None:
        return ""
    if tried is None:
        return "on" if built.xla else "off"
    slower, faster = sorted((tried.plain, tried.compiled))
    return f"{'on' if tried.xla else 'off'}: {figures.compact(faster)} over {figures.compact(slower)}/s"


def _micro_batches(state: RunState) -> str:
    """How many there are in a batch, and both rates where that was tried; nothing where none were asked for."""
    if tried := state.micro_batches:
        whole, split = (f"{figures.compact(rate)}/s" for rate in (tried.whole, tried.split))
        taken = tried.micro_batches > 1
        return f"{tried.tried}: {split}, whole {whole}" if taken else f"none: {whole}, in {tried.tried} {split}"
    asked = state.info.values.get("micro_batches") if state.info else None
    return str(asked or "")


def _work(work: WorkCounted) -> list[tuple[str, str]]:
    """What a step computes, and what the devices could; or why that is not known."""
    if work.flops is None:
        return [("operations", f"not counted: {work.reason}")]
    peak = work.reason if work.peak is None else f"{units.flops(work.peak)}/s, {work.source}"
    return [("operations", f"{units.flops(work.flops)} a step"), ("peak", peak)]


def _devices(state: RunState, found: DevicesFound) -> list[tuple[str, str]]:
    names = ", ".join(device["name"] for device in found.devices)
    strategy = str(state.info.values.get("strategy", "")) if state.info else ""
    facts = [("strategy", strategy), ("devices", names)]
    return [*facts, ("at", found.address)] if found.address else facts
