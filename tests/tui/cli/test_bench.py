import json
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate, HeldOutMetrics
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.plan import Plan
from accel_engine.process.inference_bench import ModelFile
from accel_engine.run import list_runs
from accel_engine.run.runs.devices_in_use import DevicesInUse


def candidate(batch_size, milliseconds, throughput, **changes):
    seconds = milliseconds / 1000
    described = {"model": "k3fp", "format": "keras", "device": "cpu:0", "xla": False, "precision": "float32"}
    figures = {
        "p50": Percentile(seconds / 2, seconds / 3, seconds),
        "p90": Percentile(seconds * 0.9, seconds / 2, seconds),
        "p99": Percentile(seconds, seconds * 0.9, seconds * 1.1),
        "p999": Percentile(seconds * 2, seconds, None),
    }
    measured = {"scenario": "multi-stream", "percentiles": figures, "throughput": throughput, "stable": True}
    return Candidate(**{**described, **measured, "batch_size": batch_size, "first_seconds": 0.25, **changes})


SMALL = candidate(1, 1, 1000.0, memory=3 << 20)
LARGE = candidate(8, 9.5, 4000.0, stable=False, disagreement=0.12, energy=0.025)
FAILED = candidate(16, 1, 0.0, percentiles={}, problem="out of memory")


def accuracy(value, loss, **changes):
    on = {"split": "validation", "examples": 1360, "source": "k3fp", "fingerprint": "f"}
    return HeldOutMetrics(**{**on, **changes}, values={"accuracy": value, "loss": loss, "auc": 0.5})


EXPORTED = [
    replace(SMALL, metrics=accuracy(0.9945, 0.06), size=1000),
    *(
        candidate(batch, batch, throughput, model="q.tflite", format="tflite", precision="", size=280, metrics=metrics)
        for batch, throughput, metrics in ((1, 2400.0, accuracy(0.9917, 0.07)), (2, 300.0, accuracy(0.9917, 0.07)))
    ),
]


@pytest.fixture
def asked(monkeypatch, new_run):
    """A run, and a stand-in for the engine's measurement; what it was asked is kept."""
    new_run().close()
    requests = []
    measured = [SMALL, LARGE, FAILED]

    def answer(models, options, on_candidate):
        requests.append((models, options))
        for each in measured:
            on_candidate(each)
        return ("a note",)

    monkeypatch.setattr("accel_tui.cli.bench.measure_models", answer)
    answer.measured = measured
    requests.append(answer)
    return requests


