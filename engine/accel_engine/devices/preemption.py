"""Asks the metadata server of a cloud whether it will take this machine away.

Sources: Google Compute Engine's "Create and use preemptible VMs" (``instance/preempted``), Amazon EC2's "Spot Instance
interruption notices" and "Use the Instance Metadata Service" (a token first), Azure's "Scheduled Events for Linux VMs".
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

OFF, AUTO = "off", "auto"

POLL_SECONDS = 5.0
"""How often the server is asked, as Amazon recommends; Google gives 30 s from the notice, Amazon 120, Azure 30."""

HOST_VARIABLE = "ACCEL_TUI_METADATA_HOST"
"""A variable of the environment with another ``HOST:PORT``, such as an emulator's."""

_MOST_BYTES = 1 << 16

_AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
"""The asset tag of the chassis of all virtual machines of Azure."""

Get = Callable[..., tuple[int, str]]
"""Sends a request, with a path, a method and headers; returns the status and the body of the answer."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A cloud."""

    name: str
    """Its name for users."""
    host: str
    """Its metadata server."""
    timeout: float
    """Seconds that an answer may take; Azure's first one takes up to two minutes."""
    notice: Callable[[Get], str]
    """What the server says of this machine's end; empty while it stays. May raise ``OSError``, ``HTTPException`` or
    ``ValueError``."""
    is_here: Callable[[Mapping[str, str]], bool]
    """Whether this machine is in the cloud, by what the firmware calls it."""


def _expect(answer: tuple[int, str], *statuses: int) -> tuple[int, str]:
    if answer[0] not in (200, *statuses):
        raise ValueError(f"status {answer[0]}")
    return answer


def _google(get: Get) -> str:
    _, body = _expect(get("/computeMetadata/v1/instance/preempted", headers={"Metadata-Flavor": "Google"}))
    if body.strip() not in ("TRUE", "FALSE"):
        raise ValueError(f"an answer that is neither TRUE nor FALSE: {body[:40]!r}")
    return "it preempts this machine" if body.strip() == "TRUE" else ""


def _amazon(get: Get) -> str:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    _, token = _expect(get("/latest/api/token", method="PUT", headers=lifetime))
    headers = {"X-aws-ec2-metadata-token": token}
    status, body = _expect(get("/latest/meta-data/spot/instance-action", headers=headers), 404)
    if status == 404:  # no interruption is planned
        return ""
    planned = json.loads(body)
    return f"it plans to {planned['action']} this machine at {planned['time']}"


def _azure(get: Get) -> str:
    headers = {"Metadata": "true"}
    _, body = _expect(get("/metadata/scheduledevents?api-version=2020-07-01", headers=headers))
    ends = [event for event in json.loads(body)["Events"] if event["EventType"] in ("Preempt", "Terminate")]
    if not ends:
        return ""
    # The machines of a scale set get each other's events.
    _, name = _expect(get("/metadata/instance/compute/name?api-version=2021-02-01&format=text", headers=headers))
    own = next((event for event in ends if name.strip() in event["Resources"]), None)
    if own is None:
        return ""
    when = f" at {own['NotBefore']}" if own.get("NotBefore") else ""
    return f"it will {own['EventType'].lower()} this machine{when}"


PROVIDERS: Mapping[str, Provider] = {
    "gce": Provider(
        "Google Cloud",
        "metadata.google.internal",
        5.0,
        _google,
        lambda firmware: firmware["product_name"] == "Google Compute Engine",
    ),
    "aws": Provider("AWS", "169.254.169.254", 5.0, _amazon, lambda firmware: firmware["sys_vendor"] == "Amazon EC2"),
    "azure": Provider(
        "Azure", "169.254.169.254", 130.0, _azure, lambda firmware: firmware["chassis_asset_tag"] == _AZURE_TAG
    ),
}
"""By the values of the field ``preemption_notice``."""


def find_provider(choice: str, root: Path = Path("/")) -> Provider | None:
    """The cloud to ask; ``None`` if nobody is to be asked, or this machine is in none of them.

    Args:
        choice: A value of the field ``preemption_notice``.
        root: Parent directory of ``sys``, for ``auto``.
    """
    if choice != AUTO:
        return PROVIDERS.get(choice)
    firmware = dict.fromkeys(("product_name", "sys_vendor", "chassis_asset_tag"), "")
    for name in firmware:
        with suppress(OSError):
            firmware[name] = (root / "sys/class/dmi/id" / name).read_text(errors="replace").strip()
    return next((each for each in PROVIDERS.values() if each.is_here(firmware)), None)


def read_notice(provider: Provider) -> str:
    """Ask the server once; returns why this machine will end, or an empty text.

    Raises:
        OSError: The server cannot be reached.
        ValueError: Its answer cannot be understood.
    """
    from http.client import HTTPConnection, HTTPException  # slow to import, and the plan's fields need only names

    host = os.environ.get(HOST_VARIABLE) or provider.host

    def get(path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        with closing(HTTPConnection(host, timeout=provider.timeout)) as connection:  # never through a proxy
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES).decode(errors="replace")

    try:
        return provider.notice(get)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an unknown answer ({error!r})") from error
    except HTTPException as error:
        raise ValueError(f"no answer of HTTP ({error!r})") from error


class NoticeWatcher:
    """Asks for a notice again and again, in a thread that ends with the process.

    Args:
        provider: The cloud.
        notify: Called once in the thread, with the cloud's name and why this machine will end.
        warn: Called once if nothing can be learned, with a message.
    """

    def __init__(self, provider: Provider, notify: Callable[[str, str], None], warn: Callable[[str], None]) -> None:
        self._provider = provider
        self._notify = notify
        self._warn = warn
        self._has_warned = self._has_answered = False
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin, at once."""
        threading.Thread(target=self._watch, name="preemption", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                notice = read_notice(self._provider)
            except (OSError, ValueError) as error:
                self._complain(error)
            else:
                self._has_answered = True
                if notice:
                    self._notify(self._provider.name, notice)
                    return
            self._stopping.wait(POLL_SECONDS)

    def _complain(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            name, host = self._provider.name, os.environ.get(HOST_VARIABLE) or self._provider.host
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            again = f"it is asked again every {POLL_SECONDS:g} s"
            if isinstance(error, ValueError) or self._has_answered or find_provider(AUTO) is self._provider:
                problem = f"{name}'s metadata server {host} does not answer as expected: {reason}"
                self._warn(f"{problem}; until it does, no notice comes before {name} takes this machine away; {again}")
            else:
                problem = f"no metadata server of {name} answers at {host} ({reason})"
                self._warn(f"{problem}: this machine seems not to be in {name}, and gets no notice; {again}")
