import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.requests.export_model import Export, MeasuredModel
from accel_tui.formatting.model_export import model_rows

pytestmark = pytest.mark.usefixtures("here")

ORIGINAL = MeasuredModel(
    "trained model", {"loss": 0.25, "accuracy": 0.9}, 0.0, 0.0, 40_000, 0.002, {"inputs": "uint8 8x8x1"}, {}
)


def measured(target, latency, problem="") -> MeasuredModel:
    outputs = {"probabilities": "float32 10"}
    metrics = {"loss": 0.26, "accuracy": 0.8}
    return MeasuredModel(
        target.name, metrics, 0.125, 0.01, 12_345, latency, {"inputs": "uint8 8x8x1"}, outputs, target.path, problem
    )


@pytest.fixture
def run(new_run) -> str:
    engine = new_run()
    engine.close()
    return engine.directory.name


@pytest.fixture
def asked(monkeypatch):
    """A stand-in for the engine, which keeps all but what ends with int8; what it was asked is kept."""
    requests = []

    def answer(request):
        targets = request.targets
        requests.append((targets, request.folder, request.checkpoint, request.target_latency))
        exported = tuple(
            measured(target, 0.001 * (index + 1), "beyond the tolerance" if target.quantize == "int8" else "")
            for index, target in enumerate(targets)
        )
        return Export(request.model.path.name, 40, "test", 200, ("a note",), ORIGINAL, exported)

    monkeypatch.setattr("accel_tui.cli.export.ask", answer)
    return requests


def test_a_model_is_named_after_the_run_and_shown_beside_the_trained_one(run_command, run, asked, here):
    result = run_command("export last --to onnx --checkpoint best")
    assert (result.status, result.err) == (0, "accel-tui: a note\n")
    assert result.lines[0] == f"{run} at step 40, verified on 200 test examples, on the CPU"
    assert result.lines[2].split() == ["SIGNATURE", "NAME", "TYPE"]
    assert "input      inputs         uint8 8x8x1" in result.lines
    assert "trained model  0.2500  0.9000                39.1 KiB  2.00 ms" in result.lines
    assert "onnx           0.2600  0.8000    0.1250      12.1 KiB  1.00 ms  fastest" in result.lines
    assert result.lines[-1] == str(here / f"{run}.onnx")
    (target,), folder, checkpoint, _ = asked[0]
    assert (target.name, target.tolerance, folder, checkpoint) == ("onnx", 1e-3, here, "best")


def test_the_fastest_export_is_called_so_where_the_trained_model_is_faster():
    def export(trained, *latencies):
        written = (replace(ORIGINAL, name=str(latency), latency=latency) for latency in latencies)
        return Export("run", 40, "test", 200, (), replace(ORIGINAL, latency=trained), tuple(written))

    assert [row[-1] for row in model_rows(export(2.37e-3, 4e-3, 3.1e-3), ())] == ["", "", "fastest export"]
    assert [row[-1] for row in model_rows(export(2.37e-3, 2e-3, 3.1e-3), ())] == ["", "fastest", ""]
    assert [row[-1] for row in model_rows(export(2.37e-3, None, 2e-3), ())] == ["", "", "fastest"]
    assert [row[-1] for row in model_rows(export(2.37e-3, None), ())] == ["", ""], "nothing was measured"


def test_all_formats_go_into_a_directory_and_what_is_not_written_is_told(run_command, run, asked, here):
    result = run_command("export last --to all --tolerance 0.5")
    targets, folder, *_ = asked[0]
    names = [
        f"{run}.keras",
        "1",
        f"{run}.onnx",
        f"{run}.tflite",
        *(f"{run}-{q}.tflite" for q in ("float16", "dynamic", "int8-weights", "int8")),
    ]
    assert [Path(each.path).name for each in targets] == names
    assert {each.tolerance for each in targets} == {0.5}
    assert (here / f"{run}-models" / f"{run}-savedmodel" / "1") == Path(targets[1].path)
    assert folder == here
    at = result.lines.index("not written:")
    assert result.lines[at + 1] == "  tflite-int8: beyond the tolerance"
    assert result.status == 0


def test_a_run_that_trains_meanwhile_is_named(run_command, run, asked, new_run):
    other = new_run(name="other").begin()
    result = run_command(f"export {run} --to onnx")
    assert result.err.startswith(f"accel-tui: run {other.directory.name} is training on cpu:0: the machine is")
    assert result.status == 0
    other.end()


def test_json_has_an_object_for_each_model(run_command, run, asked):
    first, *others = map(json.loads, run_command("export last --to all --json").lines)
    assert (first["model"], first["path"], first["metrics"]) == ("trained model", "", {"loss": 0.25, "accuracy": 0.9})
    assert [each["fastest"] for each in others] == [True] + [False] * 7
    assert (others[-1]["path"], others[-1]["problem"]) == (None, "beyond the tolerance")
    assert asked


def test_nothing_written_is_a_failure(run_command, run, asked):
    result = run_command("export last --to tflite --quantize int8")
    assert (result.status, result.out) == (1, "")
    assert "nothing was written: tflite-int8: beyond the tolerance" in result.err


def test_a_savedmodel_gets_the_next_version(run_command, run, asked, here):
    (here / "digits" / "7").mkdir(parents=True)
    assert run_command("export last --to savedmodel -o digits").status == 0
    assert asked[0][0][0].path == str(here / "digits" / "8")


