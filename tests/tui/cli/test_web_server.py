"""What ``accel-tui serve`` answers to strangers, to pages of other sites, and to messages that no page of its sends."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from accel_tui.cli import web_access, web_server
from accel_tui.cli.web_access import HEADERS, WRONG_SECRETS, Rate
from waiting import eventually


class NoDashboard:
    """What a page sent, in place of a dashboard's process."""

    opened: list["NoDashboard"]

    def __init__(self, *_: object, **__: object) -> None:
        self.received: list[object] = []
        self.stopped = False
        self.opened.append(self)

    async def start(self, width: int, height: int) -> None:
        self.received.append((width, height))

    async def set_terminal_size(self, width: int, height: int) -> None:
        self.received.append((width, height))

    async def send_bytes(self, keys: bytes) -> None:
        self.received.append(keys)

    async def blur(self) -> None:
        self.received.append("blur")

    async def focus(self) -> None:
        self.received.append("focus")

    async def stop(self) -> None:
        self.stopped = True


class Site:
    """A server, and a browser that has opened nothing yet."""

    def __init__(self, port: int, access: web_access.Access, browser: aiohttp.ClientSession) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.port = port
        self.access = access
        self.browser = browser

    async def status(self, path: str, **headers: str) -> int:
        async with self.browser.get(self.base + path, headers=headers, allow_redirects=False) as reply:
            await reply.read()
            return reply.status

    async def log_in(self) -> None:
        assert await self.status(f"/?secret={self.access.secret}") == 302

    async def connect(self, query: str = "", origin: str | None = None) -> aiohttp.ClientWebSocketResponse:
        url = f"{self.base}{self.access.path}/ws{query}"
        return await self.browser.ws_connect(url, origin=self.base if origin is None else origin)

    async def answer(self, request: bytes) -> bytes:
        """What the server answers to bytes."""

        def send() -> bytes:
            with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
                connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                return b"".join(iter(lambda: connection.recv(4096), b""))

        return await asyncio.to_thread(send)


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch, *allowed: str) -> AsyncIterator[Site]:
    monkeypatch.setattr(web_server, "Dashboard", NoDashboard)
    NoDashboard.opened = []
    server = web_server.DashboardServer("127.0.0.1", allowed)
    jar = aiohttp.CookieJar(unsafe=True)
    runner = await server.make_runner()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            yield Site(runner.addresses[0][1], server.access, browser)
    finally:
        await runner.cleanup()


async def test_everything_but_the_way_in_needs_the_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        page = site.access.path
        paths = [f"{page}/", f"{page}/ws", f"{page}/static/js/textual.js", f"{page}/no", "/no", "/download/key", "/"]
        assert {path: await site.status(path) for path in paths} == dict.fromkeys(paths, 403)
        await site.log_in()
        known = {path: await site.status(path) for path in paths}
        assert known == dict(zip(paths, (200, 403, 200, 404, 403, 404, 403), strict=True))


async def test_cookies_are_of_one_path_each_and_for_no_script_and_no_other_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(monkeypatch) as site:
        url = f"{site.base}/?secret={site.access.secret}"
        async with site.browser.get(url, allow_redirects=False) as reply:
            cookies = reply.headers.getall("Set-Cookie")
        assert len({cookie.partition(";")[0] for cookie in cookies}) == 2
        assert not any(site.access.secret in cookie for cookie in cookies)
        for cookie, path in zip(cookies, (site.access.path, "/download"), strict=True):
            assert cookie.partition("; ")[2] == f"Path={path}/; HttpOnly; SameSite=Strict"


