import pytest

from accel_engine.launch.trial_process import LAST_LINES, exit_error, exit_reason

START = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "I0000 00:00:1795701232.546177    9816 port.cc:153] oneDNN custom operations are on.\n"
)


@pytest.mark.parametrize(
    ("status", "log", "reason"),
    [
        (-11, START, " by signal SIGSEGV"),
        (-6, f"{START}std::bad_alloc\n\n", " by signal SIGABRT: std::bad_alloc"),
        (1, "", " with status 1"),
        (-250, "", " by signal 250"),
    ],
)
def test_the_reason_of_an_exit_is_no_line_of_every_start(status: int, log: str, reason: str) -> None:
    assert exit_reason(status, log) == reason


_RETRIED = (
    "W0000 bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB. The caller "
    "indicates that this is not a failure, but this may mean that there could be performance gains.\n"
)


@pytest.mark.parametrize(
    ("status", "log", "out_of_memory", "message"),
    [
        (-9, "", True, "the engine was killed (SIGKILL), probably for lack of memory"),
        (-6, f"{START}terminate called\nstd::bad_alloc\n", True, "out of memory: the engine exited"),
        (-11, _RETRIED, False, "the engine exited by signal SIGSEGV"),
        (1, "failed to allocate 1 GB\n" + "a line\n" * LAST_LINES, False, "the engine exited with status 1: a line"),
    ],
)
def test_only_the_last_lines_tell_that_memory_ran_out(status: int, log: str, out_of_memory: bool, message: str) -> None:
    error = exit_error(status, log)
    assert error.out_of_memory is out_of_memory
    assert str(error).startswith(message)
