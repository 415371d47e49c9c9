"""KServe's own client asks a server: ``PYTHON kserve_client.py PORT GRPC_PORT FOLDER``; prints the largest difference.

It needs an environment with kserve, which replaces libraries of accel-tui.
"""

import asyncio
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig


async def main(port: str, grpc_port: str, folder: str) -> float:
    arrays = np.load(f"{folder}/examples.npz")
    x, expected, base = arrays["inputs/x"], arrays["outputs/probabilities"], f"http://127.0.0.1:{port}"

    def request(*, is_binary: bool) -> InferRequest:
        tensor = InferInput("x", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x, binary_data=is_binary)
        return InferRequest(model_name="small", infer_inputs=[tensor])

    found = []
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=120))
    assert await client.is_server_live(base)
    assert await client.is_server_ready(base)
    assert await client.is_model_ready(base, "small")
    for is_binary in (False, True):
        answer = await client.infer(base, request(is_binary=is_binary), model_name="small")
        found.append(answer.outputs[0].as_numpy())
    older = InferenceRESTClient(RESTConfig(protocol="v1", timeout=120))
    answer = await older.infer(base, {"instances": x.tolist()}, model_name="small")
    found.append(np.array(answer["predictions"]))
    remote = InferenceGRPCClient(f"127.0.0.1:{grpc_port}")
    assert await remote.is_server_ready()
    assert await remote.is_model_ready("small")
    found.append((await remote.infer(request(is_binary=False))).outputs[0].as_numpy())
    return max(float(np.abs(each - expected).max()) for each in found)


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(main(*sys.argv[1:]))}\n")
