"""Measures the inference of trained models: on each device, in each precision, with XLA and without."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import data
from accel_engine.data.data_options import DataOptions, no_progress
from accel_engine.data.structure import flatten
from accel_engine.data.tables.table_file import SUFFIXES as TABLES
from accel_engine.devices.energy_meter import energy_meter
from accel_engine.errors import DataError
from accel_engine.inference.arrays import check_inputs
from accel_engine.inference.bench_runtime import BenchSettings, Meter, RuntimeBench
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.example_batches import random_examples
from accel_engine.inference.live_window import LiveWindow
from accel_engine.inference.open_model import format_of, open_model
from accel_engine.inference.runtime import Runtime
from accel_engine.memory import available_memory
from accel_engine.private_names.tensorflow_names import local_devices
from accel_engine.trained.bench.device_choice import devices, precisions
from accel_engine.trained.bench.trained_runtime import TrainedRuntime, computing_in, examples_of
from accel_engine.trained.prediction.raw_columns import read_raw_columns
from accel_engine.trained.split_batches import batches
from accel_engine.trained.trained_model import TrainedModel, load
from accel_engine.training.memory_meters import DeviceMemory, HostMemory, free_memory

EXAMPLES = 1024
"""Examples of the data at most; larger batches repeat them."""

_OF_TENSORFLOW = ("keras", "savedmodel")
"""Formats that TensorFlow runs, on any device and with XLA; other runtimes use the CPU."""

_BUS_ID = re.compile(r"pci bus id: ([0-9a-fA-F:.]+)")

Examples = dict[str, npt.NDArray[Any]]


def bench(
    request: Mapping[str, Any],
    on_candidate: Callable[[dict[str, Any]], object],
    on_progress: Callable[[int, int], None] = no_progress,
    on_live: Callable[[LiveWindow], object] | None = None,
) -> dict[str, Any]:
    """Measure some models.

    Args:
        request: ``models``: for each the ``directory`` of its run, the ``plan`` with its file and data, or the ``file``
            of a model, and the ``name`` under which it is shown, its own by default; ``data``, of files; ``split``,
            ``checkpoint``: see :func:`of_run`; ``devices``, ``precisions`` (empty for all that fit), ``xla`` (a list
            of booleans) and the fields of :class:`BenchSettings`.
        on_candidate: Called with the values of each :class:`Candidate` when it has been measured.
        on_progress: Called now and then with the number of examples read, and of all.
        on_live: Called with what has been measured of a candidate so far, while nothing is measured.

    Returns:
        ``notes``: warnings for the user.

    Raises:
        AccelError: A model cannot be loaded, or there is no such device.
    """
    names = ("scenario", "batch_sizes", "seconds", "target_latency", "seed")
    settings = BenchSettings(**{name: request[name] for name in names}, on_live=on_live)
    notes: dict[str, None] = {}
    chosen = devices(request["devices"])
    for model in request["models"]:
        if "file" in model:
            measured = _measure_file(model, chosen, request, settings, on_progress)
        else:
            measured = _measure_trained(model, chosen, request, settings, on_progress, notes)
        for candidate in measured:
            on_candidate(candidate.to_values())
    return {"notes": list(notes)}


def _measure_trained(
    model: Mapping[str, Any],
    chosen: Sequence[str],
    request: Mapping[str, Any],
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
    notes: dict[str, None],
) -> Iterator[Candidate]:
    """Measure the model of a run, or of a file with data."""
    for device in chosen:
        yield from _measure_trained_on(device, model, request, settings, on_progress, notes)


def _measure_trained_on(
    device: str,
    model: Mapping[str, Any],
    request: Mapping[str, Any],
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
    notes: dict[str, None],
) -> Iterator[Candidate]:
    """Measure it on a device; the model's memory is free afterwards."""
    free_memory()
    with tf.device(device):  # where the weights are created
        trained = load(model, request, on_progress)
    notes.update(dict.fromkeys(trained.notes))
    own = trained.compiled.model.dtype_policy.name
    examples = examples_of(trained, EXAMPLES)
    free_memory()
    host = HostMemory(sum(weight.numpy().nbytes for weight in trained.compiled.model.weights))
    for precision in request["precisions"] or precisions(device, own):
        for xla in request["xla"]:
            name = model.get("name", trained.name)
            setup = Setup(model=name, format="keras", device=device.lower(), xla=xla, precision=precision)
            yield from _measure_trained_as(setup, trained, examples, settings, host)


