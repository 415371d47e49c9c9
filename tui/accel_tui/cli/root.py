"""The command ``accel-tui``; loads the module of a subcommand only when it is used."""

import errno
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

import click

from accel_engine.text import suggestion
from accel_tui.cli.output import write

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "train": ("accel_tui.cli.train:train", "Train a model, in the terminal or in a script."),
    "estimate": ("accel_tui.cli.estimate:estimate", "Show the steps and the memory of a plan without training it."),
    "find": ("accel_tui.cli.find:find", "Find a batch size or a learning rate by measuring."),
    "race": ("accel_tui.cli.race:race", "Measure configurations of a plan on this machine, side by side."),
    "run": ("accel_tui.cli.run:run", "Run a script unchanged, and record its training."),
    "search": ("accel_tui.cli.search:search", "Search for the best values of a plan's fields by trials."),
    "continue": ("accel_tui.cli.continue_:continue_", "Continue an ended run from its last checkpoint."),
    "queue": ("accel_tui.cli.queue:queue", "List the runs that wait, and change their order."),
    "hosts": ("accel_tui.cli.hosts:hosts", "List other machines, whose runs are shown and trained from here."),
    "fetch": ("accel_tui.cli.fetch:fetch", "Bring a run of a host here, with its model."),
    "cluster": ("accel_tui.cli.cluster:cluster", "Train on several machines."),
    "watch": ("accel_tui.cli.watch:watch", "Follow a run, live or ended."),
    "evaluate": ("accel_tui.cli.evaluate:evaluate", "Evaluate runs and models, and tell which is better."),
    "bench": ("accel_tui.cli.bench:bench", "Measure the latency and the throughput of models."),
    "predict": ("accel_tui.cli.predict:predict", "Predict with a run's model."),
    "runs": ("accel_tui.cli.runs:runs", "List runs."),
    "searches": ("accel_tui.cli.searches:searches", "List the searches."),
    "import": ("accel_tui.cli.import_:import_", "Import runs of TensorBoard, W&B and CSV files."),
    "export": ("accel_tui.cli.export:export", "Export a run's tables, or its trained model."),
    "deploy": ("accel_tui.cli.deploy:deploy", "Serve a trained model, and check services."),
    "advise": ("accel_tui.cli.advise:advise", "Say why runs are slow or learn badly, and what to do."),
    "profile": ("accel_tui.cli.profile:profile", "Show the operations that take the time of a step."),
    "compare": ("accel_tui.cli.compare:compare", "Compare runs: their plans and results."),
    "report": ("accel_tui.cli.report:report", "Write a report on a run as an HTML file."),
    "rename": ("accel_tui.cli.annotate:rename", "Rename a run."),
    "note": ("accel_tui.cli.annotate:note", "Add a note to a run."),
    "tag": ("accel_tui.cli.annotate:tag", "Tag a run."),
    "repair": ("accel_tui.cli.repair:repair", "Save what is whole of a damaged run to a new run."),
    "rm": ("accel_tui.cli.rm:rm", "Delete runs."),
    "stop": ("accel_tui.cli.control:stop", "Stop a run or a search, with checkpoints."),
    "pause": ("accel_tui.cli.control:pause", "Pause a run."),
    "resume": ("accel_tui.cli.control:resume", "Resume a paused run."),
    "checkpoint": ("accel_tui.cli.control:checkpoint", "Write a checkpoint of a run now."),
    "set": ("accel_tui.cli.control:set_", "Change the learning rate or the intervals of a run."),
    "devices": ("accel_tui.cli.devices:devices", "Show the devices of this machine and their utilization."),
    "doctor": ("accel_tui.cli.doctor:doctor", "Diagnose this machine and suggest fixes."),
    "serve": ("accel_tui.cli.serve:serve", "Serve the dashboard to a browser."),
    "settings": ("accel_tui.cli.settings:settings", "Show, check or create the settings file."),
    "demo": ("accel_tui.cli.demo:demo", "Measure the speed-up of this machine's devices in two minutes."),
    "completion": ("accel_tui.cli.completion:completion", "Print shell completion."),
    "models": ("accel_tui.cli.catalogue:models", "List the built-in models."),
    "data": ("accel_tui.cli.data:data", "Look at your data, or list the built-in datasets."),
    "strategies": ("accel_tui.cli.catalogue:strategies", "List the strategies and whether they fit this machine."),
}
"""The module and the summary of every command."""

