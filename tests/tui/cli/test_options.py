"""Options of commands that are made from a dataclass."""

from dataclasses import dataclass

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from accel_engine.plan.options import OptionSpec, option
from accel_tui.cli.options import FiniteNumber, takes
from accel_tui.cli.output import write


@dataclass(frozen=True, slots=True)
class Oven:
    degrees: float = option(180.0, OptionSpec("Heat.", float, minimum=50, maximum=300))
    tray: str = option("middle", OptionSpec("Where.", str, choices=("top", "middle"), flags=("--at", "-t")))
    steam: bool = option(default=False, spec=OptionSpec("Add water.", bool))


@click.command()
@takes(Oven, "oven")
def bake(oven):
    write(oven)


@click.command()
@takes(Oven, "given", without=("steam",), if_given=True)
def heat(given):
    write(given)


@pytest.mark.parametrize(
    ("arguments", "oven"),
    [([], Oven()), (["--degrees", "200", "-t", "top", "--steam"], Oven(200.0, "top", steam=True))],
)
def test_a_command_gets_its_options_as_one_value(arguments, oven):
    assert CliRunner().invoke(bake, arguments).output.strip() == str(oven)


def test_a_command_may_get_what_is_given_only():
    assert CliRunner().invoke(heat, ["--at", "top"]).output.strip() == "{'tray': 'top'}"
    assert "no such option" in CliRunner().invoke(heat, ["--steam"]).output.lower()


def test_a_wrong_value_is_wrong_usage():
    result = CliRunner().invoke(bake, ["--degrees", "400"])
    assert (result.exit_code, "'400' must be a number from 50 to 300" in result.output) == (2, True)


def test_the_help_has_defaults_and_choices():
    told = " ".join(CliRunner().invoke(bake, ["--help"]).output.split())
    assert "--degrees X Heat. [default: 180]" in told
    assert "--at, -t [top|middle] Where. [default: middle]" in told or "-t, --at [top|middle] Where." in told


def test_choices_are_completed():
    completion = ShellComplete(bake, {}, "bake", "_BAKE_COMPLETE")
    assert [each.value for each in completion.get_completions(["--at"], "t")] == ["top"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_what_is_not_finite_is_wrong_usage(value):
    with pytest.raises(click.BadParameter, match="is not a finite number"):
        FiniteNumber()(value)


def test_a_number_is_within_its_range():
    assert FiniteNumber(0, 10)("2.5") == 2.5
    with pytest.raises(click.BadParameter, match="not in the range"):
        FiniteNumber(0, 10)("11")
