import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine.events import DevicesFound, PartStarted, TensorFlowDevice
from accel_engine.plan import DEFAULTS
from accel_engine.run import Annotations, RunInfo, RunSummary, Status
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.history.history import Part
from accel_tui.run_list.comparison import ComparedRow, ComparedRun, compare_runs, compared_series_names
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.state import RunState
from example_events import model_built


def side(run: str, metrics: dict[str, float] | None = None, state: RunState | None = None, **plan: Any) -> ComparedRun:
    info = RunInfo(run, Path(run), None, {**plan}, 0.0, "h", 1, Status.FINISHED, Annotations())
    return ComparedRun(
        RunSummary(run, Path(run), info, steps=10, metrics=metrics, of_epoch=True), state or RunState(info=info)
    )


def test_only_fields_that_differ_are_listed_and_the_others_are_told() -> None:
    found = compare_runs([side("a", model="mlp", epochs=9, name="one"), side("b", model="mlp", epochs=9, seed=3)])
    (seed,) = found.plan
    assert (seed.label, seed.values, seed.texts) == ("seed", (DEFAULTS["seed"], 3), (str(DEFAULTS["seed"]), "3"))
    assert found.equal == {"model": "mlp", "epochs": 9}
    assert found.defaults == len(DEFAULTS) - 4
    assert found.summary == f"Equal: model mlp, epochs 9; {found.defaults} fields at default."


def test_a_list_as_stored_is_no_other_than_the_plan_s() -> None:
    assert not compare_runs([side("a", devices=[]), side("b")]).plan


def test_fields_are_called_as_in_the_form_and_what_is_left_empty_says_what_it_stands_for() -> None:
    rows = compare_runs([side("a", micro_batches=4, steps_per_epoch=9, tpu="local"), side("b")]).plan
    assert {row.label: row.texts for row in rows} == {
        "micro-batches": ("4", "auto"),
        "steps per epoch": ("9", "all the data"),
        "TPU": ("local", "—"),
    }
    (row,) = compare_runs([side("a", of_a_later_version=None), side("b", of_a_later_version=2)]).plan
    assert (row.label, row.texts) == ("of a later version", ("—", "2"))


def test_of_a_script_only_what_it_told_is_said() -> None:
    script = side("a", model="sequential", epochs=9)
    assert script.run.info
    info = replace(script.run.info, script="train.py")
    found = compare_runs(
        [replace(script, run=replace(script.run, info=info)), side("b", model="mlp", epochs=9, seed=3)]
    )
    assert {row.label: row.texts for row in found.plan} == {"model": ("sequential", "mlp"), "seed": ("—", "3")}
    assert {row.label: row.values for row in found.plan} == {"model": ("sequential", "mlp"), "seed": (None, 3)}
    assert found.equal == {"epochs": 9}
    assert found.summary == "Equal: epochs 9."  # whether the script's other fields are at a default is not known


def script(run: str, *parts: PartStarted, **values: Any) -> ComparedRun:
    compared = side(run, **values)
    assert compared.run.info
    info = replace(compared.run.info, script="accel-tui run train.py", launched=True)
    state = RunState(info=info, parts=tuple(map(Part, parts)))
    return replace(compared, run=replace(compared.run, info=info), state=state)


def part(number: int, name: str, *, parsed: bool = False) -> PartStarted:
    return PartStarted(time=0.0, part=number, name=name, step=0, epoch=0, parsed=parsed)


def test_scripts_have_neither_defaults_nor_fields_that_are_empty_in_all() -> None:
    both = {"strategy": DEFAULTS["strategy"], "data": "train.py", "monitor": ""}
    found = compare_runs(
        [script("a", model="cnn", epochs=2, **both), script("b", model="", epochs=3, seed=None, **both)]
    )
    assert {row.label: row.texts for row in found.plan} == {"model": ("cnn", "—"), "epochs": ("2", "3")}
    assert found.equal == {"strategy": DEFAULTS["strategy"], "data": "train.py"}
    assert found.summary == f"Equal: strategy {DEFAULTS['strategy']}, data train.py."
    assert compare_runs([script("a"), script("b", model="")]).summary == "No plan fields in common are known."


