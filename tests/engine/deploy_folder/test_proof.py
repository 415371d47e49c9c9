"""A folder is proved by its own test, with its own server, before anybody gets it."""

import dataclasses
import runpy
import shutil
import signal
import sys
import threading
from contextlib import suppress

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper

from accel_engine.deploy_folder import container
from accel_engine.deploy_folder.container import FILES, write_server_folder
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.errors import RunError
from accel_engine.model_server import standalone
from accel_engine.model_server.served_model import largest_body
from accel_engine.model_server.service import Tensor, load_examples, read_service, write_examples, write_service
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


def test_a_folder_is_proved_though_one_example_as_json_is_a_large_request(tmp_path) -> None:
    side = 1900
    model = write_folder(tmp_path / "model", "uint8")
    nodes = [
        helper.make_node("Cast", ["x"], ["number"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["number"], ["probabilities"], axes=[1, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["n", side, side])],
        [helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, ["n", 1, 1])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), model / "model.onnx"
    )
    examples = np.full((2, side, side), 255, np.uint8)
    write_examples(model, {"x": examples}, {"probabilities": np.full((2, 1, 1), 255, np.float32)})
    service = dataclasses.replace(
        read_service(model),
        inputs=(Tensor("x", (side, side), "uint8"),),
        outputs=(Tensor("probabilities", (1, 1), "float32"),),
        class_names=(),
        meanings=(),
        batch_sizes=(1,),
        examples=2,
    )
    write_service(model, service)

    write_server_folder(tmp_path, dataclasses.replace(facts_of(service), measured=None), FolderOptions(to="x"))

    for each in ("example.json", "example-v1.json"):
        assert 16 << 20 < (tmp_path / "clients" / each).stat().st_size <= largest_body(service)


def servers_of(process: psutil.Process) -> list[psutil.Process]:
    found = []
    for each in process.children(recursive=True):
        with suppress(psutil.Error):
            found += [each] if "accel_engine.model_server" in each.cmdline() else []
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_proof_that_is_interrupted_leaves_no_server(tmp_path, wait_until, number) -> None:
    """Test Ctrl-C of what waits for the proof, and signals to the proof itself."""
    write_folder(tmp_path / "model")
    shutil.copytree(FILES / "service", tmp_path, dirs_exist_ok=True)
    standalone.copy_server(tmp_path / "server")
    this, servers = psutil.Process(), list[psutil.Process]()
    others = servers_of(this)  # of tests that share them

    def new() -> list[psutil.Process]:
        return [each for each in servers_of(this) if each not in others]

    def interrupt() -> None:
        wait_until(new)
        servers.extend(new())
        target = this if number == signal.SIGINT else servers[0].parent()
        target.send_signal(number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else RunError):
            container._proved(tmp_path, 1)
        thread.join()
        assert [each for each in servers if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        for each in servers:
            with suppress(psutil.NoSuchProcess):
                each.kill()


@pytest.mark.campaign
def test_the_proof_says_why_a_server_does_not_start(tmp_path) -> None:
    model = write_folder(tmp_path / "model")
    (model / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RunError, match=r"the server did not start: .*model\.onnx"):
        write_server_folder(tmp_path, facts_of(read_service(model)), FolderOptions(to="x"))


@pytest.mark.parametrize("script", ["smoke_test.py", "clients/rest_client.py"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nothing"])
@pytest.mark.parametrize("kind", ["service", "tensorflow-serving"])
def test_scripts_tell_of_a_server_that_is_not_there(tmp_path, monkeypatch, capsys, kind, url, script) -> None:
    shutil.copytree(FILES / kind, tmp_path, dirs_exist_ok=True)
    write_folder(tmp_path / "model")
    (tmp_path / "examples.json").write_text('{"name": "m", "request": {"inputs": [1]}}')
    for name in ("example.json", "example-v1.json"):
        (tmp_path / "clients" / name).write_text("{}")
    monkeypatch.setattr("sys.argv", [script, url])
    monkeypatch.setattr("sys.path", list(sys.path))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(tmp_path / script), run_name="__main__")
    said = f"{ended.value.code}\n{capsys.readouterr().out}"
    assert ended.value.code not in (0, None)
    assert "cannot be reached" in said or "no answer" in said
