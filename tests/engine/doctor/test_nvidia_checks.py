"""NVIDIA GPUs, against stand-ins for the driver, the bus, the packages and TensorFlow."""

import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pynvml
import pytest

from accel_engine.devices.device_types import Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.nvidia_queries import REASONS
from accel_engine.doctor import CheckResult
from accel_engine.doctor import check_inputs as asking
from accel_engine.doctor.check_inputs import Driver, query_driver
from accel_engine.doctor.nvidia_checks import check_driver, check_gpu_memory, check_libraries, check_visible_gpus
from accel_engine.doctor.python_checks import Interpreter
from accel_engine.doctor.tf_probe import TensorFlowDevices

from .conftest import gpu, pci

CUDA_BUILD = {"tensorflow": "2.21.0", "keras": "3.15.1"}
ONE = Driver("580.65.06", (13, 0), (gpu(),))
FOUR = Driver(
    "580.65.06",
    (13, 0),
    (gpu(0, uuids=("GPU-8932f937-d72c",)), *(gpu(index, uuids=(f"GPU-{index}",)) for index in (1, 2, 3))),
)


def blind(log: str = "", gpus: tuple[str, ...] = (), cuda: str = "12.5.1") -> TensorFlowDevices:
    return TensorFlowDevices("2.21.0", "/site/tensorflow/__init__.py", "3.15.1", cuda, gpus, 2.5, log=log)


def said(finding) -> str:
    return f"{finding.summary} {finding.cause} {finding.fix}"


def test_a_working_driver(machine) -> None:
    finding = check_driver(machine(driver=FOUR))
    assert finding.verdict is CheckResult.PASS
    assert finding.summary == "580.65.06 (CUDA up to 13.0): 4 x NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("told", "verdict", "words"),
    [
        (Driver("470.256.02", (11, 4), (gpu(),)), CheckResult.FAIL, "525.60.13"),
        (Driver("525.60.13", (12, 0), (gpu(),)), CheckResult.PASS, "CUDA up to 12.0"),
        (Driver("580.65.06", (0, 0), (gpu(),)), CheckResult.PASS, "580.65.06: 1 x"),
        (Driver("580.65.06", (13, 0), (gpu(), gpu(1, memory=None))), CheckResult.PASS, "2 x"),
        (
            Driver("580.65.06", (13, 0), (gpu(), gpu(1, memory=None, address="", problem=REASONS["GPU_IS_LOST"]))),
            CheckResult.FAIL,
            "1 of 2 GPUs, 1 not responding: NVIDIA H100 80GB HBM3 gpu:1 (number 1 in nvidia-smi): lost: it no longer",
        ),
        (
            Driver("580.65.06", (13, 0), (gpu(), gpu(1, memory=None, address="", problem=REASONS["NO_PERMISSION"]))),
            CheckResult.WARN,
            "gpu:1 (number 1 in nvidia-smi): requires administrator rights have an administrator let you use it",
        ),
        (
            Driver("580.65.06", (13, 0), (gpu(memory=None, address="", problem=REASONS["NO_PERMISSION"]),)),
            CheckResult.FAIL,
            "0 of 1 GPU, 1 not usable: NVIDIA H100 80GB HBM3 gpu:0 (number 0 in nvidia-smi): requires admin",
        ),
        (Driver(problem="the NVIDIA driver was updated; restart"), CheckResult.FAIL, "restart the machine"),
        (Driver(problem="the NVIDIA driver finds no GPU"), CheckResult.SKIP, "no NVIDIA GPU"),
    ],
)
def test_a_driver_with_something_to_say(machine, told, verdict, words) -> None:
    finding = check_driver(machine(driver=told))
    assert finding.verdict is verdict
    assert words in said(finding)


