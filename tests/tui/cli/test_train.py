import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from accel_engine import network_namespace
from accel_engine.errors import FieldValue
from accel_engine.events import Outcome, Phase, PhaseChanged, RunStarted
from accel_engine.plan import DEFAULTS, SPECS, Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader, Status, list_runs
from accel_engine.run.runs.listing import summarize
from accel_tui.cli import progress
from recorded_run import put

OLD = {
    "model": "cnn",
    "epochs": 2,
    "patience": 3,
    "min_delta": 0.1,
    "validation_every": "5 steps",
    "monitor_mode": "max",
    "rate_drop_factor": 0.5,
}
"""A stored plan, two of whose fields have no effect."""


def plan_of(directory):
    reader = RunReader(directory)
    try:
        return reader.info().plan
    finally:
        reader.close()


def status_of(directory):
    reader = RunReader(directory)
    try:
        return reader.info().status
    finally:
        reader.close()


def checkpoint(directory, step):
    """Make what counts as a checkpoint."""
    (directory / "checkpoints").mkdir()
    (directory / "checkpoints" / f"step-{step}.index").touch()


def test_every_field_of_the_plan_has_a_flag_with_its_meaning(run_command):
    told = "".join(run_command("train --help").out.split())  # lines may end within a word
    for name, spec in SPECS.items():
        assert str(FieldValue(name)) in told
        assert spec.doc.replace(" ", "") in told
        assert ",".join(spec.choices) in told or "|".join(spec.choices) in told


def test_flags_make_the_plan(engines, run_command):
    changes = {
        "model": "mlp",
        "data": "synthetic:8x8:4",
        "devices": ("cpu:0",),
        "precision": "mixed_bfloat16",
        "xla": "off",
        "batch_size": 32,
        "epochs": 1,
        "steps_per_epoch": 7,
        "optimizer": "sgd",
        "learning_rate": 0.5,
        "seed": 3,
        "validation": "end",
        "name": "mine",
    }
    words = Plan(**changes).command().removeprefix("accel-tui ")
    assert run_command(f"{words} --json").status == 0
    assert plan_of(engines.started[0]) == Plan(**changes)


def test_flags_go_over_a_plan_file(engines, run_command, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('model = "mlp"\nepochs = 5\nlearning_rate = 0.1\n')
    assert run_command(f"train {file} --epochs 1 --learning-rate auto --plain").status == 0
    assert plan_of(engines.started[0]) == Plan(model="mlp", epochs=1)


def test_the_table_of_a_search_is_not_used(engines, run_command, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('model = "mlp"\n[search]\ntrials = 2\nover.batch_size = [32, 64]\n')
    result = run_command(f"train --plain {file}")
    assert result.status == 0
    assert f"{file}: the table [search] is not used: it is for accel-tui search" in result.err
    assert plan_of(engines.started[-1]).model == "mlp"
    file.write_text("[train]\nepochs = 2\n")
    assert (
        f"{file}:1: train: unknown field; a plan has no tables: remove the header [train]"
        in run_command(f"train {file}").err
    )


def test_a_plan_file_may_be_json(engines, run_command, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"model": "mlp", "epochs": 1}))
    assert run_command(f"train {file}").status == 0
    assert plan_of(engines.started[0]) == Plan(model="mlp", epochs=1)


