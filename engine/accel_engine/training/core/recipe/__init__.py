"""The parts of a step that a plan sets: optimizer, schedule, loss, metrics, augmentation, freezing, initial weights."""
