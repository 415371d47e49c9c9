"""TensorFlow, asked in a separate process: the true one, and processes that end in every way."""

import sys
from pathlib import Path
from typing import Any

import pytest

from accel_engine.doctor import tf_probe
from accel_engine.doctor.tf_probe import (
    TensorFlowDevices,
    probe_devices,
    probe_tensorflow,
    refuse_xla_flags,
    shadows,
    xla_flags_problem,
)
from accel_engine.errors import UsageError


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_the_true_tensorflow_is_seen() -> None:
    tensorflow = probe_tensorflow()
    assert not tensorflow.problem, tensorflow.log
    assert tensorflow.version.startswith("2.")
    assert tensorflow.keras.startswith("3.")
    assert tensorflow.file.endswith("tensorflow/__init__.py")
    assert tensorflow.seconds > 0
    assert (tensorflow.signal, tensorflow.timed_out) == ("", False)
    assert len(tensorflow.capabilities) == len(tensorflow.gpus)


def test_the_true_tensorflow_computes_on_every_device() -> None:
    tensorflow = probe_devices()
    assert (tensorflow.problem, tensorflow.signal, tensorflow.trying) == ("", "", ""), tensorflow.log
    assert len(tensorflow.computed) == 3 * (len(tensorflow.gpus) or 1)
    assert tensorflow.computed[2].startswith("a function compiled by XLA on ")


def test_an_unknown_flag_of_xla_is_found_in_another_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_nonsense=1")
    assert xla_flags_problem() == "Unknown flag in XLA_FLAGS: --xla_nonsense=1"
    monkeypatch.setattr(tf_probe, "probe_tensorflow", lambda _: pytest.fail("tried again"))
    assert xla_flags_problem() == "Unknown flag in XLA_FLAGS: --xla_nonsense=1"
    monkeypatch.delenv("XLA_FLAGS")
    assert xla_flags_problem() == ""


F = "F0000 00:00:1.5 7 parse_flags_from_env.cc:220] "


@pytest.mark.parametrize(
    ("end", "problem", "remembered"),
    [
        ({"computed": ("a function compiled by XLA on CPU:0 in 0.1 s",)}, "", True),
        (
            {
                "log": f"E00 command_line_flags.cc:93] Couldn't interpret value no for flag xla_a.\n"
                f"{F}Check failed: Flag parsing failed.\nFlags:\n\t--xla_a=1\n"
            },
            "Couldn't interpret value no for flag xla_a (XLA_FLAGS=--xla_a=no)",
            True,
        ),
        ({"signal": "SIGKILL"}, None, False),
        ({"trying": "", "problem": "ImportError: no"}, None, False),
    ],
)
def test_what_xla_says_of_flags(
    end: dict[str, Any], problem: str | None, remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=no")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_b=1")
    tried: list[object] = []
    found = TensorFlowDevices(**{"trying": "a function compiled by XLA on CPU:0", **end})
    monkeypatch.setattr(tf_probe, "probe_tensorflow", lambda command: tried.append(command) or found)
    assert [xla_flags_problem(), xla_flags_problem()] == [problem, problem]
    assert len(tried) == (1 if remembered else 2)


def test_flags_that_would_end_the_process_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["Unknown flag in XLA_FLAGS: --xla_a=1"]
    monkeypatch.setattr(tf_probe, "xla_flags_problem", lambda: said[0])
    with pytest.raises(UsageError, match="would end the process: Unknown flag in XLA_FLAGS: --xla_a=1; correct or"):
        refuse_xla_flags()
    refuse_xla_flags(with_xla=False)
    monkeypatch.setenv("TF_XLA_FLAGS", "--xla_a=1")
    refuse_xla_flags(with_xla=False)
    said[0] = "Unknown flag in TF_XLA_FLAGS: --xla_a=1"
    with pytest.raises(UsageError, match="TensorFlow would end the process: Unknown flag in TF_XLA_FLAGS"):
        refuse_xla_flags(with_xla=False)


def test_a_file_of_flags_is_tried_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags, tried = tmp_path / "flags", []
    monkeypatch.setenv("XLA_FLAGS", str(flags))
    found = TensorFlowDevices(computed=("a function compiled by XLA on CPU:0 in 0.1 s",))
    monkeypatch.setattr(tf_probe, "probe_tensorflow", lambda command: tried.append(command) or found)
    for text in ("--xla_a=1", "--xla_a=1", "--xla_b=1"):
        flags.write_text(text)
        assert xla_flags_problem() == ""
    assert len(tried) == 2


def test_a_file_beside_the_user_is_seen_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorflow.py").write_text("# notes on TensorFlow\n")
    monkeypatch.chdir(tmp_path)
    tensorflow = probe_tensorflow()
    assert tensorflow.file == str(tmp_path / "tensorflow.py")
    assert "has no attribute" in tensorflow.problem
    assert shadows(tensorflow.file, Path.cwd())


@pytest.mark.parametrize(
    "begin", ["F0000 00:00:17.5    71 tpu/x_y.cc:10] ", "2026-01-02 11:24:46.27: F a/b_fns.inc:128] "]
)
def test_an_abort_is_told_with_what_was_said_before(begin: str) -> None:
    tensorflow = probe_tensorflow(
        script(
            "import json, os, sys\n"
            "print(json.dumps({'version': '2.20.0'}), flush=True)\n"
            f"print('{begin}registered: twice', file=sys.stderr)\n"
            "print('    @ 0x7f  (unknown)', file=sys.stderr, flush=True)\n"
            "os.abort()"
        )
    )
    assert tensorflow.signal == "SIGABRT"
    assert tensorflow.version == "2.20.0"
    assert tensorflow.problem == "registered: twice"


def test_an_error_is_told_by_its_own_line() -> None:
    tensorflow = probe_tensorflow(
        script(
            "raise ImportError('Traceback (most recent call last):\\n  File x\\n"
            "ImportError: libz.so.1: cannot open shared object file\\n\\nSee the page of common causes.')"
        )
    )
    assert tensorflow.problem == "ImportError: libz.so.1: cannot open shared object file"
    assert tensorflow.signal == ""


def test_a_process_that_hangs_is_ended() -> None:
    tensorflow = probe_tensorflow(script("import time\ntime.sleep(600)"), timeout=0.2)
    assert tensorflow.timed_out
    assert tensorflow.signal == ""


def test_an_end_without_a_word_is_told_as_that() -> None:
    assert probe_tensorflow(script("raise SystemExit(3)")).problem == "it exited unexpectedly, without output"


def test_lines_of_others_are_passed_over() -> None:
    tensorflow = probe_tensorflow(
        script("print('hello')\nprint('[1]')\nprint('{\"version\": \"2.19.0\"}')\nprint('{\"ver')")
    )
    assert tensorflow.version == "2.19.0"
    assert tensorflow.problem == ""
