"""Whether the kernel has killed an engine, by its counters."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import clock
from accel_engine.json_values import decode_or_none, encode
from accel_engine.keep_alive.memory_restart import adapted, was_killed_for_memory
from accel_engine.plan import Plan
from accel_engine.plan.memory_remedies import MemoryFacts
from accel_engine.run import RunReader, RunWriter, Status, reopen
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.engine import memory_loss as module
from accel_engine.run.engine.memory_loss import KillCounts, MemoryLoss, count_kills, last_words, memory_loss
from accel_engine.run.engine.process_identity import ProcessIdentity

ENGINE = """
import sys
from pathlib import Path
from accel_engine.run import RunWriter
from accel_engine.run.engine import memory_loss
memory_loss._PROC, memory_loss._GROUPS = Path(sys.argv[2]), Path(sys.argv[3])
writer = RunWriter(Path(sys.argv[1]))
writer.begin()
print("begun", flush=True)
for line in sys.stdin:
    writer.heartbeat()
    print("beaten", flush=True)
"""


ALLOCATOR = "bfc_allocator.cc:309] Allocator (GPU_0_bfc) ran out of memory trying to allocate"


class Kernel:
    """Stand-ins for ``/proc`` and the control groups."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.groups = folder / "proc", folder / "groups"
        self.files = {1: self.groups / "memory/a/memory.oom_control", 2: self.groups / "b/memory.events"}
        (self.proc / "self").mkdir(parents=True)
        self.write(self.proc / "vmstat", "nr_free_pages 5\noom_kill 3\n")

    def put_in_group(self, version: int, kills: int) -> None:
        (self.proc / "self/cgroup").write_text("4:cpu:/\n3:memory:/a\n" if version == 1 else "0::/b\n")
        other = "under_oom 0\n" if version == 1 else "oom 9\noom_group_kill 9\n"
        self.write(self.files[version], f"{other}oom_kill {kills}\n")

    def kill(self) -> None:
        self.write(self.proc / "vmstat", "nr_free_pages 5\noom_kill 4\n")

    def write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(module, "_PROC", made.proc)
    monkeypatch.setattr(module, "_GROUPS", made.groups)
    return made


@pytest.mark.parametrize("version", [1, 2])
def test_the_counter_of_the_own_group_decides_where_there_is_one(kernel: Kernel, version: int) -> None:
    kernel.put_in_group(version, 1)
    before = count_kills()
    assert before == KillCounts(str(kernel.files[version]), 1, 3)

    kernel.kill()  # a process of another group
    assert not before.has_risen()
    assert before.has_risen(same_groups=False)
    kernel.put_in_group(version, 2)
    assert before.has_risen()


def test_without_a_group_the_counter_of_the_machine_decides(kernel: Kernel) -> None:
    before = count_kills()
    assert before == KillCounts(on_machine=3)
    assert not before.has_risen()
    kernel.kill()
    assert before.has_risen()


def test_a_group_that_is_gone_leaves_the_counter_of_the_machine(kernel: Kernel) -> None:
    kernel.put_in_group(2, 1)
    before = count_kills()
    kernel.files[2].unlink()
    assert not before.has_risen()
    kernel.kill()
    assert before.has_risen()


@pytest.mark.parametrize("text", ["", "oom_kill\n", "oom_kill many\n", "oom_kills 4\n"])
def test_a_counter_that_cannot_be_read_tells_nothing(kernel: Kernel, text: str) -> None:
    before = count_kills()
    kernel.write(kernel.proc / "vmstat", text)
    assert count_kills() == KillCounts()
    assert not before.has_risen()
    kernel.kill()
    assert not KillCounts().has_risen()


def test_counts_are_stored_as_text() -> None:
    counts = KillCounts("/sys/fs/cgroup/a/memory.events", 1, None)
    assert decode_or_none(encode(counts), KillCounts) == counts
    assert decode_or_none('{"in_group": "1"}', KillCounts) is None
    assert decode_or_none(None, KillCounts) is None


def test_an_engine_that_the_kernel_killed_is_told_from_one_that_crashed(directory: Path, kernel: Kernel) -> None:
    arguments = [sys.executable, "-c", ENGINE, *map(str, (directory, kernel.proc, kernel.groups))]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        assert engine.stdout.readline() == "begun\n"
        kernel.kill()  # another process
        engine.stdin.write("\n")
        engine.stdin.flush()
        assert engine.stdout.readline() == "beaten\n"
        assert not was_killed_for_memory(directory)  # it lives
        engine.kill()
        status = engine.wait()
    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.LOST
    assert not was_killed_for_memory(directory, status)

    kernel.write(kernel.proc / "vmstat", "oom_kill 5\n")
    assert was_killed_for_memory(directory, status)
    assert was_killed_for_memory(directory)
    assert not was_killed_for_memory(directory, -signal.SIGSEGV)
    kernel.write(kernel.proc / "vmstat", "oom_kill 4\n")
    assert was_killed_for_memory(directory)  # it is decided once
    reopen(directory, Plan(name="first try"))
    assert not was_killed_for_memory(directory)


