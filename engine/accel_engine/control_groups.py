"""The control groups of this process, in which Linux limits and counts what it takes."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
"""Where control groups are."""

OWN = Path("/proc/self/cgroup")
"""The file that names this process's."""


def own_groups(controller: str, groups: Path = GROUPS, own: Path = OWN) -> Iterator[list[Path]]:
    """The directories of this process's control groups with a controller, of version 1 or 2; none elsewhere.

    Args:
        controller: Such as ``memory``.
        groups: See :data:`GROUPS`.
        own: See :data:`OWN`.

    Yields:
        For each hierarchy the group, then the ones above it, whose limits hold, too. The last is ``groups`` itself for
        version 2, and the controller's directory for version 1.
    """
    with suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = groups / controller if controllers else groups
            group = root / path.lstrip("/")
            yield [each for each in (group, *group.parents) if each.is_relative_to(root)]


def processor_quota(root: Path = Path("/")) -> float | None:
    """The processors that the control groups of this process let it use at once; ``None`` without a limit.

    Args:
        root: Where the system's files are.
    """
    own = own_groups("cpu", root / GROUPS.relative_to("/"), root / OWN.relative_to("/"))
    return min((quota for groups in own for group in groups for quota in _quotas(group)), default=None)


def _quotas(group: Path) -> Iterator[float]:
    """The limit of a control group, of version 2 or 1; nothing without one."""
    with suppress(OSError, ValueError, ZeroDivisionError):  # "max", or the file of the other version
        limit, period = (group / "cpu.max").read_text().split()
        yield int(limit) / int(period)
    with suppress(OSError, ValueError, ZeroDivisionError):
        limit, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if int(limit) > 0:
            yield int(limit) / int(period)
