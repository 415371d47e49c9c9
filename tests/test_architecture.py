"""Promises about the whole program that no single module can keep."""

import ast
import pkgutil
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import accel_engine
import accel_tui
from accel_engine import models, strategies

ROOT = Path(__file__).resolve().parent.parent

HEAVY = ("tensorflow", "keras")
"""What takes seconds to import, and prints, and may abort: only engine processes do."""

SCREEN = ("textual", "rich", "click")
"""What only the dashboard and its command line need."""

ENGINE_ONLY = re.compile(
    r"accel_engine\.(engine_main|keras_support|private_names|recording|training)(\..*)?"
    r"|accel_engine\.process\.__main__|accel_engine\.trained\.(?!bench_runs$|prediction_files$).*"
    r"|accel_engine\.formats\.serving_warmup|accel_engine\.inference\.(keras_runtime|savedmodel_runtime)|accel_engine\.model_export\.(?!export_targets$).*"
    r"|accel_engine\.models\.(?!model_entry$|applications$).*"
    r"|accel_engine\.model_server\.(?!service$|standalone$).*"
    r"|accel_engine\.data\.(standardization_model|prepared\.record_columns|python_source\..*|tables\.preprocessing_model)"
)
"""The modules that only engine processes and servers of models import, and scripts that record their training."""


def modules_of(package: object) -> list[str]:
    path, name = package.__path__, package.__name__  # type: ignore[attr-defined]
    return [name, *(module.name for module in pkgutil.walk_packages(path, f"{name}."))]


LIGHT = [name for name in modules_of(accel_engine) if not ENGINE_ONLY.fullmatch(name)]
DASHBOARD = [name for name in modules_of(accel_tui) if name != "accel_tui.__main__"]


def imported_with(modules: list[str]) -> set[str]:
    """The top-level packages that a fresh interpreter holds after importing these modules."""
    script = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(*{{name.partition(".")[0] for name in sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_nothing_that_the_dashboard_imports_imports_tensorflow() -> None:
    assert imported_with([*LIGHT, *DASHBOARD]).isdisjoint(HEAVY)


def test_no_engine_module_imports_the_screen() -> None:
    uses_uvicorn = "accel_engine.model_server.serve"  # which imports click
    assert imported_with([name for name in LIGHT if name != uses_uvicorn]).isdisjoint({*SCREEN, "accel_tui"})


def test_no_module_imports_itself_in_a_circle_even_for_types() -> None:
    graph = grimp.build_graph("accel_engine", "accel_tui", cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_help_needs_neither_textual_nor_tensorflow() -> None:
    assert imported_with(["accel_tui.cli"]).isdisjoint({*HEAVY, "textual"})


def test_completing_what_is_typed_needs_no_numpy() -> None:
    assert "numpy" not in imported_with(
        ["accel_tui.cli.train", "accel_tui.cli.watch", "accel_tui.cli.completion_sources"]
    )


LATE = {
    "msgspec",
    "numpy",
    "psutil",
    "pynvml",
    "sqlite3",
    "importlib.metadata",
    "rich.markdown",
    "tomlkit",
    "accel_engine.events",
    "accel_engine.run",
    "accel_tui.screens.help_screen",
    "accel_tui.screens.run_screen",
}
"""What the form can be painted without; each takes longer to import than a screen may stand empty."""


def test_the_form_is_painted_before_what_it_does_not_need_is_imported() -> None:
    script = """
import sys
import accel_tui.cli.dashboard
from accel_tui.app import AccelApp

class Painted(AccelApp):
    def on_mount(self):
        self.call_after_refresh(lambda: self.exit(set(sys.modules)))

def engine(on_change):
    raise AssertionError("nobody waited for it")

print(*Painted(make_engine=engine).run(headless=True))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "accel_tui.screens.new_run_screen" in imported
    assert imported & LATE == set()


@pytest.mark.parametrize(
    ("module", "later"),
    [
        # The engine of these commands starts before what checks the plan is imported.
        (
            "accel_tui.cli.train",
            {"accel_engine.run", "accel_engine.process.start_run", "psutil", "sqlite3"},
        ),
        ("accel_engine.engine_main.main", {"accel_engine.tensorboard.run_log", "accel_engine.training.trainer"}),
        ("accel_engine.training.distributed.strategy_builders", {"accel_engine.doctor"}),  # each engine imports it
    ],
)
def test_what_a_start_waits_for_imports_nothing_else(module: str, later: set[str]) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert module in imported
    assert imported.isdisjoint(later)


def test_every_reference_to_a_builder_names_a_module_that_is_there() -> None:
    entries = [*models.CATALOGUE.values(), *strategies.CATALOGUE.values()]
    for entry in entries:
        module, colon, function = entry.builder.partition(":")
        assert colon, entry
        source = ROOT / "engine" / (module.replace(".", "/") + ".py")
        assert source.is_file(), entry
        defined = {node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)}
        assert function in defined or "__getattr__" in defined, entry


def test_constraints_name_exact_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines == sorted(lines)
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


def test_the_two_commands_are_in_the_readmes_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text().splitlines()[:30]
    ends = ("'.[cpu]' && .venv/bin/accel-tui", "'.[cpu,dev]' && .venv/bin/pytest")
    for end in ends:
        (command,) = (line for line in first_screen if line.endswith(end))
        assert command.startswith("    python3 -m venv .venv && ")


def test_ci_takes_the_readmes_test_command() -> None:
    pattern = "'.[cpu,dev]'"
    assert sum(pattern in line for line in (ROOT / "README.md").read_text().splitlines()) == 1
    assert f'grep -F "{pattern}" README.md' in (ROOT / ".ci" / "run").read_text()
