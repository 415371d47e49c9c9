"""What a plan changes in a step: optimizer, schedule, loss, metrics, augmentation, frozen layers, initial weights."""
