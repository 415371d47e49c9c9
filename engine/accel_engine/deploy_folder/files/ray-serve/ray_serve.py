"""Serves the model of this folder by Ray Serve, which scales it over replicas and machines.

``serve run serve.yaml`` starts it. Needs what requirements.txt has. Each replica has its own back end and batches.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ray import serve

HERE = Path(__file__).resolve().parent


def build() -> Callable[..., Awaitable[None]]:
    """The application of a replica, which Ray calls there; it is ready once the model is warm."""
    sys.path.insert(0, str(HERE / "server"))
    os.environ["PYTHONPATH"] = str(HERE / "server")  # of the back end, which is a process
    from accel_engine.model_server.__main__ import usable_processors
    from accel_engine.model_server.access import ServerAccess
    from accel_engine.model_server.application import ServingState, application
    from accel_engine.model_server.metrics import ServerMetrics
    from accel_engine.model_server.served_model import Limits, ServedModel, largest_body
    from accel_engine.model_server.service import read_service

    threads = int(os.environ.get("OMP_NUM_THREADS") or usable_processors())  # which Ray sets to num_cpus
    limits = Limits(body=largest_body(read_service(HERE / "model")), threads=threads)
    state = ServingState(limits, ServerAccess(is_local=False), ServerMetrics())
    answer = application(state)

    async def replica(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await answer(scope, receive, send)
            return
        await receive()
        state.model = await ServedModel.start(HERE / "model", limits, state.metrics)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await state.model.close()
        await send({"type": "lifespan.shutdown.complete"})

    return replica


app = serve.deployment(serve.ingress(build)(), name="model").bind()
