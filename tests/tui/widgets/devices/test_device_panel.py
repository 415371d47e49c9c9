import re
from collections.abc import Mapping

import pytest
from rich.color import Color
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget
from textual.widgets import Static

from accel_engine.devices.device_types import CountedItem, Device, Inventory, Reading, Sample, UnavailableKind
from accel_tui.appearance.theme import measure_colours
from accel_tui.run_state.device_meter import Meter
from accel_tui.widgets.device_panel import DevicePanel, explanations, lines
from tui.stand_ins import GIB, MACHINE, READINGS, sample

GPU = Device("gpu:0", "gpu", "NVIDIA H100 80GB HBM3", 80 * GIB)
GPU_READINGS = {
    "utilization": Reading(97.0, "%"),
    "memory_used": Reading(61.5 * GIB, "B"),
    "memory_total": Reading(80.0 * GIB, "B"),
    "temperature": Reading(64.0, "C"),
    "power": Reading(512.3, "W"),
}


def plain(inventory: Inventory | None, meters: dict[str, Meter], width: int) -> list[str]:
    return [line.plain for line in lines(inventory, meters, width)]


def test_while_devices_are_looked_for_that_is_said() -> None:
    assert plain(None, {}, 80) == ["looking for devices…"]


def test_a_device_is_a_line_and_absences_share_one() -> None:
    shown = plain(MACHINE, {"cpu:0": Meter(sample(), (10.0, 100.0))}, 80)
    assert shown[0].startswith("cpu:0  AMD EPYC 7B13  ━━━───  43%  mem 3.1G/16.0G")
    assert "load 1.2" in shown[0]
    assert shown[0].endswith("▁█")
    assert shown[1:] == ["gpu  none: no NVIDIA driver   tpu  none: no TPU chip"]


def test_absences_that_are_long_have_a_line_each() -> None:
    inventory = Inventory((), (UnavailableKind("gpu", "x" * 50), UnavailableKind("tpu", "y" * 50)))
    assert len(plain(inventory, {}, 80)) == 2


def test_temperature_and_power_stand_where_they_are_read() -> None:
    shown = plain(Inventory((GPU,)), {"gpu:0": Meter(Sample(0.0, "gpu:0", GPU_READINGS), (97.0,))}, 120)
    assert "61.5G/80.0G" in shown[0]
    assert "64°C" in shown[0]
    assert "512W" in shown[0]


def test_what_could_not_be_read_is_a_dash_with_its_reason() -> None:
    readings = READINGS | {"utilization": Reading.missing("the driver does not say", "%")}
    shown = plain(MACHINE, {"cpu:0": Meter(sample(readings=readings), (None,))}, 120)
    assert " —  mem" in shown[0]
    assert "the driver does not say" in shown[0]
    assert "0%" not in shown[0]


def test_a_device_that_was_not_read_yet_says_so() -> None:
    assert plain(MACHINE, {}, 80)[0].endswith("reading…")


@pytest.mark.parametrize("width", [1, 20, 60, 80, 120, 200, 300])
def test_no_line_is_wider_than_the_panel(width: int) -> None:
    inventory = Inventory((*MACHINE.devices, GPU), MACHINE.unavailable)
    meters = {"cpu:0": Meter(sample(), (50.0,) * 120), "gpu:0": Meter(Sample(0.0, "gpu:0", GPU_READINGS), (9.0,) * 120)}
    assert all(line.cell_length <= width for line in lines(inventory, meters, width))


def test_cores_are_drawn_where_there_is_room() -> None:
    meters = {"cpu:0": Meter(sample(), (50.0,) * 120)}
    assert "▁▃▅▆" in plain(MACHINE, meters, 120)[0]
    assert "▁▃▅▆" not in plain(MACHINE, meters, 80)[0]


FULL = GPU_READINGS | {
    "power_limit": Reading(700.0, "W"),
    "clock_sm": Reading(1980.0, "MHz"),
    "clock_memory": Reading(2619.0, "MHz"),
    "fan": Reading.missing("this GPU does not report it", "%"),
    "pcie_generation": Reading(5.0),
    "pcie_width": Reading(16.0),
    "pcie_received": Reading(2.5 * GIB, "B/s"),
    "pcie_sent": Reading(0.0, "B/s"),
    "ecc_corrected": Reading(2.0),
    "ecc_uncorrected": Reading(0.0),
    "throttling": Reading.counted(()),
    "processes": Reading.counted((CountedItem("python", "4242", 61 * GIB),)),
    "instances": Reading.counted((CountedItem("MIG 3g.40gb", "MIG-1", 3 * GIB, 40 * GIB),)),
}


