"""``accel-tui demo``: the same model on each device and strategy that is there, and the speed-up as bars."""

import json
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

from accel_engine import launch
from accel_engine.devices import detect
from accel_engine.devices.reading import Device
from accel_engine.errors import EngineMissingError, RunError
from accel_engine.events import RunEnded
from accel_engine.run import Chunk, RunReader, Status, create, request
from accel_engine.run.annotations import set_tags
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli.output import write
from accel_tui.cli.progress import Bar, Line
from accel_tui.formatting import figures
from accel_tui.plan import demo_stages
from accel_tui.plan.demo_stages import TAG, WARM_UP, Agreement, DemoResult, DemoStage

EPILOG = """\b
Examples:
  accel-tui demo
  accel-tui demo --seconds 30
  accel-tui demo --json | jq -s 'map({act, speedup})'
"""

INTERVAL = 0.1
"""Seconds between two looks at the run."""

LEAST = 3.0
"""Seconds that each act trains at least after its warm-up, however long its start took."""

PATIENCE = 60.0
"""Seconds beyond its share after which an act is given up that has taken no step."""

GRACE = 1.5
"""How many times as long as it may take is taken before no further act is begun."""

LEAVING_SECONDS = 10.0
"""How long an engine that was told to stop is waited for."""

INTERRUPTED = 130


@click.command(epilog=EPILOG)
@click.option(
    "--seconds",
    metavar="X",
    type=click.FloatRange(min=1),
    default=120.0,
    help="How long it may take, about.  [default: 120]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output, one for each way.")
def demo(seconds: float, as_json: bool) -> int:
    """Show in about two minutes what acceleration does on this machine.

    The same model is trained on each device and with each strategy that is there, one after the other, by real
    engines; then bars show how many steps a second each of them took, without the warm-up. Ctrl-C ends it at any time
    and shows what is done. The runs are kept, with the tag demo.
    """
    if problem := launch.find_installation().problem:
        raise EngineMissingError(problem)
    devices = detect().devices
    acts = demo_stages.acts(devices)
    show = _nothing if as_json else write
    for line in _announcement(devices, acts, seconds):
        show(line)
    results: list[DemoResult] = []
    stage_of = _stages(sys.stdout) if not as_json and sys.stdout.isatty() else None
    deadline = time.monotonic() + seconds
    with _interruptible() as interrupted:
        for index, act in enumerate(acts):
            if results and time.monotonic() - deadline > (GRACE - 1) * seconds:  # starts took all of it
                break
            title = f"{index + 1}/{len(acts)} {act.title}"
            share = max(deadline - time.monotonic(), 0.0) / (len(acts) - index)
            least = min(LEAST, seconds / len(acts))
            result = _perform(act, share, least, stage_of and stage_of(title), interrupted)
            if interrupted.is_set():
                break
            results.append(result)
            show(f"{title}: {_said(result)}")
    if as_json:
        for entry in _wire(results):
            write(json.dumps(entry))
    else:
        for line in _ending(acts, results, "interrupted" if interrupted.is_set() else f"{seconds:g} s were too few"):
            write(line)
    return INTERRUPTED if interrupted.is_set() else int(not any(result.rate for result in results))


@dataclass(slots=True)
class _Watch:
    """What is known of the run that trains."""

    chunks: list[Chunk] = field(default_factory=list)
    ended: RunEnded | None = None

    def result(self, act: DemoStage, run: str, status: Status) -> DemoResult:
        rate, seconds = demo_stages.rate(self.chunks)
        accuracies = [float(value) for chunk in self.chunks for value in chunk.series.get("accuracy", ())]
        problem = ""
        if status in (Status.FAILED, Status.LOST):
            rate, problem = None, f"failed: {self.ended.reason}" if self.ended else "its engine died"
        elif rate is None:
            problem = "took no step in time" if not self.chunks else "was not measured: too short"
        return DemoResult(act, run, rate, seconds, accuracies, problem)


def _perform(
    act: DemoStage, share: float, least: float, stage: "_Stage | None", interrupted: threading.Event
) -> DemoResult:
    """Train an act for its share of the time, but for ``least`` seconds after its warm-up unless it is interrupted."""
    directory = create(act.plan)
    set_tags(directory, [TAG])
    watch, began = _Watch(), time.monotonic()
    with closing(RunReader(directory)) as reader, _running(act, directory):
        first, asked = 0.0, 0.0
        while True:
            info = reader.info()  # before the news, so that the last of them are not missed
            update = reader.poll()
            watch.chunks += update.chunks
            watch.ended = next((event for event in update.events if isinstance(event, RunEnded)), watch.ended)
            if stage:
                stage.share = (time.monotonic() - began) / max(share, 1e-9)
                stage.show(update)
            now = time.monotonic()
            if not info.status.live or (asked and now - asked > LEAVING_SECONDS):
                break
            first = first or (now if watch.chunks else 0.0)
            due = max(began + share, first + WARM_UP + least) if first else began + share + PATIENCE
            if (now > due or interrupted.is_set()) and not asked:
                with suppress(RunError):  # it has ended meanwhile
                    request(directory, "stop_now")
                asked = now
            time.sleep(INTERVAL)
    if stage:
        stage.clear()
    return watch.result(act, directory.name, info.status)


