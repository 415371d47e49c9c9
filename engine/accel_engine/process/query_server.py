"""Answering one question about a run: a JSON object is read from standard input, and one is written back."""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine.errors import AccelError
from accel_engine.process.pipes import claim_pipes
from accel_engine.process.tensorflow_import import TensorFlowImport

SendReply: TypeAlias = Callable[[dict[str, Any]], None]
"""Says something before the answer."""

QueryFunction: TypeAlias = Callable[[Path, dict[str, Any], SendReply], dict[str, Any]]
"""Makes the answer from a run's directory and what is asked of it."""


def serve_query(work: QueryFunction, directory: Path, tensorflow: TensorFlowImport) -> int:
    """Do what is asked of the run's model; return the exit status."""
    requests, replies = claim_pipes()

    def send(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")

    request = json.loads(requests.read())
    try:
        tensorflow.wait()
        send(work(directory, request, send))
    except AccelError as error:
        send({"problem": str(error)})
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code is built here)
        traceback.print_exc(file=sys.stderr)
        send({"problem": f"{type(error).__name__}: {error}"})
    replies.close()
    return 0


def predict(directory: Path, request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Say what the run's model says of images."""
    del send  # it does not take long
    from accel_engine.training.inference import predict

    return predict(directory, [Path(image) for image in request["images"]], request["most"])


def revalidate(directory: Path, request: dict[str, Any], send: SendReply) -> dict[str, Any]:
    """Validate the run's model, and keep what it looks like inside."""
    del request  # there is nothing to choose
    from accel_engine.training.revalidation import revalidate

    return revalidate(directory, lambda done, of: send({"done": done, "of": of}))