def machine(gpus: int) -> Inventory:
    found = [Device(f"gpu:{index}", "gpu", "NVIDIA H100 80GB HBM3", 80 * GIB) for index in range(gpus)]
    return Inventory((*MACHINE.devices, *found), (UnavailableKind("tpu", "no TPU chip"),))


def meters_of(inventory: Inventory, readings: Mapping[str, Reading] = FULL) -> dict[str, Meter]:
    return {
        device.id: Meter(sample(device.id, READINGS if device.kind == "cpu" else readings), (50.0,) * 120)
        for device in inventory.devices
    }


def slowed(*words: str) -> dict[str, Reading]:
    return FULL | {"throttling": Reading.counted(tuple(CountedItem(each) for each in words))}


def test_what_slows_a_device_is_said_in_words_and_only_then() -> None:
    inventory = Inventory((GPU,))
    assert "slowed" not in plain(inventory, meters_of(inventory), 120)[0]
    assert (
        "throttled: thermal slowdown"
        in plain(inventory, meters_of(inventory, slowed("thermal slowdown", "power limit")), 120)[0]
    )
    assert "▼ thermal slow…" in plain(inventory, meters_of(inventory, slowed("thermal slowdown")), 80)[0]
    assert "throttled: power limit" in plain(inventory, meters_of(inventory, slowed("power limit")), 120)[0]


def test_where_there_is_room_each_device_has_a_second_line() -> None:
    inventory = machine(1)
    shown = [row.plain for row in lines(inventory, meters_of(inventory), 200, 10, tall=True)]
    assert len(shown) == 5
    assert "▁▃▅▆" in shown[1]
    for words in (
        "clocks 1980/2619 MHz",
        "PCIe 5x16",
        "↓ 2.5G/s ↑ 0B/s",
        "ECC 2 corrected",
        "python 4242 61.0G",
        "MIG 3g.40gb 3.0G/40.0G",
    ):
        assert words in shown[3]
    assert "fan" not in shown[3]
    assert len(lines(inventory, {}, 200, 10, tall=True)) == 5  # so that nothing moves when readings come


def test_the_engine_s_own_use_is_told_of_the_host() -> None:
    readings = READINGS | {
        "engine_cpu": Reading(173.0, "%"),
        "engine_memory": Reading(2.5 * GIB, "B"),
        "disk_read": Reading(2.0**20, "B/s"),
        "disk_written": Reading.missing("available from the second reading on", "B/s"),
        "swap_used": Reading(0.0, "B"),
        "swap_total": Reading(8.0 * GIB, "B"),
    }
    shown = lines(MACHINE, {"cpu:0": Meter(sample(readings=readings), ())}, 120, 10, tall=True)[1].plain
    for words in ("engine 173% 2.5G", "disk r 1.0M/s w —/s", "swap 0B/8.0G"):
        assert words in shown
    assert "net" not in shown


@pytest.mark.parametrize(("gpus", "height"), [(1, 3), (8, 3), (8, 9), (16, 6), (12, 3), (100, 3), (2, 1)])
@pytest.mark.parametrize("width", [40, 78, 118, 198])
def test_devices_are_never_clipped_silently(gpus: int, height: int, width: int) -> None:
    inventory = machine(gpus)
    rows = [row.plain for row in lines(inventory, meters_of(inventory), width, height)]
    assert len(rows) <= height
    assert all(len(row) <= width for row in rows)
    text = "\n".join(rows)
    shown = sum(bool(re.search(rf"gpu:{index}\b", text)) for index in range(gpus))
    left = re.search(r"(\d+) more", text)
    assert shown + (int(left[1]) if left else 0) == gpus


def test_the_fewer_devices_the_more_is_said() -> None:
    few, some, many = (
        [row.plain for row in lines(machine(gpus), meters_of(machine(gpus)), 78, 3)] for gpus in (2, 4, 8)
    )
    assert "61.5G/80.0G  64°C  512W" in few[1]
    assert some[1].startswith("gpu:0  ━━━━  97% 61.5G/80.0G  64° 512W")
    assert some[1].count("gpu:") == 2
    assert many[1].startswith("gpu:0 █ 97% 61.5G")
    assert many[1].count("gpu:") == 4


