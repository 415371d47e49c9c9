"""The parts of what a GPU must show, in order; imports neither TensorFlow nor the engine.

The D and P numbers belong to the predictions in ``predictions.toml``.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent

MOST_SECONDS = 600
"""The limit of a part."""

WORKS = ("mlp-32", "fashion-cnn-128", "resnet20-128", "gpt-32", "lstm-32")
"""The works of the race with JAX."""

WHILE_BUFFERS = (
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION"
    " --xla_gpu_graph_min_graph_size=1"
)
"""Flags with which the GPU runs a loop of XLA itself."""

BEFORE = {"PYTHONPATH": str(HERE / "before")}
"""Variables with which engine processes run the programs of CPUs on GPUs, as they did before these had other ones."""


@dataclass(frozen=True)
class Part:
    """A part of the plan: a command, which ends within a limit."""

    name: str
    """Names its files of results."""
    question: str
    """What it asks."""
    words: tuple[str, ...]
    """The command. A file of Python begins it, or ``-m``, which this Python runs; or a program."""
    gpus: int = 1
    """How many GPUs it needs; 0 if it runs on a CPU as well."""
    on_cpu: tuple[str, ...] | None = None
    """Words to add on a CPU; ``None`` if that shows nothing."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables."""
    needs_jax: bool = False
    """Whether it needs a Python with JAX, which replaces ``{jax}``."""
    statuses: tuple[int, ...] = (0,)
    """Exit statuses with which it is done."""
    limit: float = MOST_SECONDS
    """Seconds after which it is killed."""

    def command(self, jax: str, *, on_gpu: bool) -> list[str]:
        """The words to run."""
        words = [word.replace("{jax}", jax) for word in (*self.words, *(() if on_gpu else self.on_cpu or ()))]
        if words[0].endswith(".py"):
            return [sys.executable, str(HERE / words[0]), *words[1:]]
        return [sys.executable, *words] if words[0] == "-m" else words

    def lacks(self, gpus: int, jax: str, *, on_gpu: bool) -> str:
        """What it needs and the machine does not have; empty if it can run."""
        if not on_gpu and self.gpus and self.on_cpu is None:
            return "needs a GPU" if self.gpus == 1 else f"needs {self.gpus} GPUs"
        if on_gpu and self.gpus > gpus:
            return f"needs {self.gpus} GPUs"
        return "needs --jax" if self.needs_jax and not jax else ""


def _variant(name: str, question: str, case: str, *, on_cpu: bool = True) -> Part:
    small = ("--as-gpu", "--seconds", "0.5", "--rounds", "2")
    return Part(name, question, ("variants.py", case), on_cpu=small if on_cpu else None)


def _chunk(name: str, question: str, *words: str, variables: Mapping[str, str] | None = None) -> Part:
    small = ("--longest", "64", "--repeats", "3", "--chunks", "3")
    return Part(name, question, ("chunk_bench.py", *words), on_cpu=small, variables=variables or {})


def _race(work: str, *, before: bool) -> Part:
    words = ("../training.py", "--work", work, "--rounds", "2", "--seconds", "1.5", "--no-dashboard", "--jax", "{jax}")
    name, which = ("race-before", "programs of CPUs") if before else ("race", "programs of GPUs")
    return Part(
        f"{name}-{work}", f"{work} beside JAX, {which}", words, needs_jax=True, variables=BEFORE if before else {}
    )


PARTS = (
    Part("nvidia-smi", "what the driver says", ("nvidia-smi", "-q")),
    Part("doctor", "what the doctor finds", ("-m", "accel_tui", "doctor", "--json"), gpus=0, statuses=(0, 1)),
    Part(
        "doctor-deep",
        "kernels, convolutions and XLA",
        ("-m", "accel_tui", "doctor", "--deep", "--json"),
        gpus=0,
        statuses=(0, 1),
    ),
    Part("devices", "what accel-tui reads", ("-m", "accel_tui", "devices", "--json"), gpus=0),
    Part("D1-hidden-context", "D1: does describing devices open a hidden GPU?", ("claims.py", "hidden-context")),
    Part("D1-second-gpu", "D1: does a run start on the second GPU?", ("claims.py", "second-gpu"), gpus=2),
    Part("D3-failed-xla", "D3: is a failed compilation forgotten?", ("claims.py", "failed-xla")),
    Part("D4-small-process", "D4: is a GPU with a process of 0.5 GiB in use?", ("claims.py", "busy", "0.5")),
    Part("D4-large-process", "D4: is a GPU with a process of 10 GiB in use?", ("claims.py", "busy", "10")),
    Part("readings", "milliseconds of each reading", ("claims.py", "costs")),
    Part("evaluate-on-gpu", "metrics with --device gpu:0 and cpu", ("claims.py", "evaluate")),
    _chunk("P1-mlp", "P1: blocks of a known length", "mlp-32", "loop", "blocks", "static:64"),
    _chunk("P1-gpt", "P1: the same", "gpt-32", "loop", "blocks", "static:32"),
    _chunk("P1b-mlp", "P1b: the GPU runs the loop", "mlp-32", "loop", "blocks", variables={"XLA_FLAGS": WHILE_BUFFERS}),
    _chunk("P2-mlp", "P2: chunks in a row, and the next one submitted meanwhile", "mlp-32", "blocks"),
    Part("P9-cnn", "P9: microseconds of a step", ("chunk_bench.py", "fashion-cnn-128", "blocks")),
    _variant("P1-variant", "P1: mlp with blocks and without", "blocks"),
    _variant("P2-variant", "P2: mlp with pipelined chunks and without", "pipelined"),
    Part("P3-epochs-of-5", "P3: resnet20, epochs of 5 steps, a real run", ("variants.py", "epochs-of-5")),
    Part("P3-epochs-of-100", "P3: the same, epochs of 100 steps", ("variants.py", "epochs-of-100")),
    _variant("P4-pooling", "P4: max pooling without a scatter", "pooling"),
    _variant("P5-lstm", "P5: lstm in loops of a known length", "lstm"),
    _variant("P5-lstm-cudnn", "P5: lstm with cuDNN over lstm in XLA", "lstm-cudnn"),
    _variant("P6-augmented", "P6: memory of prepared batches, with augmentation", "augmented", on_cpu=False),
    _variant("P6-dropout-cnn", "P6: the same with dropout, drawn before the chunk", "dropout-cnn", on_cpu=False),
    _variant("P7-dropout", "P7: dropout drawn in XLA", "dropout"),
    _variant("P8-validation", "P8: validation in one program", "validation"),
    _variant("P10-without-xla", "P10: mlp without XLA", "without-xla"),
    Part("P11-first", "P11: seconds to compile gpt, empty cache", ("variants.py", "compiling", "--cache", "new")),
    Part("P11-second", "P11: the same, filled cache", ("variants.py", "compiling", "--cache", "kept")),
    _variant("memory", "memory of gpt", "memory"),
    Part(
        "memory-malloc-async",
        "the same with cuda_malloc_async",
        ("variants.py", "memory"),
        variables={"TF_GPU_ALLOCATOR": "cuda_malloc_async"},
    ),
    *(_race(work, before=before) for work in WORKS for before in (False, True)),
)
"""All parts."""
