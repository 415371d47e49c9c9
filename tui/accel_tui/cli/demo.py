"""``accel-tui demo``: trains the same model on each device and strategy and shows the speed-up."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

import click

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError
from accel_engine.events import RunEnded
from accel_engine.launch import engine_process
from accel_engine.run import Chunk, RunReader, Status, create, request
from accel_engine.run.annotations import set_tags
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli.finite_number import FiniteNumber
from accel_tui.cli.output import write, write_json
from accel_tui.cli.progress import Bar, Line
from accel_tui.formatting import numbers
from accel_tui.plan import demo_stages
from accel_tui.plan.demo_stages import TAG, WARM_UP, Agreement, DemoResult, DemoStage

EPILOG = """\b
Examples:
  accel-tui demo
  accel-tui demo --seconds 30
  accel-tui demo --json | jq -s 'map({act, speedup})'
"""

INTERVAL = 0.1
"""Seconds between two polls of the run."""

MIN_SECONDS = 3.0
"""The minimum seconds that each stage trains after its warm-up."""

START_TIMEOUT = 60.0
"""Seconds beyond its share after which a stage without a step is cancelled."""

OVERRUN = 1.5
"""The factor of the requested duration after which no further stage starts."""

EXIT_SECONDS = 10.0
"""Seconds to wait for an engine to stop."""

INTERRUPTED = 130


@click.command(epilog=EPILOG)
@click.option(
    "--seconds",
    metavar="X",
    type=FiniteNumber(min=1),
    default=120.0,
    help="Approximate duration.  [default: 120]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per configuration.")
def demo(seconds: float, as_json: bool) -> int:
    """Measure the speed-up of this machine's devices and strategies in about two minutes.

    The same model is trained on each available device and strategy, one after the other. Bars then compare their
    steps per second, without the warm-up. Ctrl-C stops the demo and shows the results so far. The runs are kept,
    tagged demo.
    """
    engine_process.require_installation()
    devices = detect().devices
    stages = demo_stages.stages(devices)
    show = _discard if as_json else write
    for line in _announcement(devices, stages, seconds):
        show(line)
    results: list[DemoResult] = []
    bar_of = _stage_bars(sys.stdout) if not as_json and sys.stdout.isatty() else None
    deadline = time.monotonic() + seconds
    with _interruptible() as interrupted:
        for index, stage in enumerate(stages):
            if results and time.monotonic() - deadline > (OVERRUN - 1) * seconds:  # used up by the starts
                break
            title = f"{index + 1}/{len(stages)} {stage.title}"
            share = max(deadline - time.monotonic(), 0.0) / (len(stages) - index)
            minimum = min(MIN_SECONDS, seconds / len(stages))
            result = _train_stage(stage, share, minimum, bar_of and bar_of(title), interrupted)
            if interrupted.is_set():
                break
            results.append(result)
            show(f"{title}: {_format_result(result)}")
    if as_json:
        write_json(*_to_json(results))
    else:
        reason = "interrupted" if interrupted.is_set() else f"{seconds:g} s were too short"
        for line in _summary(stages, results, reason):
            write(line)
    return INTERRUPTED if interrupted.is_set() else int(not any(result.rate for result in results))


@dataclass(slots=True)
class _RunRecord:
    """The chunks and the end of the run of a stage."""

    chunks: list[Chunk] = field(default_factory=list)
    ended: RunEnded | None = None

    def result(self, stage: DemoStage, run: str, status: Status) -> DemoResult:
        rate, seconds = demo_stages.rate(self.chunks)
        accuracies = [float(value) for chunk in self.chunks for value in chunk.series.get("accuracy", ())]
        problem = ""
        if status in (Status.FAILED, Status.LOST):
            rate, problem = None, f"failed: {self.ended.reason}" if self.ended else "the engine exited unexpectedly"
        elif rate is None:
            problem = "no steps in time" if not self.chunks else "too short to measure"
        return DemoResult(stage, run, rate, seconds, accuracies, problem)


def _train_stage(
    stage: DemoStage, share: float, minimum: float, bar: "_StageBar | None", interrupted: threading.Event
) -> DemoResult:
    """Train a stage for its share of the time, at least ``minimum`` seconds after its warm-up unless interrupted."""
    directory = create(stage.plan)
    set_tags(directory, [TAG])
    record, started = _RunRecord(), time.monotonic()
    with closing(RunReader(directory)) as reader, _running_engine(stage, directory):
        first_chunk, stop_requested = 0.0, 0.0
        while True:
            info = reader.info()  # before the poll, so that the last events are not missed
            update = reader.poll()
            record.chunks += update.chunks
            record.ended = next((event for event in update.events if isinstance(event, RunEnded)), record.ended)
            if bar:
                bar.share = (time.monotonic() - started) / max(share, 1e-9)
                bar.show(update)
            now = time.monotonic()
            if not info.status.live or (stop_requested and now - stop_requested > EXIT_SECONDS):
                break
            first_chunk = first_chunk or (now if record.chunks else 0.0)
            warmed_up = first_chunk + WARM_UP + minimum
            due = max(started + share, warmed_up) if first_chunk else started + share + START_TIMEOUT
            if (now > due or interrupted.is_set()) and not stop_requested:
                with suppress(RunError):  # it has just ended
                    request(directory, "stop_now")
                stop_requested = now
            time.sleep(INTERVAL)
    if bar:
        bar.clear()
    return record.result(stage, directory.name, info.status)


@contextmanager
def _running_engine(stage: DemoStage, directory: Any) -> Iterator[None]:
    """Start an engine and make sure that it has exited afterwards, which frees the devices."""
    engine = engine_process.start(directory, stage.environment)
    try:
        yield
    finally:
        with suppress(RunError):
            request(directory, "stop_now")
        try:
            engine.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set; they raise no exception, so that no engine is left behind."""
    interrupted = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(each, lambda *_: interrupted.set()) for each in signals]
    try:
        yield interrupted
    finally:
        for each, handler in zip(signals, previous, strict=True):
            signal.signal(each, handler)


