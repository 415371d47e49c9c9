"""The options of a dataclass as options of a command, which gets them as one value."""

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import click
from click.shell_completion import CompletionItem

from accel_engine.errors import UsageError
from accel_engine.plan.options import OptionSpec, default_of, option_problem, specs_of, text_of

_METAVARS = {int: "N", float: "X"}

Command = Callable[..., Any]
"""A function that click makes a command of."""


class FiniteNumber(click.FloatRange):
    """A number in a range; :class:`click.FloatRange` also takes ``nan`` and, without a maximum, ``inf``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See :class:`click.ParamType`."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def takes(
    kind: type, name: str, *, only: Sequence[str] = (), without: Sequence[str] = (), if_given: bool = False
) -> Callable[[Command], Command]:
    """Add options to a command.

    Args:
        kind: The dataclass that declares them.
        name: The argument of the command that gets them.
        only: The options that are added; empty for all.
        without: The options that are not.
        if_given: Whether the command gets a dictionary of those that are given, not the dataclass with its defaults.
    """
    names = [each for each in specs_of(kind) if each not in without and (not only or each in only)]
    options = {each: _option(kind, each, if_given=if_given) for each in names}

    def add(command: Command) -> Command:
        @wraps(command)
        def run(**values: Any) -> Any:
            chosen = {each: values.pop(option.name or "") for each, option in options.items()}
            if if_given:
                chosen = {each: value for each, value in chosen.items() if value not in (None, ())}
            return command(**values, **{name: chosen if if_given else kind(**chosen)})

        parameters = getattr(run, "__click_params__", [])
        run.__click_params__ = [*parameters, *reversed(options.values())]  # type: ignore[attr-defined]
        return run

    return add


def _option(kind: type, name: str, *, if_given: bool) -> click.Option:
    """The option of a field."""
    spec, default = specs_of(kind)[name], default_of(kind, name)
    flags = spec.flags or (f"--{name.replace('_', '-')}",)
    parameter = max(flags, key=len).removeprefix("--").replace("-", "_")
    if spec.type is bool:
        flag = f"{flags[0]}/--no-{flags[0].removeprefix('--')}" if default else flags[0]
        unset = None if if_given else default
        return click.Option([flag, parameter], is_flag=True, default=unset, help=_help(spec, default or None))
    return click.Option(
        [*flags, parameter],
        default=None if if_given else (() if spec.repeats else default),
        callback=None if spec.repeats else partial(_read, spec, name),
        type=click.Choice(spec.choices) if spec.repeats and spec.choices else click.UNPROCESSED,
        multiple=spec.repeats,
        required=spec.is_required,
        metavar=_metavar(spec),
        help=_help(spec, default),
        shell_complete=partial(_complete, spec),
    )


def _metavar(spec: OptionSpec) -> str:
    if spec.metavar:
        return spec.metavar
    if spec.choices and (spec.repeats or spec.type is not tuple):
        return f"[{'|'.join(spec.choices)}]"
    return f"{spec.choices[0]},..." if spec.choices else _METAVARS.get(spec.type, "TEXT")


def _help(spec: OptionSpec, default: Any) -> str:
    """Its description, with a default that the user does not expect."""
    is_list = spec.choices and spec.type is tuple and not spec.metavar and not spec.repeats
    names = f"{', '.join(spec.choices)}; " if is_list else ""
    if default is None or default in ("", ()):
        return f"{spec.doc}  [{names.removesuffix('; ')}]" if names else spec.doc
    shown = {True: "yes", False: "no"}[default] if isinstance(default, bool) else text_of(default)
    if isinstance(default, tuple) and len(default) == len(spec.choices):
        shown = "all"
    return f"{spec.doc}  [{names}default: {shown}]"


def _complete(spec: OptionSpec, _: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """The choices that begin with what is typed."""
    return [CompletionItem(each, help=spec.notes.get(each)) for each in spec.completions if each.startswith(typed)]


def _read(spec: OptionSpec, name: str, context: click.Context, option: click.Parameter, text: Any) -> Any:
    """The value of an option that is given; its default as it is."""
    if not isinstance(text, str) or text == option.default:
        return text
    try:
        return spec.value_of(name, text)
    except UsageError as error:
        raise click.BadParameter(option_problem(error, text), context, option) from error
