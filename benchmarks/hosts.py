"""Measures the link to a host: bytes a second, and the time from a command to its effect.

    python benchmarks/hosts.py [--seconds 30] [--hosts 8] [--commands 50]

A stand-in for ssh runs the host's side on this machine, with another directory of the program. Bytes are what ssh gets
and gives; ssh adds some tens of bytes to each message. Runs are written here as engines write them: 500 steps a second
in 25 chunks, with three series, and a sample of one GPU a second. Goals: watching one run in full takes less than
20 KB/s, and the lists and devices of eight hosts less than 10 KB/s; a command is in its run in less than 300 ms plus a
round trip.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np

from accel_engine.devices import Reading, Sample
from accel_engine.events import RunStarted
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.hosts.link import link_to
from accel_engine.hosts.mirrored_runs import list_runs_of
from accel_engine.hosts.reading import HostFollower
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create, send_command

STAND_IN = '#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done\nshift 2\nexec sh -c "$*"\n'

CHUNKS, STEPS = 25, 20
"""Chunks a second, and steps in each."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--commands", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "ssh")
        program.write_text(STAND_IN)
        program.chmod(0o700)
        os.environ["ACCEL_TUI_SSH"] = str(program)
        os.environ["ACCEL_TUI_HOME"] = str(Path(folder, "here"))
        print("| what is followed | received, B/s | sent, B/s |\n|---|---|---|")
        for line in measure_bytes(Path(folder), arguments):
            print(line, flush=True)
        print("\n| from a command to its row in the run there | commands | median, ms | max, ms |\n|---|---|---|---|")
        print(measure_commands(Path(folder), arguments.commands))


def measure_bytes(folder: Path, arguments: argparse.Namespace) -> Iterator[str]:
    """Bytes a second of one run, read in full, and of the lists of several hosts."""
    with training(folder, "one", 1) as names, ExitStack() as stack:
        list_runs_of(names[0])
        mirror = next((folder / "here" / "hosts" / names[0] / "runs").iterdir())
        stack.enter_context(closing(RunReader(mirror)))
        yield f"| one run, all of it | {traffic(names, arguments.seconds)} |"
        follower = HostFollower(host_of(folder, names[0]), lambda _: None)
        yield f"| the same, and the list and the devices of its host | {traffic(names, arguments.seconds)} |"
        follower.stop()
    with training(folder, "many", arguments.hosts) as names:
        followers = [HostFollower(host_of(folder, name), lambda _: None) for name in names]
        time.sleep(10)  # the first lists, and the devices' descriptions
        yield f"| lists and devices of {len(names)} hosts, each with a live run | {traffic(names, arguments.seconds)} |"
        for follower in followers:
            follower.stop()


def measure_commands(folder: Path, count: int) -> str:
    """Milliseconds from a command to its row in the run there."""
    times: list[float] = []
    with training(folder, "steered", 1, writes=False) as names:
        list_runs_of(names[0])
        mirror = next((folder / "here" / "hosts" / names[0] / "runs").iterdir())
        there = next((folder / names[0] / "runs").iterdir())
        with closing(RunWriter(there)) as engine, closing(RunReader(mirror)):
            for _ in range(count):
                begun = time.monotonic()
                send_command(mirror, "checkpoint")
                while not (commands := engine.commands()):
                    time.sleep(0.002)
                times.append(1000 * (time.monotonic() - begun))
                engine.answer(commands[0], obeyed=True, answer="done")
                time.sleep(0.7)
    return f"| on this machine, without a network | {count} | {statistics.median(times):.0f} | {max(times):.0f} |"


def host_of(folder: Path, name: str) -> Host:
    """The host of a name, whose directory of the program is in the folder."""
    return Host(name, python=sys.executable, home=str(folder / name))


def traffic(names: Sequence[str], seconds: float) -> str:
    """Bytes a second that are received from some hosts and sent to them."""
    before = [link_to(name).connection().traffic for name in names]
    time.sleep(seconds)
    after = [link_to(name).connection().traffic for name in names]
    rates = [sum(last[way] - first[way] for first, last in zip(before, after, strict=True)) for way in (0, 1)]
    return " | ".join(f"{rate / seconds:,.0f}" for rate in rates)


@contextmanager
def training(folder: Path, prefix: str, count: int, *, writes: bool = True) -> Iterator[list[str]]:
    """Some hosts, each with a live run; their names."""
    names, is_over, here = (
        [f"{prefix}{number}" for number in range(count)],
        threading.Event(),
        os.environ["ACCEL_TUI_HOME"],
    )
    threads: list[threading.Thread] = []
    with ExitStack() as stack:
        for name in names:
            add_host(host_of(folder, name))
            os.environ["ACCEL_TUI_HOME"] = str(folder / name)
            writer = stack.enter_context(closing(RunWriter(create(Plan(name="measured")))))
            os.environ["ACCEL_TUI_HOME"] = here
            writer.begin(started(writer))
            threads.append(threading.Thread(target=train, args=(writer, is_over, writes)))
        for thread in threads:
            thread.start()
        try:
            yield names
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
            for name in names:
                link_to(name).close()


def started(writer: RunWriter) -> RunStarted:
    """The first event of a run."""
    run = writer.directory.name
    return RunStarted(time=time.time(), run=run, name="", plan={}, first_step=0, pid=os.getpid(), host="h", versions={})


def train(writer: RunWriter, is_over: threading.Event, writes: bool) -> None:
    """Write a run as an engine does."""
    random, step = np.random.default_rng(1), 0
    while not is_over.wait(1 / CHUNKS):
        if writes:
            series = {name: random.random(STEPS, np.float32) for name in ("loss", "accuracy", "learning_rate")}
            writer.write_chunk(step, time.time() - 1 / CHUNKS, time.time(), series)
            step += STEPS
        if step % (CHUNKS * STEPS) == 0:
            writer.heartbeat()
            readings = {"utilization": Reading(float(random.integers(100)), "%"), "power": Reading(300.0, "W")}
            writer.write_samples([Sample(time.time(), "gpu:0", readings)])


if __name__ == "__main__":
    main()
