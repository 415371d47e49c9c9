"""The fields of a plan as command-line options, and their sections in the help."""

from collections.abc import Mapping
from typing import Any

import click

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan import GROUPS, SPECS
from accel_engine.plan.field_spec import AUTO

INLINE_CHOICES = 14
"""Up to this length, choices are shown next to the option instead of in its description."""

SECTIONS = (*GROUPS, "Options")
"""The sections of the help: the groups of plan fields, and all other options."""

_METAVARS = {int: "N", float: "X", tuple: "NAME,..."}
_METAVARS_BY_NAME = {
    "devices": "ID,...",
    "time": "COLUMN",
    "group": "COLUMN",
    "validation_data": "PATH",
    "class_weight": "CLASS=X,...",
}


class PlanCommand(click.Command):
    """A command whose help lists its options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of each section."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record:
                sections[_section(parameter.name or "")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def plan_option(name: str, *, default: Any = None, hidden: bool = False) -> click.Option:
    """Make the option of a plan field.

    Args:
        name: The field.
        default: The default to show in the help.
        hidden: Whether to leave it out of the help.
    """
    spec = SPECS[name]
    details = [] if default in (None, "", ()) else [f"default: {default}"]
    metavar = _METAVARS_BY_NAME.get(name) or _METAVARS.get(spec.type, name.rpartition("_")[2].upper())
    if spec.choices and len("|".join(spec.choices)) <= INLINE_CHOICES:
        metavar = "|".join(spec.choices)
    elif spec.choices:
        details.insert(0, ", ".join(spec.choices))
    elif spec.minimum is not None or spec.above is not None or spec.maximum is not None:
        details.insert(0, spec.allowed)
    elif spec.example:
        details.insert(0, f"e.g. {spec.example}")
    help_text = spec.doc + (f"  [{'; '.join(details)}]" if details else "")
    return click.Option([str(FieldValue(name))], callback=_check, metavar=metavar, help=help_text, hidden=hidden)


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given."""
    return {name: value for name, value in flags.items() if value is not None}


def _section(name: str) -> str:
    return next((title for title, names in GROUPS.items() if name in names), "Options")


def _check(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Parse the value of an option as the type of its field; ``None`` if the option is not given."""
    if text is None or option.name is None:
        return None
    try:
        value = SPECS[option.name].parse(option.name, text)
    except PlanError as error:
        raise click.BadParameter(f"{text!r} {error.allowed}", context, option) from error
    return AUTO if value is None else value
