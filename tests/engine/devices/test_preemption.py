"""Notices of preemption, from a stand-in for each cloud's metadata server."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_engine.devices import preemption
from accel_engine.devices.preemption import AUTO, HOST_VARIABLE, PROVIDERS, NoticeWatcher, find_provider, read_notice
from metadata_server import AMAZON, AZURE, AZURE_NAME, GOOGLE, TOKEN, MetadataServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataServer]:
    with MetadataServer() as server:
        monkeypatch.setenv(HOST_VARIABLE, server.address)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # which is not used
        yield server


def scheduled(*events: tuple[str, str]) -> str:
    """Azure's events: type and the machine's name."""
    listed = [
        {"EventId": "1", "EventType": kind, "Resources": [name], "NotBefore": "Mon, 30 Nov 2026 12:00:00 GMT"}
        for kind, name in events
    ]
    return json.dumps({"DocumentIncarnation": 1, "Events": listed})


def test_google(server: MetadataServer) -> None:
    server.answer("GET", GOOGLE, "FALSE")
    assert read_notice(PROVIDERS["gce"]) == ""
    server.answer("GET", GOOGLE, "TRUE\n")
    assert read_notice(PROVIDERS["gce"]) == "it preempts this machine"


def test_amazon_takes_a_token_and_answers_404_without_a_plan(server: MetadataServer) -> None:
    assert read_notice(PROVIDERS["aws"]) == ""
    assert server.requests == [("PUT", TOKEN), ("GET", AMAZON)]
    server.answer("GET", AMAZON, '{"action": "terminate", "time": "2026-11-30T12:00:00Z"}')
    assert read_notice(PROVIDERS["aws"]) == "it plans to terminate this machine at 2026-11-30T12:00:00Z"


def test_azure_tells_of_other_machines_and_of_other_events_too(server: MetadataServer) -> None:
    server.answer("GET", AZURE_NAME, "pool_1")
    server.answer("GET", AZURE, scheduled())
    assert read_notice(PROVIDERS["azure"]) == ""
    assert server.requests == [("GET", AZURE)]
    server.answer("GET", AZURE, scheduled(("Freeze", "pool_1"), ("Preempt", "pool_0")))
    assert read_notice(PROVIDERS["azure"]) == ""
    server.answer("GET", AZURE, scheduled(("Preempt", "pool_0"), ("Preempt", "pool_1")))
    assert read_notice(PROVIDERS["azure"]) == "it will preempt this machine at Mon, 30 Nov 2026 12:00:00 GMT"
    server.answer("GET", AZURE, scheduled(("Terminate", "pool_1")))
    assert read_notice(PROVIDERS["azure"]).startswith("it will terminate this machine")


@pytest.mark.parametrize(
    ("cloud", "path", "body", "status"),
    [
        ("gce", GOOGLE, "<html>a portal</html>", 200),
        ("gce", GOOGLE, "", 403),
        ("aws", AMAZON, '{"time": "12:00"}', 200),
        ("aws", AMAZON, "no JSON", 200),
        ("aws", AMAZON, "[]", 200),
        ("azure", AZURE, '{"Events": [{"EventType": 3}, 4]}', 200),
        ("azure", AZURE, "", 500),
    ],
)
def test_what_is_no_answer_is_no_notice(server: MetadataServer, cloud: str, path: str, body: str, status: int) -> None:
    server.answer("GET", path, body, status)
    with pytest.raises(ValueError, match=r"."):
        read_notice(PROVIDERS[cloud])


@pytest.mark.parametrize(
    ("firmware", "name"),
    [
        ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "Google Cloud"),
        ({"sys_vendor": "Amazon EC2", "product_name": "g5.xlarge"}, "AWS"),
        (
            {"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"},
            "Azure",
        ),
        ({"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": "0000"}, ""),  # Hyper-V elsewhere
        ({"sys_vendor": "QEMU"}, ""),
        ({}, ""),
    ],
)
def test_the_firmware_tells_which_cloud_it_is(tmp_path: Path, firmware: dict[str, str], name: str) -> None:
    place = tmp_path / "sys/class/dmi/id"
    place.mkdir(parents=True)
    for key, text in firmware.items():
        (place / key).write_text(f"{text}\n")
    found = find_provider(AUTO, tmp_path)
    assert (found.name if found else "") == name
    assert find_provider("off", tmp_path) is None
    assert find_provider("aws", tmp_path) is PROVIDERS["aws"]


def test_it_is_told_once_and_a_server_that_is_not_there_once(
    server: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preemption, "POLL_SECONDS", 0.01)
    server.answer("GET", GOOGLE, "", 503)
    notices: list[tuple[str, str]] = []
    warnings: list[str] = []
    warned, notified = threading.Event(), threading.Event()

    def notify(cloud: str, reason: str) -> None:
        notices.append((cloud, reason))
        notified.set()

    def warn(message: str) -> None:
        warnings.append(message)
        warned.set()

    NoticeWatcher(PROVIDERS["gce"], notify, warn).start()
    assert warned.wait(60)
    before = len(server.requests)
    while len(server.requests) < before + 3:  # it goes on, and says nothing more
        threading.Event().wait(0.01)
    server.answer("GET", GOOGLE, "TRUE")
    assert notified.wait(60)
    assert notices == [("Google Cloud", "it preempts this machine")]
    assert warnings == [
        f"Google Cloud's metadata server {server.address} does not answer as expected: status 503; until it does, "
        "no notice comes before Google Cloud takes this machine away; it is asked again every 0.01 s"
    ]


def test_without_a_server_the_machine_seems_to_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "find_provider", lambda _: None)  # whatever this machine's firmware says
    warnings: list[str] = []
    with MetadataServer() as gone:
        address = gone.address
    monkeypatch.setenv(HOST_VARIABLE, address)
    warned = threading.Event()

    def warn(message: str) -> None:
        warnings.append(message)
        warned.set()

    watcher = NoticeWatcher(PROVIDERS["gce"], lambda *_: None, warn)
    watcher.start()
    assert warned.wait(60)
    watcher.stop()
    assert warnings == [
        f"no metadata server of Google Cloud answers at {address} (Connection refused): this machine seems not to be "
        "in Google Cloud, and gets no notice; it is asked again every 5 s"
    ]
