import json

from accel_engine.run.store.database import RunDatabase


def test_a_live_and_an_ended_run_are_laid_side_by_side(run_command, new_run):
    ended, live = new_run(name="first"), new_run(model="mlp", batch_size=128)
    ended.train()
    live.begin()
    live.epoch(1, loss=0.75)
    result = run_command(f"compare first {live.directory.name}")
    assert result.status == 0
    rows = {line[:12].strip(): line[12:].split() for line in result.lines[1:] if line}
    assert rows["model"] == ["cnn", "mlp"]
    assert rows["batch size"] == ["64", "128"]
    assert rows["status"] == ["finished", "running"]
    assert rows["steps"] == ["8", "4"]
    assert rows["loss"] == ["0.0313", "*", "0.7500"]
    assert rows["val accuracy"] == ["0.9861", "*", "0.7500"]
    assert result.lines[-2].startswith("Equal: epochs 2; ")
    assert result.lines[-1] == "Values of training: last epoch."
    assert result.lines[-2].endswith("fields at default.")


def test_a_comparison_as_json(run_command, new_run):
    one, other = new_run(learning_rate=0.01), new_run()
    one.train()
    other.begin()
    other.chunk([float("nan")] * 4)
    told = json.loads(run_command(f"compare {one.directory.name} {other.directory.name} --json").out)
    assert told["runs"] == [one.directory.name, other.directory.name]
    assert told["differs"] == {"learning_rate": [0.01, None]}
    assert told["equal"] == {"model": "cnn", "epochs": 2}
    assert told["results"]["loss"] == [0.0313, None]
    assert told["results"]["steps_per_second"][0] == 812.0
    assert told["results"]["steps"] == [8, 4]


def test_one_run_alone_is_not_compared(run_command, new_run):
    run = new_run().directory.name
    result = run_command(f"compare {run} {run[:4]}")
    assert result.status == 2
    assert f"{run} and {run[:4]} are the same run: give at least two runs" in result.err
    assert "same run" not in run_command(f"compare {run}").err


def test_a_run_that_cannot_be_read_says_why(run_command, new_run):
    one, other = new_run(), new_run()
    connection = RunDatabase(other.directory)
    connection.execute("UPDATE main.meta SET value = 99 WHERE key = 'schema'")
    connection.close()
    result = run_command(f"compare {one.directory.name} {other.directory.name}")
    assert result.status == 1
    assert "newer accel-tui" in result.err
