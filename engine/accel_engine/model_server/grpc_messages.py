"""The messages of both gRPC protocols that the server speaks, made without generated code.

They are the Open Inference Protocol's, version 2, and TensorFlow Serving's, with TensorFlow's tensors. Names and
numbers are the protocols'. They are in a pool of descriptors for this server, so that the generated code of a client,
or of TensorFlow, may be in the same process.
"""

from dataclasses import dataclass, field
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from google.protobuf.message import DecodeError as DecodeError


@dataclass(frozen=True, slots=True)
class _File:
    """The messages of a package."""

    package: str
    messages: dict[str, str]
    """Their fields: type, name and number; ``*`` for repeated ones, ``map`` for maps from texts, ``oneof NAME:`` before
    fields of which there is only one."""
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    services: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The methods of each service. Each takes a message of its name and ``Request``, and gives its ``Response``."""
    imports: tuple[str, ...] = ()


_INFERENCE = _File(
    "inference",
    {
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
        "ModelInferRequest": "string model_name 1, string model_version 2, string id 3, "
        "InferParameter map parameters 4, ModelInferRequest.InferInputTensor* inputs 5, "
        "ModelInferRequest.InferRequestedOutputTensor* outputs 6, bytes* raw_input_contents 7",
        "ModelInferResponse.InferOutputTensor": "string name 1, string datatype 2, int64* shape 3, "
        "InferParameter map parameters 4, InferTensorContents contents 5",
        "ModelInferResponse": "string model_name 1, string model_version 2, string id 3, "
        "InferParameter map parameters 4, ModelInferResponse.InferOutputTensor* outputs 5, "
        "bytes* raw_output_contents 6",
    },
    services={
        "GRPCInferenceService": (
            *("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer"),
        )
    },
)

_TYPES = ("INVALID", "FLOAT", "DOUBLE", "INT32", "UINT8", "INT16", "INT8", "STRING", "COMPLEX64", "INT64", "BOOL")

_TENSORFLOW = _File(
    "tensorflow",
    {
        "TensorShapeProto.Dim": "int64 size 1, string name 2",
        "TensorShapeProto": "TensorShapeProto.Dim* dim 2, bool unknown_rank 3",
        "TensorProto": "DataType dtype 1, TensorShapeProto tensor_shape 2, bytes tensor_content 4, float* float_val 5, "
        "double* double_val 6, int32* int_val 7, bytes* string_val 8, int64* int64_val 10, bool* bool_val 11, "
        "int32* half_val 13, uint32* uint32_val 16, uint64* uint64_val 17",
        "TensorInfo": "DataType dtype 2, TensorShapeProto tensor_shape 3, oneof encoding: string name 1",
        "SignatureDef": "TensorInfo map inputs 1, TensorInfo map outputs 2, string method_name 3",
    },
    enums={
        "DataType": {f"DT_{name}": number for number, name in enumerate(_TYPES)}
        | {"DT_BFLOAT16": 14, "DT_UINT16": 17, "DT_HALF": 19, "DT_UINT32": 22, "DT_UINT64": 23}
    },
)

_ERRORS = _File("tensorflow.error", {}, enums={"Code": {"OK": 0, "UNAVAILABLE": 14}})

_SERVING = _File(
    "tensorflow.serving",
    {
        "ModelSpec": "string name 1, string signature_name 3, "
        "oneof version_choice: google.protobuf.Int64Value version 2, string version_label 4",
        "PredictRequest": "ModelSpec model_spec 1, tensorflow.TensorProto map inputs 2, string* output_filter 3",
        "PredictResponse": "tensorflow.TensorProto map outputs 1, ModelSpec model_spec 2",
        "SignatureDefMap": "tensorflow.SignatureDef map signature_def 1",
        "GetModelMetadataRequest": "ModelSpec model_spec 1, string* metadata_field 2",
        "GetModelMetadataResponse": "ModelSpec model_spec 1, google.protobuf.Any map metadata 2",
        "GetModelStatusRequest": "ModelSpec model_spec 1",
        "StatusProto": "tensorflow.error.Code error_code 1, string error_message 2",
        "ModelVersionStatus": "int64 version 1, ModelVersionState state 2, StatusProto status 3",
        "GetModelStatusResponse": "ModelVersionStatus* model_version_status 1",
    },
    enums={
        "ModelVersionState": {"UNKNOWN": 0, "START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50}
    },
    services={"PredictionService": ("Predict", "GetModelMetadata"), "ModelService": ("GetModelStatus",)},
    imports=(
        *("google/protobuf/any.proto", "google/protobuf/wrappers.proto"),
        *("tensorflow.proto", "tensorflow.error.proto"),
    ),
)

_FIELD: Any = descriptor_pb2.FieldDescriptorProto

_FILES = (_INFERENCE, _TENSORFLOW, _ERRORS, _SERVING)
_ENUMS = {f".{each.package}.{name}" for each in _FILES for name in each.enums}


def _described(described: _File) -> Any:
    """The description of the messages and services of a package."""
    package = described.package
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3", dependency=described.imports
    )
    for name, values in described.enums.items():
        enum = file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    made: dict[str, Any] = {}
    for name in sorted(described.messages, key=lambda name: name.count(".")):
        above, _, last = name.rpartition(".")
        made[name] = made[above].nested_type.add(name=last) if above else file.message_type.add(name=last)
    for name, fields in described.messages.items():
        plain, _, choice = fields.partition("oneof ")
        label, _, alternatives = choice.partition(": ")
        if label:
            made[name].oneof_decl.add(name=label)
        for given, is_choice in ((plain, False), (alternatives, True)):
            for each in filter(None, given.split(", ")):
                _add(made[name], package, f"{package}.{name}", each.split(), is_choice=is_choice)
    for name, methods in described.services.items():
        service = file.service.add(name=name)
        for method in methods:
            service.method.add(
                name=method, input_type=f".{package}.{method}Request", output_type=f".{package}.{method}Response"
            )
    return file


def _add(message: Any, package: str, path: str, words: list[str], *, is_choice: bool) -> None:
    """Add a field to a message."""
    kind, name, number = words[0], words[-2], int(words[-1])
    field = message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if "map" in words:
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING)
        _typed(entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL), package, kind)
        field.label = _FIELD.LABEL_REPEATED
        _typed(field, package, f"{path}.{entry.name}")
        return
    if kind.endswith("*"):
        field.label = _FIELD.LABEL_REPEATED
    if is_choice:
        field.oneof_index = 0
    _typed(field, package, kind.rstrip("*"))


def _typed(field: Any, package: str, kind: str) -> None:
    if kind[0].isupper() or "." in kind:
        field.type_name = f".{package}.{kind}" if kind[0].isupper() else f".{kind}"
        field.type = _FIELD.TYPE_ENUM if field.type_name in _ENUMS else _FIELD.TYPE_MESSAGE
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


POOL = descriptor_pool.DescriptorPool()
for _known in (any_pb2, wrappers_pb2):
    POOL.AddSerializedFile(_known.DESCRIPTOR.serialized_pb)
for _each in _FILES:
    POOL.AddSerializedFile(_described(_each).SerializeToString())


TYPE_NAMES = {each.number: each.name for each in POOL.FindEnumTypeByName("tensorflow.DataType").values}
"""TensorFlow's names of types by their numbers."""

TYPE_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}


def message(name: str) -> Any:
    """The class of a message, by its name with its package."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


def methods(service: str) -> dict[str, tuple[Any, Any]]:
    """The methods of a service, by its name with its package: the class of what each takes, and of what it gives."""
    described = POOL.FindServiceByName(service).methods
    return {each.name: (message(each.input_type.full_name), message(each.output_type.full_name)) for each in described}