def test_a_setting_that_a_script_lacks_is_no_other_value() -> None:
    (row,) = compare_runs([script(str(each), config=each) for each in ({}, {"decay": None}, {"decay": 3})]).plan
    assert row.texts == ("—", "None", "3")
    assert row.values == (None, None, 3)


def test_the_models_of_all_parts_are_named() -> None:
    nets = [part(number, f"net_{number}") for number in range(4)]
    runs = [
        script("a", *nets[:2], part(3, "output", parsed=True), model="net_0"),
        script("b", *nets, model="net_0"),
        script("c", nets[0], nets[0], model="net_0"),
        script("d", part(1, "first try"), part(2, "second try"), model="cnn"),  # recorders with names
    ]
    (row,) = compare_runs(runs).plan
    assert row.texts == ("net_0, net_1", "net_0, net_1, net_2 and 1 more", "net_0", "cnn")


def test_files_of_one_name_in_two_folders_are_told_apart() -> None:
    (row,) = compare_runs([side("a", model="/x/net.py:build"), side("b", model="/y/net.py:build")]).plan
    assert row.texts == ("/x/net.py:build", "/y/net.py:build")
    (row,) = compare_runs([side("a", model="/x/net.py:build"), side("b", model="mlp")]).plan
    assert row.texts == ("net.py:build", "mlp")


def test_a_file_that_was_carried_to_hosts_is_the_one_here_of_its_name() -> None:
    here, there = "/x/net.py:build", "/home/me/from-other-machines/1a/net.py:build"
    compared = compare_runs([side("a", model=here), side("b", model=there)])
    assert (compared.plan, compared.equal["model"]) == ((), here)
    other_host = there.replace("/home/me", "/root")
    assert compare_runs([side("a", model=there), side("b", model=other_host)]).plan == ()
    changed = there.replace("1a", "2b")
    (row,) = compare_runs([side("a", model=here), side("b", model=there), side("c", model=changed)]).plan
    assert len(set(row.texts)) == 3


def test_the_best_of_each_result_is_marked_where_there_is_one() -> None:
    found = compare_runs(
        [
            side("a", {"loss": 0.5, "accuracy": 0.7, "custom": 1.0}),
            side("b", {"loss": 0.25, "accuracy": 0.7, "custom": 2.0}),
            side("c", {"loss": math.nan, "validation_accuracy": 0.5}),
        ]
    )
    rows = {row.label: row for row in found.results}
    assert rows["loss"].best == {1}
    assert rows["loss"].texts == ("0.5000", "0.2500", "nan")
    assert rows["accuracy"].best == frozenset()
    assert rows["accuracy"].texts[2] == "—"
    assert rows["custom"].best == frozenset()
    assert rows["val accuracy"].values == (None, None, 0.5)
    assert "remaining" not in rows


def test_the_monitored_metric_is_best_as_the_monitor_mode_says() -> None:
    def marked(*modes: str | None, name: str = "custom") -> frozenset[int]:
        runs = [side(str(at), {name: at}, **({"monitor_mode": mode} if mode else {})) for at, mode in enumerate(modes)]
        monitoring = [replace(each, run=replace(each.run, monitor=name)) for each in runs]
        (row,) = [row for row in compare_runs(monitoring).results if row.label == name]
        return row.best

    assert marked("max", "max", name="loss") == {1}
    assert marked("min", "min") == {0}
    assert marked(None, "auto", name="loss") == {0}
    assert marked("max", None, name="loss") == marked("max", "min") == marked("auto", "auto") == frozenset()


def test_the_values_of_several_losses_have_no_best_one() -> None:
    def compared(*losses: str) -> dict[str, ComparedRow]:
        metrics = {"loss": 0.5, "validation_loss": 0.5, "mae": 0.5}
        runs = [
            side(loss, {name: value / at for name, value in metrics.items()}, RunState(built=model_built(loss=loss)))
            for at, loss in enumerate(losses, 1)
        ]
        return {row.label: row for row in compare_runs(runs).results}

    rows = compared("pinball", "mean_squared_error")
    assert [rows[name].best for name in ("loss", "val loss", "mae")] == [frozenset(), frozenset(), {1}]
    assert rows["loss function"].texts == ("pinball", "mean_squared_error")
    same = compared("mse", "mean_squared_error", "")
    assert (same["loss"].best, "loss function" in same) == ({2}, False)


