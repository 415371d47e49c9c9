"""``accel-tui bench``: latency, throughput and memory of trained models, by batch size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.formats import all_formats
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.comparison import ModelComparison, choose_model, comparisons
from accel_engine.inference.measurement.percentiles import RANKS
from accel_engine.models.model_files import is_saved_model
from accel_engine.plan import Plan
from accel_engine.plan.options import default_of
from accel_engine.process.inference_bench import ModelFile, measure_models
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.check_service import CheckOptions
from accel_engine.trained.bench_runs import BenchRuns
from accel_engine.user_paths import exists, user_path
from accel_engine.words import numbers
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, table, write, write_json
from accel_tui.cli.trained_models import run_or_file
from accel_tui.formatting.bench import bench_notes, conclusions, line, setup_tables
from accel_tui.formatting.runs import device_warnings

EPILOG = """\b
Examples:
  accel-tui bench last
  accel-tui bench last --target-latency 10ms   which batch size within 10 ms?
  accel-tui bench last --target-rate 500       how many machines?
  accel-tui bench last --scenario server --target-latency 10ms
  accel-tui bench k3fp k3fp-int8.tflite        what does int8 cost and gain?
  accel-tui bench model.tflite --batch-sizes 1,8 --json | jq .p99
  accel-tui bench http://127.0.0.1:8501        a service, over its protocol
