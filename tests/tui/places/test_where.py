"""Where the plan of the form is to train: what can be asked, what is known of it, and what travels."""

from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.hosts import reading
from accel_engine.hosts.carried_files import travelling
from accel_engine.hosts.host_list import Host, add_host
from accel_engine.hosts.reading import HostReading
from accel_engine.plan import Plan
from accel_tui.places import start_elsewhere, where
from accel_tui.places.place_state import UNKNOWN, PlaceState
from accel_tui.places.where import PlaceWatch, Where, place_choices, place_rows
from accel_tui.plan import form
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.new_run_screen import NewRunScreen
from tui.stand_in_hosts import StandInHosts, busy_host
from tui.stand_ins import StubApp, begun, shows, until


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> StandInHosts:
    found = StandInHosts({"gpu1": busy_host("gpu1", 4, 1.0)})
    monkeypatch.setattr(where, "HostFollower", found.follow)
    monkeypatch.setattr(reading, "HostFollower", StandInHosts().follow)  # of the app, which only mirrors their runs
    add_host(Host("gpu1"))
    return found


def test_the_command_has_the_place_and_what_is_asked_of_it() -> None:
    asked = Where(place="slurm:gpu", nodes=2, host_memory=16384, walltime=7200.0, place_options=("--account=lab",))
    assert asked.command("accel-tui train") == (
        "accel-tui train --on slurm:gpu --nodes 2 --host-memory 16384M --walltime 7200s --place-option --account=lab"
    )
    assert Where(place="here").name is None


def test_the_dialog_asks_a_cluster_for_what_it_has() -> None:
    kinds = {name: spec.goes_with for name, spec in where.form_specs().items()}
    assert kinds["gpus"] == ("place", ("slurm", "kubernetes", "ray", "hosts"))
    assert kinds["cpus"] == ("place", ("slurm", "kubernetes", "ray"))
    assert kinds["walltime"] == ("place", ("slurm",))


@pytest.mark.parametrize(
    ("place", "nodes", "problem"),
    [
        ("gpu7", None, "there is no place 'gpu7'"),
        ("here", 2, "here is not a cluster"),
        ("gpu1", 2, "gpu1 is not a cluster"),
    ],
)
def test_wrong_places_are_refused(hosts: StandInHosts, place: str, nodes: int | None, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Where(place=place, nodes=nodes)


def test_hosts_and_the_clusters_whose_tools_are_here_can_be_chosen(
    hosts: StandInHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where.shutil, "which", lambda tool: "/usr/bin/sbatch" if tool == "sbatch" else None)
    monkeypatch.setattr(where, "find_spec", lambda _: None)
    assert [choice.value for choice in place_choices()] == ["here", "gpu1", "slurm"]
    add_host(Host("gpu2"))
    assert [choice.value for choice in place_choices()] == ["here", "gpu1", "gpu2", "any", "slurm"]


def test_what_is_known_of_a_host_follows_its_readings(hosts: StandInHosts) -> None:
    states: list[PlaceState] = []
    watch = PlaceWatch(Where(place="gpu1"), states.append)
    watch.run()
    assert states[0].about == "gpu1: 4 accelerators, 2 running, 1 queued, 2 ended"
    assert states[0].meters["gpu:0"].utilizations == (97.0,)
    hosts.tell["gpu1"](HostReading("gpu1", "lost", "gpu1: the connection is lost"))
    assert states[-1].problem == "gpu1: the connection is lost"
    assert states[-1].devices == states[0].devices, "the form keeps what it has checked with"
    watch.stop()
    assert hosts.stopped == ["gpu1"]


def test_files_that_travel_are_counted(hosts: StandInHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("import layers\n")
    Path("layers.py").write_text("x" * 1000)
    Path("a.csv").write_text("size,price\n1,2\n")
    assert travelling(Plan(model="net.py:make", data="a.csv").changed()) == (3, 14 + 1000 + 15)
    Path("cifar10").mkdir()
    Path("cifar10", "other.txt").write_text("what a name of the catalogue does not mean")
    assert travelling(Plan(model="resnet20", data="cifar10").changed()) == (0, 0)
    rows = place_rows(Where(place="gpu1"), UNKNOWN, form.resolve_form({"model": "mlp", "data": "a.csv"}, None))
    assert {row.name: row.text for row in rows}["travels"] == "1 file, 15 B; only what has changed"


async def test_the_form_shows_the_devices_of_a_host_and_starts_there(
    hosts: StandInHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, bool]] = []

    def start(place: Where, plan: Plan, warn: object, *, queued: bool = False) -> str:
        started.append((place.place, queued))
        return "job 7"

    monkeypatch.setattr(start_elsewhere, "start_elsewhere", start)
    async with StubApp().run_test(size=(120, 40), notifications=True) as pilot:
        await begun(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, NewRunScreen)
        await pilot.press("at", *"gpu1", "ctrl+s")
        await shows(pilot, "Start on gpu1", "gpu:3", "H200", "train --on gpu1", "4 accelerators, 2 running")
        await shows(pilot, "the plan alone")
        screen.set_focus(None)
        await pilot.press("b")
        await shows(pilot, "A race measures this machine")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        await shows(pilot, "2 runs train on gpu1")
        await pilot.press("q")
        await shows(pilot, "job 7")
        assert started == [("gpu1", True)]
        await pilot.press("at")
        await shows(pilot, "this machine")
        await pilot.press("up", "enter")  # the list is answered, and nothing else is asked of this machine
        await shows(pilot, "AMD EPYC 7B13")
        assert hosts.stopped == ["gpu1"]
        assert screen.place_devices == screen.inventory