@pytest.mark.parametrize("name", ["\xff", "a=b; \xe9=\x80", "=" * 3000, '"', "accel-tui-{port}=\udcff"])
async def test_a_cookie_of_any_characters_is_wrong_and_no_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        wrong = name.replace("{port}", str(site.port)).encode("utf-8", "surrogateescape")
        request = b"GET %s/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: accel-tui-%d=%s\r\n\r\n"
        sent = request % (site.access.path.encode(), site.port, site.port, wrong)
        assert (await site.answer(sent)).startswith(b"HTTP/1.1 403")
        assert await site.status("/?secret=%ff%ed%a0%80\xe9") == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1:%d", 200),
        (b"localhost:8000", 403),  # another port, as through SSH: allowed, but the cookie was for this one
        (b"[::1]:%d", 200),
        (b"LOCALHOST.:%d", 200),
        (b"attacker.example:%d", 421),
        (b"127.0.0.1.attacker.example:%d", 421),
        (b'"><script>alert(1)</script>', 421),
        (b"127.0.0.1:%d@attacker.example", 421),
        (b"127.0.0.1:\xff", 421),
        (b"", 421),
    ],
)
async def test_a_name_of_another_site_is_refused_although_it_points_here(
    host: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        cookies = site.browser.cookie_jar.filter_cookies(aiohttp.client.URL(site.base + site.access.path + "/"))
        cookie = "; ".join(f"{morsel.key}={morsel.value}" for morsel in cookies.values())
        named = host.replace(b"%d", str(site.port).encode())
        request = b"GET %s/ HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n" % (
            site.access.path.encode(),
            named,
            cookie.encode(),
        )
        answer = await site.answer(request)
        assert int(answer.split()[1]) == status
        assert b"alert(1)" not in answer


async def test_names_of_this_machine_and_those_that_the_user_allows_are_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Machine")
    monkeypatch.setattr(socket, "getfqdn", lambda: "machine.Example.org")
    async with serving(monkeypatch, "Proxy.example.", "host.docker.internal") as site:
        for name in ("machine", "machine.local", "PROXY.example:443", "host.docker.internal"):
            assert await site.status("/", Host=name) == 403, name  # without a secret
        await eventually(lambda: "machine.example.org" in site.access.names)
        assert await site.status("/", Host="machine.example.org") == 403
        assert await site.status("/", Host="example") == 421


async def test_a_system_that_does_not_find_its_name_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = threading.Event()
    monkeypatch.setattr(socket, "getfqdn", lambda: str(found.wait(120)))
    async with serving(monkeypatch) as site:
        await site.log_in()
        found.set()


async def test_a_refused_name_is_named_with_the_option_that_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        named = await site.answer(b"GET / HTTP/1.1\r\nHost: Other.example:80\r\n\r\n")
        assert b"other.example is not known" in named
        assert b"--allow-host other.example" in named
        malformed = await site.answer(b"GET / HTTP/1.1\r\nHost: <b>\r\n\r\n")
        assert b"does not name a host" in malformed
        assert b"<b>" not in malformed


async def test_the_page_repeats_nothing_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        async with site.browser.get(f"{site.base}{site.access.path}/?<script>") as reply:
            page = await reply.text()
        assert str(site.port) not in page
        assert "<script>" not in page
        assert site.access.secret not in page


async def test_no_reply_may_be_framed_stored_or_read_by_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        for path in ("/", "/no", f"{site.access.path}/", f"{site.access.path}/static/js/textual.js"):
            async with site.browser.get(site.base + path) as reply:
                assert {name: reply.headers[name] for name in HEADERS if "Policy" not in name} == {
                    name: value for name, value in HEADERS.items() if "Policy" not in name
                }
                assert reply.headers["Server"] == "accel-tui"
                assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]
                assert reply.headers["Referrer-Policy"] == "no-referrer"


async def test_many_wrong_secrets_are_refused_and_the_right_one_and_open_pages_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_access, "WRONG_SECRETS_PER_SECOND", 0.001)
    async with serving(monkeypatch) as site:
        await site.log_in()
        tries = [await site.status("/?secret=wrong") for _ in range(WRONG_SECRETS + 3)]
        assert tries == [403] * WRONG_SECRETS + [429] * 3
        await site.log_in()  # a stranger keeps out nobody who has the right one
        assert await site.status(f"{site.access.path}/") == 200


def test_a_rate_has_room_again_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(web_access, "time", Mock(wraps=time, monotonic=lambda: now))
    rate = Rate(2, per_second=4.0)
    assert [rate.take() for _ in range(4)] == [0.0, 0.0, 0.25, 0.5]
    now += 0.5
    assert rate.wait() == rate.take() == 0.25
    now += 1000.0
    assert [rate.take() for _ in range(3)] == [0.0, 0.0, 0.25]