@contextmanager
def _running(act: DemoStage, directory: Any) -> Iterator[None]:
    """An engine that trains, and that is gone afterwards, so that the next has the devices to itself."""
    engine = launch.start(directory, act.environment)
    try:
        yield
    finally:
        with suppress(RunError):
            request(directory, "stop_now")
        try:
            engine.wait(LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """What is set by Ctrl-C, TERM and a hang-up, which raise nothing: no engine is to be forgotten half started."""
    interrupted = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, lambda *_: interrupted.set()) for each in numbers]
    try:
        yield interrupted
    finally:
        for each, handler in zip(numbers, before, strict=True):
            signal.signal(each, handler)


class _Stage(Bar):
    """Shows the run that trains in one line of a terminal.

    Attributes:
        share: How much of its time is over, from 0 to 1.
    """

    share = 0.0

    def __init__(self, stream: TextIO, width: Callable[[], int], title: str) -> None:
        super().__init__(stream, width)
        self._title = title

    def _put(self, lines: Sequence[Line]) -> None:  # noqa: ARG002 (what happens is not worth a line here)
        self._redraw((), self._bar())

    def _bar(self) -> str:
        state, width = self.state, self._width() - 3
        parts = [self._title]
        if state.rate:
            parts.append(f"{figures.compact(state.rate)} steps/s")
            if curve := state.curves.get("accuracy"):
                parts.append(f"accuracy {figures.metric(curve.last)}")
        elif state.phase:
            parts.append(str(state.phase.phase))
        room = max(min(width - 62, 40), 4)
        return f"{self._render_bar(self.share, room)}  {'  '.join(parts)[: width - room - 2]}"


def _stages(stream: TextIO) -> Callable[[str], _Stage]:
    return lambda title: _Stage(stream, lambda: shutil.get_terminal_size().columns, title)


def _nothing(_: str) -> None:
    """Say nothing."""


def _announcement(devices: Sequence[Device], acts: Sequence[DemoStage], seconds: float) -> Iterator[str]:
    plan = acts[0].plan
    yield textwrap.fill(
        f"{plan.model} learns {plan.data.partition(':')[0]} images, {plan.batch_size} a step, in {len(acts)} ways, one "
        f"after the other, for about {seconds:.0f} s in all:",
        _width(),
    )
    for index, act in enumerate(acts, 1):
        yield f"  {index} {act.title}"
    if all(device.kind == "cpu" for device in devices):
        yield textwrap.fill(
            "No GPU or TPU was found here (accel-tui doctor says why): all are ways of the CPU.", _width()
        )
    yield "Ctrl-C ends it and shows what is done.\n"


def _width() -> int:
    """The columns that lines may take."""
    return min(shutil.get_terminal_size((80, 24)).columns, 120)


def _said(result: DemoResult) -> str:
    if result.rate is None:
        return result.problem
    run = result.run.partition("-")[0]  # which names it as well, and leaves the line as short as a terminal
    return f"{result.rate:,.1f} steps/s over {result.seconds:.1f} s (run {run})"


def _ending(acts: Sequence[DemoStage], results: Sequence[DemoResult], why: str) -> Iterator[str]:
    """The bars, what they mean, and why some are missing where they are."""
    if not any(result.rate for result in results):
        yield "\nNothing was measured."
        return
    first = next(result for result in results if result.rate)
    full = "\u2588" if has_unicode(os.environ, sys.stdout.encoding or "") else "#"
    yield ""
    width = _width()
    yield from demo_stages.bars(results, width, full)
    words = (
        f"Steps a second of the same model on the same data, {first.act.plan.batch_size} examples a step over all "
        f"devices, as measured here and now; the first {WARM_UP:g} s of training are left out. "
        f"The last column is the speed-up over '{first.act.title}'."
    )
    yield f"\n{textwrap.fill(words, width)}"
    if len(results) < len(acts):
        yield textwrap.fill(f"Not measured: {', '.join(act.title for act in acts[len(results) :])} ({why}).", width)
    found = demo_stages.agreement(results)
    if found is None:
        yield "There are too few steps to compare what was learned."
    else:
        yield textwrap.fill(_agreed(found), width)
    yield f"The runs are kept, with the tag {TAG}: accel-tui runs"


def _agreed(found: Agreement) -> str:
    low, high = (choose(found.accuracies, key=found.accuracies.__getitem__) for choose in (min, max))
    lead = f"Each has taken {found.steps:,} steps; the training accuracy of the last {found.window} of these is"
    if found.accuracies[low] == found.accuracies[high]:
        return f"{lead} {found.accuracies[low]:.3f} for all."
    span = f"{found.accuracies[low]:.3f} ({low}) to {found.accuracies[high]:.3f} ({high})"
    return f"{lead} {span}: {'the same' if found.alike else 'not the same'} within {demo_stages.ALIKE}."


def _wire(results: Sequence[DemoResult]) -> Iterator[dict[str, Any]]:
    base = next((result.rate for result in results if result.rate), None)
    found = demo_stages.agreement(results)
    for result in results:
        yield {
            "act": result.act.title,
            "run": result.run,
            "steps_per_second": result.rate,
            "seconds": round(result.seconds, 3),
            "speedup": result.rate / base if result.rate and base else None,
            "accuracy": found.accuracies.get(result.act.title) if found else None,
            "accuracy_steps": found.steps if found else None,
            "problem": result.problem,
            "plan": result.act.plan.changed(),
            "environment": dict(result.act.environment),
        }
