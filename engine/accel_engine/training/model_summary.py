"""What a plan came to, told in numbers."""

import numpy as np

from accel_engine import clock
from accel_engine.events import LearningRateChanged, ModelBuilt
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.training.assembly import Assembly, optimizer_name
from accel_engine.training.label_encoding import loss_name
from accel_engine.training.optimizer_rate import schedule_name


def summarize(assembly: Assembly) -> ModelBuilt:
    """The event that says what stands: model, data and how they become steps."""
    plan, model, dataset, schedule = assembly.plan, assembly.model, assembly.dataset, assembly.schedule
    return ModelBuilt(
        time=clock.now(),
        parameters=model.count_params(),
        trainable=sum(int(np.prod(weight.shape)) for weight in model.trainable_weights),
        layers=len(model.layers),
        input_shape=tuple(dataset.shape),
        classes=dataset.classes,
        examples=len(dataset.train),
        validation_examples=len(dataset.validation) if dataset.validation else 0,
        epochs=plan.epochs,
        steps_per_epoch=schedule.steps_per_epoch,
        global_batch=schedule.global_batch,
        per_replica_batch=schedule.per_replica_batch,
        dropped_examples=schedule.dropped_examples,
        replicas=schedule.replicas,
        optimizer=optimizer_name(model),
        loss=loss_name(model.loss),
        series=_series(assembly),
        precision=plan.policy,
        xla=plan.xla == "on" or assembly.on_tpu,
        feed=assembly.feed.kind,
        scaling=assembly.scaling.text,
    )


def learning_rate_of(assembly: Assembly, step: int) -> LearningRateChanged | None:
    """The event that says which learning rate a step begins with; ``None`` where that is not known."""
    optimizer, rate = assembly.optimizer, assembly.learning_rate
    if optimizer is None or rate is None:
        return None
    return LearningRateChanged(time=clock.now(), step=step, learning_rate=rate, schedule=schedule_name(optimizer))


def _series(assembly: Assembly) -> tuple[str, ...]:
    """Names of what is recorded at every step; a model's own ``train_step`` may give more."""
    accuracy = ("accuracy",) if assembly.classifies and not assembly.own_train_step else ()
    norm = ("gradient_norm",) if assembly.plan.gradient_norm == "on" else ()
    rate = () if assembly.optimizer is None else (LEARNING_RATE,)
    return ("loss", *accuracy, *norm, *rate)
