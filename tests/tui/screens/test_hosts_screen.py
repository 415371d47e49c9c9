"""The screen of hosts, on readings of stand-ins for hosts."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.geometry import Size
from textual.pilot import Pilot

from accel_engine.doctor.check import CheckFinding, CheckReport, CheckResult
from accel_engine.hosts import reading
from accel_engine.hosts.host_list import Host, add_host, read_hosts
from accel_engine.hosts.reading import CheckedLink, HostReading
from accel_engine.places import HERE
from accel_engine.run import Status
from accel_tui.app_protocol import Screens
from accel_tui.run_list.host_rows import ENDED, HostView, joined_devices, summary_line
from accel_tui.screens import hosts_screen
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.hosts_screen import HostEntryScreen, HostsScreen, HostsTable
from accel_tui.widgets.device_heat_map import DeviceHeatMap, lay_out
from tui.fake_engine import FakeEngine
from tui.stand_in_hosts import StandInHosts, busy_host, gpu_devices, lost_host, run_of, samples_of
from tui.stand_ins import BareApp, begun, hides, more, shows, text_of, until


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> StandInHosts:
    """``gpu1`` trains, ``gpu2`` is lost."""
    found = StandInHosts({"gpu1": busy_host("gpu1", 4, 1.0), "gpu2": lost_host("gpu2")})
    monkeypatch.setattr(hosts_screen, "HostFollower", found.follow)
    monkeypatch.setattr(reading, "HostFollower", StandInHosts().follow)  # of the app, which only mirrors their runs
    for name in found.readings:
        add_host(Host(name))
    return found


@pytest.fixture
def live() -> Iterator[FakeEngine]:
    """A run of this machine."""
    engine = FakeEngine()
    engine.begin().build().train(20)
    yield engine
    engine.close()


async def opened(pilot: Pilot[None]) -> HostsScreen:
    await begun(pilot)
    await pilot.press("I")
    await shows(pilot, "this machine")
    assert isinstance(pilot.app.screen, HostsScreen)
    return pilot.app.screen


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40))])
async def test_devices_users_and_runs_of_all_hosts(
    hosts: StandInHosts, live: FakeEngine, size: tuple[int, int]
) -> None:
    async with BareApp().run_test(size=size) as pilot:
        screen = await opened(pilot)
        await shows(pilot, "gpu:3", "1 of 2 hosts connected", "0 of 4 accelerators free", "waits")
        shown = text_of(pilot)
        assert "lost: ssh: connect to host gpu2" in shown
        assert "tries again in 12 s" in shown
        for words in (" 97", " 83", " 69", "42%", "val acc", "0.8712"):  # use of the first GPUs, then the first run
            assert words in shown
        assert "2 running, 1 queued, 2 ended" in shown
        lines = screen.query_one(HostsTable).lines
        assert [line.id for line in lines if hasattr(line, "directory")] == [
            live.directory.name,
            "gpu1:0726-093000-ab",
            "gpu1:0726-091500-bb",
            "gpu1:0726-101500-cc",
            "gpu1:0725-220000-dd",
            "gpu1:0725-210000-ee",
        ]


async def test_who_uses_each_device_is_shown_where_there_is_room(hosts: StandInHosts) -> None:
    async with BareApp().run_test(size=(140, 44)) as pilot:
        await opened(pilot)
        await shows(pilot, "gpu:3")
        users = next(line for line in text_of(pilot).splitlines() if line.count("0726-093000-ab") == 2)
        assert users.split()[1:5] == ["0726-093000-ab", "0726-093000-ab", "0726-091500-bb", "python"]


async def test_a_new_reading_changes_what_is_shown(hosts: StandInHosts) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await shows(pilot, "lost: ssh")
        hosts.tell["gpu2"](replace(busy_host("gpu2", 1, 1.0), message="gpu2: its clock is 2 h ahead of the one here"))
        await hides(pilot, "lost: ssh")
        await shows(pilot, "2 of 2 hosts connected", "its clock is 2 h ahead")
        hosts.tell["gpu1"](HostReading("gpu1", "refused", "gpu1: Host key verification failed"))
        await shows(pilot, "refused: Host key verification failed")


async def test_names_of_hosts_and_runs_are_whole_in_a_small_terminal(hosts: StandInHosts) -> None:
    name, run = "gpu-node-17.lab.example.org", "k3fp-resnet20-cifar10-augmented"
    runs = (run_of(name, run, Status.RUNNING, devices=("gpu:0",)),)
    hosts.readings = {name: HostReading(name, "connected", "", gpu_devices(4), samples_of({}, 1.0), runs)}
    add_host(Host(name))
    async with BareApp().run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await shows(pilot, f"● {name} ", f"{run} ", "4,200 of 10,000 steps", "0.8712")


async def test_enter_opens_the_run(hosts: StandInHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects: list[tuple[Screens, Path]] = []
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot)
        await shows(pilot, "0726-093000-ab")
        monkeypatch.setattr(hosts_screen, "open_screen", lambda _, screen, subject: subjects.append((screen, subject)))
        screen.query_one(HostsTable).go_to_host("gpu1")
        await pilot.press("down", "enter")
        await until(pilot, lambda: subjects, "a screen")
        assert subjects == [(Screens.RUN, hosts.readings["gpu1"].runs[1].directory)]


async def test_hosts_are_added_changed_and_removed(hosts: StandInHosts) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, HostEntryScreen), "the dialog")
        await pilot.press(*"gpu1", "enter")
        await shows(pilot, "there is a host gpu1 already")
        await pilot.press("backspace", "3", "tab", *"ann@far.example", "enter")
        await until(pilot, lambda: "gpu3" in hosts.tell, "the new host")
        assert read_hosts()[-1] == Host("gpu3", "ann@far.example")
        await until(pilot, lambda: screen.query_one(HostsTable).current_host == "gpu3", "the cursor on it")
        await pilot.press("e")
        await shows(pilot, "Change gpu3")
        await pilot.press("end", "x", "enter")
        await until(pilot, lambda: hosts.stopped == ["gpu3"], "the end of its first link")
        assert read_hosts()[-1] == Host("gpu3", "ann@far.examplex")
        await until(pilot, lambda: screen.query_one(HostsTable).current_host == "gpu3", "the cursor on it")
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        await pilot.press("r")
        await until(pilot, lambda: hosts.stopped == ["gpu3", "gpu3"], "the end of its link")
        assert [host.name for host in read_hosts()] == ["gpu1", "gpu2"]
        await pilot.press("escape")
        await until(pilot, lambda: sorted(hosts.stopped) == ["gpu1", "gpu2", "gpu3", "gpu3"], "the end of all links")


async def test_a_host_is_checked(hosts: StandInHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    report = CheckReport("gpu.driver", CheckFinding(CheckResult.FAIL, "the driver is old", fix="Update it."), 0.1)
    found = CheckedLink(0.5, 0.01, {"keras": "0.1"}, "", (report,))
    monkeypatch.setattr(hosts_screen, "check_host", lambda _: found)
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot)
        screen.query_one(HostsTable).go_to_host("gpu1")
        await pilot.press("V")
        await shows(pilot, "gpu1: connected in 0.5 s", "keras 0.1 (here ", "gpu.driver: the driver is old. Update it.")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen, "the screen of hosts")


async def test_a_check_that_ends_late_opens_nothing_over_another_screen(
    hosts: StandInHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    found = CheckedLink(0.5, 0.01, {"keras": "0.1"}, "", ())
    monkeypatch.setattr(hosts_screen, "check_host", lambda _: may_end.wait() and found)
    async with BareApp().run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(pilot)
        screen.query_one(HostsTable).go_to_host("gpu1")
        await pilot.press("V", "r")
        await until(pilot, lambda: pilot.app.screen is not screen, "the list of runs")
        shown = pilot.app.screen
        may_end.set()
        await shows(pilot, "gpu1: connected in 0.5 s")
        assert pilot.app.screen is shown


async def test_without_hosts_it_says_how_to_add_one() -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await shows(pilot, "Press a to add one that ssh reaches", "no runs", "43")
        assert not screen.check_action("remove", ())


async def test_a_click_on_its_devices_goes_to_the_host(hosts: StandInHosts) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot)
        await shows(pilot, "gpu:3")
        lines = lay_out(tuple(screen._views.values()), 100, 20).lines
        await pilot.click(DeviceHeatMap, offset=(2, 1 + lines))
        await until(pilot, lambda: screen.query_one(HostsTable).current_host == "gpu1", "the cursor on gpu1")


def eight(gpus: int) -> list[HostView]:
    return [HostView(HostReading(f"gpu{each}", "connected", devices=gpu_devices(gpus))) for each in range(8)]


@pytest.mark.parametrize(
    ("size", "lines"), [(Size(76, 11), 1), (Size(114, 20), 2), (Size(194, 25), 3), (Size(76, 25), 1)]
)
def test_eight_hosts_with_eight_gpus_are_all_shown(size: Size, lines: int) -> None:
    found = lay_out(eight(8), *size)
    assert (found.lines, found.columns) == (lines, 9)
    assert found.hosts >= 8
    assert found.name + found.columns * found.cell <= size.width + 1


def test_devices_and_hosts_without_room_are_counted() -> None:
    found = lay_out(eight(40), 76, 5)
    assert found.columns < 40
    assert found.hosts == 4


def test_each_sample_is_in_the_history_once() -> None:
    read = busy_host("gpu1", 1, 1.0)
    view = HostView(HostReading("gpu1")).updated(read).updated(replace(read, runs=()))
    assert view.meters["gpu:0"].utilizations == (97.0,)
    view = view.updated(replace(read, samples=samples_of({"gpu:0": (3.0, 1.0, "")}, 2.0)))
    assert view.meters["gpu:0"].utilizations == (97.0, 3.0)


def test_only_the_last_ended_runs_are_listed() -> None:
    runs = tuple(run_of("gpu1", f"r{each}", Status.FINISHED) for each in range(9))
    view = HostView(HostReading("gpu1", "connected", runs=runs))
    assert view.rows() == list(runs[:ENDED])
    assert view.counts == "9 ended"


def test_summary_of_this_machine_and_others() -> None:
    views = [HostView(HostReading(HERE, "connected")), HostView(busy_host("gpu1", 5, 1.0)), HostView(lost_host("b"))]
    assert summary_line(views) == "1 of 2 hosts connected, 2 of 5 accelerators free, 2 running, 1 queued"


def test_ids_of_devices_are_joined() -> None:
    assert joined_devices(("gpu:0", "gpu:3", "cpu:0")) == "gpu:0,3 cpu:0"
