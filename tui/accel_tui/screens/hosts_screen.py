"""Hosts screen: this machine and the others that ssh reaches, their devices, and what runs and waits there."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from accel_engine.errors import AccelError, UsageError
from accel_engine.hosts.host_list import Host, add_host, read_hosts, remove_host
from accel_engine.hosts.host_requests import QueuedRun
from accel_engine.hosts.reading import HostFollower, HostReading, check_host
from accel_engine.places import HERE
from accel_engine.run import RunSummary, Status, runs_directory
from accel_engine.run.runs.listing import RunList
from accel_engine.run_queue import queue
from accel_engine.text import printable, printable_fields
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, open_screen
from accel_tui.run_list.host_rows import (
    ENDED,
    HostView,
    host_check_lines,
    host_name,
    host_run_columns,
    problem_lines,
    summary_line,
    waiting_reasons,
)
from accel_tui.screens.asking import CANCEL, Answer, AskingScreen, QuestionScreen, awaiting
from accel_tui.screens.entry_screen import Entry, EntryScreen
from accel_tui.widgets.device_heat_map import DeviceHeatMap
from accel_tui.widgets.device_lines import short_device_name
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.runs_table import SelectedRun
from accel_tui.widgets.table import Heading, Table
from accel_tui.widgets.visibility import is_covered

INTERVAL = 1.0
"""Seconds between two readings of this machine."""

ADD = "No other machines yet. Press a to add one that ssh reaches."
"""Text where there are no hosts but this machine."""

CLOSE = Answer("close", "Close", "escape")

REMOVE = Answer("remove", "Remove", "r", is_destructive=True)


class HostsTable(Table[RunSummary]):
    """The runs of all hosts, under their names."""

    BINDING_GROUP_TITLE = "List of hosts"

    def __init__(self) -> None:
        super().__init__("reading the hosts…")
        self._views: Sequence[HostView] = ()
        self._folded: set[Hashable] = set()

    def key_of(self, row: RunSummary) -> Hashable:
        return row.id

    @property
    def current_host(self) -> str:
        """The name of the host of the line under the cursor; empty before there are any."""
        line = self.current_line
        return "" if line is None else str(line.key) if isinstance(line, Heading) else host_name(line)

    def show_hosts(self, views: Sequence[HostView]) -> None:
        """Show the runs of hosts."""
        self._views = views
        taken = sum(1 + len(view.training) + len(view.waiting) for view in views)
        ended = max(ENDED, (self.size.height - 1 - taken) // max(len(views), 1))
        runs = [run for view in views for run in view.rows(ended)]
        self.show_rows(runs, host_run_columns(runs, waiting_reasons(views)))

    def grouped(self, rows: tuple[RunSummary, ...]) -> tuple[tuple[RunSummary, ...], Sequence[RunSummary | Heading]]:
        """The runs below the names of their hosts, also of a host without any."""
        lines: list[RunSummary | Heading] = []
        for view in self._views:
            of_host = [row for row in rows if host_name(row) == view.name]
            keys, is_folded = frozenset(map(self.key_of, of_host)), view.name in self._folded
            lines.append(Heading(view.name, view.title, keys, view.note, is_folded=is_folded))
            lines += [] if is_folded else of_host
        return rows, lines

    def fold(self, heading: Heading, *, is_folded: bool) -> None:
        """Fold or unfold a host, and remember it."""
        if heading.is_folded is not is_folded:
            self._folded ^= {heading.key}
            self.show_rows(self.shown)

    def go_to_host(self, name: str) -> None:
        """Move the cursor to the name of a host."""
        self.go_to(next((at for at, line in enumerate(self.lines) if self._key(line) == name), 0))


class HostDetail(SelectedRun):
    """The details of the selected host or run."""

    def show_host(self, view: HostView | None) -> None:
        self.show_run(None)
        content = _detail(view) if view else Content("")
        if self.content != content:
            self.update(content)


def _detail(view: HostView) -> Content:
    kinds: dict[str, int] = {}
    for device in view.reading.devices:
        memory = f", {numbers.size(device.memory)}" if device.memory else ""
        name = f"{short_device_name(device)}{memory}"
        kinds[name] = kinds.get(name, 0) + 1
    devices = "   ".join(f"{number} {name}" if number > 1 else name for name, number in kinds.items())
    state = "" if view.is_connected else f"  {view.reading.state}"
    lines = [Content.assemble((view.title, "bold"), (state, "$text-warning"), (f"  {view.counts}", "$text-muted"))]
    if view.message:
        lines.append(Content.styled(view.message, "$text-warning" if view.is_connected else "$text-error"))
    lines.append(Content.styled(devices or "its devices are not known yet", "$text-muted"))
    return Content("\n").join(lines)


class LocalReader:
    """Reads the runs of this machine, as :class:`~accel_engine.hosts.reading.HostReader` reads the runs of a host."""

    def __init__(self) -> None:
        self._runs = RunList(runs_directory())

    def read(self) -> HostReading:
        """Read the runs, and why those wait that wait; this blocks."""
        self._runs.refresh()
        waiting = {run.id for run in self._runs.runs if run.status is Status.QUEUED}
        try:
            entries = queue.entries() if waiting else []
            message = ""
        except AccelError as error:
            entries, message = [], str(error)
        waits = [QueuedRun(entry.run, entry.waits) for entry in entries if entry.run in waiting]
        waits += [QueuedRun(run, queue.why_waits(run)) for run in waiting - {each.id for each in waits}]
        return HostReading(HERE, "connected", message, runs=self._runs.runs, queue=tuple(waits))


class HostsScreen(AskingScreen):
    """Shows this machine and the hosts."""

    CSS_PATH = "hosts_screen.tcss"
    AUTO_FOCUS = "HostsTable"
    BINDING_GROUP_TITLE = "Hosts"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add host", id="hosts.add", tooltip="Add a machine that ssh reaches"),
        Binding("e", "edit", "Edit", id="hosts.edit", tooltip="Change how the host is reached"),
        Binding(
            "delete,backspace",
            "remove",
            "Remove",
            id="hosts.remove",
            tooltip="Forget the host, and what is copied of its runs; nothing changes there; asks first",
        ),
        Binding(
            "V", "check", "Check", id="hosts.check", tooltip="Check the connection, the versions, and the machine there"
        ),
        Binding("I", "back", "Back", id="hosts.back", tooltip="Go back, with the key that opened this screen"),
    ]

    _table = getters.query_one(HostsTable)

    @dataclass
    class Read(Message):
        """There is a new reading of a host."""

        reading: HostReading

    def __init__(self) -> None:
        super().__init__()
        self._local = LocalReader()
        self._reading_here = asyncio.Lock()
        self._hosts: dict[str, Host] = {}
        self._followers: dict[str, HostFollower] = {}
        self._views: dict[str, HostView] = {HERE: HostView(HostReading(HERE, "connected"))}
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield TopBar("Hosts")
        yield Static("", id="about", markup=False)
        devices = Vertical(DeviceHeatMap(), id="devices", classes="panel")
        devices.border_title = "Devices"
        devices.border_subtitle = "use in %, memory"
        yield devices
        yield HostsTable().add_class("panel")
        yield HostDetail().add_class("panel")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read all hosts, now and periodically."""
        self.query_one(HostsTable).border_title = "Runs"
        self._follow_hosts()
        self._read_here()
        self.set_interval(INTERVAL, self._read_here)

    def on_unmount(self) -> None:
        """End the reading of hosts."""
        for follower in self._followers.values():
            follower.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer changes of a host where the cursor is on one."""
        if action in ("edit", "remove", "check"):
            return self.is_mounted and self._table.current_host in self._hosts
        return True

    @work(exclusive=True, exit_on_error=False, group="hosts")
    async def _follow_hosts(self) -> None:
        """Follow the hosts of the list, and no others."""
        try:
            listed, self._problem = {host.name: host for host in await asyncio.to_thread(read_hosts)}, ""
        except AccelError as error:
            listed, self._problem = {}, str(error)
        for name in [name for name, host in self._hosts.items() if listed.get(name) != host]:
            self._followers.pop(name).stop()
            self._views.pop(name, None)
        for name, host in listed.items():
            if name not in self._followers:
                self._views[name] = HostView(HostReading(name))
                self._followers[name] = HostFollower(host, self._tell)
        self._hosts = listed
        self._views = {name: self._views[name] for name in (HERE, *listed)}
        self._show()

    def _tell(self, reading: HostReading) -> None:
        """Take a reading, from the thread that has read it."""
        self.post_message(self.Read(printable_fields(reading)))

    @on(Read)
    def _take(self, event: Read) -> None:
        event.stop()
        name = event.reading.host
        if name in self._views:
            self._views[name] = self._views[name].updated(event.reading)
            self._show()

    @work(exit_on_error=False, group="here")
    async def _read_here(self) -> None:
        if is_covered(self) or self._reading_here.locked():
            return
        async with self._reading_here:
            reading = await asyncio.to_thread(self._local.read)
        inventory, meters = app_of(self).inventory, app_of(self).meters
        devices = inventory.devices if inventory else ()
        self._views[HERE] = HostView(printable_fields(replace(reading, devices=devices)), meters)
        self._show()

    def _show(self) -> None:
        if is_covered(self) or not self.is_mounted:
            return
        views = tuple(self._views.values())
        about = self._problem or (summary_line(views) if len(views) > 1 else ADD)
        self.query_one("#about", Static).update(printable(about))
        self._table.show_hosts(views)
        self._describe()

    @on(HostsTable.Moved)
    def _describe(self) -> None:
        name = self._table.current_host
        self.query_one(DeviceHeatMap).show(tuple(self._views.values()), name)
        detail = self.query_one(HostDetail)
        if run := self._table.current:
            detail.show_run(run)
        else:
            detail.show_host(self._views.get(name))
        self.refresh_bindings()

    @on(DeviceHeatMap.Chosen)
    def _choose(self, event: DeviceHeatMap.Chosen) -> None:
        self._table.go_to_host(event.host)

    @on(HostsTable.Opened)
    def _open(self, event: HostsTable.Opened) -> None:
        run: RunSummary = event.row
        if run.info:
            open_screen(self, Screens.RUN, run.directory)
        else:
            self.notify(printable(run.problem), title=run.id, severity="warning", markup=False)

    @awaiting
    async def action_add(self) -> None:
        """Ask for a machine, and add it."""
        await self._enter(None)

    @awaiting
    async def action_edit(self) -> None:
        """Ask how the current host is reached, and change that."""
        await self._enter(self._hosts[self._table.current_host])

    async def _enter(self, host: Host | None) -> None:
        if entered := await self.ask(HostEntryScreen(host, self._hosts)):
            await self._change(partial(add_host, entered))
            self._table.go_to_host(entered.name)

    @awaiting
    async def action_check(self) -> None:
        """Check the current host, and show what was found."""
        name = self._table.current_host
        self.notify(f"checking {name}; the doctor there takes some seconds…", timeout=60)
        try:
            found = await asyncio.to_thread(check_host, name)
        except AccelError as error:
            self.app.clear_notifications()
            self.notify(str(error), title=f"{name} cannot be checked", severity="error", markup=False)
            return
        self.app.clear_notifications()
        first, *rest = host_check_lines(name, found)
        if not self.is_active:
            self.notify(first, title="Checked", markup=False)
            return
        await self.ask(
            QuestionScreen(printable(first), printable("\n".join([*rest, "", *problem_lines(found)])), (CLOSE,))
        )

    @awaiting
    async def action_remove(self) -> None:
        """Ask, then forget the current host."""
        name = self._table.current_host
        detail = "What is copied of its runs is deleted here. Nothing changes there."
        if await self.ask(QuestionScreen(f"Remove {name}?", detail, (CANCEL, REMOVE))) == REMOVE.id:
            await self._change(partial(remove_host, name))

    async def _change(self, change: Callable[[], object]) -> None:
        """Change the list of hosts in a thread; notify if it fails."""
        await self.make_changes(change)
        await self._follow_hosts().wait()


class HostEntryScreen(EntryScreen[Host]):
    """Asks for a host.

    Args:
        host: The host to change; ``None`` for a new one.
        known: The names of the hosts.
    """

    def __init__(self, host: Host | None, known: Iterable[str]) -> None:
        self._host, self._known = host, frozenset(known)
        before = host or Host("gpu1")
        super().__init__(
            f"Change {before.name}" if host else "Add a host",
            "A machine that ssh reaches with your configuration and keys. It needs accel-tui, and nothing running.",
            *([] if host else [Entry("name", label="name", placeholder="gpu1")]),
            Entry("ssh", before.ssh, "destination of ssh; empty for the name", "ann@gpu1.example.org"),
            Entry("python", before.python, "its Python with accel-tui; empty for its search path", "~/venv/bin/python"),
            Entry("home", before.home, "ACCEL_TUI_HOME there; empty for the default"),
        )

    def parse(self, texts: Mapping[str, str]) -> Host:
        """Make a host of the texts."""
        values = {name: text.strip() for name, text in texts.items()}
        name = self._host.name if self._host else values.pop("name")
        if not name:
            raise UsageError("give it a name, by which you call it here")
        if not self._host and name in self._known:
            raise UsageError(f"there is a host {name} already; change it with e")
        return Host(name, **values)

    def effect(self, value: Host) -> str:
        """Which ssh is run."""
        return f"adds it, by ssh {value.target}" if self._host is None else f"uses ssh {value.target}"
