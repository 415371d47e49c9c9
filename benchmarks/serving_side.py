"""Another server of an ONNX model: ``PYTHON benchmarks/serving_side.py bare|kserve|litserve|mlflow MODEL.onnx PORT``.

Needs nothing of accel-tui, as it runs in environments of their own. ``bare`` is an ASGI application that parses,
computes and answers, in one process, and does nothing else; ``mlflow`` saves the model and runs its own command.
"""

# ruff: noqa: D102

import contextlib
import os
import sys
import tempfile
from typing import Any

import numpy as np
import onnxruntime

THREADS = 2


def session(path: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def bare(path: str, port: int) -> None:
    import orjson
    import uvicorn

    model = session(path)

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        if not body:  # asks whether it is there
            content = b"{}"
        else:
            (found,) = model.run(None, {"inputs": np.array(orjson.loads(body)["instances"], np.uint8)})
            content = orjson.dumps({"predictions": found}, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    uvicorn.run(application, port=port, loop="uvloop", http="httptools", lifespan="off", log_level="error")


def kserve(path: str, port: int) -> None:
    from kserve import Model, ModelServer

    class Served(Model):
        def __init__(self) -> None:
            super().__init__("served")
            self.model, self.ready = session(path), True

        async def predict(self, payload: Any, *_: Any, **__: Any) -> Any:
            (found,) = self.model.run(None, {"inputs": np.array(payload["instances"], np.uint8)})
            return {"predictions": found.tolist()}

    ModelServer(http_port=port, enable_grpc=False, workers=1, enable_latency_logging=False).start([Served()])


with contextlib.suppress(ImportError):
    import litserve as lit

    class LitModel(lit.LitAPI):
        """What LitServe calls, in a process that it starts."""

        def setup(self, device: str) -> None:
            del device
            self.model = session(os.environ["SERVED"])

        def decode_request(self, request, **_):  # without annotations, by which LitServe would parse it
            return np.array(request["instances"], np.uint8)

        def batch(self, inputs: Any) -> Any:
            self.counts = [len(each) for each in inputs]
            return np.concatenate(inputs)

        def predict(self, x: Any, **_: Any) -> Any:
            return self.model.run(None, {"inputs": x})[0]

        def unbatch(self, output: Any) -> Any:
            return np.split(output, np.cumsum(self.counts)[:-1])

        def encode_response(self, output: Any, **_: Any) -> Any:
            return {"predictions": output.tolist()}


def litserve(path: str, port: int) -> None:
    os.environ["SERVED"] = path
    server = lit.LitServer(LitModel(max_batch_size=32, batch_timeout=0.001), accelerator="cpu")
    server.run(port=port, generate_client_file=False, log_level="error", num_api_servers=1)


def mlflow(path: str, port: int) -> None:
    import mlflow.onnx
    import onnx
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    folder = os.path.join(tempfile.mkdtemp(), "model")
    shape = tuple(session(path).get_inputs()[0].shape[1:])
    inputs = Schema([TensorSpec(np.dtype("uint8"), (-1, *shape))])
    mlflow.onnx.save_model(onnx.load(path), folder, signature=ModelSignature(inputs))
    program = os.path.join(os.path.dirname(sys.executable), "mlflow")
    words = ["models", "serve", "-m", folder, "-p", str(port), "--env-manager", "local", "--workers", "1"]
    os.execve(
        program, [program, *words], {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
    )


if __name__ == "__main__":
    {each.__name__: each for each in (bare, kserve, litserve, mlflow)}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