def test_a_switch_needs_no_value(engines, run_command, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('model = "mlp"\nepochs = 1\n')
    for words, restore_best, shuffle in (
        (f"--restore-best {file}", "on", "on"),
        (f"--restore-best --shuffle off {file}", "on", "off"),
        (f"{file} --restore-best off --shuffle", "off", "on"),
        (f"--restore-best=on -- {file}", "on", "on"),
        (f"{file} --name --restore-best", "off", "on"),  # the name of the run
        (f"--restore-best true --shuffle false {file}", "on", "off"),
        (f"{file} --restore-best=False --shuffle=True", "off", "on"),
    ):
        assert run_command(f"train --plain {words}").status == 0
        made = plan_of(engines.started[-1])
        assert (made.model, made.restore_best, made.shuffle) == ("mlp", restore_best, shuffle)


def test_all_mistakes_of_a_plan_file_are_told_with_their_lines(engines, run_command, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('batch_size = "x"\nepoch = 3\noptimizer = "adam"\nmomentum = 0.9\n')
    result = run_command(f"train {file} --seed 1")
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        "accel-tui: the plan has 3 errors",
        f"{file}:1: batch_size = 'x': must be an integer of at least 1",
        f"{file}:2: epoch = 3: unknown field; did you mean epochs?",
        f"{file}:4: momentum = 0.9: needs the optimizer sgd or rmsprop: use optimizer = 'sgd'",
    ]
    result = run_command(f"train {file} --batch-size 8 --optimizer sgd")
    assert result.err.splitlines() == [f"accel-tui: {file}:2: epoch = 3: unknown field; did you mean epochs?"]
    assert not engines.started


def test_what_does_not_fit_is_told_with_lines_beside_the_other_mistakes(engines, run_command, tmp_path):
    file, table = tmp_path / "plan.toml", tmp_path / "a.csv"
    table.write_text("a,b,y\n" + "1,2,x\n3,4,z\n" * 10)
    misfits = 'metrics = ["r2_score"]\nschedule = "linear"\nwarmup = 99999\ninitial_weights = "none.keras"\n'
    lines = [
        f"{file}:1: metrics = 'r2_score': r2_score cannot be measured for the task classification: use accuracy",
        f"{file}:3: warmup = 99999.0: must be below the 230 steps of the run, which follow from epochs, ",
        f"{file}:4: initial_weights = 'none.keras': no such file",
    ]
    for text, expected in (
        (misfits, lines),
        (misfits + "epochs = 0\n", [lines[0], lines[2], f"{file}:5: epochs = 0: must be an integer of at least 1"]),
        (f'{misfits}data = "x.csv"\n', [f"{file}:5: data = 'x.csv': no such file"]),
        (f'data = "{table}"\ntarget = ["z"]\npatience = 0\n', [f"{file}:2: target = 'z': ", f"{file}:3: patience"]),
    ):
        file.write_text(text)
        result = run_command(f"train {file}")
        found = result.err.removeprefix("accel-tui: ").splitlines()
        found = found[1:] if expected[1:] else found
        assert result.status == 2
        assert len(found) == len(expected), result.err
        assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), result.err
    assert not engines.started


def test_a_plan_that_contradicts_the_settings_names_both_files(engines, run_command, tmp_path, monkeypatch):
    settings, file = tmp_path / "settings.toml", tmp_path / "plan.toml"
    settings.write_text('[plan]\noptimizer = "sgd"\ndevices = ["gpu:7"]\n')
    file.write_text('optimizer = "adam"\nepochs = 0\n')
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(settings))
    errors = run_command(f"train {file}").err
    assert f"{settings}:3: devices = 'gpu:7': " in errors
    assert f"{file}:2: epochs = 0: must be an integer of at least 1" in errors


def test_only_the_settings_that_fit_are_used(engines, run_command, tmp_path, monkeypatch):
    settings, table = tmp_path / "settings.toml", tmp_path / "a.csv"
    settings.write_text('[plan]\nepochs = 1\npatience = 3\nmin_delta = 0.1\ntarget = ["y"]\nmetrics = ["auc"]\n')
    table.write_text("a,b,y\n" + "1,2,0.5\n3,4,1.5\n" * 10)
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(settings))
    result = run_command("train --validation off --plain")
    assert (result.status, result.err) == (0, "")
    assert plan_of(engines.started[0]) == Plan(model="cnn", epochs=1, metrics=("auc",), validation="off")
    result = run_command(f"train --data {table} --task regression --plain")
    assert result.status == 0
    refused = "metrics = 'auc': auc cannot be measured for the task regression"
    assert f"accel-tui: {settings}:6: not used for this run: {refused}" in result.err
    made = plan_of(engines.started[1])
    assert (made.target, made.metrics, made.patience, made.min_delta) == (("y",), (), 3, 0.1)
    assert "patience = 3: needs validation" in run_command("train --validation off --patience 3").err


