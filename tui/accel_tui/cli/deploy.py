"""``accel-tui deploy``: serves trained models on this machine, checks services, and lists, updates and ends them."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel_engine import clock
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deployment.deploy_options import OF_SERVERS, DeployOptions
from accel_engine.deployment.deployments import LOG, Deployment, find_deployment, server_process
from accel_engine.deployment.server_control import require_server, stop_server
from accel_engine.plan.options import default_of, specs_of
from accel_engine.process.engine_call import ask
from accel_engine.requests.check_service import CheckOptions, CheckServiceRequest
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.requests.protocol.request import EngineRequest
from accel_engine.run import find_run
from accel_engine.run_queue.request_device import placed
from accel_engine.service_client.find_service import find_service_of_run, parse_url
from accel_engine.service_client.transport import read_client_token
from accel_tui.cli.options import takes
from accel_tui.cli.output import json_option, print_to_stderr, table, write, write_json
from accel_tui.cli.signals import interruptible, signal_handlers

if TYPE_CHECKING:
    from accel_engine.deployment.deploy import Deployer

EPILOG = """\b
Examples:
  accel-tui deploy last                        serve it on 127.0.0.1:8501
  accel-tui deploy k3fp --name digits --port 9000 --grpc-port 9001
  accel-tui deploy k3fp --target-latency 20ms --target-rate 500
  accel-tui deploy last --to ./service         a folder that stands alone
  accel-tui deploy last --to ./service --for kubernetes --image digits:1
  accel-tui deploy check http://127.0.0.1:8501 last
  accel-tui deploy list
  accel-tui deploy update digits m8w3          another model, no request lost
  accel-tui deploy update digits --back        the one before again
  accel-tui deploy stop digits

\b
Exit status:
  0    success
  1    error; the last line gives the reason
  2    wrong usage
  130  interrupted by Ctrl-C: nothing of what was begun stays
"""

START_EPILOG = """\b
Example:
  accel-tui deploy start k3fp --name digits
"""

CHECK_EPILOG = """\b
Examples:
  accel-tui deploy check http://127.0.0.1:8501 last
  accel-tui deploy check http://serving:8501/v1/models/digits k3fp
  accel-tui deploy check grpc://127.0.0.1:9000/digits k3fp --seconds 0

\b
Exit status:
  0    the service answers as the trained model does
  1    it does not, or cannot be reached; the last line gives the reason
  2    wrong usage
  130  interrupted by Ctrl-C
"""


LIST_SECONDS = 0.5
"""Between the two readings of a list."""

LOG_SECONDS = 0.2
"""Between two looks at a log that is followed."""


class DeployGroup(click.Group):
    """The commands below ``deploy``; any other word is a run to deploy: ``deploy RUN`` is ``deploy start RUN``."""

    DEFAULT = "start"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or deploy a run."""
        if args and args[0] not in self.commands:
            return self.DEFAULT, self.commands[self.DEFAULT], args
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the default command, then the commands."""
        with click.Context(self.commands[self.DEFAULT], info_name=ctx.info_name, parent=ctx.parent) as context:
            click.Command.format_options(self.commands[self.DEFAULT], context, formatter)
        self.format_commands(ctx, formatter)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """How it is called."""
        return ["[OPTIONS] RUN", "|", "COMMAND ..."]


@click.group(
    "deploy",
    cls=DeployGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"ignore_unknown_options": True},
)
@click.pass_context
def deploy(context: click.Context) -> None:
    """Serve the trained model of RUN on this machine, proved to answer as the trained model does.

    The model is exported and verified, and served by a separate process, which stays when this command
    ends. The command reports success only if the server answers held-out examples as the trained model does. It
    speaks the Open Inference Protocol and TensorFlow Serving's REST protocol, takes files, and has a page
    to try it. What it does is listed by 'accel-tui deploy list'.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("give the RUN to deploy, or a command such as list")