def test_a_device_in_a_cell_says_why_nothing_is_known_of_it_and_when_it_is_hot() -> None:
    inventory = machine(4)
    meters = meters_of(inventory)
    lost = {name: Reading.missing("the GPU is lost", reading.unit) for name, reading in FULL.items()}
    meters["gpu:1"] = Meter(sample("gpu:1", lost), ())
    meters["gpu:2"] = Meter(sample("gpu:2", slowed("thermal slowdown")), ())
    meters["gpu:3"] = Meter(sample("gpu:3", slowed("power limit")), ())
    _, first, second = (row.plain for row in lines(inventory, meters, 78, 3))
    assert "gpu:1  the GPU is lost" in first
    assert "61.5G/80.0G! 64°" in second
    assert second.count("!") == 1


def test_reasons_are_told_once_for_all_devices_that_share_them() -> None:
    inventory = machine(3)
    assert explanations(meters_of(inventory)) == ["gpu:0, gpu:1, gpu:2 fan: this GPU does not report it"]


def test_a_tpu_chip_says_its_duty_cycle_its_memory_and_who_holds_it() -> None:
    chip = Device("tpu:0", "tpu", "TPU 7x", 192 * GIB, 2)
    readings = {
        "utilization": Reading(90.0, "%"),
        "memory_used": Reading(9.1 * GIB, "B"),
        "memory_total": Reading(192.0 * GIB, "B"),
        "core_0": Reading(80.0, "%"),
        "core_1": Reading(100.0, "%"),
        "processes": Reading.counted((CountedItem("python3", "4711"),)),
    }
    shown = lines(Inventory((chip,)), {"tpu:0": Meter(sample("tpu:0", readings), (90.0,))}, 120, 10)[0].plain
    assert shown.startswith("tpu:0  TPU 7x  ━━━━━━━━━━━─  90%  HBM 9.1G/192G")
    assert "▇█" in shown
    assert "python3 4711" in shown


def test_many_cores_share_blocks() -> None:
    readings = READINGS | {f"core_{core}": Reading(100.0 if core == 70 else 0.0, "%") for core in range(128)}
    shown = lines(MACHINE, {"cpu:0": Meter(sample(readings=readings), ())}, 80, 10, tall=True)[1].plain
    assert shown.count("█") == 1
    assert shown.strip().count("▁") in range(30, 73)


class ColouredApp(App[None]):
    """An app with the colours of what is measured."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return measure_colours(self.current_theme)


class Panels(ColouredApp):
    """A panel alone, that may be three rows high."""

    CSS = "DevicePanel { max-height: 3; }"

    def compose(self) -> ComposeResult:
        yield DevicePanel()


@pytest.mark.parametrize(("gpus", "height"), [(0, 2), (1, 3), (8, 3)])
async def test_a_panel_is_as_high_as_it_needs_and_may(gpus: int, height: int) -> None:
    app = Panels()
    async with app.run_test(size=(80, 24)) as pilot:
        panel = app.query_one(DevicePanel)
        panel.inventory = machine(gpus)
        panel.meters = meters_of(machine(gpus))
        await pilot.pause()
        assert panel.size.height == height
        shown = "\n".join(strip.text for strip in panel.render_lines(panel.size.region))
        assert all(f"gpu:{index} " in shown for index in range(gpus))


def cluster(workers: int, gpus: int) -> Inventory:
    """The devices of many machines, each with a CPU and GPUs, as they are named in the chief's run."""
    ids = ["cpu:0", *(f"gpu:{index}" for index in range(gpus))]
    names = ["", *(f"worker {index} " for index in range(1, workers))]
    return Inventory(tuple(Device(f"{name}{id_}", id_[:3], "A card") for name in names for id_ in ids))


@pytest.mark.parametrize(("workers", "gpus"), [(2, 0), (2, 1), (2, 4), (4, 8), (8, 8), (16, 8), (64, 8), (32, 16)])
@pytest.mark.parametrize(("width", "height"), [(78, 3), (198, 9), (40, 3), (118, 3)])
def test_devices_of_many_machines_are_never_clipped_silently(workers: int, gpus: int, width: int, height: int) -> None:
    inventory = cluster(workers, gpus)
    rows = [row.plain for row in lines(inventory, meters_of(inventory), width, height)]
    assert len(rows) <= height
    assert len(lines(inventory, {}, width, height)) == len(rows), "nothing moves when readings come"
    assert all(len(row) <= width for row in rows)
    text = "\n".join(rows)
    left = re.search(r"(\d+) more", text)
    missing = int(left[1]) if left else 0
    if "pu:" in text:
        assert text.count("pu:") + missing == len(inventory.devices)
    else:
        assert len(re.findall(r"worker \d+ +[▁▂▃▄▅▆▇█]+ ", text)) + missing == workers