def test_a_list_that_is_given_again_is_added_to(engines, run_command):
    assert run_command("train --metrics precision --metrics recall,auc --plain").status == 0
    assert plan_of(engines.started[0]).metrics == ("precision", "recall", "auc")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model mpl", "did you mean mlp?"),
        ("--metrics recall,precison", "'--metrics': 'precison': did you mean precision? Must be one or more of"),
        ("--data digts", "did you mean digits?"),
        ("--strategy mirored", "did you mean mirrored?"),
        ("--strategy mirrored", "two devices of the same kind, or --virtual-cpus 2"),
        ("--devices gpu:7", "no device gpu:7"),
        ("--epochs 0", "'--epochs': '0' must be an integer of at least 1"),
        ("--epochs many", "'--epochs': 'many' must be an integer"),
        ("--learning-rate nan", "must be a number above 0"),
        ("--precision float61", "one of auto, float32, mixed_bfloat16, mixed_float16"),
        ("--json --plain", "exclude each other"),
        ("--json --detach", "exclude each other"),
        ("no-such-plan.toml", "no-such-plan.toml"),
        ("--resume last", "no runs yet"),
        ("plan.toml --resume last", "leave PLAN.toml out"),
        ("--from last", "must be imagenet, a run, FILE.keras or FILE.weights.h5: no runs yet"),
        ("--from last --initial-weights imagenet", "exclude each other"),
        ("--initial-weights none.keras", "initial_weights = 'none.keras': no such file"),
        ("--custom-objects layers.py", "only for a model in a FILE.keras"),
    ],
)
def test_a_wrong_plan_is_told_before_there_is_a_run(engines, run_command, words, said):
    result = run_command(f"train {words}")
    assert result.status == 2
    assert result.err.startswith("accel-tui: ")
    assert said in result.err
    assert not result.out
    assert not engines.started
    assert not list_runs()


def test_without_tensorflow_it_says_how_to_get_it(engines, run_command, monkeypatch):
    monkeypatch.setattr(
        engine_process, "find_installation", lambda: engine_process.Installation(problem="pip install it")
    )
    result = run_command("train")
    assert (result.status, result.out, result.err) == (1, "", "accel-tui: pip install it\n")
    assert not list_runs()


def test_json_is_every_event_and_every_step_in_order(engines, run_command):
    result = run_command("train --epochs 2 --json")
    assert (result.status, result.err) == (0, "")
    lines = [json.loads(line) for line in result.lines]
    assert lines[0]["event"] == "run_started"
    assert lines[-1]["event"] == "run_ended"
    assert (lines[-1]["outcome"], lines[-1]["steps"], lines[-1]["seconds"]) == ("finished", 8, 83.0)
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    phases = [line["phase"] for line in lines if line["event"] == "phase_changed"]
    assert phases == ["building", "training"]
    steps = [line for line in lines if line["event"] == "steps"]
    assert [line["first_step"] for line in steps] == [0, 4]
    assert steps[0]["loss"] == [0.25] * 4
    assert steps[0]["accuracy"] == [0.5] * 4
    order = [line["event"] for line in lines[-7:]]
    assert order == ["steps", "epoch_ended", "validated"] * 2 + ["run_ended"]


def test_what_json_cannot_hold_is_null(engines, run_command):
    def act(engine):
        engine.begin()
        engine.chunk([0.1, 1 / 3, math.nan, math.inf])
        engine.end()

    engines.act = act
    lines = [json.loads(line) for line in run_command("train --json").lines]
    assert [line["loss"] for line in lines if line["event"] == "steps"] == [[0.1, 0.33333334, None, None]]