@pytest.mark.parametrize(
    ("kernel_driver", "verdict", "words"),
    [
        ("", CheckResult.FAIL, "no driver with CUDA support"),
        ("nouveau", CheckResult.FAIL, "nouveau, which does not support CUDA"),
        ("vfio-pci", CheckResult.WARN, "virtual machines"),
    ],
)
def test_a_gpu_without_nvidia_s_driver(machine, kernel_driver, verdict, words) -> None:
    given = machine()
    pci(given.root, "0000:00:1f.0", "0x8086", **{"class": "0x060100"})
    pci(given.root, "0000:3b:00.1", "0x10de", **{"class": "0x040300"})  # the sound of its HDMI plug
    function = pci(given.root, "0000:3b:00.0", "0x10de", **{"class": "0x030000"})
    if kernel_driver:
        (function / "driver").symlink_to(given.root / "sys/bus/pci/drivers" / kernel_driver)
    finding = check_driver(given)
    assert finding.verdict is verdict
    assert "0000:3b:00.0" in finding.summary
    assert "0000:3b:00.1" not in finding.summary
    assert words in finding.cause


def test_in_a_container_the_host_s_gpu_may_be_left_out_on_purpose(machine) -> None:
    given = machine()
    pci(given.root, "0000:3b:00.0", "0x10de", **{"class": "0x030200"})
    (given.root / ".dockerenv").touch()
    finding = check_driver(given)
    assert finding.verdict is CheckResult.WARN
    assert "--gpus all" in finding.fix


WANTED = (
    "absl-py>=1.0.0",
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
)


@pytest.mark.parametrize(
    ("wheels", "verdict", "words"),
    [
        (
            {"nvidia-cublas-cu12": "12.5.3.2", "nvidia-cudnn-cu12": "9.3.0.75"},
            CheckResult.PASS,
            "2 pip packages with CUDA's libraries, as tensorflow 2.21.0 requires",
        ),
        ({}, CheckResult.FAIL, "nvidia-cublas-cu12 is missing, and 1 more of 2"),
        ({"nvidia-cublas-cu12": "12.8.4.1"}, CheckResult.FAIL, "nvidia-cudnn-cu12 is missing"),
        (
            {"nvidia-cublas-cu12": "12.5.3.2", "nvidia-cudnn-cu12": "8.9.2.26"},
            CheckResult.FAIL,
            "nvidia-cudnn-cu12 is 8.9.2.26, not <10.0,>=9.3.0.75",
        ),
    ],
)
def test_cuda_s_packages(machine, wheels, verdict, words) -> None:
    finding = check_libraries(machine(CUDA_BUILD | wheels, WANTED, driver=ONE, tensorflow=blind()))
    assert finding.verdict is verdict
    assert words in said(finding)
    if verdict is CheckResult.FAIL:
        assert finding.fix == "run pip install 'tensorflow[and-cuda]==2.21.0'"


def test_cuda_from_elsewhere_will_do(machine) -> None:
    tensorflow = blind(gpus=("NVIDIA H100 80GB HBM3",))
    assert check_libraries(machine(CUDA_BUILD, WANTED, driver=ONE, tensorflow=tensorflow)).verdict is CheckResult.PASS


NVCC = ('nvidia-cuda-nvcc-cu12<13.0,>=12.5.82; extra == "and-cuda"',)


def test_xla_needs_cuda_s_compiler(machine, tmp_path) -> None:
    tensorflow = blind(gpus=("NVIDIA H100 80GB HBM3",))
    given = machine(CUDA_BUILD, NVCC, driver=ONE, tensorflow=tensorflow)
    finding = check_libraries(given)
    assert finding.verdict is CheckResult.WARN
    assert "ptxas" in finding.cause
    named = {"XLA_FLAGS": f"--xla_dump_to=/tmp --xla_gpu_cuda_data_dir={tmp_path / 'cuda'}"}
    elsewhere = machine(CUDA_BUILD, NVCC, driver=ONE, tensorflow=tensorflow, environment=named)
    assert check_libraries(elsewhere).verdict is CheckResult.WARN
    (tmp_path / "cuda/nvvm/libdevice").mkdir(parents=True)
    assert check_libraries(elsewhere).verdict is CheckResult.PASS
    assert check_libraries(given).verdict is CheckResult.WARN
    (given.root / "usr/local/cuda/nvvm/libdevice").mkdir(parents=True)
    assert check_libraries(given).verdict is CheckResult.PASS


