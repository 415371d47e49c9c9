"""Only those are answered who may ask; wrong usage ends with status 2 before anything listens."""

import http.client
import io
import json
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import grpc
import pytest

from accel_engine.errors import UsageError
from accel_engine.model_server import probe
from accel_engine.model_server.__main__ import main
from accel_engine.model_server.access import ServerAccess, is_loopback, read_token
from accel_engine.model_server.grpc_messages import message
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import read_service

from .conftest import Start

TOKEN = "0123456789abcdefghij"


def status(access: ServerAccess, path: str = "/v2", **headers: str) -> int:
    try:
        access.check(path, {name.replace("_", "-"): value for name, value in headers.items()})
    except RequestError as error:
        return error.status
    return 200


def test_who_is_answered() -> None:
    local, remote = ServerAccess(), ServerAccess(TOKEN, is_local=False)
    assert (
        status(local, host="localhost:8501") == status(local, host="127.0.0.1") == status(local, host="[::1]:80") == 200
    )
    assert status(local, host="example.com:8501") == 403  # a page of a name that leads here
    assert status(local, host="localhost:80", origin="http://localhost:80") == 200
    assert status(local, host="localhost:80", origin="http://example.com") == 403
    assert status(local, host="localhost:80", origin="null") == 403
    assert status(remote, host="example.com") == 401
    assert status(remote, authorization=f"Bearer {TOKEN}") == status(remote, authorization=f"bearer  {TOKEN}") == 200
    assert status(remote, authorization=TOKEN) == status(remote, authorization="Bearer ä") == 401
    assert status(remote, "/readyz") == status(remote, "/v2/health/live") == status(remote, "/") == 200
    assert status(remote, "/metrics") == status(remote, "/v2/models/small") == 401


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "a.localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "")))


def test_a_token_is_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for content, problem in (("short", "at least 16"), ("a b" * 10, "no blanks"), ("ä" * 20, "cannot read")):
        file.write_text(content)
        with pytest.raises(UsageError, match=problem):
            read_token(file)
    file.write_text(f"{TOKEN}\n")
    assert read_token(file) == TOKEN


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--host", "0.0.0.0"), "give --token-file FILE"),
        (("--tls-key", "key.pem"), "belong together"),
        (("--port", "70000"), "a port, 0 to 65535"),
        (("--max-queue", "0"), "a number from 1"),
        (("--timeout", "nan"), "seconds"),
        (("--token-file", "/nowhere/token"), "cannot read the token"),
        (("--tls-key", "/nowhere/key", "--tls-certificate", "/nowhere/certificate"), "for TLS"),
    ],
)
def test_wrong_usage(
    folders: Path, arguments: tuple[str, ...], problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main([str(folders / "numbers"), "--port", "0", *arguments])
    except SystemExit as error:  # of argparse
        found = error.code
    assert found == 2
    assert problem in capfd.readouterr().err


def test_folders_that_are_none(folders: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--port", "0"]) == 2
    assert "it has no service.json" in capfd.readouterr().err
    folder = tmp_path / "copy"
    shutil.copytree(folders / "numbers", folder)
    text = (folder / "service.json").read_text()
    for old, new, problem in (
        ('"model.onnx"', '"../model.onnx"', "must be in the folder"),
        ('"model.onnx"', '"other.onnx"', "has no other.onnx"),
        ('"name": "small"', '"name": "a/b"', "fit for a URL"),
        ('"version": "1"', '"version": "one"', "must be a number"),
        ('"format_version": 1', '"format_version": 9', "newer version"),
        ('"inputs"', '"puts"', "cannot read"),
    ):
        (folder / "service.json").write_text(text.replace(old, new))
        with pytest.raises(UsageError, match=problem):
            read_service(folder)
    (folder / "service.json").write_text(text.replace('"float32"', '"float64"'))
    assert main([str(folder), "--port", "0"]) == 1
    assert "as its description says" in capfd.readouterr().err


def test_the_health_check_finds_out_whether_a_server_has_tls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def answer(url: str, **_: object) -> io.BytesIO:
        asked.append(url)
        if not url.startswith("https"):
            raise http.client.RemoteDisconnected  # as a server with TLS does
        return io.BytesIO(b"ready")

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert probe.main([]) == 0
    assert asked == ["http://127.0.0.1:8501/readyz", "https://127.0.0.1:8501/readyz"]
    asked.clear()
    assert probe.main(["http://127.0.0.1:1"]) == 1
    assert asked == ["http://127.0.0.1:1/readyz"]


@pytest.mark.campaign
def test_a_token_and_tls(start: Start, folders: Path, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, certificate, token = tmp_path / "key.pem", tmp_path / "certificate.pem", tmp_path / "token"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = [openssl, *made.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    token.write_text(TOKEN)
    options = ("--token-file", str(token), "--tls-certificate", str(certificate), "--tls-key", str(key))
    server = start(folders / "numbers", "--grpc-port", "0", *options, is_ready=False)
    trusting = ssl.create_default_context(cafile=str(certificate))
    base = f"https://localhost:{server.state['port']}"

    def ask(path: str, **headers: str) -> int:
        request = urllib.request.Request(base + path, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=120, context=trusting).status
        except urllib.error.HTTPError as error:
            return error.code

    server.wait_until(lambda: ask("/readyz") == 200)
    assert ask("/v2/models/small") == 401
    assert ask("/v2/models/small", Authorization=f"Bearer {TOKEN}") == 200
    command = [sys.executable, "-m", "accel_engine.model_server.probe", base]
    assert json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["ready"]
    credentials = grpc.ssl_channel_credentials(certificate.read_bytes())
    with grpc.secure_channel(f"localhost:{server.state['grpc_port']}", credentials) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelMetadata",
            request_serializer=message("inference.ModelMetadataRequest").SerializeToString,
            response_deserializer=message("inference.ModelMetadataResponse").FromString,
        )
        asked = message("inference.ModelMetadataRequest")(name="small")
        with pytest.raises(grpc.RpcError) as caught:
            call(asked, timeout=120)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert call(asked, timeout=120, metadata=[("authorization", f"Bearer {TOKEN}")]).platform == "onnxruntime_onnx"
    assert server.stop() == 0
