"""Clusters the digits with k-means, as a run that logs images, texts and histograms."""

import os
import socket
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import data
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.media import LoggedText, histogram_of, image_of

_CLUSTERS, _STEPS = 25, 20


def cluster() -> Path:
    """Cluster the digits, and return the run's directory."""
    with np.load(Path(data.__file__).with_name("digits.npz")) as file:
        images, labels = file["images"] / 16, file["labels"]
    examples = images.reshape(len(images), -1)
    centers = examples[np.random.default_rng(0).choice(len(examples), _CLUSTERS, replace=False)]
    directory = create(Plan(name="k-means", data="digits"))
    began = time.time()
    with closing(RunWriter(directory)) as writer:
        writer.begin(
            RunStarted(
                time=began,
                run=directory.name,
                name="k-means",
                plan={},
                first_step=0,
                pid=os.getpid(),
                host=socket.gethostname(),
                versions={},
            )
        )
        for step in range(_STEPS):
            started = time.time()
            distances = np.linalg.norm(examples[:, None] - centers, axis=2)
            nearest = distances.argmin(axis=1)
            centers = np.array([examples[nearest == index].mean(axis=0) for index in range(_CLUSTERS)])
            ended = time.time()
            writer.write_chunk(step, started, ended, {"loss": [distances.min(axis=1).mean()]})
            names = [np.bincount(labels[nearest == index]).argmax() for index in range(_CLUSTERS)]
            sizes = "\n".join(
                f"cluster {index}: {np.sum(nearest == index)} examples, most of digit {name}"
                for index, name in enumerate(names)
            )
            writer.write_media(step + 1, ended, "centers", image_of(centers.reshape(-1, 8, 8, 1)))
            writer.write_media(step + 1, ended, "distances", histogram_of(distances.min(axis=1)))
            writer.write_media(step + 1, ended, "clusters", LoggedText(sizes))
        seconds = time.time() - began
        writer.end(
            RunEnded(time=time.time(), outcome=Outcome.FINISHED, steps=_STEPS, epochs=0, seconds=seconds, metrics={})
        )
    return directory