@pytest.mark.parametrize("origin", ["", "null", "http://attacker.example", "https://127.0.0.1", "file://"])
async def test_a_page_of_another_site_cannot_connect_with_the_cookies_of_the_browser(
    origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await site.connect(origin=origin)
        assert refused.value.status == 403
        assert not NoDashboard.opened


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '["stdin"]',
        '["stdin", 1]',
        '["stdin", ["a"]]',
        '["resize", 80]',
        '["resize", {"width": "80", "height": 24}]',
        '["resize", {"width": 80.5, "height": NaN}]',
        '["resize", {"width": %s, "height": 1}]' % ("9" * 5_000),
        '["ping", {"a": 1}]',
        json.dumps(["ping", "9" * 100]),
        '["blur", 1]',
        '["unknown"]',
        "[" * 100_000,
        b"\xff",
    ],
)
async def test_a_malformed_message_closes_the_page_without_a_traceback(
    message: str | bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        page = await site.connect()
        await (page.send_str(message) if isinstance(message, str) else page.send_bytes(message))
        closed = await page.receive(60)
        assert (closed.type, closed.data, closed.extra) == (WSMsgType.CLOSE, 1008, "malformed message")
        await eventually(lambda: NoDashboard.opened[0].stopped)
    assert not caplog.records


async def test_a_message_that_is_too_large_closes_the_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        page = await site.connect()
        await page.send_json(["stdin", "x" * web_server.MAX_BYTES])
        closed = await page.receive(60)
        assert (closed.type, closed.data) == (WSMsgType.CLOSE, 1009)
        await eventually(lambda: NoDashboard.opened[0].stopped)
    assert not caplog.records


@pytest.mark.parametrize("query", ["", "?width=-1&height=0", f"?width={'9' * 30}&height={'9' * 5_000}", "?width=\xe9"])
async def test_sizes_are_those_of_a_terminal_and_keys_any_text(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as site:
        await site.log_in()
        page = await site.connect(query)
        for width, height in ((-5, 0), (10**30, 10**9), (80, 24), (True, False)):
            await page.send_json(["resize", {"width": width, "height": height}])
        await page.send_str('["stdin", "\\ud800\\u0000k"]')
        for each in ("blur", "focus"):
            await page.send_json([each])
        await page.send_json(["ping", "17"])
        assert await page.receive_json() == ["pong", "17"]
        first, *received = NoDashboard.opened[0].received
        columns, rows = web_server.MAX_SIZE
        assert isinstance(first, tuple)
        assert 1 <= first[0] <= columns
        assert 1 <= first[1] <= rows
        assert received == [(1, 1), (columns, rows), (80, 24), (1, 1), b"?\0k", "blur", "focus"]
        await page.close()


async def test_a_page_that_sends_too_many_messages_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(web_server.asyncio, "sleep", sleep)
    monkeypatch.setattr(web_server, "MESSAGES", 3)
    monkeypatch.setattr(web_server, "MESSAGES_PER_SECOND", 0.001)
    async with serving(monkeypatch) as site:
        await site.log_in()
        page = await site.connect()
        for _ in range(5):
            await page.send_json(["ping", "1"])
            await page.receive_json()
        assert slept[:3] == [0.0] * 3
        assert all(slept[3:])
        assert len(slept) == 5
        await page.close()


async def test_as_many_pages_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MAX_PAGES", 2)
    async with serving(monkeypatch) as site:
        await site.log_in()
        pages = [await site.connect() for _ in range(2)]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await site.connect()
        assert refused.value.status == 503
        await pages[0].close()
        await eventually(lambda: NoDashboard.opened[0].stopped)
        again = await site.connect()
        for page in (pages[1], again):
            await page.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"\0\xff\x1b[2J\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nBad Header\r\n\r\n",
        b"GET /?secret=%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % (b"9" * 100_000),
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"GET //attacker.example/%2e%2e/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://attacker.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
async def test_a_malformed_request_is_refused_without_a_traceback(
    request_: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: Any
) -> None:
    async with serving(monkeypatch) as site:
        answer = await site.answer(request_)
        assert answer.split()[1] in (b"400", b"403", b"404", b"405", b"421")
        assert b"Traceback" not in answer
    assert "Traceback" not in capfd.readouterr().err + caplog.text
