"""``accel-tui models``, ``data`` and ``strategies``: what a plan can name."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import click

from accel_engine import data as datasets
from accel_engine import devices as hardware
from accel_engine import models as architectures
from accel_engine import strategies as distributions
from accel_engine.plan import Plan
from accel_tui.cli.output import write
from accel_tui.cli.table import table

as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output.")


def _command(name: str, example: str) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, epilog=f"\b\nExample:\n  {example}")


@_command("models", "accel-tui train --model resnet20 --data cifar10")
@as_json_option
def models(as_json: bool) -> None:
    """List the models that --model can name.

    It takes a model of your own too: FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, a function that
    returns a Keras model, or FILE.keras, a saved one.
    """
    entries = architectures.CATALOGUE.values()
    if as_json:
        _print_json(_public(entry) | {"takes": entry.takes} for entry in entries)
        return
    rows = [(entry.name, f"{entry.summary}. Takes {entry.takes}.") for entry in entries]
    write(table(("MODEL", "WHAT IT IS"), rows))
    write("\nAnd your own: FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION, FILE.keras")


@_command("data", "accel-tui train --data synthetic:64x64x3:100")
@as_json_option
def data(as_json: bool) -> None:
    """List the datasets that --data can name.

    It takes data of your own too: FILE.npz with x_train, y_train, x_test and y_test (or x and y), or
    a folder with a folder of images for each class.
    """
    entries = datasets.CATALOGUE.values()
    if as_json:
        _print_json(_public(entry) for entry in entries)
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
    write(table(("DATA", "SHAPE", "CLASSES", "EXAMPLES", "WHAT IT IS"), rows))
    write("\nAnd your own: FILE.npz, or a folder with a folder of images for each class")


@_command("strategies", "accel-tui train --strategy mirrored --virtual-cpus 2")
@click.option(
    "--virtual-cpus", type=click.IntRange(1), default=1, metavar="N", help="Were the CPU split into N devices."
)
@as_json_option
def strategies(virtual_cpus: int, as_json: bool) -> None:
    """List the strategies that --strategy can name, and which fit this machine."""
    here = hardware.detect().devices
    plan = Plan(virtual_cpus=virtual_cpus)
    misfits = {name: distributions.incompatibility(name, plan, here) for name in distributions.CATALOGUE}
    entries = distributions.CATALOGUE.values()
    if as_json:
        _print_json(
            _public(entry) | {"fits": not misfits[entry.name], "problem": misfits[entry.name]} for entry in entries
        )
        return
    rows = [
        (entry.name, "no", f"{entry.summary}. Not here: {why}.")
        if (why := misfits[entry.name])
        else (entry.name, "yes", f"{entry.summary}.")
        for entry in entries
    ]
    write(table(("STRATEGY", "FITS", "WHAT IT IS FOR"), rows))


def _public(entry: Any) -> dict[str, Any]:
    """An entry's fields, but for those that say where its code or file is."""
    return {name: value for name, value in asdict(entry).items() if name not in ("builder", "reader", "path")}


def _print_json(objects: Iterable[dict[str, Any]]) -> None:
    for item in objects:
        write(json.dumps(item))
