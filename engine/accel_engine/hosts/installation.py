"""Makes the environment of accel-tui on a host, over plain ``ssh``: there is nothing else there yet."""

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from packaging.requirements import InvalidRequirement, Requirement

from accel_engine.errors import RunError, UsageError, file_errors
from accel_engine.hosts.connection import HostConnection, quoted_path
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.requests.protocol.request import unheard
from accel_engine.ssh import ssh_command
from accel_engine.version import __version__

FOLDER = "~/.local/share/accel-tui/environment"
"""The virtual environment on a host."""

EXTRAS = ("auto", "cpu", "cuda", "tpu")
"""The builds of TensorFlow; ``auto`` is ``cuda`` where there is a driver of NVIDIA, else ``cpu``."""

_EXTRA = "extra-of-tensorflow"
"""Stands for the extra in a requirement."""

_SCRIPT = """\
set -eu
python={python}
environment={environment}
extra={extra}
command -v "$python" >/dev/null 2>&1 || {{ echo "there is no $python" >&2; exit 3; }}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {{
  echo "$("$python" --version 2>&1): accel-tui needs Python 3.11 or later; name one with --with-python" >&2; exit 3; }}
if [ "$extra" = auto ]; then
  if command -v nvidia-smi >/dev/null 2>&1; then extra=cuda; else extra=cpu; fi
fi
echo "making $environment"
mkdir -p "$(dirname "$environment")"
"$python" -m venv "$environment"
echo "installing {shown} with TensorFlow for $extra"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade {requirement}
"""


def install(host: Host, source: str, *, extra: str, python: str, tell: Callable[[str], object], may_ask: bool) -> Host:
    """Make the environment of a host, and use its Python from now on.

    Args:
        host: The host.
        source: A requirement of pip, or a wheel here, which travels; empty for this version.
        extra: One of :data:`EXTRAS`.
        python: The Python there that makes it.
        tell: Called with each step, in words.
        may_ask: Whether ``ssh`` may ask the user.

    Returns:
        The host with its new Python.

    Raises:
        UsageError: The source is a file, but not a wheel.
        RunError: The environment cannot be made; the message says why.
    """
    requirement = source or f"accel-tui=={__version__}"
    wheel = Path(source) if source and Path(source).is_file() else None
    if wheel:
        if wheel.suffix != ".whl":
            raise UsageError(f"{source} is not a wheel: give one, or a requirement such as accel-tui=={__version__}")
        requirement = f"~/.cache/accel-tui/{wheel.name}"
        tell(f"sending {wheel.name}")
        words = f"mkdir -p ~/.cache/accel-tui && cat > {quoted_path(requirement)}"
        _run(host, words, wheel.read_bytes(), may_ask=may_ask)
        path = f'"$HOME"/{shlex.quote(requirement.removeprefix("~/"))}'
        wanted = f'{path}"[$extra]"'
    else:
        wanted, extra = _with_extra(requirement, extra)
    script = _SCRIPT.format(
        python=quoted_path(python),
        environment=quoted_path(FOLDER),
        extra=shlex.quote(extra),
        shown=shlex.quote(requirement).replace('"', ""),
        requirement=wanted,
    )
    _run(host, "sh -s", script.encode(), tell, may_ask=may_ask)
    installed = replace(host, python=f"{FOLDER}/bin/python")
    HostConnection(installed, may_ask=may_ask).close()
    add_host(installed)
    return installed


def _with_extra(source: str, extra: str) -> tuple[str, str]:
    """What pip gets in the script, with the extra that is found there; and the extra, if the requirement has one."""
    for text in (source, f"accel-tui @ {source}"):  # the second one for a URL
        try:
            requirement = Requirement(text)
            break
        except InvalidRequirement:
            continue
    else:  # a path there
        return f'{shlex.quote(source)}"[$extra]"', extra
    extra = next(iter(requirement.extras & set(EXTRAS)), extra)
    requirement.extras.add(_EXTRA)
    return shlex.quote(str(requirement)).replace(_EXTRA, "'\"$extra\"'"), extra


def _run(host: Host, words: str, data: bytes, tell: Callable[[str], object] = unheard, *, may_ask: bool) -> None:
    """Run a command line on a host with some input, and tell each line of its output as it comes.

    Raises:
        RunError: The command fails; the message has its last line of errors.
    """
    with TemporaryFile() as errors, TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        command = ssh_command(host.target, words, may_ask=may_ask)
        with file_errors(f"{host.name}: ssh cannot be started"):
            process = subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=errors)
        with process:
            for line in process.stdout or ():
                tell(line.decode(errors="replace").rstrip())
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if process.returncode:
        raise RunError(f"{host.name}: {said.rpartition(chr(10))[2] or f'exit status {process.returncode}'}")
