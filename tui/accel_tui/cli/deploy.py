"""``accel-tui deploy``: serves trained models on this machine, checks services, and lists, updates and ends them."""

import click

from accel_engine.process.ask import ask
from accel_engine.requests.check_service import CheckOptions, CheckServiceRequest
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.run import find
from accel_engine.service_client.find_service import parse_url
from accel_engine.service_client.transport import read_token
from accel_tui.cli.options import takes
from accel_tui.cli.output import json_option, print_to_stderr, table, write, write_json
from accel_tui.formatting.deployment import check_header, check_lines, check_rows, check_values

EPILOG = """\b
Examples:
  accel-tui deploy check http://127.0.0.1:8501 last
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


class DeployGroup(click.Group):
    """The commands below ``deploy``; what is none of them is deployed: ``deploy RUN`` is ``deploy start RUN``."""

    DEFAULT = "start"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or deploy a run."""
        if args and args[0] not in self.commands and self.DEFAULT in self.commands:
            return self.DEFAULT, self.commands[self.DEFAULT], args
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """How it is called."""
        return ["[OPTIONS] RUN", "|", "COMMAND [ARGS]..."]


@click.group("deploy", cls=DeployGroup, epilog=EPILOG, context_settings={"ignore_unknown_options": True})
def deploy() -> None:
    """Serve the trained model of RUN on this machine, proved to answer as the trained model does."""


@deploy.command(epilog=CHECK_EPILOG)
@click.argument("url", metavar="URL")
@click.argument("run")
@takes(CheckOptions, "options")
@json_option
def check(url: str, run: str, options: CheckOptions, as_json: bool) -> int:
    """Check that the service at URL answers as the trained model of RUN.

    Any server that speaks the Open Inference Protocol (HTTP or gRPC) or TensorFlow Serving's REST
    protocol. It gets the raw examples of the run's test split, or of its validation split. Its outputs
    are compared with the trained model's as those of an export are, and its metrics stand beside.
    """
    parse_url(url)
    directory = find(run)
    check_steps((directory,), options.checkpoint)
    request = CheckServiceRequest(
        ModelReference.of(directory), url, options, read_token(options.token_file) if options.token_file else ""
    )
    found = ask(request)
    for note in found.notes:
        print_to_stderr(note)
    if as_json:
        write_json(check_values(found))
    else:
        write("\n\n".join(("\n".join(check_lines(found)), table(check_header(found), check_rows(found)))))
    return 1 if found.served.problem else 0
