"""Checks TPUs: libtpu, local chips and the processes that use them, remote endpoints, metrics."""

import contextlib
import fcntl
import os
import sys
import time
from pathlib import Path

import psutil

from accel_engine.devices.installation import supports_tpus
from accel_engine.devices.tpu_chips import find_chips, find_holders
from accel_engine.devices.tpu_metrics import DUTY_CYCLE, PORTS_VARIABLE, RuntimeMetrics
from accel_engine.doctor.check import CheckFinding, failed, passed, skipped, warned
from accel_engine.doctor.check_inputs import Machine, parse_version
from accel_engine.run.directory.lock import FLOCK, WHOLE_FILE
from accel_engine.strategies.tpu_endpoint import VARIABLES, TpuEndpoint

LIBTPU = ((0, 0, 14), (0, 0, 32))
"""The first libtpu version that works with tensorflow-tpu 2.20, and the first that aborts its import."""

LOCK = "libtpu_lockfile"
"""The file in the temporary directory that libtpu locks while a process uses the chips."""

RETRY_SECONDS = 1.5
"""Seconds before a metric service that did not respond is queried again."""

NOT_NEEDED = "not needed: no TPU chip, and no TPU in the environment"

_INSTALL = "run pip install 'accel-tui[tpu]' in a new virtual environment"


def _is_local(machine: Machine) -> bool:
    """Whether this machine has a TPU, or the environment says so."""
    return bool(find_chips(machine.root)) or machine.environment.get("TPU_NAME", "") == "local"


def check_library(machine: Machine) -> CheckFinding:
    """Check whether tensorflow-tpu is installed, with a compatible libtpu."""
    build, libtpu = machine.version("tensorflow-tpu"), machine.version("libtpu")
    if not build:
        if not _is_local(machine):
            return skipped(NOT_NEEDED)
        if supports_tpus("tensorflow" if machine.version("tensorflow") else "", machine.root, machine.environment):
            return passed(f"tensorflow {machine.version('tensorflow')} of this TPU VM, with its libtpu")
        cause = "standard TensorFlow does not support local TPUs (no kernel for ConfigureDistributedTPU)"
        return failed("tensorflow-tpu is not installed", cause, _INSTALL)
    summary = f"tensorflow-tpu {build}, libtpu {libtpu or 'missing'}"
    if not libtpu:
        return failed(summary, "libtpu, the chips' driver, is missing", f"run pip install 'libtpu{_span()}'")
    release = parse_version(libtpu).release
    if not LIBTPU[0] <= release < LIBTPU[1]:
        newer = release >= LIBTPU[1]
        cause = "this libtpu is too new: it aborts the import (SIGABRT)" if newer else "this libtpu is old and untested"
        return (failed if newer else warned)(summary, cause, f"run pip install 'libtpu{_span()}'")
    is_remote = machine.environment.get("TPU_NAME", "local") != "local"  # then the other hosts load it
    if machine.environment.get("TPU_LOAD_LIBRARY") == "0" and not is_remote:
        return warned(summary, "TPU_LOAD_LIBRARY=0 disables TPUs in TensorFlow", "unset TPU_LOAD_LIBRARY")
    if is_remote and find_chips(machine.root) and machine.environment.get("TPU_LOAD_LIBRARY") != "0":
        name = machine.environment["TPU_NAME"]
        summary = f"TPU_NAME={name}, but TensorFlow takes this host's chips when it starts"
        cause = f"the servers of {name} need these chips, which only one process can use: training on {name} may fail"
        fix = (
            f"to train on all of {name}, run export TPU_LOAD_LIBRARY=0 on its first host (worker 0) only; to train on "
        )
        return warned(summary, cause, f"{fix}this host's chips only, run export TPU_NAME=local")
    path = machine.environment.get("TPU_LIBRARY_PATH", "")
    if path and not Path(path).is_file():
        return failed(summary, f"TPU_LIBRARY_PATH={path} is not a file", "unset TPU_LIBRARY_PATH")
    return passed(summary)


def _span() -> str:
    first, end = (".".join(map(str, version)) for version in LIBTPU)
    return f">={first},<{end}"


def check_chips(machine: Machine) -> CheckFinding:
    """Check whether the machine's chips can be opened, and are free."""
    chips = find_chips(machine.root)
    if not chips:
        if machine.environment.get("TPU_NAME") == "local":
            cause = "TPU_NAME=local requires TPU chips in this machine"
            return failed("no TPU chip on the PCI bus", cause, "unset TPU_NAME, or train on a TPU VM")
        return skipped("no TPU chip")
    names = ", ".join(sorted({chip.device.name for chip in chips}))
    summary = f"{len(chips)} x {names}"
    nodes = [node for chip in chips for node in chip.nodes]
    missing = [str(node) for node in nodes if not node.exists()]
    if missing or not all(chip.nodes for chip in chips):
        cause = f"{missing[0] if missing else 'its device file'} is missing: no driver, or not passed to the container"
        return failed(summary, cause, "restart the VM; start a container with --privileged and --net=host")
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        return failed(summary, f"you may not open {closed[0]}", f"run sudo chmod a+rw {closed[0]}, or join its group")
    if holders := _holders(machine):
        cause = f"in use by {'; '.join(map(describe_process, holders))}; only one process can use them"
        return warned(summary, cause, f"wait for it, or stop it: kill {' '.join(map(str, holders))}")
    return passed(f"{summary}, free")


