"""Where the plan of the form is to train: this machine, a host or a cluster; what is known of its devices."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from accel_engine import places
from accel_engine.errors import AccelError
from accel_engine.hosts.host_list import find_host, read_hosts
from accel_engine.hosts.reading import HostFollower, HostReading
from accel_engine.hosts.runs_there import choose_host
from accel_engine.places import ANY, HOST, PlaceName, PlaceRequest, parse_place
from accel_engine.plan.options import OptionSpec, command_words, option, part_of, specs_of
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.text import printable_fields, shell_command
from accel_engine.words import numbers
from accel_tui.places.place_state import UNKNOWN, PlaceState
from accel_tui.plan.data_text import PreviewRow
from accel_tui.plan.form import FieldChoice
from accel_tui.plan.measured_text import earlier_rows
from accel_tui.run_list.host_rows import HostView, accelerators_text
from accel_tui.run_state.device_meter import unread

ROWS = ("place", "nodes", "gpus", "cpus", "host_memory", "walltime")
"""The options that the dialog asks for."""

CLUSTERS = ("slurm", "kubernetes", "ray", "hosts")
"""The kinds of places of which a run asks machines, GPUs and so on."""

_LABELS = {
    "nodes": "machines",
    "gpus": "GPUs each",
    "cpus": "CPUs each",
    "host_memory": "memory each",
    "walltime": "time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(PlaceRequest):
    """A place, and what is asked of it."""

    place: str = option(
        places.HERE,
        OptionSpec(
            "A host, any of them, or a cluster, as train --on takes it.",
            str,
            label="where",
        ),
    )

    def __post_init__(self) -> None:
        name = parse_place(self.place)
        if name is None or name.kind == HOST:
            self.request.check_is_empty(self.place)

    @property
    def name(self) -> PlaceName | None:
        """The place; ``None`` for this machine."""
        return parse_place(self.place)

    @property
    def request(self) -> PlaceRequest:
        """The request to a cluster."""
        return part_of(PlaceRequest, self)

    @property
    def is_host(self) -> bool:
        """Whether it is a host, or any of them."""
        return self.name is not None and self.name.kind == HOST

    @property
    def arguments(self) -> Sequence[str]:
        """The options of ``accel-tui train`` for it."""
        return ["--on", self.place.strip(), *command_words(self.request)]

    def command(self, command: str) -> str:
        """A command that trains a plan here, for this place."""
        return f"{command} {shell_command(list(self.arguments))}"


def form_specs() -> Mapping[str, OptionSpec]:
    """The specifications of the rows after the place, each for the clusters that have it."""
    specs = specs_of(Where)
    return {
        name: replace(
            specs[name],
            doc=specs[name].doc.removeprefix("With --on: ").capitalize(),
            optional=True,
            label=_LABELS[name],
            goes_with=("place", tuple(kind for kind in CLUSTERS if name in places.TAKES[kind])),
        )
        for name in ROWS[1:]
    }


def place_choices() -> tuple[FieldChoice, ...]:
    """The places that can be named: this machine, the hosts, and the clusters whose tools are installed here."""
    found = [FieldChoice(places.HERE, "this machine")]
    try:
        hosts = read_hosts()
    except AccelError:
        hosts = ()  # the screen of hosts says why
    found += [FieldChoice(host.name, f"ssh {host.target}") for host in hosts]
    if len(hosts) > 1:
        found.append(FieldChoice(ANY, "the host that could start first"))
    if shutil.which("sbatch"):
        found.append(FieldChoice("slurm", "slurm:PARTITION for another"))
    if shutil.which("kubectl"):
        found.append(FieldChoice("kubernetes", "kubernetes:CONTEXT/NAMESPACE"))
    if find_spec("ray"):
        found.append(FieldChoice("ray", "ray:ADDRESS of a cluster"))
    return tuple(found)


def place_state(view: HostView, before: PlaceState) -> PlaceState:
    """The state of a host after a reading.

    Args:
        view: The host.
        before: What was known before it.
    """
    reading = view.reading
    if not view.is_connected:
        return replace(before, problem=reading.message or f"{view.name}: {reading.state}…")
    about = f"{view.name}: {accelerators_text(reading)}, {view.counts}"
    return PlaceState(reading.devices, view.meters, about, runs=reading.runs, training=len(view.training))


class PlaceWatch:
    """Follows what is known of a place, until :meth:`stop`.

    Args:
        where: The place.
        on_news: Called from a thread with each new state.
    """

    def __init__(self, where: Where, on_news: Callable[[PlaceState], object]) -> None:
        self._where, self._on_news = where, on_news
        self._state = UNKNOWN
        self._view: HostView | None = None
        self._follower: HostFollower | None = None
        self._is_stopped = False

    def run(self) -> None:
        """Begin; takes the time that the place needs to answer."""
        try:
            if not self._where.is_host:
                self._tell(self._cluster())
            elif self._where.place.strip() == ANY:
                self._take(choose_host())
            else:
                self._follower = HostFollower(find_host(self._where.place.strip()), self._take)
        except AccelError as error:
            self._tell(PlaceState(problem=str(error)))
        if self._is_stopped:
            self.stop()

    def stop(self) -> None:
        """End soon."""
        self._is_stopped = True
        if self._follower:
            self._follower.stop()

    def _cluster(self) -> PlaceState:
        from accel_engine.places.placed_runs import open_place  # slow to import, and seldom needed

        name = self._where.name
        assert name is not None  # noqa: S101 (it is a cluster)
        place = open_place(name)
        request = replace(self._where.request, nodes=place.nodes(self._where.request))
        devices = printable_fields(place.describe(request))
        machines = f"{request.nodes} machines of " if (request.nodes or 1) > 1 else ""
        gpus = sum(device.kind != "cpu" for device in devices)
        about = f"{machines}{name}: {numbers.counted(gpus, 'accelerator') if gpus else 'CPU'} each"
        reason = f"of {name}, whose machines are not read before a run has begun"
        return PlaceState(devices, {device.id: unread(device.id, reason) for device in devices}, about)

    def _take(self, reading: HostReading) -> None:
        reading = printable_fields(reading)
        self._view = (self._view or HostView(HostReading(reading.host))).updated(reading)
        self._tell(place_state(self._view, self._state))

    def _tell(self, state: PlaceState) -> None:
        self._state = state
        if not self._is_stopped:
            self._on_news(state)


def place_rows(where: Where, state: PlaceState, filled: ResolvedPlan) -> tuple[PreviewRow, ...]:
    """Rows on a plan that trains elsewhere; reads the sizes of the plan's files.

    Args:
        where: The place.
        state: What is known of it.
        filled: The plan, placed on its devices.
    """
    rows = [PreviewRow("where", state.problem or state.about or f"asking {where.place}…", pending=not state.about)]
    if where.is_host:
        from accel_engine.hosts.carried_files import travelling  # seldom needed

        try:
            count, size = travelling(filled.plan.changed())
            text = f"{numbers.counted(count, 'file')}, {numbers.size(size)}; only what has changed" if count else ""
            rows.append(PreviewRow("travels", text or "the plan alone"))
        except AccelError as error:
            rows.append(PreviewRow("travels", str(error)))
        unknown = PreviewRow("time", "no run there has taken such steps", pending=True)
        rows += earlier_rows(state.runs, filled) or (unknown,)
    return tuple(rows)
