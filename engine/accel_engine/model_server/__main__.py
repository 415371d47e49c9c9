"""``python -m accel_engine.model_server FOLDER``: serves the model of a folder."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from accel_engine.control_groups import processor_quota
from accel_engine.errors import AccelError, UsageError
from accel_engine.model_server.access import ServerAccess, is_loopback, read_token
from accel_engine.model_server.served_model import Limits, largest_body
from accel_engine.model_server.service import read_service

EXTRA = "pip install 'accel-tui[deploy]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a model; returns the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # processes are started, and nothing else is forked
    try:
        try:
            import uvloop

            from accel_engine.model_server.serve import ServerSettings, serve
        except ImportError as error:
            raise UsageError(f"{error.name} is not installed: {EXTRA}") from error
        token = read_token(options.token_file) if options.token_file else ""
        local = is_loopback(options.host)
        if not local and not token and not options.no_token:
            raise UsageError(
                f"others can reach {options.host}: give --token-file FILE with a secret of at least 16 characters, "
                "or --no-token if something else decides who may ask"
            )
        if (options.tls_certificate is None) != (options.tls_key is None):
            raise UsageError("--tls-certificate and --tls-key belong together")
        body = options.max_body or largest_body(read_service(options.folder))
        limits = Limits(options.max_queue, options.timeout, body, options.threads or usable_processors())
        settings = ServerSettings(
            folder=options.folder,
            host=options.host,
            port=options.port,
            grpc_port=options.grpc_port,
            limits=limits,
            is_body_of_model=options.max_body is None,
            access=ServerAccess(token, local),
            tls=(options.tls_certificate, options.tls_key) if options.tls_key else None,
            drain=options.drain,
            state_file=options.state_file,
        )
        status: int = uvloop.run(serve(settings))
    except AccelError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_status
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("model_server", description="Serve the model of a folder.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder with service.json and its model")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8501, help="port of HTTP; 0 for a free one (default: 8501)")
    parser.add_argument("--grpc-port", type=_port_or_none, metavar="PORT", help="port of gRPC (default: none)")
    parser.add_argument("--threads", type=_positive, help="threads of the model (default: the processors)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the token that requests need")
    parser.add_argument("--no-token", action="store_true", help="answer everybody who reaches the host")
    parser.add_argument("--tls-certificate", type=Path, metavar="PEM", help="certificate of TLS")
    parser.add_argument("--tls-key", type=Path, metavar="PEM", help="its key")
    parser.add_argument("--max-queue", type=_positive, default=1024, help="examples that wait at most (default: 1024)")
    parser.add_argument(
        "--max-body",
        type=_positive,
        metavar="BYTES",
        help="bytes of a request at most (default: 16 MiB, or one example as JSON if that is more)",
    )
    parser.add_argument("--timeout", type=_seconds, default=30.0, help="seconds of a request (default: 30)")
    parser.add_argument("--drain", type=_seconds, default=0.0, help="seconds not ready before the end (default: 0)")
    parser.add_argument("--state-file", type=Path, metavar="FILE", help="file that says what it listens on")
    return parser


def _number(text: str, low: float, high: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
    return value


def _whole(text: str, low: int, high: int, what: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
    return int(_number(text, low, high, what))


def _port(text: str) -> int:
    return _whole(text, 0, 65_535, "a port, 0 to 65535")


def _port_or_none(text: str) -> int | None:
    return None if text == "none" else _port(text)


def _positive(text: str) -> int:
    return _whole(text, 1, 1 << 40, "a number from 1")


def _seconds(text: str) -> float:
    return _number(text, 0, 86_400, "seconds")


def usable_processors() -> int:
    """Processors that this process may use, by its affinity and its control group's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = processor_quota()
    return count if quota is None else min(count, max(1, round(quota)))


if __name__ == "__main__":
    sys.exit(main())
