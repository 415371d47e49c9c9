"""TPUs: the library, the chips of this machine, who holds them, and the ways to those of others."""

import os
import time
from functools import partial
from pathlib import Path

from accel_engine.devices.tpu_chips import find_chips, find_holders
from accel_engine.devices.tpu_metrics import DUTY_CYCLE, PORTS_VARIABLE, RuntimeMetrics
from accel_engine.doctor.check import Check, Finding, failed, passed, warned
from accel_engine.doctor.lock_holders import describe, is_own, lock_holder
from accel_engine.doctor.machine import Machine
from accel_engine.doctor.versions import numbers
from accel_engine.strategies.tpu_endpoint import CONNECT_SECONDS, VARIABLES, TpuEndpoint

LIBTPU = ((0, 0, 14), (0, 0, 32))
"""The first libtpu that works with tensorflow-tpu 2.20, and the first that aborts its import."""

LOCK = "libtpu_lockfile"
"""The file, in the temporary directory, that libtpu locks while a process uses the chips."""

AGAIN = 1.5
"""Seconds until a metric service that did not answer is asked once more."""

NONE_HERE = "not needed: no TPU chip here, and none is named"

_AFRESH = "in a fresh virtual environment: pip install 'accel-tui[tpu]'"


def checks(machine: Machine) -> tuple[Check, ...]:
    """The checks of this subject."""
    return (
        Check("tpu.library", partial(library, machine)),
        Check("tpu.chips", partial(chips, machine)),
        Check("tpu.lock", partial(lock, machine)),
        Check("tpu.address", partial(address, machine), 4 * CONNECT_SECONDS),
        Check("tpu.metrics", partial(metrics, machine)),
    )


def _is_local(machine: Machine) -> bool:
    """Whether a TPU of this very machine is there or meant."""
    return bool(find_chips(machine.root)) or machine.environment.get("TPU_NAME", "") == "local"


def library(machine: Machine) -> Finding:
    """Whether TensorFlow can drive chips of this machine, with a libtpu that fits it."""
    build, libtpu = machine.version("tensorflow-tpu"), machine.version("libtpu")
    if not build:
        if not _is_local(machine):
            return passed(NONE_HERE)
        why = "plain TensorFlow cannot drive the TPU of its own machine (no kernel for ConfigureDistributedTPU)"
        return failed("tensorflow-tpu is not installed", why, _AFRESH)
    found = f"tensorflow-tpu {build}, libtpu {libtpu or 'missing'}"
    if not libtpu:
        return failed(found, "libtpu is what drives the chips", f"pip install 'libtpu{_span()}'")
    if not LIBTPU[0] <= numbers(libtpu) < LIBTPU[1]:
        newer = numbers(libtpu) >= LIBTPU[1]
        why = "a libtpu this new aborts the import (SIGABRT)" if newer else "a libtpu this old was not tried with it"
        return (failed if newer else warned)(found, why, f"pip install 'libtpu{_span()}'")
    if machine.environment.get("TPU_LOAD_LIBRARY") == "0":
        return warned(found, "TPU_LOAD_LIBRARY=0 keeps TensorFlow from the chips", "unset TPU_LOAD_LIBRARY")
    path = machine.environment.get("TPU_LIBRARY_PATH", "")
    if path and not Path(path).is_file():
        return failed(found, f"TPU_LIBRARY_PATH={path} is no library", "unset TPU_LIBRARY_PATH")
    return passed(found)


def _span() -> str:
    first, end = (".".join(map(str, version)) for version in LIBTPU)
    return f">={first},<{end}"


