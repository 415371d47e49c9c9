"""Measures the inference of trained models in a separate engine process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from accel_engine.data.data_options import no_progress
from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.live_window import LiveWindow
from accel_engine.inference.origin import origin_of
from accel_engine.plan import Plan
from accel_engine.process.engine_query import ON_THE_CPU, EngineQuery
from accel_engine.process.model_query import described
from accel_engine.requests.model_names import distinct_names
from accel_engine.run import runs_directory
from accel_engine.run.store.connection import DATABASE
from accel_engine.user_paths import is_file

_WITHOUT_TPU = {"TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide TPUs, on which models are not measured."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model in a file or directory, as it is served.

    Attributes:
        path: The file or directory.
    """

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """How models are measured.

    Attributes:
        data: Other data than that of the runs; that of files, whose examples are random without.
        split: ``test``, ``validation`` or ``training``; ``auto`` is ``test`` where there are such examples.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for runs that restore their best weights.
        scenario: One of :data:`accel_engine.inference.candidate.SCENARIOS`.
        batch_sizes: What is measured; ``None`` for 1, 2, 4 and so on until the throughput stops growing.
        seconds: Time limit of a measurement.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.
        devices: Such as ``cpu`` or ``gpu:0``; empty for all.
        precisions: Keras' dtype policies; empty for those that fit the device.
        xla: Whether XLA compiles the model: both, one after the other, by default.
        seed: Of random examples and arrivals.
        metrics: Whether metrics are computed, where the data of a model is known.
    """

    data: str = ""
    split: str = "auto"
    checkpoint: str = "auto"
    scenario: str = "multi-stream"
    batch_sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    target_latency: float | None = None
    devices: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    xla: tuple[bool, ...] = (False, True)
    seed: int = 0
    metrics: bool = True


class InferenceBench:
    """Measures models, each in a process of its own.

    TensorFlow does not give back the memory of a model, and uses it for the next.

    Args:
        models: Directories of runs, plans with the file of a model and its data, or files of models without data.
        options: How.

    Raises:
        RunError: A run has no checkpoint.
    """

    def __init__(self, models: Sequence[Path | Plan | ModelFile], options: BenchOptions) -> None:
        names = distinct_names(list(map(_path, models)))
        self._asked = [{**_described(each), "name": name} for each, name in zip(models, names, strict=True)]
        self._options = options
        self._query: EngineQuery | None = None
        self._notes: dict[str, None] = {}
        self._is_cancelled = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user so far, also after an error."""
        return tuple(self._notes)

    def measure(
        self,
        on_candidate: Callable[[Candidate], object],
        on_progress: Callable[[int, int], object] = no_progress,
        on_live: Callable[[LiveWindow], object] | None = None,
    ) -> tuple[str, ...]:
        """Measure. Takes at least as long as importing TensorFlow, for each model.

        Args:
            on_candidate: Called with each candidate when it has been measured.
            on_progress: Called now and then with the number of examples read, and of all (0 if unknown).
            on_live: Called with what has been measured of a candidate so far.

        Returns:
            Warnings for the user; of what was measured before, if it is cancelled.

        Raises:
            EngineMissingError: No usable TensorFlow is installed.
            RunError: A model cannot be measured; why.
        """
        found = self._metrics(on_progress) if self._options.metrics else [{} for _ in self._asked]
        for model, metrics in zip(self._asked, found, strict=True):
            take = partial(_take, metrics, on_candidate, on_live)
            reply = self._answer("--bench", [model], on_progress, take, is_live=on_live is not None)
            if reply is None:
                break
            self._notes.update(dict.fromkeys(reply["notes"]))
        return self.notes

    def _metrics(self, on_progress: Callable[[int, int], object]) -> list[dict[str, Any]]:
        """The metrics of each model by precision, where its data is known, from a process of their own.

        They are computed before anything is measured, so that they take no memory of what is.
        """
        nothing: list[dict[str, Any]] = [{} for _ in self._asked]
        asked = _with_runs(self._asked)
        if not any(model.keys() & {"directory", "plan"} for model in asked):
            return nothing
        try:
            reply = self._answer("--held-out-metrics", asked, on_progress)
        except RunError as error:
            self._notes[f"no metrics: {error}"] = None
            return nothing
        if reply is None:
            return nothing
        self._notes.update(dict.fromkeys(reply["notes"]))
        found: list[dict[str, Any]] = reply["models"]
        return found

    def _answer(
        self,
        argument: str,
        models: Sequence[Mapping[str, Any]],
        on_progress: Callable[[int, int], object],
        on_part: Callable[[dict[str, Any]], object] = lambda _: None,
        *,
        is_live: bool = False,
    ) -> dict[str, Any] | None:
        """The answer of a new process; ``None`` once cancelled."""
        options = self._options
        on_cpu = bool(options.devices) and all(each.startswith("cpu") for each in options.devices)
        request = {"models": models, **asdict(options), "live": is_live}
        with EngineQuery((argument,), request, ON_THE_CPU if on_cpu else _WITHOUT_TPU) as self._query:
            return None if self._is_cancelled else self._query.answer(on_progress, on_part=on_part)

    def cancel(self) -> None:
        """Kill the process and start no other, from any thread; a waiting :meth:`measure` raises."""
        self._is_cancelled = True
        if self._query:
            self._query.cancel()


def bench(
    models: Sequence[Path | Plan | ModelFile],
    options: BenchOptions,
    on_candidate: Callable[[Candidate], object],
    on_progress: Callable[[int, int], object] = no_progress,
) -> tuple[str, ...]:
    """Measure models; see :class:`InferenceBench`."""
    return InferenceBench(models, options).measure(on_candidate, on_progress)


def _path(model: Path | Plan | ModelFile) -> Path:
    """The directory of a run, or the file of a model."""
    if isinstance(model, Plan):
        return Path(model.model)
    return model.path if isinstance(model, ModelFile) else model


def _described(model: Path | Plan | ModelFile) -> dict[str, Any]:
    return {"file": str(model.path)} if isinstance(model, ModelFile) else described(model)


def _take(
    metrics: Mapping[str, Any],
    on_candidate: Callable[[Candidate], object],
    on_live: Callable[[LiveWindow], object] | None,
    part: dict[str, Any],
) -> None:
    """Take a part of an answer: a candidate, which gets its metrics, or what has been measured of one so far."""
    if "window" not in part:
        on_candidate(Candidate.from_values({**part, "metrics": metrics.get(part["precision"])}))
    elif on_live:
        on_live(LiveWindow.from_values(part["window"]))


def _with_runs(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The models, each file with the directory of the run that it was exported from.

    Where a file does not tell, or its run is not there, it is that of the first model with one, and ``is_foreign`` is
    true.
    """
    named = {Path(model["directory"]).name: model["directory"] for model in models if "directory" in model}
    found = [dict(model) if "file" not in model else {**model, **_origin(model["file"], named)} for model in models]
    first = [{"directory": model["directory"]} for model in found if "directory" in model][:1]
    foreign = {**first[0], "is_foreign": True} if first else {}
    return [model if model.keys() & {"directory", "plan"} else {**model, **foreign} for model in found]


def _origin(file: str, named: Mapping[str, str]) -> dict[str, str]:
    """The directory of a file's run: one of those that are measured, by id, or of all runs; nothing if unknown."""
    name = origin_of(Path(file))
    if name in named:
        return {"directory": named[name]}
    directory = runs_directory() / name
    return {"directory": str(directory)} if name and is_file(directory / DATABASE) else {}