@pytest.mark.parametrize(("age", "loss"), [(0.0, MemoryLoss.KILLED), (1e4, None), (-1e4, None)])
def test_a_later_kill_says_nothing(directory: Path, kernel: Kernel, age: float, loss: MemoryLoss | None) -> None:
    process = encode(ProcessIdentity.of(os.getpid()))
    meta = {"kills": encode(count_kills()), "process": process, "heartbeat": clock.boot_seconds() - age}
    assert memory_loss(directory, meta) is None
    kernel.kill()
    assert memory_loss(directory, meta) is loss


@pytest.mark.parametrize(
    ("message", "loss"),
    [
        (f"{ALLOCATOR} 2.00GiB (rounded to 2147483648)requested by op MatMul", MemoryLoss.CRASHED),
        (f"{ALLOCATOR} 2.00GiB with freed_by_count=0. The caller indicates that this is not a failure, but", None),
    ],
)
def test_an_allocator_that_has_another_way_has_not_crashed(
    directory: Path, message: str, loss: MemoryLoss | None
) -> None:
    (directory / LOG).write_text(f"{message}\nTraining goes on\n")
    assert memory_loss(directory, {"log_start": 0}) is loss


def test_a_lost_run_has_the_last_words_of_native_code(directory: Path) -> None:
    fatal = "F0000 00:00:1795966238.908914   15529 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_a=1\n"
    (directory / LOG).write_text(f"I0000 a.cc:1] begun\n{fatal}    @ 0x7f\n")
    assert last_words(directory, {"log_start": 0}) == "Unknown flag in XLA_FLAGS: --xla_a=1"
    assert last_words(directory, {"log_start": 0x1000}) == ""  # of an earlier engine
    assert last_words(directory, {}) == ""
    with (directory / LOG).open("a") as log:
        log.write("\naccel-tui: gpu:1 had error 79 (Xid): it fell off the PCI bus\n")
    lost = "Unknown flag in XLA_FLAGS: --xla_a=1; gpu:1 had error 79 (Xid): it fell off the PCI bus"
    assert last_words(directory, {"log_start": 0}) == lost


def test_a_run_that_has_ended_was_not_killed(ended: Path, kernel: Kernel) -> None:
    kernel.kill()
    assert not was_killed_for_memory(ended)


def test_a_killed_run_is_continued_with_less_memory(directory: Path, writer: RunWriter) -> None:
    assert adapted(directory) is None  # it never said what would help
    writer.write_memory_facts(MemoryFacts(batch=64, can_split=True))
    found = adapted(directory)
    assert found is not None
    plan, restart = found
    assert plan == Plan(model="cnn", name="first try", micro_batches=2)
    assert restart.changes == {"micro_batches": 2}

    writer.write_plan(Plan(micro_batches=64))
    assert adapted(directory) is None


@pytest.mark.parametrize(
    ("plan", "facts"),
    [
        (Plan(on_oom="fail"), MemoryFacts(batch=64, can_split=True)),
        (Plan(), MemoryFacts(batch=64, can_split=True, on_host=False)),  # the memory of the host is not a GPU's
        (Plan(), MemoryFacts(batch=64, caches_data=True)),  # no plan says so
    ],
)
def test_nothing_changes_that_would_not_help(
    directory: Path, writer: RunWriter, plan: Plan, facts: MemoryFacts
) -> None:
    writer.write_plan(plan)
    writer.write_memory_facts(facts)
    assert adapted(directory) is None


def test_a_crash_after_native_code_ran_out_of_memory_is_known_by_the_log(directory: Path, kernel: Kernel) -> None:
    (directory / LOG).write_text("MemoryError of an earlier engine\n")
    arguments = [sys.executable, "-c", ENGINE, *map(str, (directory, kernel.proc, kernel.groups))]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "begun\n"
        engine.kill()
    assert not was_killed_for_memory(directory)

    with (directory / LOG).open("a") as log:
        log.write("op_kernel.cc:1858] OP_REQUIRES failed at mkl_util.h:848 : RESOURCE_EXHAUSTED: OOM when allocating\n")
    assert was_killed_for_memory(directory, -signal.SIGSEGV)
    assert not was_killed_for_memory(directory, 1)
    with closing(RunReader(directory)) as reader:
        assert reader.info().memory_loss is MemoryLoss.CRASHED


def test_what_the_log_said_before_a_recovery_explains_nothing(directory: Path, kernel: Kernel) -> None:
    script = ENGINE.replace(
        'print("begun"', 'Path(sys.argv[1], "log.txt").write_text("MemoryError"); writer.settle_log(); print("begun"'
    )
    arguments = [sys.executable, "-c", script, *map(str, (directory, kernel.proc, kernel.groups))]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "begun\n"
        engine.kill()
    assert not was_killed_for_memory(directory)
