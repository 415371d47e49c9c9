"""Stores what a bench of inference measured: a run for each model as it was served."""

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from accel_engine import clock
from accel_engine.events import Outcome, RunEnded, RunStarted, Warned
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.comparison import choose_model
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.runs.creation import create_bench
from accel_engine.run.store.series_names import BATCH_SIZE
from accel_engine.run.writing.writer import RunWriter

_ORDER = ("p99", "p50", "p90", "p999")
"""The percentiles in the order of their charts."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """A candidate, and when it was measured, in seconds since the Unix epoch."""

    candidate: Candidate
    began: float
    ended: float


class BenchRuns:
    """Collects measured candidates, and writes each setup as an ended run.

    The values of such a run are by batch size instead of by step: a row for each, by rising size.

    Args:
        options: How they are measured.
    """

    def __init__(self, options: BenchOptions) -> None:
        self._options = options
        self._setups: list[list[_Measured]] = []

    def add(self, candidate: Candidate) -> None:
        """Add a candidate that has just been measured."""
        ended = clock.now()
        began = min(candidate.began or ended, ended)  # each process reads the wall clock once, and may differ
        if not self._setups or not _continues(self._setups[-1], candidate):
            self._setups.append([])
        self._setups[-1].append(_Measured(candidate, began, ended))

    def save(self) -> tuple[str, ...]:
        """Write the runs of which something could be measured, and forget all.

        Returns:
            Their ids, in the order in which they were measured.

        Raises:
            RunError: A run cannot be written.
        """
        setups, self._setups = self._setups, []
        measured = [setup for setup in setups if not all(each.candidate.problem for each in setup)]
        return tuple(_write(setup, self._options) for setup in measured)


def _continues(setup: Sequence[_Measured], candidate: Candidate) -> bool:
    """Whether a candidate is another batch size of a setup, and not of another model of the same name."""
    is_new_size = all(each.candidate.batch_size != candidate.batch_size for each in setup)
    return is_new_size and setup[-1].candidate.setup == candidate.setup


def _write(setup: Sequence[_Measured], options: BenchOptions) -> str:
    """Write a run; its id."""
    served, scenario = setup[0].candidate.setup, setup[0].candidate.scenario
    values = _described(served, scenario, options)
    began, ended = setup[0].began, setup[-1].ended
    with (
        create_bench(values, scenario, began) as directory,
        WriterLock(directory.parent),
        closing(RunWriter(directory)) as writer,
    ):
        writer.write_event(_start(directory.name, values, began))
        rows = [each for each in setup if not each.candidate.problem]
        for row, each in enumerate(sorted(rows, key=lambda each: each.candidate.batch_size)):
            series = {name: [value] for name, value in figures(each.candidate).items()}
            writer.write_chunk(row, each.began, each.ended, series)
        for each in setup:
            if problem := _problem(each.candidate):
                writer.write_event(Warned(time=each.ended, message=problem))
        writer.write_event(_end([each.candidate for each in rows], options, ended, ended - began))
    return directory.name


def _start(run: str, values: Mapping[str, Any], began: float) -> RunStarted:
    return RunStarted(
        time=began,
        run=run,
        name=values["name"],
        plan=dict(values),
        first_step=0,
        pid=os.getpid(),
        host=socket.gethostname(),
        versions={},
    )


def _described(setup: Setup, scenario: str, options: BenchOptions) -> dict[str, Any]:
    """The model, and how it was measured; what was left to the program is left out."""
    known = {
        "model": setup.model,
        "data": options.data,
        "name": setup.title,
        "format": setup.format,
        "device": setup.device,
        "precision": setup.precision,
        "xla": "on" if setup.xla else "off",
        "scenario": scenario,
        "checkpoint": options.checkpoint if options.checkpoint != "auto" else "",
        "target_latency": options.target_latency,
        "seconds": options.seconds,
    }
    return {name: value for name, value in known.items() if value not in ("", None)}


def figures(candidate: Candidate) -> dict[str, float]:
    """The figures of a candidate by the name of their series; without those that were not measured.

    Latencies are in seconds, memory is in bytes, energy in joules per example, and the throughput in examples per
    second, or requests in the scenario server.
    """
    p99 = candidate.percentiles.get("p99")
    found = {
        BATCH_SIZE: float(candidate.batch_size),
        "throughput": candidate.throughput,
        **{name: candidate.percentiles[name].value for name in _ORDER if name in candidate.percentiles},
        "memory": candidate.memory,
        "energy": candidate.energy,
        "first_seconds": candidate.first_seconds,
        "p99_low": p99.low if p99 else None,
        "p99_high": p99.high if p99 else None,
        "disagreement": candidate.disagreement,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _of_all_sizes(candidate: Candidate) -> dict[str, float]:
    """Values that do not depend on the batch size: how long the file took to load, its bytes, and the metrics."""
    known = {"load_seconds": candidate.load_seconds, "size": candidate.size or None}
    metrics = candidate.metrics.values if candidate.metrics else {}
    return {name: float(value) for name, value in (known | dict(metrics)).items() if value is not None}


def _problem(candidate: Candidate) -> str:
    """Why a batch size could not be measured, or not well."""
    if candidate.problem:
        return f"batch {candidate.batch_size}: {candidate.problem}"
    if candidate.instability:
        return f"batch {candidate.batch_size} was not stable within the time limit: {candidate.instability}"
    return ""


def _end(candidates: Sequence[Candidate], options: BenchOptions, ended: float, seconds: float) -> RunEnded:
    """The end, with the figures of the best batch size."""
    found = choose_model(candidates, options.target_latency, None)
    chosen = found.best or found.fastest or candidates[0]
    return RunEnded(
        time=ended,
        outcome=Outcome.FINISHED,
        steps=len(candidates),
        epochs=0,
        seconds=seconds,
        metrics=figures(chosen) | _of_all_sizes(chosen),
        reason="" if found.best else "no batch size is within the target latency",
    )