def test_a_driver_that_hangs_is_told_once_and_nothing_is_made_up(machine) -> None:
    told = Driver(problem="the NVIDIA driver does not respond within 20 s", timed_out=True)
    given = machine(CUDA_BUILD, driver=told, tensorflow=TensorFlowDevices(timed_out=True))
    assert check_driver(given).verdict is CheckResult.FAIL
    for check in (check_libraries, check_visible_gpus, check_gpu_memory):
        finding = check(given)
        assert (finding.verdict, finding.fix) == (CheckResult.WARN, "see nvidia.driver")


def test_only_the_cuda_build_needs_cuda_s_packages(machine) -> None:
    assert check_libraries(machine(driver=ONE)).summary == "not needed: tensorflow-cpu has no CUDA"
    assert check_libraries(machine({}, driver=ONE)).verdict is CheckResult.SKIP
    without = check_libraries(machine(CUDA_BUILD, WANTED, driver=ONE, tensorflow=blind(cuda="")))
    assert (without.verdict, without.summary) == (
        CheckResult.SKIP,
        "not needed: this TensorFlow is built without CUDA",
    )


def test_a_tensorflow_without_cuda_s_packages_uses_those_of_the_system(machine) -> None:
    finding = check_libraries(machine(CUDA_BUILD, driver=ONE, tensorflow=blind()))
    assert (finding.verdict, "the system's" in finding.summary) == (CheckResult.SKIP, True)


def test_gpus_that_both_see(machine) -> None:
    finding = check_visible_gpus(machine(CUDA_BUILD, driver=ONE, tensorflow=blind(gpus=("H100",))))
    assert (finding.verdict, finding.summary) == (CheckResult.PASS, "TensorFlow finds 1 GPU, as the driver does")


@pytest.mark.parametrize(
    ("capability", "built", "is_newer"),
    [
        ("12.0", ("sm_80", "sm_89", "compute_90"), True),
        ("12.0", ("sm_90", "sm_100", "compute_120"), False),
        ("10.3", ("sm_90", "sm_100a"), False),  # of the same generation
        ("9.0", ("sm_80", "compute_90"), False),
        ("12.0", (), False),  # unknown
        ("", ("sm_80",), False),
    ],
)
def test_a_gpu_that_is_newer_than_the_build(machine, capability, built, is_newer) -> None:
    tensorflow = replace(blind(gpus=("RTX 5090",)), capabilities=(capability,), built=built)
    finding = check_visible_gpus(machine(CUDA_BUILD, driver=ONE, tensorflow=tensorflow))
    assert (finding.verdict is CheckResult.WARN) is is_newer
    if is_newer:
        assert finding.summary == "too new for tensorflow 2.21.0: RTX 5090 (compute capability 12.0)"
        assert "code for GPUs up to compute capability 9.x" in finding.cause
        assert "--xla on" in finding.fix


@pytest.mark.parametrize(
    ("processor", "words"),
    [("x86_64", "accel-tui[cuda]"), ("aarch64", "docker run --gpus all -it IMAGE")],
)
def test_no_package_that_does_not_exist_is_recommended(machine, processor, words) -> None:
    packages = {"tensorflow": "2.21.0", "keras": "3.15.1"}
    given = machine(
        packages, driver=ONE, tensorflow=blind(cuda=""), python=Interpreter((3, 12, 4), system=f"Linux {processor}")
    )
    assert words in check_visible_gpus(given).fix