def test_a_table_has_a_line_for_each_batch_size(run_command, asked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    result = run_command("bench last")
    assert result.status == 0
    assert result.lines[0] == "k3fp on cpu:0, float32, multi-stream"
    assert result.lines[1].split()[:5] == ["BATCH", "P50", "P90", "P99", "(95%)"]
    assert result.lines[1].endswith("STABLE")
    assert "FIRST CALL" in result.lines[1]
    assert "1.00 ms (0.90 ms to 1.10 ms)" in result.lines[2]
    assert "(2.0 ms)" in result.lines[2]
    assert "3.0 MiB" in result.lines[2]
    assert result.lines[2].endswith("yes")
    assert result.lines[3].endswith("0.025      no, ±12%")
    assert result.lines[4].split() == ["16", "out", "of", "memory"]
    assert "(in brackets): too few requests" in result.out
    assert "accel-tui: k3fp on cpu:0, float32: batch 1: 1.00k examples/s, p99 1.00 ms\n" in result.err
    assert "accel-tui: k3fp on cpu:0, float32: batch 16: out of memory\n" in result.err
    assert result.err.endswith("accel-tui: a note\n")
    assert isinstance(asked[1][0][0], Path)


def test_the_verdict_answers_which_batch_and_how_many_machines(run_command, asked):
    lines = run_command("bench last --target-latency 10ms --target-rate 9000").lines
    assert lines[-4:] == [
        "Batch 8 of k3fp on cpu:0, float32 has the best throughput within 10.0 ms at p99: 4.00k examples/s, "
        "with 9.50 ms at p99.",
        "Its p99 may exceed that, by its confidence interval: measure with a higher time limit (--seconds).",
        "It was not stable within the time limit: its last windows differ by 12%.",
        "9000 requests/s take 3 machines like this one, without headroom.",
    ]
    assert asked[1][1].target_latency == 0.01
    assert run_command("bench last --target-latency 5ms").lines[-1].startswith("Batch 1 of k3fp")
    none = run_command("bench last --target-latency 500us").lines[-1]
    assert none == "No batch size meets p99 <= 500 µs: the fastest is batch 1 of k3fp on cpu:0, float32, with 1.00 ms."


def test_json_has_a_line_for_each_candidate_and_the_verdict_last(run_command, asked):
    small, _, failed, last = map(json.loads, run_command("bench last --json --target-rate 100").lines)
    assert {name: small[name] for name in ("batch_size", "p50", "p99", "p999", "throughput", "memory", "xla")} == {
        "batch_size": 1,
        "p50": 0.0005,
        "p99": 0.001,
        "p999": 0.002,
        "throughput": 1000.0,
        "memory": 3 << 20,
        "xla": False,
    }
    assert small["intervals"]["p999"] == [0.001, None]
    assert (failed["p99"], failed["throughput"], failed["problem"]) == (None, None, "out of memory")
    assert last["best"]["batch_size"] == 8
    assert last["machines"] == 1
    assert "Batch 1 of k3fp on cpu:0, float32 is the fastest, with 1.00 ms at p99." in last["verdict"]


def test_metrics_stand_beside_the_speed_and_formats_are_compared(run_command, asked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    asked[0].measured[:] = EXPORTED
    lines = run_command("bench last").lines
    assert lines[0].endswith(", accuracy 0.9945, loss 0.0600")
    assert "Metrics on 1,360 validation examples of k3fp." in lines
    assert lines[-2:] == [
        "Compared with batch 1 of k3fp on cpu:0, float32:",
        "q.tflite on cpu:0, tflite, batch 1: accuracy 0.9917 (-0.0028), throughput 2.4 times, size 0.28 times.",
    ]
    asked[0].measured[2] = replace(
        EXPORTED[2], model="r.tflite", metrics=accuracy(0.5, None, split="other.csv", examples=9)
    )
    lines = run_command("bench last --target-latency 1ms").lines
    assert "r.tflite: Metrics on 9 other.csv examples of k3fp." in lines
    assert lines[-1] == "r.tflite on cpu:0, tflite: accuracy 0.5000, no batch size within 1.00 ms at p99."


def test_json_has_the_metrics_and_what_formats_cost(run_command, asked):
    asked[0].measured[:] = EXPORTED
    *found, last = map(json.loads, run_command("bench last --json").lines)
    assert [next(iter(each["metrics"].items())) for each in found] == [
        ("accuracy", 0.9945),
        *[("accuracy", 0.9917)] * 2,
    ]
    assert found[1]["held_out"] == {
        "split": "validation",
        "examples": 1360,
        "source": "k3fp",
        "fingerprint": "f",
        "is_foreign": False,
    }
    (other,) = last["compared"]
    assert other["metric_difference"] == pytest.approx(-0.0028)
    assert {name: other[name] for name in ("model", "batch_size", "metric", "throughput_ratio", "size_ratio")} == {
        "model": "q.tflite",
        "batch_size": 1,
        "metric": "accuracy",
        "throughput_ratio": 2.4,
        "size_ratio": 0.28,
    }


def test_a_model_that_does_not_tell_its_run_may_have_seen_the_examples(run_command, asked):
    foreign = accuracy(0.9917, 0.07, is_foreign=True)
    asked[0].measured[:] = [EXPORTED[0], *(replace(each, metrics=foreign) for each in EXPORTED[1:])]
    lines = run_command("bench last").lines
    at = lines.index("Metrics on 1,360 validation examples of k3fp.")
    assert lines[at + 1 : at + 3] == [
        "q.tflite does not tell which run it is from: its own training may have seen these examples.",
        "",
    ]


def test_metrics_can_be_left_out(run_command, asked):
    assert ", accuracy" not in run_command("bench last").out
    assert json.loads(run_command("bench last --json --no-metrics").lines[0])["metrics"] is None
    assert [options.metrics for _, options in asked[1:]] == [True, False]


def test_options_reach_the_engine(run_command, asked):
    command = "bench last --scenario server --batch-sizes 4,2,4 --target-latency 1.5s --devices cpu,gpu:1 --xla on"
    assert run_command(f"{command} --precision mixed_float16 --seconds 2").status == 0
    options = asked[1][1]
    assert (options.batch_sizes, options.target_latency, options.devices) == ((4, 2), 1.5, ("cpu", "gpu:1"))
    assert (options.xla, options.precisions, options.seconds) == ("on", ("mixed_float16",), 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--scenario server", "give a target latency"),
        ("--scenario offline --target-latency 1ms", "offline has no latencies"),
        ("--scenario single-stream --batch-sizes 1,2", "leave out batch sizes"),
        ("--scenario burst", "'burst' must be one of"),
        ("--target-latency 10", "give one with its unit"),
        ("--target-latency 0ms", "give one with its unit"),
        ("--batch-sizes 1,0", "give positive whole numbers"),
        ("--devices tpu", "'tpu' must be cpu, gpu"),
        ("--precision int8", "'int8' must be one or more of float32"),
        ("--target-rate 0", "0"),
        ("--target-rate inf", "inf"),
        ("--target-rate nan", "'nan' must be a number above 0"),
        ("--seconds nan", "'nan' must be a number from 0.1 to 3600"),
        (f"--target-latency {'9' * 400}s", "give one with its unit"),
        (f"--batch-sizes {'9' * 5000}", "give positive whole numbers"),
        ("--protocol v1", "--protocol is for the URL of a service"),
        ("http://127.0.0.1:9", "last is not a URL, and services are measured apart"),
    ],
)
def test_wrong_usage_starts_no_engine(run_command, asked, options, message):
    result = run_command(f"bench last {options}")
    assert result.status == 2
    assert message in result.err
    assert len(asked) == 1


def test_files_are_measured_as_they_are_or_on_data(run_command, asked, tmp_path):
    for name in ("m.keras", "m.tflite"):
        (tmp_path / name).write_text("")
    (tmp_path / "saved" / "1").mkdir(parents=True)
    (tmp_path / "saved" / "1" / "saved_model.pb").write_text("")
    assert run_command(f"bench {tmp_path}/m.keras {tmp_path}/m.tflite {tmp_path}/saved").status == 0
    assert asked[1][0] == [ModelFile(tmp_path / name) for name in ("m.keras", "m.tflite", "saved")]
    assert run_command(f"bench {tmp_path}/m.keras --data digits").status == 0
    (model,) = asked[2][0]
    assert isinstance(model, Plan)
    missing = run_command(f"bench {tmp_path}/missing.onnx")
    assert (missing.status, "no such file" in missing.err) == (2, True)


@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + ".onnx", "a\0b"])
def test_a_name_that_no_file_can_have_is_wrong_usage(run_command, asked, name):
    result = run_command(f"bench '{name}'")
    assert result.status == 2
    assert "bug" not in result.err


