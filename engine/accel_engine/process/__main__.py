"""The engine process: ``python -m accel_engine.process [--run DIRECTORY]``.

Without ``--run`` it is warm: it imports TensorFlow, answers the requests of
:class:`accel_engine.launch.WarmEngine`, one JSON object a line, and waits to be handed a run.
"""

import argparse
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, TextIO

from accel_engine.errors import AccelError
from accel_engine.events import Outcome
from accel_engine.launch import installation, versions
from accel_engine.models import ModelEntry, find
from accel_engine.plan import Plan
from accel_engine.process.conductor import Conductor
from accel_engine.process.importing import TensorFlow

ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that CUDA counts GPUs as the driver's own tools do
    "TF_CPP_MIN_LOG_LEVEL": "1",
}
"""What TensorFlow, Keras and CUDA read when they are imported."""


def main() -> int:
    """Train the run that is named or handed over; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m accel_engine.process", description=__doc__)
    parser.add_argument("--run", type=Path, help="the directory of a run that waits for an engine")
    directory = parser.parse_args().run
    os.environ |= {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    os.environ["KERAS_BACKEND"] = "tensorflow"
    tensorflow = TensorFlow()
    if directory is None:
        # Only replies go to the dashboard; what native code prints goes where errors go.
        replies = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        server = WarmServer(tensorflow, replies)
        directory = server.serve(sys.stdin)
        if directory is None:
            return 0
        _log_into(directory)
        replies.close()
        if server.spent:
            os.execv(sys.executable, [sys.executable, "-m", "accel_engine.process", "--run", str(directory)])  # noqa: S606
    tensorflow.start()
    outcome = Conductor(directory, tensorflow).conduct()
    return 1 if outcome is Outcome.FAILED else 0


class WarmServer:
    """Answers a dashboard until it hands over a run.

    Args:
        tensorflow: Imported ahead, unless that would claim an accelerator.
        replies: Where answers are written.

    Attributes:
        spent: Whether this process can no longer train, because the user's own code has run in it or
            TensorFlow's devices were touched; a fresh one has to take its place.
    """

    def __init__(self, tensorflow: TensorFlow, replies: TextIO) -> None:
        self._tensorflow = tensorflow
        self._replies = replies
        self._lock = threading.Lock()
        self._claims = installation().distribution == "tensorflow-tpu"
        self.spent = False

    def serve(self, requests: TextIO) -> Path | None:
        """Answer requests; return the run's directory, or ``None`` when the dashboard is gone."""
        threading.Thread(target=self._announce, name="announce", daemon=True).start()
        for line in requests:
            request = json.loads(line)
            if "run" in request:
                return Path(request["run"])
            self._reply({**self._describe(request["describe"]), "number": request["number"]})
        return None

    def _announce(self) -> None:
        if not self._claims:
            try:
                self._tensorflow.wait()
            except AccelError as error:
                print(error, file=sys.stderr, flush=True)  # noqa: T201 (the dashboard shows these last words)
                os._exit(1)
        self._reply({"versions": versions()})

    def _describe(self, values: dict[str, Any]) -> dict[str, Any]:
        if self._claims:
            return {"problem": "known when training starts: to look now would claim the TPU"}
        try:
            plan = Plan.from_mapping(values)
            self._tensorflow.wait()
            from accel_engine.training.describe import describe, is_untouched

            self.spent = self.spent or not isinstance(find(plan.model), ModelEntry)
            try:
                return describe(plan)
            finally:
                self.spent = self.spent or not is_untouched()
        except AccelError as error:
            return {"problem": str(error)}
        except Exception as error:  # noqa: BLE001 (the user's own code is built here)
            traceback.print_exc()
            return {"problem": f"{type(error).__name__}: {error}"}

    def _reply(self, reply: dict[str, Any]) -> None:
        with self._lock:
            self._replies.write(json.dumps(reply) + "\n")
            self._replies.flush()


def _log_into(directory: Path) -> None:
    """Let go of the dashboard: read nothing, and write into the run's log from now on."""
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(directory / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(null)
    os.close(log)


if __name__ == "__main__":
    sys.exit(main())
