"""Profiles the data of a run in a thread, while its first steps are traced."""

import threading
from collections.abc import Callable

import keras

from accel_engine.data_profile import ProfiledData, profile
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.reporting.error_explanation import print_traceback
from accel_engine.training.reporting.run_reporter import RunReporter


def start_profiling(assembly: Assembly, reporter: RunReporter) -> Callable[[], None]:
    """Write the profile of an assembly's data when it is known; returns a function that waits for it."""
    data, step = profiled_data(assembly), reporter.step

    def write() -> None:
        try:
            if (found := profile(data)) is not None:
                reporter.run.write_diagnostics(found, step)
        except Exception as error:  # noqa: BLE001 (a user's file may raise anything; training does not need this)
            print_traceback(error)

    thread = threading.Thread(target=write, name="data profile", daemon=True)
    thread.start()
    return thread.join


def profiled_data(assembly: Assembly) -> ProfiledData:
    """The data of an assembly, as its profile takes them."""
    dataset = assembly.dataset
    embeds = any(isinstance(layer, keras.layers.Embedding) for layer in all_layers(assembly.model))
    return ProfiledData(
        dataset.train,
        dataset.validation,
        assembly.scale,
        dataset.classes if assembly.task.name in ("classification", "custom") else 0,
        dataset.feature_names,
        dataset.kind in ("tokens", "text") or embeds,
    )