class _StageBar(Bar):
    """Shows the progress of a stage in one line.

    Attributes:
        share: The elapsed share of its time, from 0 to 1.
    """

    share = 0.0

    def __init__(self, stream: TextIO, width: Callable[[], int], title: str) -> None:
        super().__init__(stream, width)
        self._title = title

    def _put(self, lines: Sequence[Line]) -> None:  # noqa: ARG002 (events are not shown here)
        self._redraw((), self._bar())

    def _bar(self) -> str:
        state, width = self.state, self._width() - 3
        parts = [self._title]
        if state.steps_per_second:
            parts.append(f"{numbers.compact(state.steps_per_second)} steps/s")
            if curve := state.curves.get("accuracy"):
                parts.append(f"accuracy {numbers.metric(curve.last_value)}")
        elif state.phase:
            parts.append(str(state.phase.phase))
        bar_width = max(min(width - 62, 40), 4)
        return f"{self._render_bar(self.share, bar_width)}  {'  '.join(parts)[: width - bar_width - 2]}"


def _stage_bars(stream: TextIO) -> Callable[[str], _StageBar]:
    return lambda title: _StageBar(stream, lambda: shutil.get_terminal_size().columns, title)


def _discard(_: str) -> None:
    """Print nothing."""


def _announcement(devices: Sequence[Device], stages: Sequence[DemoStage], seconds: float) -> Iterator[str]:
    plan = stages[0].plan
    yield textwrap.fill(
        f"Training {plan.model} on {plan.data.partition(':')[0]} images, batch size {plan.batch_size}, in "
        f"{len(stages)} configurations for about {seconds:.0f} s in total:",
        _width(),
    )
    for index, stage in enumerate(stages, 1):
        yield f"  {index} {stage.title}"
    if all(device.kind == "cpu" for device in devices):
        yield textwrap.fill(
            "No GPU or TPU was found (accel-tui doctor gives the cause): all configurations use the CPU.", _width()
        )
    yield "Press Ctrl-C to stop and show the results so far.\n"


def _width() -> int:
    """The maximum width of lines in columns."""
    return min(shutil.get_terminal_size((80, 24)).columns, 120)


def _format_result(result: DemoResult) -> str:
    if result.rate is None:
        return result.problem
    run = result.run.partition("-")[0]  # is unique, and keeps the line short
    return f"{numbers.compact(result.rate)} steps/s over {result.seconds:.1f} s (run {run})"


def _summary(stages: Sequence[DemoStage], results: Sequence[DemoResult], reason: str) -> Iterator[str]:
    """The bars, their explanation, and the stages that are missing."""
    if not any(result.rate for result in results):
        yield "\nNothing was measured."
        return
    first = next(result for result in results if result.rate)
    full = "\u2588" if has_unicode(os.environ, sys.stdout.encoding or "") else "#"
    yield ""
    width = _width()
    yield from demo_stages.bars(results, width, full)
    text = (
        f"Steps per second with a global batch size of {first.stage.plan.batch_size}, without the first {WARM_UP:g} s. "
        f"The last column is the speed-up over '{first.stage.title}'."
    )
    yield f"\n{textwrap.fill(text, width)}"
    for line in demo_stages.drawbacks(results):
        yield textwrap.fill(f"{line}.", width)
    if len(results) < len(stages):
        missing = ", ".join(stage.title for stage in stages[len(results) :])
        yield textwrap.fill(f"Not measured: {missing} ({reason}).", width)
    found = demo_stages.agreement(results)
    if found is None:
        yield "Too few steps to compare accuracies."
    else:
        yield textwrap.fill(_format_agreement(found), width)
    yield f"The runs are tagged {TAG}: accel-tui runs --filter tag:{TAG}"


def _format_agreement(found: Agreement) -> str:
    low, high = (select(found.accuracies, key=found.accuracies.__getitem__) for select in (min, max))
    lead = f"Training accuracy after {found.steps:,} steps, mean of the last {found.window}:"
    if found.accuracies[low] == found.accuracies[high]:
        return f"{lead} {found.accuracies[low]:.3f} for all configurations."
    span = f"{found.accuracies[low]:.3f} ({low}) to {found.accuracies[high]:.3f} ({high})"
    return f"{lead} {span}: {'equal' if found.agree else 'different'} within {demo_stages.TOLERANCE}."


def _to_json(results: Sequence[DemoResult]) -> Iterator[dict[str, Any]]:
    base = next((result.rate for result in results if result.rate), None)
    found = demo_stages.agreement(results)
    for result in results:
        yield {
            "act": result.stage.title,
            "run": result.run,
            "steps_per_second": result.rate,
            "seconds": round(result.seconds, 3),
            "speedup": result.rate / base if result.rate and base else None,
            "accuracy": found.accuracies.get(result.stage.title) if found else None,
            "accuracy_steps": found.steps if found else None,
            "problem": result.problem,
            "plan": result.stage.plan.changed(),
            "environment": dict(result.stage.environment),
        }
