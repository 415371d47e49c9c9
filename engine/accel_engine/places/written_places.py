"""Writes the files from which SkyPilot and xpk start a run; the user starts it with their commands."""

import math
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NoReturn

from accel_engine.deploy_folder.rendering import Block, Value, clean, dns_label, rendered, shell_text, yaml_text
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.keep_alive.watcher import MAX_RESTARTS
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.places.kubernetes import DEFAULT_CPUS, check_data, volume_path
from accel_engine.places.own_process import AGAIN
from accel_engine.places.place import Place, PlacedJob, machine_devices
from accel_engine.strategies.cluster_spec import BASE_PORT

_MIB_PER_GB = 1000**3 / (1 << 20)

_NAME = 33
"""Characters of a job's name before what makes it unique; xpk allows 40 in all."""

_GPU = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
"""The name of an accelerator of SkyPilot."""

_GPU_MACHINE = re.compile(r"(?:l4|a100|h100|h200|b200|gb200)(?:-[a-z0-9]+)*-(\d+)", re.ASCII)
"""A device type of xpk with GPUs, and their number on each machine."""

_TPU_MACHINES = {"v4-8": 4, "v5p-8": 4, "v6e-1": 1, "v6e-4": 4}
"""Chips of the device types of xpk that are TPUs of one machine."""


