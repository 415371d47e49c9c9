"""Proves that a server answers as the trained model did, and measures how fast.

python3 smoke_test.py           starts the server of this folder, and stops it
python3 smoke_test.py URL       takes a server that runs

Needs what requirements.txt has. The exit status is 1 if an answer differs or fails.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "server"))

import numpy as np  # noqa: E402

from accel_engine.errors import AccelError  # noqa: E402
from accel_engine.model_server.service import compare_outputs, load_examples, read_service  # noqa: E402
from accel_engine.service_client.rest_v2 import RestV2  # noqa: E402
from accel_engine.service_client.transport import ServiceError, Transport  # noqa: E402

START_SECONDS = 600.0
"""How long a server may take until it is ready."""

CONNECTIONS = 4
"""Connections, each with one request at a time."""


def measure(service: RestV2, requests: list[Any], seconds: float) -> dict[str, float]:
    """Requests a second and latencies in seconds, of :data:`CONNECTIONS` clients that each wait for their answer."""
    times: list[float] = []
    failed: list[str] = []
    end = time.perf_counter() + seconds

    def ask() -> None:
        at = 0
        while (began := time.perf_counter()) < end:
            try:
                service.send(requests[at % len(requests)])
                times.append(time.perf_counter() - began)
            except ServiceError as error:
                failed.append(str(error))
            at += 1

    threads = [threading.Thread(target=ask) for _ in range(CONNECTIONS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    times.sort()
    if not times:
        return {"rate": 0.0, "p50": math.nan, "p99": math.nan, "failed": len(failed)}
    p50, p99 = (times[min(len(times) - 1, math.ceil(share * len(times)) - 1)] for share in (0.5, 0.99))
    return {"rate": len(times) / seconds, "p50": p50, "p99": p99, "failed": len(failed)}


def test(url: str, token: str, seconds: float) -> dict[str, Any]:
    """Compare a server's answers to the held-out examples with the trained model's; returns the result."""
    served = read_service(HERE / "model")
    inputs, expected = load_examples(HERE / "model")
    count = len(next(iter(expected.values())))
    rows = [{name: array[at : at + 1] for name, array in inputs.items()} for at in range(count)]
    try:
        service = RestV2(Transport(url.rstrip("/"), token), served.name, binary=True)  # of large examples, too
        answers = [service.run(row) for row in rows]
    except AccelError as error:
        return {"problem": str(error)}
    found = {name: np.concatenate([each[name] for each in answers]) for name in answers[0]}
    compared = compare_outputs(served, {name: expected[name] for name in expected if name in found}, found)
    if compared.problem:
        return {"problem": compared.problem}
    figures = measure(service, [service.prepare(row) for row in rows], seconds)
    failed = figures.pop("failed")
    return {
        "problem": f"{failed} requests failed under load" if failed else "",
        "examples": count,
        "largest": compared.largest,
        "mean": compared.mean,
        "connections": CONNECTIONS,
        **figures,
    }


def resident(pid: int) -> int:
    """The most memory in bytes that a process and those that it started have had; 0 where /proc does not tell."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(status.get("VmHWM", "0 kB").split()[0]) * 1024 + sum(resident(int(each)) for each in children)


def with_own_server(threads: int, seconds: float) -> dict[str, Any]:
    """Start the server of this folder, test it, and stop it, also if a signal is to end this program."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP):  # the server itself takes SIGHUP as the wish to load its model again
        signal.signal(number, lambda number, _: signals.append(number))
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "state.json")
        command = [sys.executable, "-m", "accel_engine.model_server", str(HERE / "model"), "--port", "0"]
        command += ["--state-file", str(state), "--threads", str(threads)]
        paths = [str(HERE / "server"), os.environ.get("PYTHONPATH", "")]
        began = time.perf_counter()
        log = Path(folder, "log.txt")
        with log.open("wb") as output:
            server = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda number, _: sys.exit(128 + number))
            if signals:  # while the server was started
                sys.exit(128 + signals[0])
            url = ready(server, state)
            if not url:
                return {"problem": f"the server did not start: {log.read_text('utf-8', 'replace')[-2000:].strip()}"}
            load_seconds = time.perf_counter() - began
            found = test(url, "", seconds)
            return {**found, "load_seconds": load_seconds, "memory_bytes": resident(server.pid), "threads": threads}
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def ready(server: "subprocess.Popen[bytes]", state: Path) -> str:
    """The address of a server once it is ready; empty if it ends before."""
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
        try:
            url = f"http://127.0.0.1:{json.loads(state.read_text('utf-8'))['port']}"
            Transport(url).get("/readyz")
        except (OSError, ValueError, ServiceError):
            continue  # not yet
        return url
    return ""


def main() -> int:
    """Test, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="the server's address, such as http://127.0.0.1:8501")
    parser.add_argument("--token-file", type=Path, help="a file with the server's token")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long the latency is measured (2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of a server that is started (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        token = options.token_file.read_text("utf-8").strip() if options.token_file else ""
    except (OSError, ValueError) as error:
        parser.error(f"cannot read the token: {error}")
    if options.url:
        found = test(options.url, token, options.seconds)
    else:
        found = with_own_server(options.threads, options.seconds)
    if options.json:
        print(json.dumps(found))
    elif found["problem"]:
        print(f"NOT RIGHT: {found['problem']}")
    else:
        print(
            f"{found['examples']} examples equal within the tolerance; the largest difference is {found['largest']:.2g}"
        )
        speed = f"{found['rate']:.0f} requests/s, p50 {found['p50'] * 1e3:.2f} ms, p99 {found['p99'] * 1e3:.2f} ms"
        print(f"{speed}, with {found['connections']} connections")
        if "load_seconds" in found:
            print(f"ready after {found['load_seconds']:.2f} s, {found['memory_bytes'] / 2**20:.0f} MiB of memory")
    return 1 if found["problem"] else 0


if __name__ == "__main__":
    sys.exit(main())
