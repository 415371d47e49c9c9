"""Asks the server for the example of this folder, over gRPC.

pip install 'tritonclient[grpc]'; python3 grpc_client.py [HOST:PORT]
"""

import json
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Print each output beside the trained model's."""
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8500"
    name = json.loads((HERE.parent / "model" / "service.json").read_text("utf-8"))["name"]
    request = json.loads((HERE / "example.json").read_text("utf-8"))
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    inputs = []
    for each in request["inputs"]:
        values = [float("nan") if value is None else value for value in each["data"]]
        array = np.array(values, triton_to_np_dtype(each["datatype"])).reshape(each["shape"])
        tensor = triton.InferInput(each["name"], each["shape"], each["datatype"])
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    answer = triton.InferenceServerClient(address).infer(name, inputs)
    for output in answer.get_response().outputs:
        found = answer.as_numpy(output.name).reshape(-1).tolist()
        found = [value.decode() if isinstance(value, bytes) else value for value in found]
        print(output.name, list(output.shape))
        print("  server        ", *found[:10], "..." if len(found) > 10 else "")
        print("  trained model ", *expected[output.name][:10], "..." if len(found) > 10 else "")


if __name__ == "__main__":
    try:
        main()
    except InferenceServerException as error:
        sys.exit(f"the server gives no answer: {error}")