def test_plain_is_a_line_an_epoch(engines, run_command, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 600.0)  # on a slow machine an epoch would have separate lines
    result = run_command("train --epochs 2 --plain --name first")
    assert (result.status, result.err) == (0, "")
    texts = [line[9:] for line in result.lines]  # after the time of day
    assert texts == [
        f"run {engines.started[0].name}: first",
        "building",
        "training on CPU:0 (default)",
        "61,706 parameters; 2 epochs of 4 steps, batch size 64; Adam",
        "drops the last partial batch: 29 examples per epoch",
        "learning rate 0.001 from step 0",
        "epoch 1/2  loss 0.2500  accuracy 0.9000  validation loss 0.5000  accuracy 0.7500",
        "epoch 2/2  loss 0.2500  accuracy 0.9000  validation loss 0.5000  accuracy 0.7500",
        "finished at step 8 after 1:23, 812 steps/s",
    ]


def test_detach_prints_the_id_and_leaves(engines, run_command):
    result = run_command("train --epochs 1 --detach")
    assert (result.status, result.out) == (0, engines.started[0].name + "\n")
    engines.wait()
    assert status_of(engines.started[0]) is Status.FINISHED


def test_workers_whose_ports_can_be_reached_are_warned_of_before_they_start(engines, run_command, monkeypatch):
    def train(*options):
        told = run_command(" ".join(("train --strategy multi-worker --local-workers 2 --detach", *options)))
        engines.wait()
        return told

    monkeypatch.setattr(network_namespace, "why_not", lambda: "not allowed here")
    told = train()
    assert told.status == 0
    assert told.err.startswith("accel-tui: warning: ")
    assert "can run code as you" in told.err
    assert "not allowed here" in told.err
    monkeypatch.setattr(network_namespace, "why_not", str)
    assert not train().err
    assert "--isolate-workers is off" in train("--isolate-workers off").err


def test_a_failed_run_says_why_and_what_to_do(engines, run_command):
    def act(engine):
        engine.begin()
        engine.end(Outcome.FAILED, reason="out of memory", hint="take a smaller batch")

    engines.act = act
    result = run_command("train --json")
    assert result.status == 1
    directory = engines.started[0]
    assert result.err.splitlines() == [
        f"accel-tui: run {directory.name} failed: out of memory",
        "take a smaller batch",
        f"Log: {directory / 'log.txt'}",
    ]
    assert json.loads(result.lines[-1])["outcome"] == "failed"


def test_an_engine_that_dies_is_told_with_the_last_step_and_the_way_back(engines, run_command, dead_pid):
    def act(engine):
        engine.begin()
        engine.epoch(1)
        engine.pid = dead_pid
        engine.pretend()  # only now, so that all of the above is there when it is found dead
        engine.writer.close()

    engines.act = act
    result = run_command("train --json")
    assert result.status == 1
    run = engines.started[0].name
    last = json.loads(result.lines[-1])
    assert (last["event"], last["run"], last["steps"]) == ("run_lost", run, 4)
    for said in ("after step 4", "log.txt", Plan().command()):
        assert said in result.err


def test_an_engine_that_dies_at_once_is_told_with_its_last_words(engines, run_command, dead_pid):
    def act(engine):
        (engine.directory / "log.txt").write_text("warming up\nlibcudart.so: cannot open shared object file\n\n")
        engine.writer.begin()
        engine.pretend()
        engine.writer.close()

    engines.act, engines.pid = act, dead_pid
    result = run_command("train --plain")
    assert result.status == 1
    assert "libcudart.so: cannot open shared object file" in result.err
    assert "warming up" not in result.err


@pytest.mark.parametrize("words", ["continue last", "train --resume last"])
def test_a_run_is_continued_from_its_checkpoint_with_a_changed_plan(engines, run_command, words):
    assert run_command("train --epochs 1 --learning-rate 0.5 --json").status == 0
    first = engines.started[0]
    checkpoint(first, 4)

    def act(engine):
        engine.begin(first_step=4)
        engine.epoch(2)
        engine.end()

    engines.act = act
    result = run_command(f"{words} --epochs 2 --json")
    assert result.status == 0
    assert engines.started == [first, first]
    assert plan_of(first) == Plan(model="cnn", epochs=2, learning_rate=0.5)
    lines = [json.loads(line) for line in result.lines]
    assert lines[0]["event"] == "run_started"
    assert lines[0]["first_step"] == 4
    assert [line["first_step"] for line in lines if line["event"] == "steps"] == [4]
    assert len(list_runs()) == 1


