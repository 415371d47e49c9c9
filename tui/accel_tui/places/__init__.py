"""Where plans are to train other than here: what is known of the place, and starting there."""