def _measure_trained_as(
    setup: Setup, trained: TrainedModel, examples: Examples, settings: BenchSettings, host: HostMemory
) -> Iterator[Candidate]:
    """Measure it in a precision, with XLA or without; the program's memory is free afterwards."""
    free_memory()
    with computing_in(trained.compiled.model, setup.precision):
        runtime = TrainedRuntime(trained, xla=setup.xla)
        yield from _measure(replace(setup, size=runtime.size), runtime, examples, settings, host)


def _measure_file(
    model: Mapping[str, Any],
    chosen: Sequence[str],
    request: Mapping[str, Any],
    settings: BenchSettings,
    on_progress: Callable[[int, int], None],
) -> Iterator[Candidate]:
    """Measure a model as it is in its file.

    Raises:
        AccelError: It cannot be loaded, or the data does not fit it.
    """
    path = Path(model["file"])
    kind = format_of(path)
    by_tensorflow = kind in _OF_TENSORFLOW
    free_memory()
    host = HostMemory()  # of all setups, as TensorFlow keeps memory that it has freed, and uses it again
    for device in chosen if by_tensorflow else ("CPU:0",):
        for xla in request["xla"] if by_tensorflow else (False,):
            setup = Setup(model=model.get("name", path.name), format=kind, device=device.lower(), xla=xla)
            yield from _measure_file_as(setup, path, request, settings, host, on_progress)


def _measure_file_as(
    setup: Setup,
    path: Path,
    request: Mapping[str, Any],
    settings: BenchSettings,
    host: HostMemory,
    on_progress: Callable[[int, int], None],
) -> Iterator[Candidate]:
    """Measure it on a device; the model's memory is free afterwards."""
    free_memory()
    began = time.perf_counter()
    with tf.device(setup.device.upper()) if setup.format in _OF_TENSORFLOW else nullcontext():
        runtime = open_model(path, jit_compile=setup.xla)
    setup = replace(setup, load_seconds=time.perf_counter() - began, size=runtime.size)
    yield from _measure(setup, runtime, _examples_for(runtime, request, on_progress), settings, host)


def _measure(
    setup: Setup, runtime: Runtime, examples: Examples, settings: BenchSettings, host: HostMemory
) -> Iterator[Candidate]:
    device = setup.device.upper()
    energy: Meter | None = None
    memory: Meter = host
    available: Callable[[], float] = available_memory
    if device.startswith("GPU"):
        memory, available = DeviceMemory(device), lambda: math.inf  # TensorFlow raises an error
        local = local_devices().get(device)
        bus = _BUS_ID.search(local.description) if local else None
        energy = energy_meter(bus[1]) if bus else None
    with tf.device(device):
        yield from RuntimeBench(setup, runtime, examples, settings, memory, energy, available).candidates()


def _examples_for(runtime: Runtime, request: Mapping[str, Any], on_progress: Callable[[int, int], None]) -> Examples:
    """The examples of the data, a table's by the names of its columns, or random ones without data.

    Raises:
        AccelError: The data cannot be read, or does not fit the model.
    """
    if not request["data"]:
        return random_examples(runtime.inputs, request["seed"])
    if Path(request["data"]).suffix.lower() in TABLES and all(spec.shape == (1,) for spec in runtime.inputs.values()):
        columns: Examples = read_raw_columns(Path(request["data"]), runtime.inputs).inputs
        return {name: array[:EXAMPLES] for name, array in columns.items()}
    dataset = data.load(request["data"], DataOptions(), on_progress)
    raw = next(batches(dataset.test or dataset.validation or dataset.train))[1]
    arrays = [np.asarray(array)[:EXAMPLES] for array in flatten(raw.inputs)]
    if len(arrays) != len(runtime.inputs):
        raise DataError(f"{request['data']} has {len(arrays)} inputs, and the model takes {len(runtime.inputs)}")
    found = dict(zip(sorted(runtime.inputs), arrays, strict=True))
    check_inputs(found, runtime.inputs)
    return {
        name: array if runtime.inputs[name].dtype == "string" else array.astype(runtime.inputs[name].dtype)
        for name, array in found.items()
    }
