"""The fields of a plan as command-line options, and their sections in the help."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan import DEFAULTS, GROUPS, SPECS, WORDS
from accel_engine.plan.field_spec import AUTO
from accel_engine.plan.options import option_problem
from accel_engine.plan.plan import default_text

ON_OFF = ("on", "off")
_TRUTHS = {"true": "on", "false": "off"}
"""Other words for the values of an on/off option."""

SWITCHES = frozenset(name for name, spec in SPECS.items() if spec.choices == ON_OFF)
"""Fields whose option may be given without a value, to switch it on."""

INLINE_CHOICES = 14
"""Up to this length, choices are shown next to the option instead of in its description."""

SECTIONS = (*GROUPS, "Options")
"""The sections of the help: the groups of plan fields, and all other options."""

_USUAL_DEFAULTS = ("auto", "off", 0)
"""Defaults that the help leaves out."""

_METAVARS = {int: "N", float: "X", tuple: "NAME"}

Check = Callable[[click.Context, click.Parameter, str | None], Any]
"""Parses the value of an option; ``None`` if it is not given."""


class PlanCommand(click.Command):
    """A command with plan fields as options, whose help lists them by section; on/off options need no value.

    Args:
        args: As for :class:`click.Command`.
        fields: The fields; the command gets ``None`` for one that is not given.
        settings: As for :class:`click.Command`.
    """

    def __init__(self, *args: Any, fields: Iterable[str] = SPECS, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params[1:1] = [plan_option(name, default=DEFAULTS[name]) for name in fields]
        self.context_settings.setdefault("max_content_width", 110)  # it has many options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an on/off option without a value is on."""
        return super().parse_args(ctx, list(self._completed(args)))

    def _completed(self, args: Sequence[str]) -> Iterator[str]:
        """The arguments, with the values of on/off options that are left out."""
        options = {name: option for option in self.params if isinstance(option, click.Option) for name in option.opts}
        rest = iter([*args, ""])
        word = next(rest)
        for after in rest:
            yield word
            option = options.get(word)
            if word == "--":
                yield from (each for each in (after, *rest) if each)
                return
            if option is not None and option.name in SWITCHES and after.lower() not in (*ON_OFF, *_TRUTHS):
                yield "on"
            elif option is not None and not option.is_flag:
                yield after
                after = next(rest, "")
            word = after

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


def check_option(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Parse the value of an option as the type of its field; ``None`` if the option is not given."""
    if text is None or option.name is None:
        return None
    try:
        word = _TRUTHS.get(text.lower(), text) if option.name in SWITCHES else text
        value = SPECS[option.name].parse(option.name, word)
    except PlanError as error:
        raise click.BadParameter(option_problem(error, text), context, option) from error
    return AUTO if value is None else value


def plan_option(name: str, *, default: Any = None, hidden: bool = False, check: Check = check_option) -> click.Option:
    """Make the option of a plan field.

    Args:
        name: The field.
        default: The default, which the help shows unless it is a usual one.
        hidden: Whether to leave it out of the help.
        check: Parses its value.
    """
    spec = SPECS[name]
    details = []
    is_list = spec.type is tuple  # an option that is given again adds to it
    metavar = WORDS[name].metavar or _METAVARS.get(spec.type, name.rpartition("_")[2].upper())
    metavar += ",..." if is_list else ""
    if name in SWITCHES:
        metavar = "[on|off]"
    elif spec.choices and len("|".join(spec.choices)) <= INLINE_CHOICES:
        metavar = "|".join(spec.choices)
    elif spec.choices:
        details.append(", ".join(spec.choices))
    elif spec.example:
        details.append(f"e.g. {spec.example}")
    if default not in (None, "", (), *_USUAL_DEFAULTS):
        details.append(f"default: {default_text(name)}")
    help_text = spec.doc + (f"  [{'; '.join(details)}]" if details else "")
    return click.Option(
        [str(FieldValue(name))],
        callback=_joined(check) if is_list else check,
        multiple=is_list,
        metavar=metavar,
        help=help_text,
        hidden=hidden,
    )


def _joined(check: Check) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], Any]:
    """A check of the lists that an option was given."""
    return lambda context, option, texts: check(context, option, ",".join(texts) if texts else None)


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given."""
    return {name: value for name, value in flags.items() if value is not None}


def _section(name: str) -> str:
    return WORDS[name].group if name in WORDS else "Options"
