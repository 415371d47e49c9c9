"""What the commands on trained models have in common: files of models, and ``--checkpoint``."""

from typing import Any

import click

from accel_engine.run.chosen_checkpoint import CHOICES

MODEL_FILES = (".keras", ".h5")
"""Suffixes of files with a model."""


class Checkpoint(click.ParamType[str]):
    """``auto``, ``best``, ``last`` or a step."""

    name = "checkpoint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See :class:`click.ParamType`."""
        if value not in CHOICES and not str(value).isdecimal():
            self.fail(f"{value!r} is neither auto, best, last nor a step", param, ctx)
        return str(value)


CHECKPOINT_METAVAR = "auto|best|last|STEP"

checkpoint_option = click.option(
    "--checkpoint",
    default="auto",
    show_default=True,
    type=Checkpoint(),
    metavar=CHECKPOINT_METAVAR,
    help="Weights of a run; auto: best with restore_best, else last.",
)
"""The option of commands that always use a trained model."""
