import pytest

from accel_engine.launch.trial_process import exit_reason

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