def test_how_many_examples_validated_is_told_where_it_differs() -> None:
    runs = [side(str(count), state=RunState(built=model_built(validation_examples=count))) for count in (400, 2499)]
    rows = {row.label: row.texts for row in compare_runs(runs).results}
    assert rows["validation examples"] == ("400", "2,499")
    assert "validation examples" not in {row.label for row in compare_runs([runs[0], side("a"), runs[0]]).results}


def test_means_of_an_epoch_and_values_of_the_last_step_are_told_apart() -> None:
    mean, last = side("a", {"loss": 0.5, "validation_loss": 1.0}), side("b", {"loss": 0.25})
    last = replace(last, run=replace(last.run, of_epoch=False))
    rows = {row.label: row for row in compare_runs([mean, last]).results}
    assert rows["loss"].texts == ("0.5000 (last epoch)", "0.2500 (last step)")
    assert rows["loss"].values == (0.5, 0.25)
    assert rows["val loss"].texts == ("1.0000", "—")
    (row,) = [row for row in compare_runs([last, last]).results if row.label == "loss"]
    assert row.texts == ("0.2500", "0.2500")
    pairs = [mean, mean], [last, last], [mean, last]
    assert [compare_runs(pair).kind_of_values for pair in pairs] == ["last epoch", "last step", ""]


def test_devices_of_one_kind_are_counted() -> None:
    gpu = TensorFlowDevice("GPU:0", "gpu", "H100")
    many = RunState(devices=DevicesFound(time=0.0, devices=(gpu, gpu), strategy="Mirrored"))
    bare = RunState(devices=DevicesFound(time=0.0, devices=(TensorFlowDevice("CPU:0"),), strategy="Default"))
    assert [side("a", state=state).devices for state in (many, bare, RunState())] == ["2 x H100", "CPU:0", ""]


def test_series_of_all_runs_are_found() -> None:
    states = [
        RunState(curves={"loss": RecordedCurve(), "mae": RecordedCurve()}),
        RunState(curves={"loss": RecordedCurve(), "top": RecordedCurve()}),
    ]
    assert compared_series_names([side("a", state=state) for state in states]) == ["loss", "mae", "top"]


def test_what_only_some_runs_or_only_validations_have_is_found() -> None:
    states = [
        RunState(
            built=model_built(series=("loss", "learning_rate")),
            curves={"loss": RecordedCurve(), "d_loss": RecordedCurve()},
        ),
        RunState(
            curves={"loss": RecordedCurve(), "learning_rate": RecordedCurve()}, validation={"f1_score": ((1, 0.5),)}
        ),
    ]
    assert compared_series_names([side("a", state=state) for state in states]) == ["loss", "d_loss", "f1_score"]
    assert compared_series_names([]) == ["loss"]


def test_a_run_that_waits_for_its_disk_has_that_for_a_status() -> None:
    waiting = side("a")
    assert waiting.run.info
    waiting = replace(waiting, run=replace(waiting.run, info=replace(waiting.run.info, waiting=DiskProblem.IO)))
    (status,) = [row for row in compare_runs([waiting, side("b")]).results if row.label == "status"]
    assert status.texts == ("disk I/O error", "finished")


def test_what_a_prediction_that_has_learned_nothing_reaches_stands_below_the_metrics() -> None:
    known, unknown = side("a", {"validation_accuracy": 0.9}), side("b", {"validation_accuracy": 0.8})
    reached = {"baseline": {"accuracy": 0.25}, "baseline_name": "most frequent class: cat"}
    known = replace(known, run=replace(known.run, **reached))
    rows = {row.label: row.texts for row in compare_runs([known, unknown]).results}
    assert rows["baseline accuracy"] == ("0.2500", "—")
    assert rows["baseline"] == ("most frequent class: cat", "—")
    assert not any(label.startswith("baseline") for label in {row.label for row in compare_runs([unknown]).results})
