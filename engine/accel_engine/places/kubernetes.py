"""Starts runs on Kubernetes as a JobSet, which the user's ``kubectl`` applies.

The run is on a volume. If that is mounted here under the same path, with this program's directory in it, the run is
made here and followed as if it were here; else the pods make it from a plan, and it is followed by the chief's log.
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from accel_engine.deploy_folder.manifests import RESOURCES, node_placement
from accel_engine.deploy_folder.rendering import Block, Value, clean, dns_label, rendered, yaml_text
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.json_values import JsonValue, decode_or_none
from accel_engine.keep_alive.watcher import MAX_RESTARTS
from accel_engine.places import PlaceRequest
from accel_engine.places.place import JobState, Place, PlacedJob, machine_devices, run_tool
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.run.directory.run_paths import home
from accel_engine.strategies.cluster_spec import BASE_PORT

MANIFEST, PLAN = "jobset.yaml", "plan.yaml"

PLAN_PATH = Path("/etc/accel-tui/plan.json")
"""The plan in a pod that makes its run."""

DEFAULT_PATH = "/accel-tui"
"""Where a volume is mounted, unless a path is given."""

DEFAULT_CPUS = 4
"""Cores of each pod, unless more are asked for."""

_PACKAGE = "Kubernetes' client"

_INDEX = "batch.kubernetes.io/job-completion-index"
"""The annotation with a pod's index."""


