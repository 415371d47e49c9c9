"""Measures the inference of trained models: on each device, in each precision, with XLA and without."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import flatten
from accel_engine.data.tables.raw_inputs import JOINED_CATEGORIES, NUMBERS
from accel_engine.data.tables.table_file import SUFFIXES as TABLES
from accel_engine.devices.energy_meter import IntervalMeter, energy_meter
from accel_engine.errors import DataError
from accel_engine.formats import format_of, open_model
from accel_engine.inference.bench_runtime import BenchSettings, RuntimeBench, random_examples
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.runtime import Runtime, check_inputs
from accel_engine.memory import available_memory
from accel_engine.private_names.tensorflow_names import local_devices
from accel_engine.requests.bench_models import BenchedModel, BenchNotes, BenchOptions, BenchRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.trained.bench import trained_runtime
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.trained.prediction.table_examples import read_raw_columns
from accel_engine.trained.split_batches import batches
from accel_engine.training.core.device_visibility import BUS_ID
from accel_engine.training.memory_meters import DeviceMemory, HostMemory, release_memory

EXAMPLES = 1024
"""Examples of the data at most; larger batches repeat them."""

Examples = dict[str, npt.NDArray[Any]]


def bench(request: BenchRequest, send: Send = unheard) -> BenchNotes:
    """Measure some models.

    Args:
        request: The models, and how.
        send: Takes how far it is, each candidate when it has been measured, and, if it is live, what has been measured
            of a candidate so far, while nothing is measured.

    Returns:
        Warnings for the user.

    Raises:
        AccelError: A model cannot be loaded, or there is no such device.
    """
    options = request.options
    settings = BenchSettings(
        scenario=options.scenario,
        batch_sizes=options.batch_sizes,
        seconds=options.seconds,
        target_latency=options.target_latency,
        seed=options.seed,
        on_live=send if request.is_live else None,
    )
    notes: dict[str, None] = {}
    chosen = trained_runtime.device_names(options.devices)
    for model in request.models:
        tells(send)("opening the model")
        if model.file:
            measured = _measure_file(model.name, model.file, chosen, options, settings, reports(send))
        else:
            measured = _measure_trained(model, chosen, options, settings, reports(send), notes)
        for candidate in measured:
            send(candidate)
    return BenchNotes(tuple(notes))


def _measure_trained(
    model: BenchedModel,
    chosen: Sequence[str],
    options: BenchOptions,
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
    notes: dict[str, None],
) -> Iterator[Candidate]:
    """Measure the model of a run, or of a file with data."""
    for device in chosen:
        yield from _measure_trained_on(device, model, options, settings, on_progress, notes)


def _measure_trained_on(
    device: str,
    model: BenchedModel,
    options: BenchOptions,
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
    notes: dict[str, None],
) -> Iterator[Candidate]:
    """Measure a run's model on a device; its memory is free afterwards."""
    release_memory()
    with tf.device(device):  # where the weights are created
        reference = model.reference or ModelReference()
        trained = open_trained(
            reference.model, data=options.data, split=options.split, checkpoint=options.checkpoint, progress=on_progress
        )
    notes.update(dict.fromkeys(trained.notes))
    own = trained.model.dtype_policy.name
    examples = trained_runtime.examples_of(trained, EXAMPLES)
    release_memory()
    host = HostMemory(sum(weight.numpy().nbytes for weight in trained.model.weights))
    for precision in options.precisions or trained_runtime.precisions(device, own):
        for xla in options.compiled:
            setup = Setup(model=model.name, format="keras", device=device.lower(), xla=xla, precision=precision)
            yield from _measure_trained_as(setup, trained, examples, settings, host)


def _measure_trained_as(
    setup: Setup, trained: TrainedModel, examples: Examples, settings: BenchSettings, host: HostMemory
) -> Iterator[Candidate]:
    """Measure it in a precision, with XLA or without; the program's memory is free afterwards."""
    release_memory()
    with trained_runtime.computing_in(trained.model, setup.precision):
        runtime = trained_runtime.TrainedRuntime(trained, xla=setup.xla)
        yield from _measure(replace(setup, size=runtime.size), runtime, examples, settings, host)


def _measure_file(
    name: str,
    path: Path,
    chosen: Sequence[str],
    options: BenchOptions,
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
) -> Iterator[Candidate]:
    """Measure a model from its file.

    Raises:
        AccelError: The model cannot be loaded, or the data does not fit it.
    """
    kind = format_of(path)
    release_memory()
    host = HostMemory()  # of all setups, as TensorFlow keeps memory that it has freed, and uses it again
    for device in chosen if kind.by_tensorflow else ("CPU:0",):
        for xla in options.compiled if kind.by_tensorflow else (False,):
            setup = Setup(model=name, format=kind.name, device=device.lower(), xla=xla)
            yield from _measure_file_as(setup, path, options, settings, host, on_progress)


def _measure_file_as(
    setup: Setup,
    path: Path,
    options: BenchOptions,
    settings: BenchSettings,
    host: HostMemory,
    on_progress: Callable[[int, int], None],
) -> Iterator[Candidate]:
    """Measure the model of a file on a device; its memory is free afterwards."""
    release_memory()
    began = time.perf_counter()
    with tf.device(setup.device.upper()) if format_of(path).by_tensorflow else nullcontext():
        runtime = open_model(path, jit_compile=setup.xla)
    setup = replace(setup, load_seconds=time.perf_counter() - began, size=runtime.size)
    yield from _measure(setup, runtime, _examples_for(runtime, options, on_progress), settings, host)


def _measure(
    setup: Setup, runtime: Runtime, examples: Examples, settings: BenchSettings, host: HostMemory
) -> Iterator[Candidate]:
    device = setup.device.upper()
    energy: IntervalMeter | None = None
    memory: IntervalMeter = host
    available: Callable[[], float] = available_memory
    if device.startswith("GPU"):
        memory, available = DeviceMemory(device), lambda: math.inf  # TensorFlow raises an error
        local = local_devices().get(device)
        bus = BUS_ID.search(local.description) if local else None
        energy = energy_meter(bus[1]) if bus else None
    with tf.device(device):
        yield from RuntimeBench(setup, runtime, examples, settings, memory, energy, available).candidates()


def _examples_for(runtime: Runtime, options: BenchOptions, on_progress: Callable[[int, int], None]) -> Examples:
    """The examples of the data, a table's by the names of its columns, or random ones without data.

    Raises:
        AccelError: The data cannot be read, or does not fit the model.
    """
    if not options.data:
        return random_examples(runtime.inputs, options.seed)
    is_columns = all(
        spec.shape == (1,) or name in (NUMBERS, JOINED_CATEGORIES) for name, spec in runtime.inputs.items()
    )
    if Path(options.data).suffix.lower() in TABLES and is_columns:
        columns: Examples = read_raw_columns(Path(options.data), runtime.inputs).inputs
        return {name: array[:EXAMPLES] for name, array in columns.items()}
    dataset = data.load(options.data, DataOptions(), on_progress)
    raw = next(batches(dataset.test or dataset.validation or dataset.train))[1]
    arrays = [np.asarray(array)[:EXAMPLES] for array in flatten(raw.inputs)]
    if len(arrays) != len(runtime.inputs):
        raise DataError(f"{options.data} has {len(arrays)} inputs, and the model takes {len(runtime.inputs)}")
    found = dict(zip(sorted(runtime.inputs), arrays, strict=True))
    check_inputs(found, runtime.inputs)
    return {
        name: array if runtime.inputs[name].dtype == "string" else array.astype(runtime.inputs[name].dtype)
        for name, array in found.items()
    }
