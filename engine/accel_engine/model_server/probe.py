"""``python -m accel_engine.model_server.probe [URL]``: exits with 0 if a server is ready, as Docker's health check."""

import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

SECONDS = 5.0
"""How long it waits."""


def main(arguments: Sequence[str]) -> int:
    """Ask a server; returns 0 if it is ready, 1 if it is not, and 2 for a text that is not a URL.

    Args:
        arguments: Its URL; by default the one of a server on this machine.
    """
    url = (arguments[0] if arguments else "http://127.0.0.1:8501").rstrip("/")
    if not url.startswith(("http://", "https://")):
        print(f"{url} is not a URL: give one such as http://127.0.0.1:8501", file=sys.stderr)  # noqa: T201
        return 2
    trusting = ssl.create_default_context()  # the server on this machine has a name that no certificate has
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=SECONDS, context=trusting) as answer:  # noqa: S310
            print(answer.read(200).decode("utf-8", "replace"))  # noqa: T201
    except (OSError, urllib.error.HTTPError) as error:
        print(f"not ready: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