def test_gpus_that_only_tensorflow_sees(machine) -> None:
    given = machine(CUDA_BUILD, tensorflow=blind(gpus=("GRID V100",)))
    finding = check_driver(given)
    assert (finding.verdict, finding.summary) == (
        CheckResult.WARN,
        "NVML, the driver's monitoring library, is missing",
    )
    assert finding.cause == "training uses the GPU, but its utilization, memory and power are not shown"
    assert "see nvidia.driver" in check_visible_gpus(given).summary
    assert check_gpu_memory(given).summary == "not checked: needs NVML"


def test_more_gpus_than_nvml_lists(machine) -> None:
    finding = check_visible_gpus(machine(CUDA_BUILD, driver=ONE, tensorflow=blind(gpus=("H100", "H100"))))
    assert finding.summary == "TensorFlow finds 2 GPUs, NVML (the driver's monitoring library) 1"


def test_a_container_with_a_gpu_that_nobody_finds_is_told_the_reason(machine) -> None:
    given = machine(CUDA_BUILD, tensorflow=blind("Cannot dlopen some GPU libraries"))
    pci(given.root, "0000:3b:00.0", "0x10de", **{"class": "0x030200"})
    (given.root / "dev").mkdir()
    for name in (".dockerenv", "dev/nvidiactl"):
        (given.root / name).touch()
    assert "see nvidia.seen" in check_driver(given).cause
    finding = check_visible_gpus(given)
    assert (finding.verdict, finding.cause) == (CheckResult.FAIL, "TensorFlow cannot load all CUDA libraries")
    assert check_gpu_memory(given).summary == "not checked: see nvidia.driver"


def test_a_mac_s_own_gpu(machine) -> None:
    python = Interpreter((3, 12, 4), system="Darwin arm64")
    summary = check_driver(machine(CUDA_BUILD, tensorflow=blind(cuda=""), python=python)).summary
    assert summary == "no NVIDIA GPU; TensorFlow finds no other GPU of this Mac either, and trains on the CPU"
    summary = check_driver(machine(CUDA_BUILD, tensorflow=blind(cuda="", gpus=("METAL",)), python=python)).summary
    assert summary == "no NVIDIA GPU; TensorFlow finds 1 GPU of this Mac by a plugin"


def test_when_tensorflow_cannot_be_asked_the_gpus_are_not_judged(machine) -> None:
    for tensorflow in (TensorFlowDevices(problem="ImportError: no"), TensorFlowDevices(timed_out=True)):
        finding = check_visible_gpus(machine(CUDA_BUILD, driver=ONE, tensorflow=tensorflow))
        assert (finding.verdict, finding.fix) == (CheckResult.WARN, "see tensorflow.import")
    assert check_visible_gpus(machine({}, driver=ONE)).verdict is CheckResult.SKIP


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ({"tensorflow-cpu": "2.21.0"}, "tensorflow-cpu is the CPU build"),
        ({"tensorflow-tpu": "2.20.0"}, "tensorflow-tpu is the TPU build"),
        ({"tensorflow": "2.21.0"}, "tensorflow has no CUDA support on this platform"),
    ],
)
def test_a_build_without_cuda_is_the_first_cause(machine, packages, words) -> None:
    given = machine(packages, driver=ONE, tensorflow=blind(cuda=""), environment={"CUDA_VISIBLE_DEVICES": ""})
    finding = check_visible_gpus(given)
    assert (finding.verdict, finding.summary, finding.cause) == (CheckResult.FAIL, "TensorFlow finds 0 of 1 GPU", words)


