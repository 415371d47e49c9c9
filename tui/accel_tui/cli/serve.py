"""``accel-tui serve``: serves the dashboard to a browser."""

import getpass
import importlib.util
import ipaddress

import click

from accel_engine.errors import UsageError
from accel_engine.model_server.access import is_loopback
from accel_tui.cli.output import print_to_stderr, write

EPILOG = """\b
Examples:
  accel-tui serve                          then open the printed address
  accel-tui serve --port 0                 on any free port
  ssh -L 8000:127.0.0.1:8000 HOST accel-tui serve
                                           on a remote machine, through SSH

\b
Exit status:
  0  stopped by Ctrl-C
  2  textual-serve is missing, or the address cannot be used
"""


@click.command(epilog=EPILOG)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 for any free port.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="Another name by which browsers reach this machine, such as a reverse proxy's. Repeatable.",
)
def serve(host: str, port: int, allowed: tuple[str, ...]) -> int:
    """Serve the dashboard to a browser.

    Every browser page opens its own dashboard; all show the same runs. Closing a page closes its
    dashboard, Ctrl-C closes all of them. Active runs keep training.

    Anyone with the full address can start programs as you: it contains a secret, new each time.
    Addresses other than 127.0.0.1 accept connections from other machines, and the connection is
    not encrypted. For remote access, forward the port through SSH instead, as in the last example.

    Requires textual-serve: pip install 'accel-tui[serve]'. Works without internet access.
    """
    if importlib.util.find_spec("textual_serve") is None:
        raise UsageError("textual-serve is not installed: pip install 'accel-tui[serve]'")
    if not is_loopback(host):
        print_to_stderr(
            f"warning: other machines can connect to {_describe_host(host)}, and the connection is not encrypted.\n"
            f"Anyone who obtains the secret address can start programs as {getpass.getuser()}.\n"
            f"Safer: accel-tui serve on 127.0.0.1, and ssh -L {port}:127.0.0.1:{port} from the browser's machine."
        )
    from accel_tui.cli import web_server  # imports a web server, which other commands do not need

    web_server.serve_dashboards(host, port, allowed, lambda url: write(f"Open {url}\nPress Ctrl-C to stop."))
    return 0


def _describe_host(host: str) -> str:
    try:
        unspecified = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        unspecified = False
    return "any address of this machine" if unspecified else host