@deploy.command(epilog=START_EPILOG)
@click.argument("run")
@takes(DeployOptions, "options")
@takes(FolderOptions, "folder")
@click.option("--foreground", is_flag=True, help="Stay, show the log, and end the server with this command.")
@json_option
def start(run: str, options: DeployOptions, folder: FolderOptions, foreground: bool, as_json: bool) -> int:
    """Deploy RUN, as 'accel-tui deploy RUN' does."""
    directory = find_run(run)
    if folder.to:
        given = [name for name in OF_SERVERS if getattr(options, name) != default_of(DeployOptions, name)]
        if given or foreground:
            flag = specs_of(DeployOptions)[given[0]].flag(given[0]) if given else "--foreground"
            raise click.UsageError(f"{flag} is for a server that is started here: leave out --to")
        return _write_folder(directory, options, folder, as_json=as_json)
    with _deployer() as deployer:
        found = deployer.deploy(directory, options)
    _show(found, as_json=as_json)
    return _stay(found.deployment) if foreground else 0


@deploy.command(epilog="\b\nExamples:\n  accel-tui deploy update digits m8w3\n  accel-tui deploy update digits --back")
@click.argument("name")
@click.argument("run", required=False)
@takes(DeployOptions, "options", only=("format", "checkpoint", "device"))
@click.option("--back", is_flag=True, help="Let the version of before take over again.")
@json_option
def update(name: str, run: str | None, options: DeployOptions, back: bool, as_json: bool) -> None:
    """Let the model of RUN take over the deployment NAME, or with --back the one before.

    The new version is served beside and checked first. Then it takes over the port: requests that the old
    one has accepted are answered by it, and none is lost. If anything is wrong, the old one stays.
    """
    if bool(run) == back:
        raise click.UsageError("give the RUN that is to take over, or --back")
    if back and options != DeployOptions():
        raise click.UsageError("--back serves the version of before as it is: leave out the other options")
    deployment = find_deployment(name)
    directory = find_run(run) if run else None
    with _deployer() as deployer:
        found = deployer.update(deployment.name, directory, options) if directory else deployer.back(deployment.name)
    _show(found, as_json=as_json)


@deploy.command(epilog="\b\nExample:\n  accel-tui deploy restart digits")
@click.argument("name")
@json_option
def restart(name: str, as_json: bool) -> None:
    """Start the server of NAME again, as after a restart of the machine; one that runs is ended first."""
    find_deployment(name)
    with _deployer() as deployer:
        found = deployer.restart(name)
    _show(found, as_json=as_json)


@deploy.command("list", epilog="\b\nExamples:\n  accel-tui deploy list\n  accel-tui deploy list --json | jq .url")
@json_option
def list_(as_json: bool) -> None:
    """List the deployments of this machine, with what each does.

    REQUESTS/S is of the last half second; latencies and errors are since the server was started.
    """
    from accel_engine.deployment.status import StatusReader
    from accel_tui.formatting.deployment import HEADER, status_row, status_values

    reader = StatusReader()
    found = reader.read()
    if any(each.total for each in found):
        time.sleep(LIST_SECONDS)
        found = reader.read()
    print_to_stderr(*reader.problems, *(f"{each.deployment.name}: {each.problem}" for each in found if each.problem))
    if as_json:
        write_json(*map(status_values, found))
    elif found:
        write(table(HEADER, [status_row(each, clock.now()) for each in found]))
    else:
        write("Nothing is deployed. Deploy a run: accel-tui deploy RUN")


@deploy.command(epilog="\b\nExamples:\n  accel-tui deploy stop digits\n  accel-tui deploy stop digits --remove")
@click.argument("name")
@click.option("--remove", is_flag=True, help="Delete the deployment, too, with its models; the runs stay.")
def stop(name: str, remove: bool) -> None:
    """End the server of NAME, after it has answered what it has accepted.

    The deployment stays: 'accel-tui deploy restart NAME' serves it again.
    """
    from accel_engine.deployment.deployments import remove_deployment

    deployment = find_deployment(name)
    ran = stop_server(deployment)
    if remove:
        remove_deployment(deployment)
        write(f"{name}: removed")
    else:
        write(f"{name}: stopped" if ran else f"{name}: was not running")


@deploy.command(epilog="\b\nExamples:\n  accel-tui deploy logs digits\n  accel-tui deploy logs digits -f")
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come, until Ctrl-C.")
def logs(name: str, follow: bool) -> None:
    """Print the log of the servers of NAME."""
    path = find_deployment(name).directory / LOG
    with interruptible() as interrupted:
        _print_log(path, lambda: follow and not interrupted.is_set())


