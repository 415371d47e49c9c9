"""What `deploy --to` refuses before TensorFlow starts, with exit status 2."""

import signal

import pytest

from accel_engine.deploy_folder import deploy_to_folder

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def run(new_run) -> None:
    new_run().train()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--for kserve", "--for is for a folder: give --to FOLDER"),
        ("--to service --port 3", "--port is for a server that is started here"),
        ("--to service --for litert --format onnx", "a folder for litert takes tflite"),
        ("--to service --for litert --format tflite-int8", "has all precisions of tflite"),
        ("--to service --accelerator gpu --format onnx", "a folder for gpu takes savedmodel"),
        ("--to service --for tensorflow-serving --accelerator tpu", "images have no TPU"),
        ("--to service --image 'a b'", "is not the name of an image"),
        ("--to service --for kserve --storage x", "is not the address of a storage"),
        ("--to service --for kserve --storage pvc://x", "give --format savedmodel"),
        ("--to service --for kserve --node-selector x", "give NAME=VALUE"),
        ("--to service --for litert --target-latency 20ms", "is measured with accel-tui's server"),
        ("--to service --foreground", "leave out --to"),
        ("--to mine", "has files that accel-tui did not write"),
        ("--to mine/file", "is a file: choose another folder"),
    ],
)
def test_refuses(options: str, words: str, run_command, here) -> None:
    (here / "mine").mkdir()
    (here / "mine/file").touch()

    refused = run_command(f"deploy last {options}")

    assert refused.status == 2
    assert words in refused.err
    assert sorted(path.name for path in here.iterdir()) == ["mine"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_ctrl_c_does(number: signal.Signals, run_command, monkeypatch) -> None:
    monkeypatch.setattr(deploy_to_folder, "deploy_to_folder", lambda *_: signal.raise_signal(number))
    assert run_command("deploy last --to service").status == 130
