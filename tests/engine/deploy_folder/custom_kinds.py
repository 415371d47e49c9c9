"""The fields of custom kinds of Kubernetes that folders use, with their types.

Sources: the API references of KServe (``serving.kserve.io``) and the Prometheus Operator (``monitoring.coreos.com``).
"""

from typing import Any

from msgspec import UNSET, UnsetType, defstruct

Container = dict[str, Any]
"""A container of the core API, whose schema checks it in a Deployment."""


def kind(name: str, /, **fields: Any) -> Any:
    """A type with these fields; a tuple is a type and its default."""
    given = [(key, *each) if isinstance(each, tuple) else (key, each) for key, each in fields.items()]
    return defstruct(name, given, forbid_unknown_fields=True, kw_only=True)


def optional(each: Any) -> tuple[Any, Any]:
    """A field that may be absent."""
    return each | UnsetType, UNSET


METADATA = kind("Metadata", name=str, labels=optional(dict[str, str]), annotations=optional(dict[str, str]))

FORMAT = kind("ModelFormat", name=str, version=optional(str), autoSelect=optional(bool))

MODEL = kind("ModelSpec", modelFormat=FORMAT, runtime=optional(str), protocolVersion=optional(str), storageUri=str)

PREDICTOR = kind(
    "PredictorSpec",
    minReplicas=optional(int),
    maxReplicas=optional(int),
    scaleMetric=optional(str),
    scaleTarget=optional(int),
    timeout=optional(int),
    model=optional(MODEL),
    # A predictor is also a pod of the core API.
    containers=optional(list[Container]),
    volumes=optional(list[dict[str, Any]]),
    securityContext=optional(dict[str, Any]),
    nodeSelector=optional(dict[str, str]),
    tolerations=optional(list[dict[str, str]]),
    terminationGracePeriodSeconds=optional(int),
    automountServiceAccountToken=optional(bool),
)

INFERENCE_SERVICE = kind(
    "InferenceService", apiVersion=str, kind=str, metadata=METADATA, spec=kind("Spec", predictor=PREDICTOR)
)

SERVING_RUNTIME = kind(
    "ServingRuntime",
    apiVersion=str,
    kind=str,
    metadata=METADATA,
    spec=kind(
        "RuntimeSpec",
        supportedModelFormats=list[FORMAT],
        protocolVersions=optional(list[str]),
        containers=list[Container],
    ),
)

ENDPOINT = kind("Endpoint", port=str, path=optional(str), interval=optional(str))

SERVICE_MONITOR = kind(
    "ServiceMonitor",
    apiVersion=str,
    kind=str,
    metadata=METADATA,
    spec=kind("MonitorSpec", selector=dict[str, dict[str, str]], endpoints=list[ENDPOINT]),
)
