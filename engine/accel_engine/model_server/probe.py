"""``python -m accel_engine.model_server.probe [URL]``: exits with 0 if a server is ready, as Docker's health check."""

import ssl
import sys
import urllib.request
from collections.abc import Sequence

SECONDS = 5.0
"""How long it waits."""


def main(arguments: Sequence[str]) -> int:
    """Ask a server; returns 0 if it is ready, 1 if it is not, and 2 for a text that is not a URL.

    Args:
        arguments: Its URL; by default the one of a server on this machine, be it with TLS or without.
    """
    urls = [arguments[0].rstrip("/")] if arguments else ["http://127.0.0.1:8501", "https://127.0.0.1:8501"]
    if not urls[0].startswith(("http://", "https://")):
        print(f"{urls[0]} is not a URL: give one such as http://127.0.0.1:8501", file=sys.stderr)  # noqa: T201
        return 2
    trusting = ssl.create_default_context()  # the server on this machine has a name that no certificate has
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    problem: OSError | None = None
    for url in urls:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=SECONDS, context=trusting) as answer:  # noqa: S310
                print(answer.read(200).decode("utf-8", "replace"))  # noqa: T201
                return 0
        except OSError as error:
            problem = error
            if not isinstance(error, ConnectionError):  # a server with TLS closes connections without
                break
    print(f"not ready: {problem}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
