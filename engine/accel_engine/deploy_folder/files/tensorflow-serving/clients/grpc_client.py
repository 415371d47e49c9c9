"""Asks TensorFlow Serving for the example of this folder, over gRPC.

pip install tensorflow-serving-api; python3 grpc_client.py [HOST:PORT]
"""

import json
import sys
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Print each output beside the trained model's."""
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8500"
    served = json.loads((HERE.parent / "examples.json").read_text("utf-8"))
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    request = predict_pb2.PredictRequest()
    request.model_spec.name = served["name"]
    request.model_spec.signature_name = "serving_default"
    for each in json.loads((HERE / "example.json").read_text("utf-8"))["inputs"]:
        kind = served["inputs"][each["name"]]
        values = [float("nan") if value is None else value for value in each["data"]]
        array = np.array(values, object if kind == "string" else kind).reshape(each["shape"])
        request.inputs[each["name"]].CopyFrom(tf.make_tensor_proto(array, kind))
    with grpc.insecure_channel(address) as channel:
        answer = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=60)
    for name, tensor in answer.outputs.items():
        print(name)
        print("  server        ", *tf.make_ndarray(tensor).reshape(-1).tolist()[:10])
        if name in expected:
            print("  trained model ", *expected[name][:10])


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"the server gives no answer: {error.details()}")