@pytest.mark.parametrize(
    ("shown", "visible", "words"),
    [
        ("", 0, "CUDA_VISIBLE_DEVICES='' hides all GPUs"),
        ("-1", 0, "hides all GPUs"),
        ("2", 1, "CUDA_VISIBLE_DEVICES='2' hides the others"),
        ("0, 3", 2, "hides the others"),
        ("GPU-8932f937,1", 2, "hides the others"),
        ("none", 0, "CUDA stops at the first unknown entry"),
        ("1,9,2", 1, "hides the others; CUDA stops at the first unknown entry"),
        ("GPU-8932f937", 1, "CUDA_VISIBLE_DEVICES='GPU-8932f937' hides the others"),
    ],
)
def test_hidden_gpus_are_told_as_hidden(machine, shown, visible, words) -> None:
    tensorflow = blind(gpus=("H100",) * visible)
    finding = check_visible_gpus(
        machine(CUDA_BUILD, driver=FOUR, tensorflow=tensorflow, environment={"CUDA_VISIBLE_DEVICES": shown})
    )
    assert finding.verdict is CheckResult.WARN
    assert finding.summary == f"TensorFlow finds {visible} of 4 GPUs"
    assert words in finding.cause
    assert ("unknown entry" in words) == ("unknown entry" in finding.cause)


def test_instances_that_there_are_are_named(machine) -> None:
    split = Driver("580", (13, 0), (gpu(0, uuids=("GPU-1", "MIG-1", "MIG-2")),))
    given = machine(CUDA_BUILD, driver=split, tensorflow=blind(), environment={"CUDA_VISIBLE_DEVICES": "MIG-3"})
    assert check_visible_gpus(given).cause.endswith("unknown entry; this machine has MIG-1, MIG-2")


def test_a_cause_that_another_check_has_found_is_not_told_otherwise(machine) -> None:
    mixed = machine({**CUDA_BUILD, "tensorflow-cpu": "2.21.0"}, driver=ONE, tensorflow=blind(cuda=""))
    assert check_visible_gpus(mixed).fix == "see tensorflow.packages"
    given = machine(CUDA_BUILD, driver=ONE, tensorflow=blind("failed call to cuInit: CUDA_ERROR_UNKNOWN"))
    (given.root / ".dockerenv").touch()
    found = check_visible_gpus(given)
    assert (found.cause, found.fix) == ("/dev/nvidia-uvm is missing, which CUDA opens", "see nvidia.files")
    gpus = (gpu(0), gpu(1, problem=REASONS["NO_PERMISSION"]))
    job = machine(CUDA_BUILD, driver=Driver("580", (13, 0), gpus), tensorflow=blind(gpus=("H100",)))
    assert check_visible_gpus(job).verdict is CheckResult.WARN


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("Could not load dynamic library 'libcudnn.so.9'; dlerror: not found", "libcudnn.so.9"),
        ("W gpu_device.cc:2342] Cannot dlopen some GPU libraries. Please", "TensorFlow cannot load all CUDA libraries"),
        ("with Cuda compute capability 3.5. The minimum required Cuda capability is 6.0.", "compute capability 6.0 "),
        ("kernel version 550.54.0 does not match DSO version 570.86.0", "different versions"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported", "restart the machine"),
        ("CUDA driver version is insufficient for CUDA runtime version", "too old"),
        ("failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
        ("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error", "nvidia-modprobe"),
        ("Failed call to cuInit: UNKNOWN ERROR (303)", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        ("Could not find cuda drivers on your machine, GPU will not be used.", "libcuda.so.1"),
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device", "/dev/nvidia*"),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "use all of the GPU's memory"),
        ("CUDA-capable device(s) is/are busy or unavailable", "compute mode"),
        ("", "TensorFlow logs no reason"),
    ],
)
def test_what_tensorflow_says_is_translated(machine, log, words) -> None:
    finding = check_visible_gpus(machine(CUDA_BUILD, driver=ONE, tensorflow=blind(log)))
    assert finding.verdict is CheckResult.FAIL
    assert words in said(finding)


def test_a_variable_that_hides_nothing_is_not_blamed(machine) -> None:
    given = machine(
        CUDA_BUILD,
        driver=FOUR,
        tensorflow=blind("Cannot dlopen some GPU libraries"),
        environment={"CUDA_VISIBLE_DEVICES": "0,1"},
    )
    assert "CUDA libraries" in check_visible_gpus(given).cause


@pytest.mark.parametrize(
    ("growth", "verdict", "words"),
    [
        (None, CheckResult.PASS, "memory growth is on"),
        ("true", CheckResult.PASS, "memory growth is on"),
        ("false", CheckResult.WARN, "overrides the plan"),
        ("1", CheckResult.WARN, "only accepts true and false"),
    ],
)
def test_memory_growth(machine, growth, verdict, words) -> None:
    environment = {} if growth is None else {"TF_FORCE_GPU_ALLOW_GROWTH": growth}
    finding = check_gpu_memory(machine(driver=ONE, environment=environment))
    assert finding.verdict is verdict
    assert words in said(finding)


def test_a_gpu_that_others_have_filled(machine) -> None:
    told = Driver("580.65.06", (13, 0), (gpu(), gpu(1)), (("gpu:0", 0.97), ("gpu:1", 0.5)))
    finding = check_gpu_memory(machine(driver=told))
    assert (finding.verdict, finding.summary) == (CheckResult.WARN, "in use: gpu:0 97%")


class Probe:
    """Stands in for the probe of NVIDIA GPUs."""

    closed = 0

    def inventory(self) -> Inventory:
        return Inventory((gpu(), gpu(1)))

    def sample(self) -> tuple[Sample, ...]:
        half = {"memory_used": Reading(40.0, "B"), "memory_total": Reading(80.0, "B")}
        lost = {"memory_used": Reading.missing("lost", "B"), "memory_total": Reading(80.0, "B")}
        return Sample(0.0, "gpu:0", half), Sample(0.0, "gpu:1", lost)

    def close(self) -> None:
        Probe.closed += 1


@pytest.fixture
def binding(monkeypatch) -> SimpleNamespace:
    """Stands in for the driver's library, beyond what the probe asks."""
    monkeypatch.setattr(asking, "NvidiaProbe", Probe)
    monkeypatch.setattr(Probe, "closed", 0)
    answers = SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        nvmlSystemGetDriverVersion=lambda: b"580.65.06",
        nvmlSystemGetCudaDriverVersion_v2=lambda: 12080,
    )
    monkeypatch.setitem(sys.modules, "pynvml", answers)
    return answers


