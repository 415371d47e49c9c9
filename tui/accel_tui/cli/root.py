"""The command ``accel-tui`` itself, which loads the module of a command only when it is asked for."""

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from accel_engine.registry import load, suggestion
from accel_tui.cli.output import write

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "train": ("accel_tui.cli.train:train", "Train a model, here in the terminal or in a script."),
    "cluster": ("accel_tui.cli.cluster:cluster", "Train on several machines: what to run on each."),
    "watch": ("accel_tui.cli.watch:watch", "Follow a run, live or ended."),
    "predict": ("accel_tui.cli.predict:predict", "Ask the model of a run what images show."),
    "runs": ("accel_tui.cli.runs:runs", "List the runs."),
    "export": ("accel_tui.cli.export:export", "Write a run as CSV, JSON, Parquet or TensorBoard events."),
    "compare": ("accel_tui.cli.compare:compare", "Lay runs side by side: what differs, and what came of them."),
    "rename": ("accel_tui.cli.annotate:rename", "Give a run another name."),
    "note": ("accel_tui.cli.annotate:note", "Note something of a run."),
    "tag": ("accel_tui.cli.annotate:tag", "Tag runs to find them by."),
    "rm": ("accel_tui.cli.rm:rm", "Delete runs."),
    "stop": ("accel_tui.cli.control:stop", "End a run and keep its work."),
    "pause": ("accel_tui.cli.control:pause", "Let a run wait."),
    "resume": ("accel_tui.cli.control:resume", "Let a run go on that was paused."),
    "checkpoint": ("accel_tui.cli.control:checkpoint", "Write a checkpoint of a run now."),
    "set": ("accel_tui.cli.control:set_", "Change the learning rate of a run."),
    "devices": ("accel_tui.cli.devices:devices", "Show the devices of this machine and how busy they are."),
    "doctor": ("accel_tui.cli.doctor:doctor", "Look what is wrong with this machine, and what to do about it."),
    "serve": ("accel_tui.cli.serve:serve", "Show the dashboard in a browser."),
    "settings": ("accel_tui.cli.settings:settings", "Say where settings are and what they come to; begin a file."),
    "demo": ("accel_tui.cli.demo:demo", "Show what acceleration does here, in two minutes."),
    "completion": ("accel_tui.cli.completion:completion", "Teach a shell to complete what is typed."),
    "models": ("accel_tui.cli.catalogue:models", "List the models that can be named."),
    "data": ("accel_tui.cli.catalogue:data", "List the datasets that can be named."),
    "strategies": ("accel_tui.cli.catalogue:strategies", "List the strategies, and which fit this machine."),
}
"""Where every command is, and what the list of commands says of it."""

_NAMES = max(map(len, COMMANDS))

SECTIONS = {
    "Train": ("train", "cluster", "demo"),
    "Look at runs": ("runs", "watch", "compare", "predict", "export"),
    "Steer a run that goes on": ("pause", "resume", "stop", "checkpoint", "set"),
    "Keep order": ("rename", "note", "tag", "rm"),
    "This machine": ("devices", "doctor", "strategies", "models", "data"),
    "This program": ("serve", "settings", "completion"),
}
"""The commands as the help lists them."""

COMPLETE = "_ACCEL_TUI_COMPLETE"
"""The variable by which a shell asks for completions; the name is click's."""

STATUSES = """\b
Exit status:
  0    all went well
  1    it did not, and the last line says why
  2    it was asked wrongly
  130  Ctrl-C ended it
"""
"""What the status of every command says that tells nothing else."""

SEE = "More of the environment and of files: accel-tui --help"
"""The last line of every other help."""

EPILOG = f"""\b
Examples:
  accel-tui                                    open the dashboard
  accel-tui train --model cnn --data digits    train without it
  accel-tui watch last                         look at the newest run

{STATUSES}
\b
Environment:
  ACCEL_TUI_HOME      where runs are kept
  ACCEL_TUI_SETTINGS  the settings file
  ACCEL_TUI_DEBUG     if set, mistakes of the program show where they are
  NO_COLOR            if set, nothing is coloured
  TF_CONFIG           the processes that train together; see cluster --help

\b
Files:
  runs/RUN/run.db       the plan of a run, its steps and what it said
  runs/RUN/log.txt      what its engine wrote, TensorFlow's own words too
  runs/RUN/checkpoints  its weights, to go on from
  settings.toml         what is settled for good; see settings --help

Runs are in ACCEL_TUI_HOME, or the platform's directory for user data; the doctor says where that is.
"""


class CommandGroup(click.Group):
    """The commands by name; their modules are imported one at a time, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command; ``None`` when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: Any = load(COMMANDS[cmd_name][0])
        assert isinstance(command, click.Command)  # noqa: S101 (the table above is ours)
        for told in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
            told.epilog = _whole(told.epilog or "")
        if COMPLETE in os.environ:
            from accel_tui.cli.completion_sources import attach

            for parameter in command.params:
                attach(parameter)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete a command's name, without loading any."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=told) for name, (_, told) in COMMANDS.items() if name.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for, or say which are near."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command {args[0]!r}; {suggestion(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{_NAMES}}", COMMANDS[name][1]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader of its output that went away ends it quietly."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            discard_output()
            return 0


def _whole(epilog: str) -> str:
    """The end of a command's help, with what is the same for most."""
    if "Exit status:" not in epilog:
        epilog += f"\n\n{STATUSES}"
    return epilog if SEE in epilog else f"{epilog}\n\n{SEE}"


def discard_output() -> None:
    """Let nothing more be written to standard output, which nobody reads, not even as Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from accel_tui.cli.version import versions

        write(versions())
        context.exit()


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_versions,
    help="Show the versions that a bug report needs.",
)
@click.pass_context
def root(context: click.Context) -> int:
    """Train TensorFlow models on whatever this machine has, and watch every step.

    Without a command, open the dashboard. RUN, in the commands that take one, is a run's id, the
    unique beginning of one, its name, or last.
    """
    if context.invoked_subcommand is not None:
        return 0
    from accel_tui.cli.dashboard import open_dashboard  # imports Textual, which no other command needs

    return open_dashboard()