def test_the_fewer_machines_the_more_is_said_of_each_device() -> None:
    def shown(workers: int, gpus: int, height: int = 3) -> list[str]:
        inventory = cluster(workers, gpus)
        return [row.plain for row in lines(inventory, meters_of(inventory), 78, height)]

    assert shown(2, 0)[1].startswith("worker 1 cpu:0 A card  ━━━")
    assert re.search(r"worker 1 gpu:0 +. +97% 61.5G", "\n".join(shown(2, 1)))
    assert shown(2, 4)[0].startswith("worker 0 ████ 97%  246G")
    assert shown(8, 8)[0].startswith("worker 0 ████████ 97%")
    assert shown(64, 8)[-1].endswith("  56 more")


def test_a_machine_without_accelerators_is_told_by_its_cpu_and_one_unread_by_a_dash() -> None:
    inventory = cluster(12, 0)
    rows = [row.plain for row in lines(inventory, meters_of(inventory), 78, 3)]
    assert "worker 11" in rows[-1]
    assert "43%" in rows[0]
    assert "—" in lines(inventory, {}, 78, 3)[0].plain


def painted(widget: Widget) -> list[list[tuple[str, Color | None, Color | None, bool]]]:
    """What stands in each cell: its character, its colours where they are seen, and whether it is bold."""
    rows = []
    for strip in widget.render_lines(Region(0, 0, *widget.outer_size)):
        cells = [(character, style) for text, style, _ in strip for character in text]
        rows.append(
            [
                (character, style.color if character != " " else None, style.bgcolor, bool(style.bold))
                for character, style in cells
                if style is not None
            ]
        )
    return rows


@pytest.mark.parametrize("opacity", ["100%", "50%"])
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_a_panel_looks_as_textual_would_paint_its_words(theme: str, opacity: str) -> None:
    inventory = Inventory((*MACHINE.devices, GPU), MACHINE.unavailable)
    meters = {
        "cpu:0": Meter(sample(), (50.0,) * 120),
        "gpu:0": Meter(Sample(0.0, "gpu:0", GPU_READINGS | {"power": Reading.missing("not told")}), (9.0,) * 120),
    }

    class Both(ColouredApp):
        CSS = f"DevicePanel, Static {{ padding: 1 1 0 1; height: auto; text-opacity: {opacity}; }}"

        def compose(self) -> ComposeResult:
            yield DevicePanel()
            yield Static()

    app = Both()
    async with app.run_test(size=(100, 40)) as pilot:
        app.theme = theme
        panel = app.query_one(DevicePanel)
        panel.inventory, panel.meters = inventory, meters
        await pilot.pause()
        words = lines(inventory, meters, panel.size.width, panel.size.height, tall=True)
        app.query_one(Static).update(Content("\n").join(words))
        await pilot.pause()
        assert painted(panel) == painted(app.query_one(Static))


async def test_of_newer_meters_only_what_differs_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alone(ColouredApp):
        def compose(self) -> ComposeResult:
            yield DevicePanel()

    app = Alone()
    async with app.run_test(size=(100, 20)) as pilot:
        panel = app.query_one(DevicePanel)
        panel.inventory, panel.meters = MACHINE, {"cpu:0": Meter(sample(), (50.0,))}
        await pilot.pause()
        asked: list[Region] = []
        refresh = panel.refresh
        monkeypatch.setattr(panel, "refresh", lambda *regions, **how: asked.extend(regions) or refresh(*regions, **how))
        newer = READINGS | {"load": Reading(7.5)}
        panel.meters = {"cpu:0": Meter(sample(readings=newer), (50.0,))}
        assert [(region.y, region.height) for region in asked] == [(0, 1)]
        assert asked[0].width < 40
        await pilot.pause()
        assert "load 7.5" in panel.render_lines(Region(0, 0, 100, 1))[0].text
        asked.clear()
        panel.meters = {"cpu:0": Meter(sample(readings=newer), (50.0,))}
        assert asked == []