def test_a_savedmodel_is_batched_within_a_latency(run_command, run, asked, here, monkeypatch):
    (here / "digits").mkdir()
    (here / "digits" / "batching.config").touch()  # of a version that was removed
    monkeypatch.setattr("accel_tui.cli.export.ask", lambda request: batched(asked, request))
    result = run_command("export last --to savedmodel -o digits --target-latency 20ms")
    assert asked[0] == 0.02
    assert result.lines[-2:] == [str(here / "digits" / "1"), "batching.config"]
    assert json.loads(run_command("export last --to savedmodel --json").lines[1])["batching"] == "batching.config"


def batched(asked, request):
    asked.append(request.target_latency)
    exported = [replace(measured(target, 0.001), batching="batching.config") for target in request.targets]
    return Export(request.model.path.name, 40, "test", 200, (), ORIGINAL, tuple(exported))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--to keras --table steps", "keras is a format of models"),
        ("--to keras -o -", "cannot be written to standard output"),
        ("--to onnx --quantize int8", "--quantize is for tflite"),
        ("--to all --quantize int8", "all has each"),
        ("--to csv --checkpoint best", "--checkpoint is for formats of models"),
        ("--to csv --json", "--json is for formats of models"),
        ("--to csv --target-latency 1ms", "--target-latency is for formats of models"),
        ("--to onnx --target-latency 1ms", "--target-latency is for savedmodel"),
        ("--to savedmodel --target-latency 1", "give one with its unit"),
        ("--to onnx --checkpoint newest", "neither auto, best, last nor a step"),
        ("--to onnx -o model.tflite", "ends with .onnx"),
        ("--to onnx -o new.onnx", "new.onnx.json already exists"),
        ("--to tflite -o new.tflite", "new.tflite.json is a directory"),
        ("--to onnx -o there.onnx", "there.onnx already exists"),
        ("--to keras -o folder.keras", "folder.keras is a directory"),
        ("--to savedmodel -o there.onnx", "there.onnx is a file"),
        ("--to savedmodel -o folder.keras", "other files than versions"),
        ("--to keras -o there.onnx/m.keras", "there.onnx is a file"),
    ],
)
def test_wrong_usage_is_told_before_the_engine_starts(run_command, run, asked, here, options, message):
    (here / "there.onnx").touch()
    (here / "new.onnx.json").touch()
    (here / "new.tflite.json").mkdir()
    (here / "folder.keras").mkdir()
    (here / "folder.keras" / "notes").touch()
    result = run_command(f"export last {options}")
    assert (result.status, message in result.err) == (2, True), result.err
    assert not asked


def test_a_directory_that_cannot_be_read_is_told(run_command, run, asked, here, monkeypatch):
    (here / "models").mkdir()

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("accel_engine.formats.savedmodel_format.os.listdir", refuse)
    result = run_command("export last --to savedmodel -o models")
    assert (result.status, "cannot read models: Permission denied" in result.err) == (2, True), result.err
    assert not asked


def test_a_path_that_is_too_long_is_no_existing_one(run_command, run, asked):
    assert run_command(f"export last --to savedmodel -o {'m' * 300}").status == 0
    assert asked


def test_existing_files_are_overwritten_with_force(run_command, run, asked, here):
    (here / "m.onnx").touch()
    (here / "m.onnx.json").touch()
    assert run_command("export last --to onnx -o m.onnx --force").status == 0
    assert asked


@pytest.mark.parametrize("kind", ["onnx", "tflite"])
def test_missing_libraries_are_told_before_the_engine_starts(run_command, run, here, kind, monkeypatch):
    monkeypatch.setattr("accel_engine.requests.protocol.model_reference.check_checkpoint", lambda directory: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run_command(f"export last --to {kind}")
    assert (result.status, f"pip install 'accel-tui[{kind}]'" in result.err) == (1, True), result.err
    assert not any(here.iterdir())


def test_int8_weights_need_a_library_of_their_own(run_command, run, here, monkeypatch):
    monkeypatch.setattr("accel_engine.requests.protocol.model_reference.check_checkpoint", lambda directory: None)
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ai_edge_quantizer" else found(name))
    result = run_command("export last --to tflite --quantize int8-weights")
    assert result.status == 1
    assert "ai_edge_quantizer missing: pip install 'accel-tui[quantizer]'" in result.err


def test_a_run_without_a_checkpoint_is_a_failure(run_command, run, here):
    result = run_command("export last --to onnx")
    assert (result.status, "has no checkpoint yet" in result.err) == (1, True), result.err
    assert not any(here.iterdir())


def test_a_file_of_a_model_needs_data_and_has_no_tables(run_command, asked, here, run):
    Path("own.keras").touch()
    for words, message in (
        ("export own.keras --to onnx", "does not tell its data: give it with --data"),
        ("export own.keras --to csv", "contains the tables of a run"),
        ("export own.keras --to onnx --data digits --checkpoint best", "--checkpoint is for runs"),
        (f"export {run} --to onnx --data digits", "a run is verified on its own data"),
        ("export m.weights.h5 --to onnx --data digits", "no such file: m.weights.h5"),
        ("export own.keras --to keras --data digits -o ./own.keras --force", "is the model that is exported"),
    ):
        found = run_command(words)
        assert (found.status, message in found.err) == (2, True), (words, found.err)
    assert run_command("export own.keras --to onnx --data digits").status == 0
    (target,), *_ = asked[-1]
    assert Path(target.path).name == "own.onnx"
