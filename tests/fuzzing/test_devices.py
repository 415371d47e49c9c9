"""Answers of drivers and of the kernel of any kind: each becomes a reading, or a reason why there is none."""

import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pynvml
from hypothesis import given
from hypothesis import strategies as st

from accel_engine.devices.host_probe import processor_name
from accel_engine.devices.nvidia_gpu import GpuProbe
from accel_engine.devices.pci_address import normalize_bus_id, read_word
from accel_engine.devices.tpu_metrics import decode_metric_response
from accel_engine.protobuf import MalformedError
from fuzzing.texts import edited

NUMBERS = st.integers(0, 2**32 - 1) | st.sampled_from(
    [0, 100, 2**64 - 1, pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value]
)
CODES = st.integers(-5, 40) | st.sampled_from([999, 2**31 - 1])
UNDECODABLE = b"NVIDIA \xff"
"""A name that the binding fails to decode."""

NAMES = st.text(max_size=20) | st.binary(max_size=20) | st.just(UNDECODABLE)
ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetHandleByIndex": st.just("gpu"),
    "nvmlDeviceGetMigDeviceHandleByIndex": st.just("instance"),
    "nvmlDeviceGetName": NAMES,
    "nvmlDeviceGetUUID": NAMES,
    "nvmlDeviceGetPciInfo": NAMES.map(lambda name: SimpleNamespace(busId=name)),
    "nvmlDeviceGetMemoryInfo": st.builds(SimpleNamespace, used=NUMBERS, total=NUMBERS),
    "nvmlDeviceGetUtilizationRates": st.builds(SimpleNamespace, gpu=NUMBERS, memory=NUMBERS),
    "nvmlDeviceGetMigMode": st.tuples(st.sampled_from([0, 1, 7]), st.just(0)),
    "nvmlDeviceGetComputeRunningProcesses_v3": st.lists(
        st.builds(SimpleNamespace, pid=NUMBERS, usedGpuMemory=NUMBERS | st.none()), max_size=3
    ),
}


class Driver(ModuleType):
    """The binding, whose functions answer as an example says; its constants and errors are the true ones."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        super().__init__("pynvml")
        self._draw = draw

    def __getattr__(self, name: str) -> Any:
        true = getattr(pynvml, name)
        if not name.startswith("nvmlDevice"):
            return true

        def answer(*_: Any, **__: Any) -> Any:
            if self._draw(st.integers(0, 4)) == 0:
                raise pynvml.NVMLError(self._draw(CODES))
            found = self._draw(ANSWERS.get(name.replace("Graphics", "Compute"), NUMBERS))
            return found.decode() if found == UNDECODABLE else found

        return answer


@given(st.data())
def test_nvidia(tmp_path: Path, data: st.DataObject) -> None:
    probe = GpuProbe(Driver(data.draw), 0, tmp_path, itertools.count(0, 60).__next__)
    (device,) = probe.inventory().devices
    assert isinstance(device.name, str)
    for _ in range(2):
        (sample,) = probe.sample()
        for reading in sample.readings.values():
            assert (reading.value is None) == bool(reading.reason)


@given(st.binary(max_size=60) | edited("processor\t: 0\nmodel name\t: Fast CPU\n"))
def test_files_of_the_kernel(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert processor_name(path)
    read_word(path)
    normalize_bus_id(content.decode("latin-1"))


@given(
    st.binary(max_size=60) | edited(bytes.fromhex("0a1a1a180a0a120818" + "0a02180342090900000000000059401a0912") * 2)
)
def test_messages_of_tpu_runtimes(content: bytes) -> None:
    try:
        values = decode_metric_response(content)
    except MalformedError:
        return
    assert all(value >= 0 for value in values.values())