def test_a_plus_adds_epochs_to_those_that_are_trained(engines, run_command):
    assert run_command("train --epochs 3 --json").status == 0
    checkpoint(engines.started[0], 4)
    trained = math.ceil(summarize(engines.started[0]).epochs)

    few = run_command("continue last --epochs +0")
    assert few.status == 2
    assert "--epochs" in few.err
    assert "must be at least" in few.err
    assert run_command("continue last --epochs +5 --json").status == 0
    assert plan_of(engines.started[0]).epochs == trained + 5


def test_a_run_starts_from_the_weights_of_another(engines, run_command):
    assert run_command("train --epochs 1 --json").status == 0
    checkpoint(engines.started[0], 4)
    assert run_command("train --epochs 1 --from last --json").status == 0
    assert plan_of(engines.started[1]).initial_weights == str(engines.started[0])


@pytest.mark.parametrize("words", ["continue", "train --resume"])
@pytest.mark.parametrize(("phase", "command"), [(Phase.TRAINING, "watch"), (Phase.PAUSED, "resume")])
def test_a_live_run_is_not_continued(engines, run_command, new_run, words, phase, command):
    engine = new_run()
    engine.begin()
    engine.say(PhaseChanged, phase=phase)
    result = run_command(f"{words} {engine.directory.name}")
    assert result.status == 1
    assert f"accel-tui {command} {engine.directory.name}" in result.err
    engine.writer.close()


def test_a_run_is_continued_without_its_file_of_initial_weights(engines, run_command, tmp_path):
    weights = tmp_path / "mine.weights.h5"
    weights.touch()
    assert run_command(f"train --epochs 1 --initial-weights {weights}").status == 0
    checkpoint(engines.started[0], 4)
    weights.unlink()
    assert run_command("continue last --epochs 2").status == 0
    assert plan_of(engines.started[1]).epochs == 2
    assert "no such file" in run_command(f"train --initial-weights {weights}").err


def test_a_run_loses_fields_that_have_no_effect_any_more(engines, run_command, new_run):
    engine = new_run()
    engine.train()
    checkpoint(engine.directory, 8)
    put(engine.directory, plan=json.dumps(OLD))
    assert plan_of(engine.directory).monitor_mode == "auto"
    assert (
        "needs patience or restore best: use --patience 5"
        in run_command("continue last --epochs 5 --patience auto --min-delta 0.1").err
    )
    assert "needs validation during training: use" in run_command("continue last --epochs 5 --validation off").err
    assert run_command("continue last --epochs 5 --patience auto --validation end").status == 0
    continued = plan_of(engines.started[0])
    assert (continued.min_delta, continued.validation_every, continued.rate_drop_factor) == (0.0, "1 epoch", 0.1)


def test_a_run_continues_with_what_it_was_trained_with(engines, run_command, new_run):
    engine = new_run(monitor="validation_auc", loss="huber")
    engine.train()
    checkpoint(engine.directory, 8)
    refused = run_command("continue last --epochs 5 --patience 2")
    assert refused.status == 2
    assert "auc is not measured; measured are loss, accuracy: use --monitor validation_accuracy" in refused.err
    assert run_command("continue last --epochs 5").status == 0
    assert plan_of(engines.started[0]).epochs == 5


def test_a_run_without_a_checkpoint_is_not_continued(engines, run_command, new_run):
    new_run(target=("y",), window=3, horizon=2, memory_limit=4).train()
    result = run_command("continue last --epochs 5")
    assert result.status == 1
    assert "has no checkpoint to continue from" in result.err
    assert not engines.started
    anew = Plan(model="cnn", epochs=2).command()
    assert result.err.endswith(f"train it again with {anew}\n")
    assert run_command(anew.removeprefix("accel-tui ")).status == 0


