"""Messages of TensorFlow Serving's configuration, with the fields that folders use.

Sources: ``model_server_config.proto``, ``file_system_storage_path_source.proto`` and ``monitoring_config.proto``.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def model_server_config() -> Any:
    """An empty ``ModelServerConfig``."""
    return _class("ModelServerConfig")()


def monitoring_config() -> Any:
    """An empty ``MonitoringConfig``."""
    return _class("MonitoringConfig")()


def _class(name: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="serving.proto", package="serving", syntax="proto3")
    _message(file, "Specific", versions=(1, FIELD.TYPE_INT64, True))
    _message(file, "ServableVersionPolicy", specific=(102, "Specific", False))
    config = _message(
        file,
        "ModelConfig",
        name=(1, FIELD.TYPE_STRING, False),
        base_path=(2, FIELD.TYPE_STRING, False),
        model_platform=(4, FIELD.TYPE_STRING, False),
        model_version_policy=(7, "ServableVersionPolicy", False),
        version_labels=(8, "ModelConfig.VersionLabelsEntry", True),
    )
    entry = config.nested_type.add(name="VersionLabelsEntry")
    entry.options.map_entry = True
    _add(entry, "key", 1, FIELD.TYPE_STRING)
    _add(entry, "value", 2, FIELD.TYPE_INT64)
    _message(file, "ModelConfigList", config=(1, "ModelConfig", True))
    _message(file, "ModelServerConfig", model_config_list=(1, "ModelConfigList", False))
    _message(file, "PrometheusConfig", enable=(1, FIELD.TYPE_BOOL, False), path=(2, FIELD.TYPE_STRING, False))
    _message(file, "MonitoringConfig", prometheus_config=(1, "PrometheusConfig", False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"serving.{name}"))


def _message(file: Any, name: str, /, **given: tuple[int, Any, bool]) -> Any:
    message = file.message_type.add(name=name)
    for each, (number, kind, repeats) in given.items():
        _add(message, each, number, kind, repeats=repeats)
    return message


def _add(message: Any, name: str, number: int, kind: Any, *, repeats: bool = False) -> None:
    field = message.field.add(name=name, number=number)
    field.label = FIELD.LABEL_REPEATED if repeats else FIELD.LABEL_OPTIONAL
    if isinstance(kind, str):
        field.type, field.type_name = FIELD.TYPE_MESSAGE, f".serving.{kind}"
    else:
        field.type = kind
