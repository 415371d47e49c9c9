import os

import pytest

from accel_engine.devices.installation import CONTAINER, NEWEST, OLDEST
from accel_engine.doctor import CheckResult
from accel_engine.doctor.python_checks import Interpreter
from accel_engine.doctor.tensorflow_checks import (
    OLDEST_KERAS,
    check_computing,
    check_flags,
    check_import,
    check_packages,
    check_requirements,
)
from accel_engine.doctor.tf_probe import TensorFlowDevices

KERAS = {"keras": "3.15.1"}


@pytest.mark.parametrize(
    ("installed", "verdict", "words"),
    [
        ({"tensorflow-cpu": "2.21.0"} | KERAS, CheckResult.PASS, "tensorflow-cpu 2.21.0, keras 3.15.1"),
        ({"tensorflow": "2.20.0"} | KERAS, CheckResult.PASS, "tensorflow 2.20.0"),
        ({}, CheckResult.FAIL, "pip install 'accel-tui[cpu]'"),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"} | KERAS, CheckResult.FAIL, "same folder"),
        (
            {"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0", "tensorflow-tpu": "2.20.0"},
            CheckResult.FAIL,
            "tensorflow 2.21.0, tensorflow-cpu 2.21.0, tensorflow-tpu 2.20.0",
        ),
        ({"tensorflow": "2.21.0", "tf-nightly": "2.22.0.dev1"} | KERAS, CheckResult.FAIL, "tf-nightly"),
        ({"tensorflow-macos": "2.16.2"} | KERAS, CheckResult.FAIL, "accel-tui supports tensorflow"),
        ({"tensorflow": "2.15.1"} | KERAS, CheckResult.WARN, "2.19 to 2.21"),
        ({"tensorflow": "2.22.0"} | KERAS, CheckResult.WARN, "2.19 to 2.21"),
        ({"tensorflow": "2.21.0", "keras": "2.15.0"}, CheckResult.FAIL, "needs Keras 3"),
        ({"tensorflow": "2.21.0"}, CheckResult.FAIL, "no keras"),
        ({"tensorflow": "2.21.0", "keras": "3.8.0"}, CheckResult.FAIL, "keras>=3.11.3"),
    ],
)
def test_packages(machine, installed, verdict, words) -> None:
    finding = check_packages(machine(installed))
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"
    assert bool(finding.cause and finding.fix) is (verdict is not CheckResult.PASS)


def test_the_versions_are_those_of_the_extras(pyproject) -> None:
    wanted = pyproject["project"]["optional-dependencies"]["cuda"][0]
    assert wanted == f"tensorflow[and-cuda]>=2.{OLDEST[1]},<2.{NEWEST[1] + 1}"


def test_the_oldest_keras_is_that_of_the_extras(pyproject) -> None:
    for extra in ("cpu", "cuda", "tpu"):
        assert f"keras>={OLDEST_KERAS},<4" in pyproject["project"]["optional-dependencies"][extra]


REQUIREMENTS = ("protobuf<8.0.0,>=6.31.1", "numpy>=1.26.0", 'nvidia-cublas-cu12<13; extra == "and-cuda"')


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ({"protobuf": "7.36.2", "numpy": "2.4.1"}, ""),
        ({"protobuf": "4.25.8", "numpy": "2.4.1"}, "protobuf is 4.25.8, not <8.0.0,>=6.31.1"),
        ({"protobuf": "7.36.2"}, "numpy is missing"),
        ({"protobuf": "7.36.2", "numpy": "2.4.1", "tensorboard": "2.20.0", "setuptools": "84.2.1"}, "setuptools<82"),
        ({"protobuf": "7.36.2", "numpy": "2.4.1", "tensorboard": "2.20.0"}, "setuptools is missing"),
        ({"protobuf": "7.36.2", "numpy": "2.4.1", "tensorboard": "2.20.0", "setuptools": "81.0.0"}, ""),
        ({"protobuf": "7.36.2", "numpy": "2.4.1", "tensorboard": "2.21.0", "setuptools": "84.2.1"}, ""),
    ],
)
def test_packages_that_another_program_has_replaced(machine, packages, words) -> None:
    finding = check_requirements(machine({"tensorflow-cpu": "2.21.0"} | packages, REQUIREMENTS))
    assert (finding.verdict is CheckResult.WARN) is bool(words)
    assert words in f"{finding.summary} {finding.fix}"


