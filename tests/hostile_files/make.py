"""Makes the files of this folder: models and data that try to run code, or to read and write where they must not.

``python tests/hostile_files/make.py`` writes them again. The code that they carry makes a file :data:`MARKER` in the
working directory.
"""

import base64
import io
import json
import marshal
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

FOLDER = Path(__file__).parent
MARKER = "code-ran"
COMMAND = f"touch {MARKER}"
_TIME = (2020, 1, 1, 0, 0, 0)


class RunsCommand:
    """Runs the command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, (COMMAND,)


def main() -> None:
    """Write all files."""
    for name, content in {**models(), **weights(), **data()}.items():
        (FOLDER / name).write_bytes(content)


def models() -> dict[str, bytes]:
    """Models in Keras' format, each of which names or has code where a layer should be."""
    lambda_code = compile(f"lambda x: (__import__('os').system({COMMAND!r}), x)[1]", "", "eval").co_consts[0]
    encoded = base64.b64encode(marshal.dumps(lambda_code)).decode()
    system = {"module": "os", "class_name": "system", "config": {"command": COMMAND}, "registered_name": None}
    run = {"module": "subprocess", "class_name": "Popen", "config": {"args": ["touch", MARKER]}}
    function = {"module": "builtins", "class_name": "function", "config": "system", "registered_name": "system"}
    os_function = {**function, "module": "os"}
    return {
        "lambda.keras": _model(_layer("Lambda", function=_lambda(encoded))),
        "lambda_output_shape.keras": _model(_layer("Lambda", function="relu", output_shape=_lambda(encoded))),
        "os_system_as_layer.keras": _model(system),
        "popen_as_layer.keras": _model(run),
        "os_system_as_model.keras": _keras(system),
        "os_system_as_activation.keras": _model(_layer("Dense", units=1, activation=os_function)),
        "os_system_as_initializer.keras": _model(_layer("Dense", units=1, kernel_initializer=system)),
        "os_system_as_loss.keras": _model(_layer("Dense", units=1), compile_config={"loss": os_function}),
        "exec_in_lambda.keras": _model(
            _layer("Lambda", function={**function, "config": "exec"}, arguments={"x": COMMAND})
        ),
        "download_in_lambda.keras": _model(
            _layer(
                "Lambda",
                function={"module": "keras.utils", "class_name": "function", "config": "get_file"},
                arguments={"origin": "file:///etc/passwd", "fname": MARKER, "cache_dir": ".", "cache_subdir": "."},
            )
        ),
        "switches_safe_mode_off.keras": _model(
            _layer(
                "Lambda",
                function={
                    "module": "keras.config",
                    "class_name": "function",
                    "config": "enable_unsafe_deserialization",
                },
            ),
            _layer("Lambda", function=_lambda(encoded)),
        ),
        "reads_other_file.keras": _model(_layer("StringLookup", vocabulary="secret.txt")),
        "torch_pickle.keras": _model(
            _layer("TorchModuleWrapper", module=base64.b64encode(pickle.dumps(RunsCommand())).decode())
        ),
        "numpy_load_in_lambda.keras": _model(
            _layer(
                "Lambda",
                function={"module": "numpy", "class_name": "function", "config": "load"},
                arguments={"allow_pickle": True},
            )
        ),
        "writes_outside.keras": _model(
            _layer("Dense", units=1), others={f"../{MARKER}": b"", f"assets/../../{MARKER}": b"", f"/tmp/{MARKER}": b""}
        ),
        "pickle.keras": pickle.dumps(RunsCommand()),
    }


def weights() -> dict[str, bytes]:
    """Weights whose values would come from another file, or far more than the file has."""
    return {"other_file.weights.h5": _linked(), "huge.weights.h5": _huge()}


def data() -> dict[str, bytes]:
    """Arrays with pickled objects, images and sounds that claim to be huge, a table of formulas."""
    objects = np.empty(1, object)
    objects[0] = RunsCommand()
    array = io.BytesIO()
    np.save(array, objects, allow_pickle=True)
    header = b"{'descr': __import__('os').system('%s'), 'fortran_order': False, 'shape': (1,)}" % COMMAND.encode()
    formulas = f'=cmd|\' /C {COMMAND}\'!A0,1,0\n"=SYSTEM(""{COMMAND}"")",2,1\n'
    padded = header.ljust(117) + b"\n"
    return {
        "pickle.npy": array.getvalue(),
        "pickle.npz": _zip({"x.npy": array.getvalue(), "y.npy": array.getvalue()}),
        "code_in_header.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + b"\0" * 8,
        "formulas.csv": f"a,b,y\n{formulas * 20}".encode(),
        "plan.toml": f"model = 'mlp'\nname = \"$({COMMAND})\\u001b]0;title\\u0007\"\n".encode(),
        "huge.png": _png(60_000, 60_000),
        "huge.wav": b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
        + b"data\x00\x00\xff\x7f" + b"\0" * 16,
    }  # fmt: skip


def _lambda(encoded: str) -> dict[str, Any]:
    return {"class_name": "__lambda__", "config": {"code": encoded, "defaults": None, "closure": None}}


def _layer(kind: str, **config: Any) -> dict[str, Any]:
    return {
        "module": "keras.layers",
        "class_name": kind,
        "config": {"name": "first", **config},
        "registered_name": None,
    }


def _model(*layers: dict[str, Any], compile_config: Any = None, others: dict[str, bytes] | None = None) -> bytes:
    """A model of some layers."""
    shape = {"batch_shape": [None, 2], "dtype": "float32", "name": "input"}
    entry = {"module": "keras.layers", "class_name": "InputLayer", "config": shape, "registered_name": None}
    return _keras(
        {
            "module": "keras",
            "class_name": "Sequential",
            "config": {"name": "hostile", "trainable": True, "layers": [entry, *layers]},
            "registered_name": None,
            "build_config": {"input_shape": [None, 2]},
            **({"compile_config": compile_config} if compile_config else {}),
        },
        others,
    )


def _keras(config: dict[str, Any], others: dict[str, bytes] | None = None) -> bytes:
    empty = io.BytesIO()
    with h5py.File(empty, "w"):
        pass
    metadata = {"keras_version": "3.10.0", "date_saved": "2020-01-01@00:00:00"}
    return _zip(
        {
            "metadata.json": json.dumps(metadata).encode(),
            "config.json": json.dumps(config).encode(),
            "model.weights.h5": empty.getvalue(),
            **(others or {}),
        }
    )


def _zip(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name, _TIME), content)
    return archive.getvalue()


def _linked() -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as stored:
        variables = stored.create_group("layers/dense/vars")
        variables["0"] = h5py.ExternalLink("secret.h5", "/secret")
        variables["1"] = np.zeros(1, np.float32)
    return file.getvalue()


def _huge() -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as stored:
        variables = stored.create_group("layers/dense/vars")
        variables.create_dataset("0", (1 << 20, 1 << 20), np.float32, chunks=(1 << 10, 1 << 10))
        variables["1"] = np.zeros(1, np.float32)
    return file.getvalue()


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 100_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


if __name__ == "__main__":
    main()