def test_a_directory_that_may_not_be_read_is_no_model(run_command, asked, tmp_path, monkeypatch):
    def fail(directory):
        raise PermissionError(13, "Permission denied", str(directory))

    monkeypatch.setattr(Path, "iterdir", fail)
    result = run_command(f"bench {tmp_path}")
    assert result.status == 2
    assert "no run" in result.err


def test_runs_that_train_on_a_measured_device_are_named(run_command, asked, new_run, tmp_path):
    (tmp_path / "m.onnx").write_text("")
    run = new_run(name="other").begin()
    warning = f"accel-tui: run {run.directory.name} is training"
    for options in ("last", "last --devices cpu", f"{tmp_path}/m.onnx --devices gpu"):
        assert f"{warning} on cpu:0: the machine is not idle" in run_command(f"bench {options}").err
    assert warning not in run_command("bench last --devices gpu").err
    run.end()
    assert warning not in run_command("bench last").err


def test_a_run_of_unknown_devices_is_named_too(run_command, asked, monkeypatch):
    monkeypatch.setattr(
        "accel_engine.run.runs.devices_in_use.devices_in_use",
        lambda: [DevicesInUse("script", ()), DevicesInUse("large", ("gpu:0", "gpu:1"))],
    )
    every = run_command("bench last").err.splitlines()
    assert every[0].startswith("accel-tui: run script is training: the machine is not idle")
    assert every[1].startswith("accel-tui: run large is training on gpu:0, gpu:1: the machine is not idle")
    one = run_command("bench last --devices gpu:1").err.splitlines()
    assert one[1].startswith("accel-tui: run large is training on gpu:1: the machine is not idle")


