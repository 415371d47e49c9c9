"""Under load, with a back end that dies or hangs, and at the end: nothing accepted is lost, no answer is wrong."""

import asyncio
import json
import os
import random
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from .conftest import Server, Start, probabilities, write_folder

PREDICT = "/v1/models/small:predict"


def wrong(server: Server, draws: np.random.Generator, largest: int = 3) -> str:
    """Ask with random numbers; what is wrong with the answer, or nothing."""
    x = draws.integers(0, 9, (draws.integers(1, largest + 1), 4)).astype(np.float32)
    found = server.ask(PREDICT, {"instances": x.tolist()})
    if found.status != 200:
        return f"{found.status} {found.error}"
    return "" if np.allclose(found.json["predictions"], probabilities(x), atol=1e-5) else "another answer"


def ask_many(server: Server, threads: int, requests: int, largest: int = 3) -> list[str]:
    def client(seed: int) -> list[str]:
        draws = np.random.default_rng(seed)
        return [problem for _ in range(requests) if (problem := wrong(server, draws, largest))]

    with ThreadPoolExecutor(threads) as pool:
        return [problem for found in pool.map(client, range(threads)) for problem in found]


def test_requests_that_wait_together_are_batches_and_each_gets_its_answer(start: Start, folders: Path) -> None:
    server = start(folders / "numbers")
    server.back_end.suspend()
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(wrong, server, np.random.default_rng(seed)) for seed in range(30)]
        server.wait_until(lambda: server.metric("model_server_queue_examples") >= 20)
        server.back_end.resume()
        assert [each.result() for each in asked] == [""] * 30
    sizes, batches = (server.metric(f"model_server_batch_size_{name}") for name in ("sum", "count"))
    assert sizes / batches > 2
    assert wrong(server, np.random.default_rng(0), 40) == ""  # more than a batch
    assert server.metric("model_server_queue_examples") == 0


def test_a_full_queue_refuses_and_a_hanging_back_end_is_started_again(start: Start, folders: Path) -> None:
    server = start(folders / "numbers", "--max-queue", "4", "--timeout", "2")
    hanging = server.back_end
    hanging.suspend()
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(server.ask, PREDICT, {"instances": [[0] * 4]}) for _ in range(12)]
        answers = [each.result() for each in asked]
    statuses = [each.status for each in answers]
    assert set(statuses) <= {429, 503, 504}
    assert statuses.count(429) >= 4
    assert {each.headers["Retry-After"] for each in answers if each.status == 429} == {"1"}
    server.wait_until(lambda: server.has_other_back_end(hanging))
    assert server.metric("model_server_backend_restarts_total") == 1
    assert wrong(server, np.random.default_rng(0)) == ""


def test_a_killed_back_end_loses_nothing(start: Start, folders: Path) -> None:
    server = start(folders / "numbers")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask_many, server, 8, 60)
        time.sleep(0.2)
        first = server.back_end
        first.kill()
        server.wait_until(partial(server.is_started_again, first))
        second = server.back_end  # which hardly is ready
        second.kill()
        server.wait_until(partial(server.has_other_back_end, second))
        assert asked.result() == []
    assert server.metric("model_server_backend_restarts_total") == 2
    assert "is gone: it is started again" in server.log.read_text()


@pytest.mark.campaign
def test_while_the_back_end_starts_the_server_is_not_ready(start: Start, tmp_path: Path) -> None:
    server = start(write_folder(tmp_path / "model"), "--timeout", "2")
    (tmp_path / "model" / "model.onnx").rename(tmp_path / "away")
    server.back_end.kill()
    server.wait_until(lambda: server.ask("/readyz").status == 503)
    assert server.ask("/readyz").json["reason"] == "the model is being started again"
    assert server.ask("/livez").status == 200
    found = server.ask(PREDICT, {"instances": [[0] * 4]})
    assert (found.status, found.headers["Retry-After"]) == (503, "5")
    (tmp_path / "away").rename(tmp_path / "model" / "model.onnx")
    server.wait_until(lambda: server.ask("/readyz").status == 200)
    assert wrong(server, np.random.default_rng(0)) == ""


def test_sigterm_finishes_what_was_accepted(start: Start, folders: Path) -> None:
    server = start(folders / "numbers", "--drain", "1")
    server.back_end.suspend()
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(wrong, server, np.random.default_rng(seed)) for seed in range(20)]
        server.wait_until(lambda: server.metric("model_server_queue_examples") >= 10)
        server.process.send_signal(signal.SIGTERM)
        server.wait_until(lambda: server.ask("/readyz").status == 503)
        assert server.ask("/readyz").json["reason"] == "the server is about to end"
        server.back_end.resume()
        assert [each.result() for each in asked] == [""] * 20
        assert wrong(server, np.random.default_rng(0)) == ""  # it answers while it drains
    assert server.process.wait(30) == 0


