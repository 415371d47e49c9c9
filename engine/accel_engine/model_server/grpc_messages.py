"""The messages of the Open Inference Protocol's gRPC, version 2, made without generated code.

Names and numbers are the protocol's. They are in a pool of descriptors for this server, so that a client's generated
code may be in the same process.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE, SERVICE = "inference", "inference.GRPCInferenceService"

METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
"""Each takes a message of its name with ``Request``, and gives one with ``Response``."""

_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live 1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready 1",
    "ModelReadyRequest": "string name 1, string version 2",
    "ModelReadyResponse": "bool ready 1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name 1, string version 2, string* extensions 3",
    "ModelMetadataRequest": "string name 1, string version 2",
    "ModelMetadataResponse.TensorMetadata": "string name 1, string datatype 2, int64* shape 3",
    "ModelMetadataResponse": "string name 1, string* versions 2, string platform 3, "
    "ModelMetadataResponse.TensorMetadata* inputs 4, ModelMetadataResponse.TensorMetadata* outputs 5",
    "InferParameter": "oneof parameter_choice: bool bool_param 1, int64 int64_param 2, string string_param 3, "
    "double double_param 4, uint64 uint64_param 5",
    "InferTensorContents": "bool* bool_contents 1, int32* int_contents 2, int64* int64_contents 3, "
    "uint32* uint_contents 4, uint64* uint64_contents 5, float* fp32_contents 6, double* fp64_contents 7, "
    "bytes* bytes_contents 8",
    "ModelInferRequest.InferInputTensor": "string name 1, string datatype 2, int64* shape 3, "
    "InferParameter map parameters 4, InferTensorContents contents 5",
    "ModelInferRequest.InferRequestedOutputTensor": "string name 1, InferParameter map parameters 2",
    "ModelInferRequest": "string model_name 1, string model_version 2, string id 3, InferParameter map parameters 4, "
    "ModelInferRequest.InferInputTensor* inputs 5, ModelInferRequest.InferRequestedOutputTensor* outputs 6, "
    "bytes* raw_input_contents 7",
    "ModelInferResponse.InferOutputTensor": "string name 1, string datatype 2, int64* shape 3, "
    "InferParameter map parameters 4, InferTensorContents contents 5",
    "ModelInferResponse": "string model_name 1, string model_version 2, string id 3, InferParameter map parameters 4, "
    "ModelInferResponse.InferOutputTensor* outputs 5, bytes* raw_output_contents 6",
}
"""The fields of each message: type, name and number; ``*`` for repeated ones, ``map`` for maps from texts."""

_FIELD: Any = descriptor_pb2.FieldDescriptorProto


def _file() -> Any:
    """The description of all messages and the service."""
    file = descriptor_pb2.FileDescriptorProto(name="open_inference_v2.proto", package=PACKAGE, syntax="proto3")
    made: dict[str, Any] = {}
    for name in sorted(_MESSAGES, key=lambda name: name.count(".")):
        above, _, last = name.rpartition(".")
        made[name] = made[above].nested_type.add(name=last) if above else file.message_type.add(name=last)
    for name, fields in _MESSAGES.items():
        choice, _, rest = (
            fields.removeprefix("oneof ").partition(": ") if fields.startswith("oneof ") else ("", "", fields)
        )
        if choice:
            made[name].oneof_decl.add(name=choice)
        for field in filter(None, rest.split(", ")):
            _add(made[name], name, field.split(), is_choice=bool(choice))
    service = file.service.add(name=SERVICE.rpartition(".")[2])
    for method in METHODS:
        service.method.add(
            name=method, input_type=f".{PACKAGE}.{method}Request", output_type=f".{PACKAGE}.{method}Response"
        )
    return file


def _add(message: Any, path: str, words: list[str], *, is_choice: bool) -> None:
    """Add a field to a message."""
    kind, name, number = words[0], words[-2], int(words[-1])
    field = message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if "map" in words:
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING)
        _typed(entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL), kind)
        field.label = _FIELD.LABEL_REPEATED
        _typed(field, f"{path}.{entry.name}")
        return
    if kind.endswith("*"):
        field.label = _FIELD.LABEL_REPEATED
    if is_choice:
        field.oneof_index = 0
    _typed(field, kind.rstrip("*"))


def _typed(field: Any, kind: str) -> None:
    if kind[0].isupper():
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


POOL = descriptor_pool.DescriptorPool()
POOL.AddSerializedFile(_file().SerializeToString())


def message(name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
