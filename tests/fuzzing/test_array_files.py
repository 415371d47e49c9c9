"""Files of arrays with any header and any bytes: each is surveyed and read, or refused with the reason."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.errors import AccelError
from fuzzing.texts import edited

DTYPES = st.sampled_from(["<f8", "|u1", "<U3", "|O", "<M8[s]", "|V0", "<f2", ",", "i4,f4", "<c16", "|S0", "f8" * 40])
SIDES = st.integers(-2, 12) | st.sampled_from([10**6, 2**31, 2**63, 10**30])
HEADERS = st.fixed_dictionaries(
    {
        "descr": DTYPES | st.lists(st.tuples(st.text(max_size=3), DTYPES), max_size=2),
        "fortran_order": st.booleans(),
        "shape": st.lists(SIDES, max_size=4).map(tuple),
    }
).map(str) | st.sampled_from(["'''", "{" * 900, "9" * 5000, "{'descr': lambda: 0}", "\0"])


def read(path: Path) -> None:
    for action in (
        lambda: data.survey(data.find(str(path)), DataOptions()),
        lambda: data.load(str(path), DataOptions()),
    ):
        with suppress(AccelError):
            action()


@st.composite
def members(draw: st.DrawFn) -> bytes:
    """An array's file: its header, and values that need not fit."""
    text = draw(HEADERS)
    version = draw(st.sampled_from([1, 2, 3]))
    length = draw(st.sampled_from([len(text), len(text), len(text), 0, 2**16 - 1]))
    head = b"\x93NUMPY" + bytes((version, 0)) + length.to_bytes(2 if version == 1 else 4, "little")
    return head + text.encode("latin-1", "replace") + draw(st.binary(max_size=64)) * draw(st.integers(0, 40))


@given(st.dictionaries(st.sampled_from(["x.npy", "y.npy", "x_val.npy", "class_names.npy", "é"]), members(), max_size=4))
def test_headers(tmp_path: Path, arrays: dict[str, bytes]) -> None:
    with zipfile.ZipFile(tmp_path / "mine.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    read(tmp_path / "mine.npz")


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@given(edited(archive(x=np.arange(60.0).reshape(20, 3), y=np.arange(20) % 3)))
def test_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.npz").write_bytes(content)
    read(tmp_path / "mine.npz")