HIDDEN = {"remote": "accel_tui.cli.hosts:remote"}
"""The module of each command that only other programs use."""

_WIDTH = max(map(len, COMMANDS))

SECTIONS = {
    "Train": ("data", "estimate", "train", "run", "continue", "queue", "hosts", "fetch", "cluster"),
    "Find the best plan": ("race", "find", "search", "searches", "demo"),
    "View runs": (
        "runs",
        "watch",
        "advise",
        "profile",
        "compare",
        "report",
        "evaluate",
        "bench",
        "predict",
        "import",
        "export",
    ),
    "Serve a trained model": ("deploy",),
    "Control a running run": ("pause", "resume", "stop", "checkpoint", "set"),
    "Manage runs": ("rename", "note", "tag", "repair", "rm"),
    "This machine": ("devices", "doctor", "strategies", "models"),
    "This program": ("serve", "settings", "completion"),
}
"""The commands as the help lists them."""

COMPLETE = "_ACCEL_TUI_COMPLETE"
"""The environment variable with which a shell requests completions; the name is click's."""

STATUSES = """\b
Exit status:
  0    success
  1    error; the last line gives the reason
  2    wrong usage
  130  interrupted by Ctrl-C
"""
"""The exit statuses of every command whose help gives no others."""

SEE = "Environment and files: accel-tui --help"
"""The last line of the help of every command."""

EPILOG = f"""\b
Examples:
  accel-tui                                    open the dashboard
  accel-tui train --data digits                train without it
  accel-tui watch last                         follow the newest run

{STATUSES}
\b
Environment:
  ACCEL_TUI_HOME      directory of the runs
  ACCEL_TUI_SETTINGS  settings file
  ACCEL_TUI_DEBUG     if set, unexpected errors print a traceback
  NO_COLOR            if set, output has no colours
  TF_CONFIG           the processes of a cluster; see cluster --help

\b
Files:
  runs/RUN/run.db       plan, steps and events of a run
  runs/RUN/log.txt      output of its engine, including TensorFlow's
  runs/RUN/model.keras  its trained model
  runs/RUN/checkpoints  its checkpoints, to continue from
  queue.db              runs that wait; see queue --help
  settings.toml         user settings; see settings --help

Runs are in ACCEL_TUI_HOME, by default the platform's user data directory (accel-tui doctor shows it).
"""


class CommandGroup(click.Group):
    """The subcommands by name; their modules are imported on use, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of completion."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; return ``None`` for an unknown name."""
        if cmd_name not in COMMANDS and cmd_name not in HIDDEN:
            return None
        command: Any = pkgutil.resolve_name(HIDDEN.get(cmd_name) or COMMANDS[cmd_name][0])
        assert isinstance(command, click.Command)  # noqa: S101 (the table above is ours)
        every = (command, *(command.commands.values() if isinstance(command, click.Group) else ()))
        for each in every:
            each.epilog = _complete_epilog(each.epilog or "")
        if COMPLETE in os.environ:
            from accel_tui.cli.completion_sources import attach

            for parameter in (parameter for each in every for parameter in each.params):
                attach(parameter)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete a command's name, without loading any."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest the nearest ones."""
        if args and args[0] not in (*COMMANDS, *HIDDEN) and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command {args[0]!r}; {suggestion(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without loading them."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{_WIDTH}}", COMMANDS[name][1]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit quietly when the reader of its output is gone."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            _discard_output()
            return 0


def _complete_epilog(epilog: str) -> str:
    """Add the exit statuses and the last line to the epilog of a command that lacks them."""
    if "Exit status:" not in epilog:
        epilog += f"\n\n{STATUSES}"
    return epilog if SEE in epilog else f"{epilog}\n\n{SEE}"


def _discard_output() -> None:
    """Redirect standard output to the null device, also for what Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from accel_tui.cli.doctor import versions

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
    callback=_print_versions,
    help="Show the versions to give in a bug report.",
)
@click.pass_context
def root(context: click.Context) -> int:
    """Train TensorFlow models on CPUs, GPUs and TPUs, and watch every step.

    Without a command, the dashboard opens. RUN is a run's id, the unique beginning of an id, a name,
    or "last" for the newest run that is not a bench.
    """
    if context.invoked_subcommand is not None:
        return 0
    from accel_tui.cli.dashboard import open_dashboard  # imports Textual, which few commands need

    return open_dashboard()