def test_the_driver_is_asked(binding) -> None:
    told = query_driver()
    assert (told.version, told.cuda, told.memory_shares) == ("580.65.06", (12, 8), (("gpu:0", 0.5),))
    assert [device.id for device in told.gpus] == ["gpu:0", "gpu:1"]
    assert Probe.closed == 1


def test_a_driver_that_will_not_tell_its_version(binding) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)

    binding.nvmlSystemGetDriverVersion = refuse
    told = query_driver()
    assert (told.version, told.cuda) == ("", (0, 0))


def test_an_absent_driver_says_why(binding, monkeypatch) -> None:
    monkeypatch.setattr(Probe, "inventory", lambda _: Inventory((), (UnavailableKind("gpu", "no NVIDIA driver"),)))
    monkeypatch.setattr(Probe, "sample", lambda _: ())
    assert query_driver().problem == "no NVIDIA driver"


def test_a_probe_that_breaks_is_not_waited_for(binding, monkeypatch) -> None:
    def fail(_: Probe) -> Inventory:
        raise ZeroDivisionError

    monkeypatch.setattr(Probe, "inventory", fail)
    with pytest.raises(ZeroDivisionError):
        query_driver()


def test_a_driver_that_does_not_answer_is_left(binding, monkeypatch) -> None:
    end = threading.Event()

    def hang(_: Probe) -> Inventory:
        end.wait()
        return Inventory(())

    monkeypatch.setattr(Probe, "inventory", hang)
    told = query_driver(timeout=0.05)
    end.set()
    assert told.timed_out
    assert told.problem == "the NVIDIA driver does not respond within 0.05 s"


def test_the_true_library_has_the_functions() -> None:
    assert callable(pynvml.nvmlSystemGetDriverVersion)
    assert callable(pynvml.nvmlSystemGetCudaDriverVersion_v2)
