"""Measures the CPU time of sampling eight GPUs and the host once a second: accel-tui, nvitop and W&B LEET.

    python benchmarks/sampling.py [--seconds 30] [--gpus 8] [--nvitop PATH] [--leet PATH]

The GPUs are simulated by the tests' stand-in for NVIDIA's library, which answers at once, so the driver's own work is
not included. All programs run at the same time, each in a pseudo-terminal of 200x50. The CPU time includes child
processes.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import tempfile
import termios
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from nvml.stand_in import COMPILER, Driver, build

WARM_UP = 8.0
"""Seconds before the measurement, for the programs to start."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--nvitop", type=Path, metavar="PATH", help="path of nvitop")
    parser.add_argument("--leet", type=Path, metavar="PATH", help="path of wandb-core, which contains LEET")
    parser.add_argument("--serve", choices=("samples", "written"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(written=arguments.serve == "written")
        return
    if COMPILER is None:
        sys.exit("the stand-in for NVIDIA's library needs a C compiler")
    with tempfile.TemporaryDirectory() as scratch:
        compare(sides(arguments), Path(scratch), arguments.gpus, arguments.seconds)


def sides(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """The commands to compare, by name."""
    ours = [sys.executable, __file__, "--serve"]
    chosen = {
        "ours: samplers alone": [*ours, "samples"],
        "ours: samplers, written to a run": [*ours, "written"],
        "ours: accel-tui devices --watch": [str(Path(sys.executable).with_name("accel-tui")), "devices", "--watch"],
    }
    if arguments.nvitop:
        chosen["nvitop"] = [str(arguments.nvitop), "--monitor", "full", "--interval", "1"]
    if arguments.leet:
        chosen["leet symon"] = [str(arguments.leet), "leet", "symon", "-interval", "1s", "-no-observability"]
    return chosen


def compare(commands: dict[str, list[str]], scratch: Path, gpus: int, seconds: float) -> None:
    driver = busy(scratch, gpus)
    environment = {
        **os.environ,
        **driver.environment,
        "ACCEL_TUI_HOME": str(scratch / "home"),
        "TERM": "xterm-256color",
    }
    with ExitStack() as stack:
        running = {name: stack.enter_context(closing(Side(command, environment))) for name, command in commands.items()}
        time.sleep(WARM_UP)
        began, size = time.monotonic(), run_size(scratch)
        before = {name: side.spent() for name, side in running.items()}
        time.sleep(seconds)
        after = {name: side.spent() for name, side in running.items()}
        passed, grown = time.monotonic() - began, run_size(scratch) - size
        for name, side in running.items():
            alive = "" if side.process.poll() is None else "   (exited)"
            print(f"{name:<36}{100 * (after[name] - before[name]) / passed:6.2f} % of a core{alive}")
    print(f"{gpus} GPUs and the host in a run: {grown * 86400 / passed / 1e6:.1f} MB a day")


def busy(scratch: Path, gpus: int) -> Driver:
    """Simulated GPUs under load, whose readings change every second."""
    driver = Driver(build(scratch), scratch / "script", gpus)
    driver.measure("swing", "*", 20)
    driver.measure("pid", "*", os.getpid())

    def train() -> None:
        for second in range(1_000_000):
            driver.measure("power", "*", 300_000 + second * 7919 % 40_000)
            driver.measure("temperature", "*", 60 + second // 10 % 5)
            time.sleep(1)

    threading.Thread(target=train, daemon=True).start()
    return driver


def run_size(scratch: Path) -> int:
    """Bytes of samples in the run's database."""
    import sqlite3

    (file,) = (scratch / "home").rglob("run.db")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        # A row's id, time and lengths take 20 bytes.
        return int(connection.execute("SELECT sum(length(device) + length(readings) + 20) FROM sample").fetchone()[0])


class Side:
    """A program in a pseudo-terminal, whose output is discarded."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (50, 200))

        def take_terminal() -> None:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, preexec_fn=take_terminal
        )
        os.close(slave)
        threading.Thread(target=self._drain, daemon=True).start()

    def spent(self) -> float:
        """CPU seconds of the program and its children, including those that have exited."""
        total = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.process.pid)
            for each in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = each.cpu_times()
                    total += times.user + times.system + times.children_user + times.children_system
        return total

    def close(self) -> None:
        """Kill the program and its children."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                child.kill()
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._master, 1 << 16):
                pass


def serve(*, written: bool) -> None:
    """Sample until killed."""
    from accel_engine.devices import Sampler

    if not written:
        Sampler(lambda _: None).start()
    else:
        from accel_engine.plan import Plan
        from accel_engine.run import RunWriter, create

        Sampler(RunWriter(create(Plan())).samples, engine=os.getpid()).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
