"""Deployments for screen tests: what their servers would tell."""

import math
import time
from dataclasses import replace

import pytest

from accel_engine.deployment.deployments import (
    DeployedVersion,
    Deployment,
    changing,
    serve_version,
    write_deployment,
)
from accel_engine.deployment.server_metrics import ServerFigures
from accel_engine.deployment.status import READY, STOPPED, DeploymentStatus
from accel_tui.screens import deployment_screen, deployments_screen

FIRST = DeployedVersion(1, "k3fp-cnn", 69, "onnx", 1.0)
SECOND = replace(FIRST, number=2, run="m8w3-cnn", format="tflite")
FIGURES = ServerFigures(
    rate=412.0,
    errors=0,
    p50=0.0021,
    p99=0.0184,
    batch=3.4,
    queue=0,
    memory=130 << 20,
    requests=4120,
    failed=2,
    is_ready=True,
)

COURSE = tuple(
    (
        float(second),
        replace(
            FIGURES,
            rate=412.0 * second / 90 * (1 - math.sin((90 - second) / 5) / 5),
            p50=0.0018 + 0.0003 * second / 90,
            p99=0.012 + 0.0064 * (second / 90) ** 3,
            batch=1 + 2.4 * second / 90,
            errors=2 if 40 < second < 51 else 0,
            queue=second % 7,
        ),
    )
    for second in range(91)
)
"""A minute and a half in which more and more requests came."""


def make(name: str, port: int) -> Deployment:
    versions = (FIRST, SECOND)
    deployment = Deployment(name=name, host="127.0.0.1", port=port, versions=versions, current=2, previous=1)
    with changing(name) as directory:
        for each in versions:
            deployment.folder(each.number).mkdir()
        serve_version(deployment, 2)
        (directory / "log.txt").write_text("serves digits version 2\n")
        write_deployment(deployment)
    return deployment


class Reader:
    """Tells that ``digits`` runs."""

    problems = ()
    found: tuple[DeploymentStatus, ...] = ()

    def read(self) -> tuple[DeploymentStatus, ...]:
        return self.found


def deployed(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Let the screens find that ``digits`` runs, which is returned, and that ``old`` is stopped."""
    deployment = make("digits", 8501)
    running = DeploymentStatus(deployment, READY, time.time() - 120, FIGURES, FIGURES, course=COURSE)
    monkeypatch.setattr(Reader, "found", (running, DeploymentStatus(make("old", 8502), STOPPED)))
    for module in (deployments_screen, deployment_screen):
        monkeypatch.setattr(module, "StatusReader", Reader)
    return deployment