def test_where_nothing_can_be_measured_the_status_is_1(run_command, asked):
    asked[0].measured[:] = [FAILED]
    result = run_command("bench last")
    assert (result.status, result.err.splitlines()[-1]) == (
        1,
        "accel-tui: nothing could be measured: out of memory",
    )


def test_an_engines_error_is_told_after_what_was_measured_before(run_command, asked, monkeypatch):
    def fail(models, options, on_candidate):
        on_candidate(SMALL)
        raise RunError("the engine exited unexpectedly")

    monkeypatch.setattr("accel_tui.cli.bench.measure_models", fail)
    result = run_command("bench last")
    assert (result.status, result.err.splitlines()[-1]) == (1, "accel-tui: the engine exited unexpectedly")
    assert result.lines[0] == "k3fp on cpu:0, float32, multi-stream"
    assert "Batch" not in result.out
    (line,) = run_command("bench last --json").lines
    assert json.loads(line)["batch_size"] == 1


def test_measurements_are_saved_as_runs_unless_they_are_not_to_be(run_command, asked):
    result = run_command("bench last")
    (run,) = (run.id for run in list_runs() if run.info.kind == "bench")
    assert f"accel-tui: saved as 1 run: {run}\n" in result.err
    asked[0].measured[:] = [SMALL, candidate(1, 1, 2000.0, xla=True)]
    *_, last = map(json.loads, run_command("bench last --json").lines)
    assert len(last["runs"]) == 2
    assert {*last["runs"], run} == {each.id for each in list_runs() if each.info.kind == "bench"}
    result = run_command("bench last --no-save --json")
    assert json.loads(result.lines[-1])["runs"] == []
    assert "saved" not in result.err
    assert len(list_runs()) == 4
    assert run_command(f"export {run} --to csv -o -").lines[0].startswith("batch_size,time,throughput,")
    assert run_command("export last --to csv -o -").lines[0].startswith("step,")


def test_what_was_measured_before_an_error_is_saved(run_command, asked, monkeypatch):
    def fail(models, options, on_candidate):
        on_candidate(SMALL)
        raise RunError("the engine exited unexpectedly")

    monkeypatch.setattr("accel_tui.cli.bench.measure_models", fail)
    assert "saved as 1 run: " in run_command("bench last").err


def test_what_cannot_be_saved_is_shown_all_the_same(run_command, asked, monkeypatch):
    def refuse(self):
        raise RunError("the disk is full")

    monkeypatch.setattr("accel_tui.cli.bench.BenchRuns.save", refuse)
    result = run_command("bench last")
    assert "accel-tui: not saved: the disk is full\n" in result.err
    assert (result.status, result.lines[0]) == (0, "k3fp on cpu:0, float32, multi-stream")


def test_too_few_windows_are_not_said_to_agree(run_command, asked):
    asked[0].measured[:] = [candidate(1, 1, 1000.0, stable=False)]
    lines = run_command("bench last").lines
    assert lines[2].endswith(" no")
    assert "It was not stable within the time limit: there was no time for 3 windows." in lines
    asked[0].measured[:] = [candidate(1, 1, 1000.0, stable=False, scenario="server")]
    assert "time limit: too many requests were late." in run_command("bench last").out