def _holders(machine: Machine) -> list[int]:
    """The processes that have chips open, except children of this one."""
    holders_by_node = find_holders(machine.root)
    holders = {int(holder.id) for chip in find_chips(machine.root) for holder in holders_by_node.of(chip)}
    return sorted(holder for holder in holders if not is_child_process(holder))


def check_tpu_lock(machine: Machine) -> CheckFinding:
    """Check whether a process holds libtpu's lock, or a leftover file blocks it."""
    path = machine.temporary / LOCK
    if not path.exists():
        return passed(f"no {path}: no process uses a TPU")
    try:
        holder = lock_holder(path)
    except PermissionError:
        cause = f"it belongs to {_owner(path)} and you may not open it, so TensorFlow assumes that the TPU is in use"
        finding = failed if _is_local(machine) else warned
        return finding(f"cannot open {path}", cause, f"if none of that user's programs runs, run sudo rm {path}")
    except OSError as error:
        return warned(f"cannot read {path}", str(error.strerror), f"if no program uses a TPU, run sudo rm {path}")
    if holder is not None:
        who = describe_process(holder) if holder else "a process of another container"
        fix = f"wait for it, or stop it: kill {holder}" if holder else "wait for it, or stop that container"
        return warned(f"{path} is locked", f"{who} uses the TPU; only one process can use it", fix)
    return passed(f"{path} is not locked")


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):
        return "an unknown user"


def check_address(machine: Machine) -> CheckFinding:
    """Check whether the TPUs in the environment respond."""
    named = {name: value for name in VARIABLES if (value := machine.environment.get(name, "").strip())}
    if not named:
        return skipped(f"no TPU in the environment ({', '.join(VARIABLES)})")
    results = []
    for name, value in named.items():
        try:
            endpoint = TpuEndpoint.parse(value, name)
            problem = endpoint.connection_problem()
        except ValueError as error:
            problem = str(error)
        if problem:
            return failed(f"{name}={value}", problem, f"check that the TPU is running; correct or unset {name}")
        if endpoint.local:
            results.append(f"{name}={value}: see tpu.chips")
        elif not endpoint.addresses:
            results.append(f"{name}={value}: looked up in Google Cloud when training starts")
        else:
            results.append(f"{name}={value} responds")
    return passed("; ".join(results))


def check_tpu_metrics(machine: Machine) -> CheckFinding:
    """Check whether the program that uses the chips serves TPU metrics."""
    if not find_chips(machine.root):
        return skipped("not needed: no TPU chip")
    service = RuntimeMetrics(machine.environment.get(PORTS_VARIABLE, ""))
    try:
        service.open()
        metric = service.read()[DUTY_CYCLE]
        if not metric.values and metric.served:  # the first connection may exceed the timeout of a read
            time.sleep(RETRY_SECONDS)
            metric = service.read()[DUTY_CYCLE]
    finally:
        service.close()
    if metric.values:
        return passed(f"{len(metric.values)} chips at {service.addresses}")
    if not metric.served and not _holders(machine):
        return skipped(f"not checked: no program uses the TPU, so none serves metrics at {service.addresses}")
    cause = f"{metric.reason} (TensorFlow may not serve them); the dashboard cannot show the TPU's utilization, which "
    cause += "does not affect training"
    fix = f"if the program serves metrics at other ports, set {PORTS_VARIABLE} to them"
    return warned("no TPU metrics", cause, "run pip install grpcio" if "grpcio" in metric.reason else fix)


def lock_holder(file: Path) -> int | None:
    """Find the process that holds a POSIX lock on a file.

    Returns:
        Its process id; 0 if it is outside this container; ``None`` if the file is not locked, or the system
        cannot tell.

    Raises:
        OSError: The file cannot be opened for writing.
    """
    with file.open("r+b") as opened:
        if sys.platform != "linux":
            return None
        kind, _, _, _, holder = FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_GETLK, WHOLE_FILE))
        return None if kind == fcntl.F_UNLCK or is_child_process(holder) else max(0, int(holder))


def describe_process(process: int) -> str:
    """Format a process: its id and command."""
    with contextlib.suppress(psutil.Error):
        command = psutil.Process(process).cmdline()
        if "accel_engine.process" in command:
            return f"process {process} (accel-tui engine)"
        return f"process {process} ({' '.join(command)[:60] or psutil.Process(process).name()})"
    return f"process {process}"


def is_child_process(process: int) -> bool:
    """Whether a process is a child of this one, such as the one that probes TensorFlow."""
    with contextlib.suppress(psutil.Error, ValueError):
        return psutil.Process(process).ppid() == os.getpid()
    return False