def test_a_field_that_cannot_change_is_told_with_those_that_can(engines, run_command, new_run):
    engine = new_run()
    engine.train()
    checkpoint(engine.directory, 8)
    result = run_command("continue last --epochs 5 --batch-size 3")
    assert result.status == 2
    assert "change only" in result.err
    assert "--batch-size" not in run_command("continue --help").out


def test_the_trained_model_is_told_as_a_path_that_can_be_pasted(engines, run_command):
    def act(engine):
        (engine.directory / "model.keras").touch()
        engine.train()

    engines.act = act
    lines = run_command("train --epochs 1 --plain").lines
    model = engines.started[0] / "model.keras"
    assert lines[-1].endswith(f"trained model: {model}")
    assert json.loads(run_command("watch last --json").lines[-1])["model"] == str(model)


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("--lr", "--learning-rate"),
        ("--lr-decay", "--learning-rate"),
        ("--gpu", "--devices"),
        ("--amp", "--precision"),
        ("--grad-accum", "--micro-batches"),
        ("--epoch", "--epochs"),
        ("--optim", "--optimizer"),
        ("--gradient-nrom", "--gradient-norm"),
    ],
)
def test_the_usual_names_of_options_are_suggested(run_command, option, near):
    result = run_command(f"train {option} 1")
    assert result.status == 2
    assert f"no such option {option}; did you mean {near}?" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_and_keeps_the_work(engines, run_command, number):
    asked = []

    def act(engine):
        engine.begin()
        os.kill(os.getpid(), number)
        asked.append(engine.answer("stopping").name)
        engine.end(Outcome.STOPPED)

    engines.act = act
    before = signal.getsignal(number)
    result = run_command("train --plain")
    assert result.status == 0
    assert asked == ["stop"]
    assert "stopping with a checkpoint" in result.err
    assert "it has no checkpoint yet; train it again with: accel-tui train" in result.err
    assert "stopped at step 0" in result.out
    assert signal.getsignal(number) is before


def test_a_second_interrupt_stops_now(engines, run_command):
    asked = []

    def act(engine):
        engine.begin()
        os.kill(os.getpid(), signal.SIGINT)
        asked.append(engine.answer("stopping").name)
        os.kill(os.getpid(), signal.SIGINT)
        asked.append(engine.answer("stopping now").name)
        engine.end(Outcome.STOPPED)

    engines.act = act
    assert run_command("train --json").status == 0
    assert asked == ["stop", "stop_now"]


def test_a_reader_that_goes_away_leaves_the_run_going(tmp_path):
    program = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from tui.cli import conftest
        from accel_engine.process import engine_process
        from accel_engine.run import list_runs
        from accel_tui.cli import main, train

        def act(engine):
            engine.begin()
            while engine.step < 2 or not gone.is_set():
                engine.chunk([1.0])
                gone.wait(0.01)
            engine.end()

        gone = conftest.threading.Event()
        engines = conftest.Engines(act)
        engine_process.start_engine = engines.start
        train.WarmEngine = conftest.no_warm_engine
        engine_process.find_installation = lambda: engine_process.Installation("tensorflow", "2")
        status = main(["train", "--json"])
        live = list_runs()[0].status.live
        gone.set()
        engines.wait()
        sys.exit(status if live else 9)
        """
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert json.loads(process.stdout.readline())["event"] == "run_started"
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait()
    assert status == 0, said
    assert "training continues in the background: accel-tui watch" in said
    assert "Traceback" not in said


def test_defaults_are_told(run_command):
    told = " ".join(run_command("train --help").out.split())
    assert f"default: {DEFAULTS['batch_size']}]" in told
    assert f"default: {DEFAULTS['data']}]" in told


def test_a_worker_s_part_of_a_run_is_not_resumed_alone(engines, run_command, new_run):
    engine = new_run()
    engine.begin()
    engine.say(RunStarted, run="", name="", plan={}, first_step=0, pid=1, host="h", versions={}, worker="worker 1")
    engine.end()
    result = run_command("train --resume last")
    assert result.status == 1
    assert "is worker 1 and cannot continue alone" in result.err
    assert not engines.started
