"""The models of ``keras.applications`` in the catalogue, without their downloaded weights.

They are built without Keras' preprocessing layers where possible, and take images in [0, 1]; the first generation of
EfficientNet always rescales its inputs.
"""

from collections.abc import Mapping

from accel_engine.models.data_description import IMAGES
from accel_engine.models.model_entry import ModelEntry


def _family(
    architecture: str,
    sizes: Mapping[str, float],
    *,
    minimum_size: int = 32,
    preprocesses: bool = False,
    learning_rate: float = 1e-3,
) -> tuple[ModelEntry, ...]:
    """The entries of an architecture's models, from their names and millions of weights for 10 classes."""
    return tuple(
        ModelEntry(
            name,
            f"{architecture}; {millions:g} million weights",
            f"accel_engine.models.keras_application:{name}",
            form=IMAGES,
            minimum_size=minimum_size,
            any_size=True,
            preprocesses=preprocesses,
            learning_rate=learning_rate,
            imagenet=True,
        )
        for name, millions in sizes.items()
    )


APPLICATIONS: tuple[ModelEntry, ...] = (
    *_family("Depthwise separable convolutions, for mobile", {"MobileNet": 3.2}),
    *_family("Inverted residuals with linear bottlenecks, for mobile", {"MobileNetV2": 2.3}),
    *_family("Architecture search for mobile", {"MobileNetV3Small": 1.5, "MobileNetV3Large": 4.2}),
    *_family("Residual bottlenecks", {"ResNet50": 23.6, "ResNet101": 42.7, "ResNet152": 58.4}),
    *_family(
        "Residual bottlenecks with pre-activation", {"ResNet50V2": 23.6, "ResNet101V2": 42.6, "ResNet152V2": 58.3}
    ),
    *_family(
        "Each layer takes the outputs of all before it", {"DenseNet121": 7.0, "DenseNet169": 12.7, "DenseNet201": 18.3}
    ),
    *_family(
        "Depth, width and size scaled together",
        {
            "EfficientNetB0": 4.1,
            "EfficientNetB1": 6.6,
            "EfficientNetB2": 7.8,
            "EfficientNetB3": 10.8,
            "EfficientNetB4": 17.7,
            "EfficientNetB5": 28.5,
            "EfficientNetB6": 41,
            "EfficientNetB7": 64.1,
        },
        preprocesses=True,
    ),
    *_family(
        "EfficientNet optimized for training speed",
        {
            "EfficientNetV2B0": 5.9,
            "EfficientNetV2B1": 6.9,
            "EfficientNetV2B2": 8.8,
            "EfficientNetV2B3": 12.9,
            "EfficientNetV2S": 20.3,
            "EfficientNetV2M": 53.2,
            "EfficientNetV2L": 117.8,
        },
    ),
    *_family(
        "A convolutional network modelled on transformers",
        {
            "ConvNeXtTiny": 27.8,
            "ConvNeXtSmall": 49.5,
            "ConvNeXtBase": 87.6,
            "ConvNeXtLarge": 196.2,
            "ConvNeXtXLarge": 348.2,
        },
        learning_rate=1e-4,
    ),
    *_family("Parallel convolutions of several sizes", {"InceptionV3": 21.8}, minimum_size=75),
    *_family("Inception with residual connections", {"InceptionResNetV2": 54.3}, minimum_size=75),
    *_family("Inception with depthwise separable convolutions", {"Xception": 20.9}, minimum_size=71),
    *_family("Cells found by architecture search", {"NASNetMobile": 4.3, "NASNetLarge": 84.9}),
    # Without normalization, these do not learn at higher learning rates. Their dense layers grow with the image.
    *_family("Plain stacks of 3x3 convolutions; at 32x32", {"VGG16": 33.6, "VGG19": 38.9}, learning_rate=1e-4),
)
