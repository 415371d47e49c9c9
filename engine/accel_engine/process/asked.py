"""Answering one question about a run: a JSON object is read from standard input, and one is written back."""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from accel_engine.errors import AccelError
from accel_engine.process.importing import TensorFlow


def pipes() -> tuple[TextIO, TextIO]:
    """Requests and replies: standard input and output, kept for them alone.

    What anybody else prints goes where errors go, and there is nothing to read.
    """
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    become(0, null)
    os.dup2(2, 1)
    return requests, replies


def become(descriptor: int, file: int) -> None:
    """Let a descriptor be an open file, and close the file's own."""
    os.dup2(file, descriptor)
    os.close(file)


def predict(directory: Path, tensorflow: TensorFlow) -> int:
    """Say what the run's model says of images; return the exit status."""
    requests, replies = pipes()
    request = json.loads(requests.read())
    replies.write(json.dumps(_predict(directory, tensorflow, request)) + "\n")
    replies.close()
    return 0


def _predict(directory: Path, tensorflow: TensorFlow, request: dict[str, Any]) -> dict[str, Any]:
    try:
        tensorflow.wait()
        from accel_engine.training.prediction import predict

        return predict(directory, [Path(image) for image in request["images"]], request["most"])
    except AccelError as error:
        return {"problem": str(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's own code is built here)
        traceback.print_exc(file=sys.stderr)
        return {"problem": f"{type(error).__name__}: {error}"}