@pytest.mark.campaign
def test_a_new_version_takes_over_without_a_lost_request(start: Start, tmp_path: Path) -> None:
    write_folder(tmp_path / "one")
    write_folder(tmp_path / "two", version="2", scale=0.0)
    shutil.copytree(tmp_path / "one", tmp_path / "broken")
    (tmp_path / "broken" / "model.onnx").write_bytes(b"no model")
    link = tmp_path / "current"
    link.symlink_to("one")
    server = start(link)

    def lead_to(name: str) -> None:
        (tmp_path / "next").symlink_to(name)
        os.replace(tmp_path / "next", link)
        server.process.send_signal(signal.SIGHUP)

    lead_to("broken")
    server.wait_until(lambda: server.metric("model_server_reload_failures_total") == 1)
    assert server.ask("/v2/models/small").json["versions"] == ["1"]
    ended, problems = threading.Event(), list[Any]()

    def ask() -> None:
        while not ended.is_set():
            found = server.ask(PREDICT, {"instances": [[1, 2, 3, 4]]})
            if found.status != 200:
                problems.append(found.error)
            elif not any(
                np.allclose(found.json["predictions"], probabilities(np.array([[1, 2, 3, 4]]) * scale), atol=1e-5)
                for scale in (1, 0)
            ):
                problems.append(found.json)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    lead_to("two")
    server.wait_until(lambda: server.ask("/v2/models/small").json["versions"] == ["2"])
    ended.set()
    for each in threads:
        each.join()
    assert problems == []
    assert np.allclose(server.ask(PREDICT, {"instances": [[1, 2, 3, 4]]}).json["predictions"], 1 / 3)
    server.wait_until(lambda: server.metric("model_server_reloads_total") == 1 and server.back_end.pid > 0)


@pytest.mark.campaign
def test_a_client_that_leaves_harms_nobody(start: Start, folders: Path) -> None:
    server = start(folders / "numbers")
    server.back_end.suspend()
    body = json.dumps({"instances": [[0] * 4]})
    for _ in range(20):
        link = HTTPConnection("127.0.0.1", server.state["port"])
        link.request("POST", PREDICT, body)
        link.close()
    server.back_end.resume()
    assert ask_many(server, 4, 5) == []


async def _flood(port: int, connections: int, requests: int, seed: int) -> list[str]:
    """Ask over connections that stay open, and check each answer."""
    problems: list[str] = []

    async def client(number: int) -> None:
        draws = np.random.default_rng((seed, number))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(requests):
            x = draws.integers(0, 9, (1 + int(draws.integers(3)), 4)).astype(np.float32)
            body = json.dumps({"instances": x.tolist()}).encode()
            writer.write(
                b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (PREDICT.encode(), len(body))
            )
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            content = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 200"):
                problems.append(content.decode())
            elif not np.allclose(json.loads(content)["predictions"], probabilities(x), atol=1e-5):
                problems.append("another answer")
        writer.close()

    await asyncio.gather(*(client(number) for number in range(connections)))
    return problems


@pytest.mark.campaign
def test_three_hundred_connections_and_kills(start: Start, folders: Path) -> None:
    server = start(folders / "numbers", "--max-queue", "4096")
    ended = threading.Event()

    def kill() -> None:
        draws = random.Random(0)
        while not ended.wait(1 + draws.random()):
            killed = server.back_end
            killed.kill()
            server.wait_until(partial(server.has_other_back_end, killed))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        assert asyncio.run(_flood(server.state["port"], 300, 100, 0)) == []
    finally:
        ended.set()
        killer.join()
    assert server.metric("model_server_backend_restarts_total") >= 2


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_memory_is_flat(start: Start, folders: Path) -> None:
    """``SERVED`` requests, 1,000,000 for all of it: neither process grows after the first twentieth."""
    server = start(folders / "numbers", "--max-queue", "4096")
    requests = int(os.environ.get("SERVED", "50000"))
    sizes = []
    for part in range(20):
        assert asyncio.run(_flood(server.state["port"], 50, requests // 1000, part)) == []
        sizes.append([psutil.Process(pid).memory_info().rss for pid in (server.process.pid, server.back_end.pid)])
    for first, last in zip(sizes[1], sizes[-1], strict=True):
        assert last < first + (8 << 20)
