"""``accel-tui models`` and ``strategies``, and ``data`` without data: list what is built in."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from accel_engine import data as datasets
from accel_engine import devices as hardware
from accel_engine import models as architectures
from accel_engine import strategies as distributions
from accel_engine.data_profile.described_data import DescribedData
from accel_engine.errors import join_words
from accel_engine.models.choose import default_for
from accel_engine.plan import Plan
from accel_engine.plan.placement import incompatibility
from accel_tui.cli.output import json_option, table, write, write_json


def _command(name: str, example: str) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, epilog=f"\b\nExample:\n  {example}")


@_command("models", "accel-tui train --model resnet20 --data cifar10")
@json_option
def models(as_json: bool) -> None:
    """List the built-in models for --model: their tasks and inputs.

    --model auto, the default, takes a model for the data that its column AUTO names.
    --model also accepts your own model: FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, a function that
    returns a Keras model, or FILE.keras or FILE.h5, a saved model.
    """
    entries = architectures.CATALOGUE.values()
    if as_json:
        write_json(
            *(_public(entry) | {"takes": entry.takes, "default_for": default_for(entry.name)} for entry in entries)
        )
        return
    rows = [
        (
            entry.name,
            ", ".join(default_for(entry.name)),
            f"{entry.summary}. Input: {entry.takes}. Tasks: {', '.join(entry.tasks)}.",
        )
        for entry in entries
    ]
    write(table(("MODEL", "AUTO", "DESCRIPTION"), rows))
    write("\nYour own model: FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION, FILE.keras, FILE.h5")


def list_data(*, as_json: bool) -> None:
    """List the built-in datasets."""
    entries = datasets.CATALOGUE.values()
    if as_json:
        write_json(*(DescribedData.of(entry).to_json() for entry in entries))
        return
    rows = [
        (
            entry.name,
            "x".join(map(str, entry.shape or ())),
            str(entry.classes or ""),
            f"{entry.examples or 0:,}",
            entry.summary,
        )
        for entry in entries
    ]
    write(table(("DATA", "SHAPE", "CLASSES", "EXAMPLES", "DESCRIPTION"), rows))
    write("\nYour own data: a file, a folder or FILE.py:FUNCTION; see accel-tui data PATH")


@_command("strategies", "accel-tui train --strategy mirrored --virtual-cpus 2")
@click.option(
    "--virtual-cpus",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Assume that the CPU is split into N logical devices.",
)
@json_option
def strategies(virtual_cpus: int, as_json: bool) -> None:
    """List the strategies for --strategy and whether they fit this machine."""
    found = hardware.detect().devices
    plan = Plan(virtual_cpus=virtual_cpus)
    misfits = {name: join_words(incompatibility(name, plan, found)) for name in distributions.CATALOGUE}
    entries = distributions.CATALOGUE.values()
    if as_json:
        write_json(
            *(
                _public(entry)
                | {"needs": join_words(entry.needs)}
                | {"fits": not misfits[entry.name], "problem": misfits[entry.name]}
                for entry in entries
            )
        )
        return
    rows = [
        (entry.name, "no", f"{entry.summary}. Unavailable: {reason}.")
        if (reason := misfits[entry.name])
        else (entry.name, "yes", f"{entry.summary}.")
        for entry in entries
    ]
    write(table(("STRATEGY", "FITS", "DESCRIPTION"), rows))


def _public(entry: Any) -> dict[str, Any]:
    """The fields of an entry, except for the location of its code or file."""
    return {name: value for name, value in asdict(entry).items() if name not in ("builder", "reader", "path")}
