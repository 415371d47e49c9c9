"""How a model is built, besides its data; without TensorFlow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a model is built.

    Attributes:
        pretrained: Whether a model of the catalogue is built for ImageNet weights, with preprocessing and a new head.
        download: Whether to load these weights, from the network if Keras has not downloaded them yet.
        custom_objects: Python file with the custom classes and functions of a saved model; empty for none.
        unsafe: Whether a saved model may have lambda layers, which run code from its file.
    """

    pretrained: bool = False
    download: bool = False
    custom_objects: str = ""
    unsafe: bool = False