class Kubernetes(Place):
    """A namespace of a Kubernetes cluster; the context and namespace of ``kubectl`` without a detail."""

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`: as the user says, since pods get what they ask for."""
        if not request.image:
            raise UsageError("--on kubernetes needs --image: an image with accel-tui and TensorFlow")
        if not request.volume:
            raise UsageError("--on kubernetes needs --volume CLAIM[:PATH]: the volume claim on which runs are written")
        if not request.tpu_topology:
            return machine_devices(request.gpus or 0)
        if request.gpus:
            raise UsageError("--gpus and --tpu-topology exclude each other")
        chips = math.prod(map(int, request.tpu_topology.partition(":")[2].split("x")))
        if (request.nodes or 1) > 1 or chips > MAX_CHIPS:
            raise UsageError(
                f"--tpu-topology {request.tpu_topology}: a slice of several machines is not started here, only one of "
                f"at most {MAX_CHIPS} chips"
            )
        return machine_devices(0, tpus=chips)

    def has_run_here(self, request: PlaceRequest) -> bool:
        """See :meth:`Place.has_run_here`: whether the volume is mounted here, with this program's directory in it."""
        _, colon, path = request.volume.partition(":")
        return bool(colon) and home().absolute().is_relative_to(path) and Path(path).is_dir()

    def files(self, job: PlacedJob) -> Mapping[str, str]:
        """See :meth:`Place.files`."""
        check_data(job)
        values = self._values(job)
        found = {MANIFEST: rendered(MANIFEST, values, f"places/{MANIFEST}")}
        if not self.has_run_here(job.request):
            found[PLAN] = rendered(PLAN, values, f"places/{PLAN}")
        return found

    def submit(self, job: PlacedJob) -> str:
        """See :meth:`Place.submit`. A JobSet that has ended stays, and would be left unchanged: it is deleted first."""
        if self.state(_name(job)).is_over:
            delete = ["delete", "jobset", _name(job), "--ignore-not-found", "--wait", "--cascade=foreground"]
            run_tool([*self._kubectl(), *delete], _PACKAGE)
        for _, text in sorted(self.files(job).items(), reverse=True):  # the plan first
            run_tool([*self._kubectl(), "apply", "--filename", "-"], _PACKAGE, stdin=text)
        return _name(job)

    def state(self, job: str) -> JobState:
        """See :meth:`Place.state`."""
        try:
            text = run_tool([*self._kubectl(), "get", "jobset", job, "--output", "json"], _PACKAGE)
        except RunError as error:
            if "NotFound" in str(error) or "not found" in str(error):
                return JobState(reason=f"there is no JobSet {job} any more")
            raise
        found = decode_or_none(text, dict[str, JsonValue]) or {}
        spec, status = _mapping(found.get("spec")), _mapping(found.get("status"))
        conditions = {each.get("type"): each for each in map(_mapping, _list(status.get("conditions")))}
        for kind in ("Failed", "Completed"):
            if conditions.get(kind, {}).get("status") == "True":
                said = clean(str(conditions[kind].get("message") or ""))
                reason = f"the JobSet {job} is {kind.lower()}{': ' * bool(said)}{said}"
                return JobState(reason=reason, is_complete=kind == "Completed")
        if spec.get("suspend") is True:
            return JobState(waits=True, reason=f"the JobSet {job} waits for Kueue")
        return JobState(runs=True, reason=self._why_pending(job))

    def cancel(self, job: str) -> None:
        """See :meth:`Place.cancel`."""
        run_tool([*self._kubectl(), "delete", "jobset", job, "--wait=false"], _PACKAGE)

    def log_command(self, job: str, since: float | None = None) -> list[str]:
        """See :meth:`Place.log_command`: of the chief, until it ends; before there are pods, it ends at once."""
        chief = f"jobset.sigs.k8s.io/jobset-name={job},batch.kubernetes.io/job-completion-index=0"
        follow = ["logs", "--follow", "--tail=-1", "--pod-running-timeout=1h", "--selector", chief]
        if since is not None:
            follow.append(f"--since-time={datetime.fromtimestamp(since, UTC).isoformat()}")
        return [*self._kubectl(), *follow]

    def _kubectl(self) -> list[str]:
        context, slash, namespace = self.name.detail.rpartition("/")
        if not slash:
            context, namespace = namespace, ""
        options = [f"--context={context}"] if context else []
        return ["kubectl", *options, *([f"--namespace={namespace}"] if namespace else [])]

    def _why_pending(self, job: str) -> str:
        """Kubernetes' reason why the pods of a job do not run."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job}"
        with suppress(RunError):
            text = run_tool([*self._kubectl(), "get", "pods", "--selector", selector, "--output", "json"], _PACKAGE)
            for pod in map(_mapping, _list((decode_or_none(text, dict[str, JsonValue]) or {}).get("items"))):
                status = _mapping(pod.get("status"))
                waiting = [
                    _mapping(_mapping(each.get("state")).get("waiting"))
                    for each in map(_mapping, _list(status.get("containerStatuses")))
                ]
                said = [each.get("message") for each in map(_mapping, _list(status.get("conditions")))]
                reasons = [each.get("reason") for each in waiting] + said
                if status.get("phase") == "Pending" and (why := next(filter(None, reasons), None)):
                    return f"pods of the JobSet {job} wait: {clean(str(why))}"
        return f"the JobSet {job} starts its pods"

    def _values(self, job: PlacedJob) -> dict[str, Value]:
        request, plan, nodes = job.request, job.resolved.plan, job.nodes
        claim, path = request.volume.partition(":")[0], volume_path(request)
        name, is_here = _name(job), self.has_run_here(request)
        directory = job.directory if is_here else Path(path, "jobs", name)
        arguments = [str(directory), *([] if is_here else [str(PLAN_PATH)])]
        command = ["python", "-m", "accel_engine.places", "start", *arguments]
        chips = sum(device.kind == "tpu" for device in job.resolved.devices or ())
        accelerator = "tpu" if chips else "gpu" if job.gpus else "cpu"
        selector = dict(each.split("=", 1) for each in request.node_selector)
        if chips:
            kind, _, topology = request.tpu_topology.partition(":")
            tpu = {"cloud.google.com/gke-tpu-accelerator": kind, "cloud.google.com/gke-tpu-topology": topology}
            selector = tpu | selector
        namespace = self.name.detail.rpartition("/")[2] if "/" in self.name.detail else ""
        queue = f"labels:\n  kueue.x-k8s.io/queue-name: {yaml_text(request.local_queue)}" if request.local_queue else ""
        plan_mount = f"- name: plan\n  mountPath: {PLAN_PATH.parent}\n  readOnly: true"
        plan_volume = f"- name: plan\n  configMap:\n    name: {name}"
        return {
            "what": Block(clean(f"run {job.directory.name}" if is_here else plan.title)),
            "name": name,
            "run": job.directory.name if is_here else name,
            "namespace": Block(f"namespace: {yaml_text(namespace)}" if namespace else ""),
            "queue": Block(queue),
            "restarts": MAX_RESTARTS,
            "nodes": nodes,
            "placement": Block(node_placement(selector, accelerator)),
            "image": request.image,
            "command": Block(json.dumps(command)),
            "home": str(home().absolute()) if is_here else path,
            "place": str(self.name),
            "cluster": Block(_cluster(name, nodes)),
            "cpus": str(request.cpus or plan.threads or DEFAULT_CPUS),
            "memory": f"{job.memory}Mi",
            "devices": Block(f"{RESOURCES[accelerator]}: {chips or job.gpus}" if accelerator != "cpu" else ""),
            "ports": Block(f"ports:\n  - containerPort: {BASE_PORT}" if nodes > 1 else ""),
            "path": path,
            "claim": claim,
            "plan_mount": Block("" if is_here else plan_mount),
            "plan_volume": Block("" if is_here else plan_volume),
            "plan": Block("\n".join(_changed(plan))),
        }


MAX_CHIPS = 8
"""Most chips of a machine of GKE."""


def volume_path(request: PlaceRequest) -> str:
    """Where the volume of a run is mounted."""
    return request.volume.partition(":")[2] or DEFAULT_PATH


def check_data(job: PlacedJob) -> None:
    """Check that the data of a run is on its volume, or built in.

    Raises:
        UsageError: The data is in another directory.
    """
    data, path = job.resolved.data.path, volume_path(job.request)
    if data is not None and not data.absolute().is_relative_to(path):
        raise UsageError(f"{data} is not on the volume, which pods have at {path}: see --volume")


def _cluster(name: str, nodes: int) -> str:
    """The variables that tell each pod its place in the cluster; the names are those that JobSet gives pods."""
    if nodes == 1:
        return ""
    workers = [f"{name}-worker-0-{index}.{name}:{BASE_PORT}" for index in range(nodes)]
    cluster = json.dumps({"worker": workers})
    config = f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": $(TASK_INDEX)}}}}'
    return "\n".join(
        (
            "- name: TASK_INDEX",
            "  valueFrom:",
            "    fieldRef:",
            f"      fieldPath: metadata.annotations['{_INDEX}']",
            "- name: TF_CONFIG",
            f"  value: {yaml_text(config)}",
        )
    )


def _changed(plan: Plan) -> list[str]:
    """The lines of a plan file with what is not at its default; all is ASCII, as JSON escapes the rest."""
    changed = {name: value for name, value in json.loads(plan.absolute().to_json()).items() if value != _stored(name)}
    return json.dumps(changed, indent=2).split("\n")


def _stored(name: str) -> object:
    default = DEFAULTS[name]
    return list(default) if isinstance(default, tuple) else default


def _name(job: PlacedJob) -> str:
    """The name of a run's JobSet; of one that is only written, its plan's."""
    return dns_label(job.resolved.plan.title if job.directory.is_absolute() and job.plan_file else job.directory.name)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
