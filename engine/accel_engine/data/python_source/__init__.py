"""Takes data from a function of the user: arrays, tf.data, PyDataset, generators, data loaders."""
