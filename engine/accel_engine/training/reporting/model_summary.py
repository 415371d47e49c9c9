"""Creates the events that describe an assembled run."""

from accel_engine import clock
from accel_engine.events import LearningRateChanged, ModelBuilt
from accel_engine.keras_support.losses import loss_name
from accel_engine.keras_support.model_structure import parameter_count
from accel_engine.keras_support.optimizers import optimizer_name, schedule_name
from accel_engine.run.series_names import LEARNING_RATE
from accel_engine.training.core.assembly import Assembly


def summarize(assembly: Assembly) -> ModelBuilt:
    """The event with the size of the model, of the data and of an epoch."""
    plan, model, dataset, step_counts = assembly.plan, assembly.model, assembly.dataset, assembly.step_counts
    return ModelBuilt(
        time=clock.now(),
        parameters=model.count_params(),
        trainable=parameter_count(model.trainable_weights),
        layers=len(model.layers),
        input_shape=tuple(dataset.shape),
        classes=dataset.classes,
        examples=len(dataset.train),
        validation_examples=len(dataset.validation) if dataset.validation else 0,
        epochs=plan.epochs,
        steps_per_epoch=step_counts.steps_per_epoch,
        global_batch=step_counts.global_batch,
        per_replica_batch=step_counts.per_replica_batch,
        dropped_examples=step_counts.dropped_examples,
        replicas=step_counts.replicas,
        optimizer=optimizer_name(model.optimizer),
        loss=loss_name(model.loss),
        series=_series(assembly),
        precision=plan.policy,
        xla=plan.xla == "on" or assembly.on_tpu,
        feed=assembly.feed.kind,
        scaling=assembly.scaling.text,
    )


def learning_rate_of(assembly: Assembly, step: int) -> LearningRateChanged | None:
    """The event with the learning rate that a step starts with; ``None`` where it is unknown."""
    optimizer, rate = assembly.optimizer, assembly.learning_rate
    if optimizer is None or rate is None:
        return None
    return LearningRateChanged(time=clock.now(), step=step, learning_rate=rate, schedule=schedule_name(optimizer))


def _series(assembly: Assembly) -> tuple[str, ...]:
    """Names of the series recorded at every step; a custom ``train_step`` may add more."""
    accuracy = ("accuracy",) if assembly.is_classifier and not assembly.has_custom_train_step else ()
    norm = ("gradient_norm",) if assembly.plan.gradient_norm == "on" else ()
    rate = () if assembly.optimizer is None else (LEARNING_RATE,)
    return ("loss", *accuracy, *norm, *rate)
