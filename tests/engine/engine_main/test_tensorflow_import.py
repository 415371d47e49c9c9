"""Importing TensorFlow ahead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_engine.devices.installation import Installation, find_installation
from accel_engine.devices.tpu_chips import GOOGLE
from accel_engine.engine_main import tensorflow_import

PROGRAM = """
import gc, sys
from accel_engine.engine_main.tensorflow_import import MODULES, TensorFlowImport

tensorflow = TensorFlowImport()
assert not tensorflow.imported and "tensorflow" not in sys.modules
tensorflow.wait()
assert tensorflow.imported
assert gc.isenabled() and gc.get_freeze_count() > 100_000
print({"tensorflow", *MODULES} <= sys.modules.keys())
"""


def test_what_trains_a_run_is_imported_ahead() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_variables_of_the_user_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"TF_ENABLE_ONEDNN_OPTS": "0"})
    tensorflow_import.prepare()
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(
    ("visible", "order"), [(None, "PCI_BUS_ID"), ("GPU-8932", "PCI_BUS_ID"), ("1,0", "FASTEST_FIRST")]
)
def test_an_order_of_gpus_on_which_nothing_depends_is_that_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, order: str
) -> None:
    chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    monkeypatch.setattr(os, "environ", {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", **chosen})
    tensorflow_import.prepare()
    assert os.environ["CUDA_DEVICE_ORDER"] == order


def test_the_keras_backend_is_always_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"KERAS_BACKEND": "jax"})
    tensorflow_import.prepare()
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file system of a machine with a GPU."""
    card = tmp_path / "proc/driver/nvidia/gpus/0000:3b:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\n")
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: 580.159.04\n")
    monkeypatch.setattr(os, "environ", {"ACCEL_TUI_HOME": str(tmp_path / "home")})
    return tmp_path


def xla_flags(root: Path, **variables: str) -> list[str]:
    os.environ |= variables
    tensorflow_import.prepare(root)
    return os.environ.get("XLA_FLAGS", "").split()


def test_xla_keeps_what_it_found_fast_for_each_gpu_driver_and_version(root: Path) -> None:
    (flag,) = xla_flags(root)
    option, _, folder = flag.partition("=")
    assert option == "--xla_gpu_per_fusion_autotune_cache_dir"
    assert Path(folder).is_dir()
    assert Path(folder).is_relative_to(root / "home")
    assert find_installation().version in folder
    assert xla_flags(root) == [flag], "prepared twice, as after a restart"
    found = {flag}
    for file in ("version", "gpus/0000:3b:00.0/information"):
        path = root / "proc/driver/nvidia" / file
        path.write_text(path.read_text().replace("0", "1"))
        os.environ.pop("XLA_FLAGS")
        found.update(xla_flags(root))
    assert len(found) == 3


def test_flags_of_the_user_stay_and_win(root: Path) -> None:
    given = "--xla_gpu_cuda_data_dir=/usr/local/cuda --xla_gpu_autotune_level=1"
    assert xla_flags(root, XLA_FLAGS=given)[:2] == given.split()
    folder = "--xla_gpu_per_fusion_autotune_cache_dir=/somewhere"
    assert xla_flags(root, XLA_FLAGS=folder) == [folder]
    assert xla_flags(root, XLA_FLAGS="/a/file/of/flags") == ["/a/file/of/flags"]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_without_gpus_xla_has_no_flags(root: Path, tmp_path: Path, visible: str) -> None:
    assert xla_flags(tmp_path / "elsewhere") == []
    assert xla_flags(root, CUDA_VISIBLE_DEVICES=visible) == []


def test_xla_keeps_nothing_where_it_could_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert xla_flags(root, ACCEL_TUI_HOME=str(root / "with a space")) == []
    (root / "file").write_text("")
    assert xla_flags(root, ACCEL_TUI_HOME=str(root / "file")) == []
    monkeypatch.setattr(tensorflow_import, "find_installation", lambda: Installation("tensorflow", "2.20.0"))
    assert xla_flags(root, ACCEL_TUI_HOME=str(root / "home")) == []


def test_google_cloud_is_queried_only_with_tpu_chips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    tensorflow_import.prepare(tmp_path)
    assert os.environ["TPU_SKIP_MDS_QUERY"] == "1"
    function = tmp_path / "sys/bus/pci/devices/0000:00:04.0"
    function.mkdir(parents=True)
    (function / "vendor").write_text(GOOGLE)
    (function / "device").write_text("0x005e")
    monkeypatch.setattr(os, "environ", {})
    tensorflow_import.prepare(tmp_path)
    assert "TPU_SKIP_MDS_QUERY" not in os.environ
