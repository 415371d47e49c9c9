"""Measures the inference of trained models in engine processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate, HeldOutMetrics
from accel_engine.inference.origin import origin_of
from accel_engine.plan import Plan
from accel_engine.process.engine_call import EngineCall, warm_kept_engine
from accel_engine.requests.bench_models import BenchedModel, BenchOptions, BenchRequest
from accel_engine.requests.held_out_metrics import HeldOutRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import EngineRequest, unheard
from accel_engine.run import runs_directory
from accel_engine.run.store.database import DATABASE
from accel_engine.user_paths import is_file

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model in a file or directory that is served."""

    path: Path
    """The file or directory."""


class InferenceBench:
    """Measures models, each in a separate process.

    TensorFlow does not give back the memory of a model, and uses it for the next.

    Args:
        models: Directories of runs, plans with the file of a model and its data, or files of models without data.
        options: How.

    Raises:
        RunError: A run has no checkpoint.
    """

    def __init__(self, models: Sequence[Path | Plan | ModelFile], options: BenchOptions) -> None:
        names = distinct_names(list(map(_path, models)))
        self._models = tuple(map(_benched, models, names))
        self._options = options
        self._call: EngineCall[Any] | None = None
        self._notes: dict[str, None] = {}
        self._is_cancelled = False
        self._on_doing: Callable[[str], object] = unheard

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user so far, also after an error."""
        return tuple(self._notes)

    def measure(
        self,
        on_part: Callable[[Any], object] = unheard,
        *,
        is_live: bool = False,
        on_doing: Callable[[str], object] = unheard,
    ) -> tuple[str, ...]:
        """Measure. Takes at least as long as importing TensorFlow, for each model.

        Args:
            on_part: Called with each candidate when it has been measured, with the examples that were read, and with
                what has been measured of a candidate so far.
            is_live: Whether what has been measured so far is wanted.
            on_doing: Called with what is being done.

        Returns:
            Warnings for the user; of what was measured before, if it is cancelled.

        Raises:
            EngineMissingError: No usable TensorFlow is installed.
            RunError: A model cannot be measured; the message says why.
        """
        self._on_doing = on_doing
        found = self._metrics(on_part) if self._options.metrics else [{} for _ in self._models]
        for model, metrics in zip(self._models, found, strict=True):

            def take(part: Any, metrics: Mapping[str, HeldOutMetrics] = metrics) -> None:
                is_candidate = isinstance(part, Candidate)
                on_part(replace(part, metrics=metrics.get(part.precision)) if is_candidate else part)

            answer = self._ask(BenchRequest((model,), self._options, is_live), take)
            if answer is None:
                break
            self._notes.update(dict.fromkeys(answer.notes))
        return self.notes

    def _metrics(self, on_part: Callable[[Any], object]) -> Sequence[Mapping[str, HeldOutMetrics]]:
        """The metrics of each model by precision, where its data is known, from a separate process.

        They are computed before anything is measured, so that they take no memory of what is.
        """
        nothing: list[Mapping[str, HeldOutMetrics]] = [{} for _ in self._models]
        models = _with_runs(self._models)
        if not any(model.reference for model in models):
            return nothing
        try:
            answer = self._ask(HeldOutRequest(models, self._options), on_part)
        except RunError as error:
            self._notes[f"no metrics: {error}"] = None
            return nothing
        if answer is None:
            return nothing
        self._notes.update(dict.fromkeys(answer.notes))
        return answer.models

    def _ask(self, request: EngineRequest[ResultT], on_part: Callable[[Any], object]) -> ResultT | None:
        """The answer of a new process; ``None`` once cancelled."""
        with EngineCall(request) as call:
            self._call = call
            if request.is_batch:  # the measurement that follows gets a process that has imported TensorFlow meanwhile
                warm_kept_engine()
            return None if self._is_cancelled else call.result(on_part, self._on_doing)

    def cancel(self) -> None:
        """Kill the process and start no other, from any thread; a waiting :meth:`measure` raises."""
        self._is_cancelled = True
        if self._call:
            self._call.cancel()


def measure_models(
    models: Sequence[Path | Plan | ModelFile], options: BenchOptions, on_part: Callable[[Any], object] = unheard
) -> tuple[str, ...]:
    """Measure models; see :class:`InferenceBench`."""
    return InferenceBench(models, options).measure(on_part)


def _path(model: Path | Plan | ModelFile) -> Path:
    """The directory of a run, or the file of a model."""
    if isinstance(model, Plan):
        return Path(model.model)
    return model.path if isinstance(model, ModelFile) else model


def _benched(model: Path | Plan | ModelFile, name: str) -> BenchedModel:
    """A model under its name.

    Raises:
        RunError: The model is of a run without a checkpoint.
    """
    if isinstance(model, ModelFile):
        return BenchedModel(name, file=model.path)
    reference = ModelReference.of(model)
    reference.check()
    return BenchedModel(name, reference)


def _with_runs(models: Sequence[BenchedModel]) -> tuple[BenchedModel, ...]:
    """The models, each file with the run that it was exported from.

    Where a file does not tell, or its run is not there, it is the run of the first model with one, and the file is
    foreign.
    """
    runs = [model.reference for model in models if model.reference and model.reference.directory]
    named = {each.path.name: each for each in runs}
    found = [replace(model, reference=_origin(model.file, named)) if model.file else model for model in models]
    first = next((each.reference for each in found if each.reference and each.reference.directory), None)
    return tuple(
        model if model.reference else replace(model, reference=first, is_foreign=first is not None) for model in found
    )


def _origin(file: Path, named: Mapping[str, ModelReference]) -> ModelReference | None:
    """A file's run: one of those that are measured, by id, or of all runs; ``None`` if unknown."""
    name = origin_of(file)
    if name in named:
        return named[name]
    directory = runs_directory() / name
    return ModelReference(directory) if name and is_file(directory / DATABASE) else None


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as tell it from the other paths.

    The same path has the same name with a number: ``m.onnx``, ``m.onnx (2)``.
    """
    names = [_name(path, paths) for path in paths]
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, earlier, strict=True)]


def _name(path: Path, paths: Sequence[Path]) -> str:
    others = [other.parts for other in paths if other != path]
    for count in range(1, len(path.parts)):
        end = path.parts[-count:]
        if all(other[-count:] != end for other in others):
            return "/".join(end)
    return str(path)
