"""Importing TensorFlow ahead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
