"""Writes the folder of a version: the model in the wanted format, or in the first that equals the trained one.

Also tells what a version changes for clients.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.deployment.deploy_options import AUTO, SERVED_FORMATS, TARGETS, DeployOptions
from accel_engine.errors import ModelError
from accel_engine.formats import format_named
from accel_engine.model_export.export_options import target_at
from accel_engine.model_server.service import Service
from accel_engine.requests.export_model import Export
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import EngineRequest
from accel_engine.requests.write_service import ServiceRequest
from accel_engine.words.numbers import listed

Ask = Callable[[EngineRequest[Any]], Any]
"""Asks an engine, on the device that the request wants."""


@dataclass(frozen=True, slots=True)
class DeployStep:
    """The step of a deployment that begins, in words."""

    words: str


Tell = Callable[[DeployStep], object]
"""Takes each step of a deployment."""


def write_version(
    run: Path, options: DeployOptions, wanted: str, folder: Path, name: str, number: int, ask: Ask, tell: Tell
) -> tuple[Export, str]:
    """Write a model as a server takes it.

    Args:
        run: The directory of the run.
        options: Its checkpoint and device count.
        wanted: The format and precision in a word, or :data:`AUTO`.
        folder: An empty folder.
        name: The name in URLs.
        number: The version.
        ask: Asks engines.
        tell: Takes what is going on.

    Returns:
        The export, and the format that was written.

    Raises:
        ModelError: No format can be written with outputs equal to the trained model's; the message says why for each.
    """
    names = automatic_formats(options.computes_on) if wanted == AUTO else (wanted,)
    problems: dict[str, str] = {}
    for each in names:
        file_format, precision = TARGETS[each]
        if missing := format_named(file_format).precision(precision).missing:
            problems[each] = missing
            continue
        tell(DeployStep(f"exporting to {each}"))
        kind = format_named(file_format)
        target = target_at(folder / f"model{(*kind.suffixes, '')[0]}", file_format, precision)
        request = ServiceRequest(
            ModelReference.of(run),
            (target,),
            options.checkpoint,
            wanted_device=options.computes_on,
            folder=folder,
            service_folder=folder,
            served_name=name,
            version=str(number),
        )
        export: Export = ask(request)
        if export.written:
            return export, each
        problems[each] = export.exported[0].problem
    raise ModelError("nothing was deployed: " + "; ".join(f"{each}: {why}" for each, why in problems.items()))


def automatic_formats(device: str) -> Sequence[str]:
    """The formats that are tried in order: only a SavedModel computes on a GPU."""
    return SERVED_FORMATS if device == "cpu" else ("savedmodel",)


def changes_for_clients(before: Service, after: Service) -> list[str]:
    """What a version takes or gives that another one does not: inputs, outputs, classes and columns; in words."""
    found = _changes("inputs", before.specs, after.specs) + _changes("outputs", before.output_specs, after.output_specs)
    meanings = {each.output: each for each in before.meanings}
    for each in after.meanings:
        if old := meanings.get(each.output):
            found += _changes(f"classes of {each.output}", dict(enumerate(old.classes)), dict(enumerate(each.classes)))
            found += _changes(f"columns of {each.output}", dict(enumerate(old.columns)), dict(enumerate(each.columns)))
    return found


def _changes(what: str, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> list[str]:
    if old == new:
        return []
    now, was = (
        listed(f"{key} ({value})" for key, value in some.items() if others.get(key) != value) or "none"
        for some, others in ((new, old), (old, new))
    )
    return [f"{what} {now} in place of {was}"]