class WrittenPlace(Place):
    """A place whose files are only written."""

    engine: ClassVar[str]
    """What starts the run."""

    def describe(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.describe`."""
        if not request.write:
            raise self._only_writes()
        if not request.image:
            raise UsageError(f"--on {self.name.kind} needs --image: an image with accel-tui and TensorFlow")
        return super().describe(request)

    def values(self, job: PlacedJob, name: str) -> tuple[str, Mapping[str, Value]]:
        """The name of its file, and the values of that.

        Args:
            job: The run.
            name: The job's name.
        """
        raise NotImplementedError

    def has_run_here(self, request: PlaceRequest) -> bool:
        """See :meth:`Place.has_run_here`: the job makes it."""
        return False

    def files(self, job: PlacedJob) -> Mapping[str, str]:
        """See :meth:`Place.files`."""
        check_data(job)
        name = f"{dns_label(job.resolved.plan.title)[:_NAME].strip('-')}-{secrets.token_hex(3)}"
        file, values = self.values(job, name)
        common: dict[str, Value] = {
            "what": Block(clean(job.resolved.plan.title)),
            "name": name,
            "nodes": job.nodes,
            "again": AGAIN,
        }
        return {file: rendered(file, {**common, **values}, f"places/{file}")}

    def submit(self, job: PlacedJob) -> str:
        """See :meth:`Place.submit`."""
        raise self._only_writes()

    def state(self, job: str) -> NoReturn:
        """See :meth:`Place.state`."""
        raise RunError(f"{self.engine} knows what {job} does, and is not asked here")

    def cancel(self, job: str) -> None:
        """See :meth:`Place.cancel`."""
        raise RunError(f"{self.engine} has to end {job}: it is not asked here")

    def _only_writes(self) -> UsageError:
        return UsageError(f"--on {self.name.kind} only writes files: --write FOLDER")


class SkyPilot(WrittenPlace):
    """Any machines that SkyPilot finds: with the GPUs that the detail names, or without."""

    engine = "SkyPilot"

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`."""
        kind = self.name.detail
        if kind and (not _GPU.fullmatch(kind) or kind.lower().startswith("tpu")):
            raise UsageError(f"{kind!r} is not a GPU of SkyPilot: give one such as skypilot:A100 (sky gpus list)")
        if request.gpus and not kind:
            raise UsageError("--gpus: name the GPU, as --on skypilot:A100")
        if (request.nodes or 1) > 1 and not request.volume:
            raise UsageError("several machines need --volume CLAIM[:PATH]: a volume of SkyPilot that all can write")
        return machine_devices((1 if kind else 0) if request.gpus is None else request.gpus, kind)

    def values(self, job: PlacedJob, name: str) -> tuple[str, Mapping[str, Value]]:
        """See :meth:`WrittenPlace.values`."""
        request = job.request
        claim, path = request.volume.partition(":")[0], volume_path(request)
        home = shell_text(path) if claim else '"$HOME/accel-tui"'
        workers = (
            f"workers=$(printf '\"%s:{BASE_PORT}\", ' $SKYPILOT_NODE_IPS)",
            f"export TF_CONFIG={_tf_config('${workers%, }', '$SKYPILOT_NODE_RANK')}",
        )
        return "skypilot.yaml", {
            "accelerators": Block(f"accelerators: {self.name.detail}:{job.gpus}" if job.gpus else ""),
            "cpus": f"{request.cpus or job.resolved.plan.threads or DEFAULT_CPUS}+",
            "memory": f"{math.ceil(job.memory / _MIB_PER_GB)}+",
            "image": f"docker:{request.image}",
            "volumes": Block(f"volumes:\n  {yaml_text(path)}: {yaml_text(claim)}" if claim else ""),
            "home": Block(home),
            "place": Block(shell_text(str(self.name))),
            "cluster": Block("\n".join(workers) if job.nodes > 1 else ""),
            "link": Block(f"{home}/jobs/{name}"),
            "plan": Block(_plan_file(job)),
        }


class Xpk(WrittenPlace):
    """A device type of a GKE cluster that xpk has made.

    Args:
        name: Its name, with the cluster and the device type.
    """

    engine = "xpk"

    def __init__(self, name: PlaceName) -> None:
        super().__init__(name)
        self._cluster, _, self._device = name.detail.partition("/")

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`."""
        if not self._cluster or clean(self._cluster) != self._cluster or not self._device:
            raise UsageError(f"{self.name} names no cluster and device type: give one such as xpk:lab/h100-80gb-8")
        if not request.volume.partition(":")[2]:
            raise UsageError("--on xpk needs --volume STORAGE:PATH: a storage of the cluster, and its mount point")
        if gpus := _GPU_MACHINE.fullmatch(self._device):
            return machine_devices(int(gpus[1]), self._device.rpartition("-")[0])
        chips = _TPU_MACHINES.get(self._device, 0)
        if not chips:
            raise UsageError(
                f"{self._device!r} is neither GPUs, such as h100-80gb-8, nor a TPU of one machine: "
                f"{', '.join(_TPU_MACHINES)}"
            )
        if (request.nodes or 1) > 1:
            raise UsageError(f"--nodes {request.nodes}: only machines with GPUs train together, not {self._device}")
        return machine_devices(0, tpus=chips)

    def values(self, job: PlacedJob, name: str) -> tuple[str, Mapping[str, Value]]:
        """See :meth:`WrittenPlace.values`."""
        request = job.request
        storage, path = request.volume.partition(":")[0], volume_path(request)
        variables = [f"ACCEL_TUI_HOME={shell_text(path)}", f"ACCEL_TUI_PLACE={shell_text(str(self.name))}"]
        variables.append("ACCEL_TUI_SHOWS=1")
        if job.nodes > 1:
            workers = ", ".join(rf"\"{name}-slice-job-0-{index}.{name}:{BASE_PORT}\"" for index in range(job.nodes))
            variables.append(f"TF_CONFIG={_tf_config(workers, '$JOB_COMPLETION_INDEX')}")
        link = shell_text(f"{path}/jobs/{name}")
        command = f"exec env {' '.join(variables)} python -m accel_engine.places start {link} {_plan_file(job)}"
        return "xpk.sh", {
            "cluster": self._cluster,
            "device": self._device,
            "machines": Block(f"--num-nodes={job.nodes} \\" if self._device not in _TPU_MACHINES else ""),
            "image": request.image,
            "storage": storage,
            "restarts": MAX_RESTARTS,
            "command": command,
        }


def _tf_config(workers: str, index: str) -> str:
    """The cluster as a word of a shell in double quotes, which replaces variables in it.

    Args:
        workers: The workers, as elements of a list of JSON.
        index: The variable with a machine's index.
    """
    return rf'"{{\"cluster\": {{\"worker\": [{workers}]}}, \"task\": {{\"type\": \"worker\", \"index\": {index}}}}}"'


def _plan_file(job: PlacedJob) -> str:
    return shell_text(Path(job.plan_file or "").name)