@deploy.command(epilog=CHECK_EPILOG)
@click.argument("url", metavar="URL")
@click.argument("run")
@takes(CheckOptions, "options")
@json_option
def check(url: str, run: str, options: CheckOptions, as_json: bool) -> int:
    """Check that the service at URL answers as the trained model of RUN.

    Any server that speaks the Open Inference Protocol (HTTP or gRPC) or TensorFlow Serving's REST
    protocol. It gets the raw examples of the run's test split, or of its validation split. Its outputs
    are compared with the trained model's, as an export's are, and its metrics stand beside.
    """
    parse_url(url)
    directory = find_run(run)
    check_steps((directory,), options.checkpoint)
    request = CheckServiceRequest(ModelReference.of(directory), url, options, read_client_token(options.token_file))
    request.check()
    find_service_of_run(directory, url, options, request.token)  # errors come before TensorFlow starts
    found = ask(request)
    print_to_stderr(*found.notes)
    if as_json:
        from accel_tui.formatting.deployment import check_values

        write_json(check_values(found))
    else:
        from accel_tui.formatting.deployment import check_header, check_lines, check_rows

        write("\n\n".join(("\n".join(check_lines(found)), table(check_header(found), check_rows(found)))))
    return 1 if found.served.problem else 0


def _write_folder(directory: Path, options: DeployOptions, folder: FolderOptions, *, as_json: bool) -> int:
    """Write a folder that stands alone, and print where it is and what was measured."""
    from accel_engine.deploy_folder.deploy_to_folder import deploy_to_folder
    from accel_tui.formatting.deployment import folder_lines, folder_values

    with _ended_by_signals():
        found = deploy_to_folder(directory, options, folder, _ask, lambda step: print_to_stderr(step.words))
    print_to_stderr(*found.notes)
    if as_json:
        write_json(folder_values(found))
    else:
        write("\n".join(folder_lines(found)))
    return 0


@contextmanager
def _deployer() -> Iterator["Deployer"]:
    """Yield a deployer that prints each step."""
    require_server()
    from accel_engine.deployment.deploy import Deployer

    with _ended_by_signals():
        yield Deployer(_ask, lambda step: print_to_stderr(step.words))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A block that SIGTERM and SIGHUP end as Ctrl-C does, so that no server is left behind that nobody lists."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with signal_handlers({signal.SIGTERM: end, signal.SIGHUP: end}):
        yield


def _ask(request: EngineRequest[Any]) -> Any:
    """The answer of an engine, on the device that the request wants."""
    with placed(request) as on_device:
        return ask(on_device)


def _show(found: Any, *, as_json: bool) -> None:
    """Print what was deployed."""
    from accel_tui.formatting.deployment import SIZING_HEADER, deployed_lines, deployed_values, sizing_rows

    print_to_stderr(*found.notes)
    if as_json:
        write_json(deployed_values(found))
    else:
        if found.sizings:
            write(f"{table(SIZING_HEADER, sizing_rows(found))}\n")
        write("\n".join(deployed_lines(found)))


def _stay(deployment: Deployment) -> int:
    """Show the log of a server until it ends, or end it when this command is to end; returns the exit status."""
    print_to_stderr("Ctrl-C ends the server, after it has answered what it has accepted")
    with interruptible() as interrupted:

        def goes_on() -> bool:
            return not interrupted.is_set() and server_process(deployment.directory) is not None

        _print_log(deployment.directory / LOG, goes_on)
        if not interrupted.is_set():
            print_to_stderr("the server has ended")
            return 1
        stop_server(deployment)
    return 0


def _print_log(path: Path, goes_on: Callable[[], bool]) -> None:
    """Print a log, and what is added to it while ``goes_on`` returns true."""
    if not path.exists():
        return
    with path.open("r", encoding="utf-8", errors="replace") as stream:
        while True:
            if text := stream.read():
                write(text, end="")
            elif not goes_on():
                return
            else:
                time.sleep(LOG_SECONDS)
