"""A folder is proved by its own test, with its own server, before anybody gets it."""

import dataclasses
import shutil
import subprocess
import sys

import numpy as np
import pytest

from accel_engine.deploy_folder.container import write_server_folder
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.errors import RunError
from accel_engine.model_server.service import load_examples, read_service, write_examples
from engine.deploy_folder.servables import facts_of
from engine.model_server.conftest import write_folder


def test_a_right_folder_has_what_was_measured_and_a_wrong_one_is_refused(tmp_path) -> None:
    model = write_folder(tmp_path / "model", "uint8")
    facts = dataclasses.replace(facts_of(read_service(model)), measured=None)

    found = write_server_folder(tmp_path, facts, FolderOptions(to="x"), threads=2).measured

    assert found.threads == 2
    assert found.largest <= 1e-5
    assert 0 < found.p50 <= found.p99
    assert found.rate > 0
    assert found.memory_bytes > 20 << 20
    assert f"{found.rate:.0f} requests/s of one example" in (tmp_path / "README.md").read_text()

    inputs, outputs = load_examples(model)
    write_examples(model, inputs, {"probabilities": outputs["probabilities"] + np.float32(0.01)})
    shutil.rmtree(tmp_path / "server")
    with pytest.raises(RunError, match=r"is not right: .* is beyond"):
        write_server_folder(tmp_path, facts, FolderOptions(to="x"))


@pytest.mark.campaign
def test_the_proof_says_why_a_server_does_not_start(tmp_path) -> None:
    model = write_folder(tmp_path / "model")
    (model / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RunError, match=r"the server did not start: .*model\.onnx"):
        write_server_folder(tmp_path, facts_of(read_service(model)), FolderOptions(to="x"))


def test_the_proof_tells_of_a_server_that_is_not_there(tmp_path) -> None:
    model = write_folder(tmp_path / "model")
    script = tmp_path / "smoke_test.py"
    shutil.copyfile(container_file("smoke_test.py"), script)

    done = subprocess.run([sys.executable, script, "http://127.0.0.1:9"], capture_output=True, text=True, check=False)

    assert model.exists()
    assert done.returncode == 1
    assert "cannot be reached" in done.stdout
    assert "Traceback" not in done.stderr


def container_file(name: str) -> str:
    from accel_engine.deploy_folder.container import FILES

    return str(FILES / "service" / name)