def chips(machine: Machine) -> Finding:
    """Whether the chips of this machine can be opened, and who has them open."""
    here = find_chips(machine.root)
    if not here:
        if machine.environment.get("TPU_NAME") == "local":
            why = "TPU_NAME=local means chips of this very machine, and its PCI bus has none"
            return failed("no TPU chip on the PCI bus", why, "unset TPU_NAME, or train on a TPU VM")
        return passed("no TPU chip here")
    names = ", ".join(sorted({chip.device.name for chip in here}))
    found = f"{len(here)} x {names}"
    nodes = [node for chip in here for node in chip.nodes]
    missing = [str(node) for node in nodes if not node.exists()]
    if missing or not all(chip.nodes for chip in here):
        why = f"{missing[0] if missing else 'its file in /dev'} is not there: no driver, or not handed to the container"
        return failed(found, why, "restart the VM; start a container with --privileged and --net=host")
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        return failed(found, f"you may not open {closed[0]}", f"sudo chmod a+rw {closed[0]}, or be in its group")
    if holders := _holders(machine):
        why = f"held by {'; '.join(map(describe, holders))}: one process at a time can use them"
        return warned(found, why, f"wait for it, or end it: kill {' '.join(map(str, holders))}")
    return passed(f"{found}, free")


def _holders(machine: Machine) -> list[int]:
    """The processes that have chips open, but for those that were started to look."""
    found = find_holders(machine.root)
    holders = {int(part.id) for chip in find_chips(machine.root) for part in found.of(chip)}
    return sorted(holder for holder in holders if not is_own(holder))


def lock(machine: Machine) -> Finding:
    """Whether a process holds libtpu's lock, or a left-over file keeps others from taking it."""
    path = machine.temporary / LOCK
    if not path.exists():
        return passed(f"{path} is not there: nobody uses a TPU")
    try:
        holder = lock_holder(path)
    except PermissionError:
        owner = _owner(path)
        why = f"it belongs to {owner}, you may not open it, and so TensorFlow takes the TPU to be in use"
        finding = failed if _is_local(machine) else warned
        return finding(f"{path} is closed to you", why, f"if no program of theirs runs: sudo rm {path}")
    except OSError as error:
        return warned(f"{path} cannot be read", str(error.strerror), f"if no program uses a TPU: sudo rm {path}")
    if holder is not None:
        who = describe(holder) if holder else "a process of another container"
        advice = f"wait for it, or end it: kill {holder}" if holder else "wait for it, or end that container"
        return warned(f"{path} is locked", f"{who} holds the TPU: one process at a time can use it", advice)
    return passed(f"{path} is there, and nobody holds it")


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):
        return "a user without a name"


def address(machine: Machine) -> Finding:
    """Whether the TPUs answer that the environment names."""
    named = {name: value for name in VARIABLES if (value := machine.environment.get(name, "").strip())}
    if not named:
        return passed(f"no TPU is named ({', '.join(VARIABLES)})")
    told = []
    for name, value in named.items():
        try:
            way = TpuEndpoint.parse(value, name)
            problem = way.connection_problem()
        except ValueError as error:
            problem = str(error)
        if problem:
            return failed(f"{name}={value}", problem, f"correct or unset {name}; is the TPU running?")
        if way.local:
            told.append(f"{name}={value}: see tpu.chips")
        elif not way.addresses:
            told.append(f"{name}={value}: looked up in Google Cloud when training starts")
        else:
            told.append(f"{name}={value} answers")
    return passed("; ".join(told))


def metrics(machine: Machine) -> Finding:
    """Whether the program that uses the chips tells how busy they are."""
    if not find_chips(machine.root):
        return passed("not needed: no TPU chip here")
    service = RuntimeMetrics(machine.environment.get(PORTS_VARIABLE, ""))
    try:
        service.open()
        answer = service.read()[DUTY_CYCLE]
        if not answer.values and answer.served:  # the first connection may take longer than a reading may
            time.sleep(AGAIN)
            answer = service.read()[DUTY_CYCLE]
    finally:
        service.close()
    if answer.values:
        return passed(f"{service.addresses} tells of {len(answer.values)} chips")
    if not answer.served and not _holders(machine):
        return passed(f"nothing at {service.addresses}; it begins with the program that uses the TPU")
    why = f"{answer.reason}, so that devices are shown without their use; training does not need it"
    advice = f"if the program was told to serve at other ports, set {PORTS_VARIABLE} to them"
    return warned("no readings", why, "pip install grpcio" if "grpcio" in answer.reason else advice)