"""

OF_SERVICES = ("protocol", "connections", "token_file", "ca")
"""Options that only services have."""

Measure = Callable[[Callable[[object], object]], Sequence[str]]
"""Measures all targets, calls a function with each candidate, and returns notes for the user."""

_ON_CPU = tuple(suffix for each in all_formats() if not each.by_tensorflow for suffix in each.suffixes)
"""Files of models whose runtimes use the CPU only."""


@click.command(epilog=EPILOG)
@click.argument("targets", metavar="RUN|MODEL|EXPORTED|URL...", nargs=-1, required=True)
@takes(BenchOptions, "options")
@takes(CheckOptions, "service", only=OF_SERVICES)
@click.option("--save/--no-save", default=True, help="Save the measurements as runs.  [default: --save]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per candidate; the last line is a verdict.")
def bench(targets: tuple[str, ...], options: BenchOptions, service: CheckOptions, save: bool, as_json: bool) -> None:
    """Measure the latency, the throughput and the memory of each RUN, MODEL or EXPORTED file.

    Each batch size is measured until its last three windows are within 5%, on each device, in each precision, with
    XLA and without. Scenarios: single-stream sends one example after the other, multi-stream batches;
    offline measures the throughput only; server sends single examples at random times and searches the
    highest rate with p99 within --target-latency. Models of a run, and files that were exported from one, are
    compared by their metrics, too, on the examples of its test split, or of its validation split.

    At the URL of a service (http, https, grpc or grpcs; any server that 'accel-tui deploy check' speaks with), its
    model is measured with random examples of the shapes that the service tells, or with the ones in --data FILE.npz.

    The measurements are saved as runs, to be listed and compared like others.
    """
    measure = _services if any("://" in target for target in targets) else _models
    measured = measure(targets, options, service)
    candidates: list[Candidate] = []
    saved = BenchRuns(options)

    def show(candidate: object) -> None:
        if not isinstance(candidate, Candidate):
            return  # such as examples that were read
        candidates.append(candidate)
        saved.add(candidate)
        if as_json:
            write_json(_values(candidate))
        else:
            print_to_stderr(line(candidate))

    try:
        notes = measured(show)
    except AccelError:
        if candidates and not as_json:  # what was measured before, which may have taken minutes
            write("\n\n".join(_page(candidates)))
        raise
    finally:
        runs = _save(saved) if save else ()
    print_to_stderr(*notes)
    _report(candidates, options, runs, as_json=as_json)


def _models(targets: Sequence[str], options: BenchOptions, service: CheckOptions) -> Measure:
    """Return a function that measures models in processes here, after warnings of runs that disturb that."""
    if given := [name for name in OF_SERVICES if getattr(service, name) != default_of(CheckOptions, name)]:
        raise UsageError(f"--{given[0].replace('_', '-')} is for the URL of a service: leave it out")
    models = [_model(target, options.data) for target in targets]
    for warning in device_warnings(
        ("cpu",) if all(target.endswith(_ON_CPU) for target in targets) else options.devices
    ):
        print_to_stderr(warning)
    return lambda show: measure_models(models, options, show)


def _services(targets: Sequence[str], options: BenchOptions, service: CheckOptions) -> Measure:
    """Return a function that measures services, after all of them are found."""
    from accel_engine.service_client.bench import check_bench_options, find_target, measure_service

    if others := [target for target in targets if "://" not in target]:
        raise UsageError(f"{others[0]} is not a URL, and services are measured apart from models: leave it out")
    check_bench_options(options)
    found = [find_target(target, options, service) for target in targets]

    def measure(show: Callable[[object], object]) -> tuple[str, ...]:
        for each in found:
            for candidate in measure_service(each, options, service.connections):
                show(candidate)
        return ("the clients ran on this machine: a server that is here, too, shared its processors with them",)

    return measure


def _save(saved: BenchRuns) -> tuple[str, ...]:
    """Save what was measured as runs; their ids. If they cannot be written, what was measured is still shown."""
    try:
        runs = saved.save()
    except RunError as error:
        print_to_stderr(f"not saved: {error}")
        return ()
    if runs:
        print_to_stderr(f"saved as {numbers.counted(len(runs), 'run')}: {', '.join(runs)}")
    return runs


def _report(candidates: list[Candidate], options: BenchOptions, runs: Sequence[str], *, as_json: bool) -> None:
    """Print the tables and the verdict.

    Raises:
        AccelError: Nothing could be measured.
    """
    lines = conclusions(candidates, options.scenario, options.target_latency, options.target_rate)
    if as_json:
        found = choose_model(candidates, options.target_latency, options.target_rate)
        write_json(
            {
                "verdict": " ".join(lines),
                "best": found.best and _values(found.best),
                "machines": found.machines,
                "compared": list(map(compared, comparisons(candidates, options.target_latency))),
                "runs": runs,
            }
        )
    else:
        write("\n\n".join((*_page(candidates), *(["\n".join(lines)] if lines else []))))
    if candidates and all(each.problem for each in candidates):
        raise AccelError(f"nothing could be measured: {candidates[0].problem}")


def _model(target: str, data: str) -> Path | Plan | ModelFile:
    """The directory of a run, the plan of a Keras file with data, or another model as it is.

    Raises:
        UsageError: There is no such file.
        AccelError: There is no such run.
    """
    path = user_path(target)
    if target.endswith(_ON_CPU) or is_saved_model(path):
        if not exists(path):
            raise UsageError(f"no such file: {target}")
        return ModelFile(path.absolute())
    found, is_run = run_or_file(target)
    if not is_run and data:
        return Plan(model=target, data=data).absolute()
    return found if is_run else ModelFile(found.absolute())


def _page(candidates: Sequence[Candidate]) -> Iterator[str]:
    """A table for each setup, and what brackets in them mean."""
    for each in setup_tables(candidates):
        yield f"{each.title}\n{table(each.header, each.rows)}"
    if words := list(bench_notes(candidates)):
        yield "\n".join(words)


def compared(found: ModelComparison) -> dict[str, Any]:
    """A comparison for ``--json``."""
    described = {name: getattr(found.other, name) for name in ("model", "format", "device", "xla", "precision")}
    return {
        **described,
        "batch_size": found.other.batch_size if found.meets_target else None,
        "metric": found.other.metrics.main[0] if found.other.metrics else None,
        "metric_difference": found.metric_difference,
        "throughput_ratio": found.throughput if found.meets_target else None,
        "size_ratio": found.size,
    }


def _values(candidate: Candidate) -> dict[str, Any]:
    """A candidate for ``--json``; latencies are in seconds."""
    plain = asdict(candidate)
    measured = plain.pop("percentiles")
    latencies = {name: measured[name]["value"] if name in measured else None for name in RANKS}
    metrics = plain.pop("metrics")
    plain["metrics"] = metrics and metrics.pop("values")
    plain["held_out"] = metrics
    plain["intervals"] = {name: [each["low"], each["high"]] for name, each in measured.items()}
    known = ("throughput", "requests", "seconds", "stable", "disagreement", "first_seconds")
    if candidate.problem:  # nothing was measured
        plain |= dict.fromkeys((*known, "warm_up_requests", "warm_up_seconds"))
    order = ("model", "format", "device", "xla", "precision", "scenario", "batch_size")
    return {name: plain.pop(name) for name in order} | latencies | plain
