"""``accel-tui serve``: the dashboard in a browser."""

import getpass
import importlib.util
import ipaddress

import click

from accel_engine.errors import UsageError
from accel_tui.cli.output import print_line, write

EPILOG = """\b
Examples:
  accel-tui serve                          then open the address that it says
  accel-tui serve --port 0                 on any free port
  ssh -L 8000:127.0.0.1:8000 HOST accel-tui serve
                                           a remote machine's, at home

\b
Exit status:
  0  Ctrl-C ended it
  2  textual-serve is missing, or the address cannot be used
"""


@click.command(epilog=EPILOG)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address of this machine to listen on.",
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 for any."
)
def serve(host: str, port: int) -> int:
    """Show the dashboard in a browser.

    Every page that is opened is a dashboard of its own; all of them show the same runs. A page ends
    when it is closed, and Ctrl-C here ends them all; runs go on.

    Whoever has the whole address can start programs as you: it ends in a secret, new each time.
    Other addresses than 127.0.0.1 can be reached from other machines, and nothing that is sent is
    encrypted. To look from afar, rather bring the port to you, as the last example does.

    Needs textual-serve: pip install 'accel-tui[serve]'. No network is needed for it.
    """
    if importlib.util.find_spec("textual_serve") is None:
        raise UsageError(
            "to serve browsers needs textual-serve, which is not installed: pip install 'accel-tui[serve]'"
        )
    if not is_loopback(host):
        print_line(
            f"warning: every machine that can reach {_spoken(host)} can ask for the dashboard. Whoever has its\n"
            f"secret address, or overhears it, can start programs as {getpass.getuser()}: nothing is encrypted.\n"
            f"Safer: accel-tui serve on 127.0.0.1, and ssh -L {port}:127.0.0.1:{port} from where the browser is."
        )
    from accel_tui.cli import web_server  # imports a web server, which no other command needs

    web_server.serve(host, port, lambda url: write(f"open {url}\nCtrl-C ends it."))
    return 0


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _spoken(host: str) -> str:
    try:
        anywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        anywhere = False
    return "any address of this one" if anywhere else host