DONE = ("a matrix product on GPU:0 in 0.1 s",)


@pytest.mark.parametrize(
    ("computing", "verdict", "words"),
    [
        (TensorFlowDevices(computed=DONE), CheckResult.PASS, DONE[0]),
        (TensorFlowDevices(), CheckResult.WARN, "see tensorflow.import"),
        (
            TensorFlowDevices(trying="a convolution on GPU:0", computed=DONE, timed_out=True),
            CheckResult.FAIL,
            "a convolution on GPU:0: not done after 90 s",
        ),
        (
            TensorFlowDevices(
                trying="a function compiled by XLA on GPU:0",
                computed=DONE,
                signal="SIGABRT",
                problem="ptxas: PTX version 8.5 does not support target 'sm_120'",
                log="PTX version 8.5 does not support target 'sm_120'",
            ),
            CheckResult.WARN,
            "ended by SIGABRT ptxas: PTX version 8.5 does not support target 'sm_120' the GPU is newer",
        ),
        (
            TensorFlowDevices(
                trying="a convolution on GPU:0",
                computed=DONE,
                problem="UnimplementedError: DNN library is not found",
                log="Loaded runtime CuDNN library: 9.1.0, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            ),
            CheckResult.FAIL,
            "failed UnimplementedError: DNN library is not found install the cuDNN",
        ),
        (
            TensorFlowDevices(
                trying="a convolution on GPU:0",
                problem="FailedPreconditionError: DNN library initialization failed",
                log="Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.",
            ),
            CheckResult.FAIL,
            "install the cuDNN that TensorFlow was built with",
        ),
        (
            TensorFlowDevices(
                trying="a function compiled by XLA on CPU:0",
                problem="Unknown flag in XLA_FLAGS: --xla_nonsense=1",
                log="Unknown flag in XLA_FLAGS: --xla_nonsense=1",
            ),
            CheckResult.WARN,
            "Unknown flag in XLA_FLAGS: --xla_nonsense=1 correct XLA_FLAGS, or unset it",
        ),
    ],
)
def test_what_devices_compute(machine, computing, verdict, words) -> None:
    finding = check_computing(machine(computing=computing))
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"


@pytest.mark.parametrize(
    ("variable", "problem", "verdict", "words"),
    [
        ("", "not asked", CheckResult.SKIP, "no flags for XLA are set"),
        ("XLA_FLAGS", "", CheckResult.PASS, "XLA accepts XLA_FLAGS"),
        ("XLA_FLAGS", None, CheckResult.SKIP, "XLA_FLAGS not checked"),
        ("XLA_FLAGS", "Unknown flag in XLA_FLAGS: --xla_a=1", CheckResult.WARN, "train with --xla off"),
        ("TF_XLA_FLAGS", "Unknown flag in TF_XLA_FLAGS: --xla_a=1", CheckResult.FAIL, "correct TF_XLA_FLAGS"),
    ],
)
def test_flags_of_xla(machine, variable, problem, verdict, words) -> None:
    finding = check_flags(machine(environment={variable: "--xla_a=1"}, xla_flags=problem))
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"
    assert problem in (finding.summary, "", None, "not asked")


def test_no_package_with_cuda_is_named_where_there_is_none(machine) -> None:
    computing = TensorFlowDevices(trying="a convolution on GPU:0", problem="no cuDNN", log="CUDNN_STATUS")
    arm = Interpreter((3, 12, 4), system="Linux aarch64")
    assert "tensorflow[and-cuda]" in check_computing(machine(computing=computing)).fix
    assert check_computing(machine(computing=computing, python=arm)).fix == f"use {CONTAINER}"


def test_without_tensorflow_its_import_is_not_tried(machine) -> None:
    def fail() -> TensorFlowDevices:
        raise AssertionError

    assert check_import(machine({})).summary == "skipped"


@pytest.mark.parametrize(
    ("tensorflow", "words"),
    [
        (TensorFlowDevices(timed_out=True), "still importing after 90 s"),
        (TensorFlowDevices("2.21.0", timed_out=True), "still listing devices"),
        (
            TensorFlowDevices(signal="SIGABRT", problem="Check failed: file already exists"),
            "SIGABRT while importing",
        ),
        (TensorFlowDevices("2.21.0", signal="SIGSEGV"), "SIGSEGV while listing devices"),
        (TensorFlowDevices(signal="SIGILL"), "SIGILL"),
        (TensorFlowDevices(signal="SIGKILL"), "memory ran out"),
        (TensorFlowDevices(signal="signal 64"), "signal 64"),
        (TensorFlowDevices(problem="ImportError: libz.so.1: cannot open shared object file"), "libz.so.1"),
        (TensorFlowDevices(problem="ImportError: /lib/libm.so.6: version `GLIBC_2.29' not found"), "newer system"),
        (TensorFlowDevices(problem="ModuleNotFoundError: No module named 'wrapt.x'"), "pip install wrapt"),
        (
            TensorFlowDevices(problem="TypeError: Descriptors cannot be created directly: protobuf"),
            "another package installed",
        ),
        (TensorFlowDevices(problem="ImportError: numpy.core.multiarray failed to import"), "NumPy"),
        (
            TensorFlowDevices(problem="AttributeError: module 'tensorflow' has no attribute '__version__'"),
            "is incomplete",
        ),
        (TensorFlowDevices(problem="ModuleNotFoundError: No module named 'tensorflow.python'"), "files are missing"),
        (TensorFlowDevices("2.21.0", problem="RuntimeError: too bad"), "too bad"),
    ],
)
def test_an_import_that_fails_is_explained(machine, tensorflow, words) -> None:
    finding = check_import(machine(tensorflow=tensorflow))
    assert finding.verdict is CheckResult.FAIL
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"
    assert finding.cause
    assert finding.fix


def test_on_a_tpu_build_the_usual_causes_are_others(machine) -> None:
    tpu = {"tensorflow-tpu": "2.20.0"} | KERAS
    assert "TPU_SKIP_MDS_QUERY=1" in check_import(machine(tpu, tensorflow=TensorFlowDevices(timed_out=True))).fix
    assert "tpu.library" in check_import(machine(tpu, tensorflow=TensorFlowDevices(signal="SIGABRT"))).fix


@pytest.mark.parametrize(("flags", "named"), [("fpu sse2 avx avx2", False), ("fpu avx", False), ("fpu sse2", True)])
def test_a_processor_without_avx_is_named(machine, flags, named) -> None:
    given = machine(tensorflow=TensorFlowDevices(signal="SIGILL"))
    (given.root / "proc").mkdir()
    (given.root / "proc/cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n\n")
    assert ("AVX" in check_import(given).cause) is named


def test_a_file_of_the_user_s_that_hides_tensorflow_is_named(machine) -> None:
    beside = os.path.join(os.getcwd(), "tensorflow.py")
    problem = "AttributeError: module 'tensorflow' has no attribute '__version__'"
    finding = check_import(machine(tensorflow=TensorFlowDevices(file=beside, problem=problem)))
    assert finding.verdict is CheckResult.FAIL
    assert finding.summary == f"tensorflow is {beside}"
    assert "rename it" in finding.fix


def test_what_was_imported_is_told(machine) -> None:
    assert check_import(machine()).summary == "2.21.0 in 2.5 s, built without CUDA; Keras 3.15.1"
    tensorflow = TensorFlowDevices("2.21.0", "/site/tensorflow/__init__.py", "3.15.1", cuda="12.5.1", seconds=2.5)
    assert "built for CUDA 12.5.1" in check_import(machine(tensorflow=tensorflow)).summary
