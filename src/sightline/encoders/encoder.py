"""Encoders: a network up to one of its stages, with its preprocessing and its weights."""

import hashlib
import json
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from sightline.encoders.folding import fold_batch_norms
from sightline.encoders.network import Network
from sightline.encoders.preprocessing import Fit, Preprocessing
from sightline.encoders.registry import ComputedWeights, EncoderEntry, encoder_entry
from sightline.encoders.state_dicts import read_weights
from sightline.encoders.weights import WeightsFile, find_weights
from sightline.errors import SightlineError, WeightsError
from sightline.regions import Regions, grid_boxes


class Encoder(nn.Module):
    """Pictures in, regions out. Made by `create_encoder`; frozen and in evaluation mode."""

    mean: Tensor
    std: Tensor
    tuned: str | None = None  # a hash of the weights that were trained with a captioner
    sees_pixels = True  # False: its regions are looked up
    one_at_a_time = False  # True: several threads would only wait for each other
    cached = True  # False: its regions are made anew whenever they are needed
    stops_at_regions = False  # True: explanations go on to the pixels only if they are asked to

    def __init__(
        self,
        card: EncoderEntry,
        network: Network,
        stage: str,
        preprocessing: Preprocessing,
        weights: WeightsFile,
        chosen_weights: str | None = None,
    ) -> None:
        super().__init__()
        self.name, self.stage, self.preprocessing = card.name, stage, preprocessing
        self.network: Network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dim = card.stages[stage].dim
        cells = card.stages[stage].cells(preprocessing.size)
        self.grid = (cells, cells)
        self._weights, self._chosen_weights = weights, chosen_weights
        mean, std = torch.tensor([preprocessing.mean, preprocessing.std]).view(2, 1, 3, 1, 1)
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)

    @property
    def fingerprint(self) -> str:
        """A short hash of all that decides this encoder's output; the key of its cached regions."""
        facts: list[Any] = [
            self.name,
            self.stage,
            self.preprocessing.to_json(),
            self._weights.sha256,
        ]
        facts += [self.tuned] if self.tuned else []
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def at_size(self, size: int) -> "Encoder":
        """This encoder for pictures of another size; the weights are shared."""
        preprocessing = replace(self.preprocessing, size=size)
        card, chosen = encoder_entry(self.name), self._chosen_weights
        encoder = Encoder(card, self.network, self.stage, preprocessing, self._weights, chosen)
        return encoder.to(self.mean.device).eval()

    def normalise(self, pixels: Tensor) -> Tensor:
        """Bytes `(B, H, W, 3)` to the network's input `(B, 3, H, W)`, channels last in memory."""
        x = pixels.permute(0, 3, 1, 2).float()
        if self.preprocessing.channels == "BGR":
            x = x.flip(1)
        return (x - self.mean) / self.std

    def features(self, x: Tensor) -> Tensor:
        """Normalised input to features `(B, dim, h, w)`; gradients pass through to the input."""
        return self.network.stage(x, self.stage)

    def vectors(self, x: Tensor) -> Tensor:
        """Normalised input to the vectors of regions `(B, L, dim)`, as `forward` has them."""
        return self.features(x).flatten(2).transpose(1, 2)

    def boxes(self, windows: Tensor) -> Tensor:
        """The boxes `(B, L, 4)` of regions, given the window of the picture that is seen."""
        return grid_boxes(*self.grid, windows)

    def on_grid(self, numbers: Tensor) -> Tensor:
        """Numbers of regions `(..., L)`, laid out over the grid `(..., h, w)`."""
        return torch.unflatten(numbers, -1, self.grid)

    def classify(self, pixels: Tensor) -> Tensor:
        """ImageNet logits `(B, 1000)`, to see that the weights are the trained ones."""
        return self.network.classify(self.normalise(pixels))

    def forward(self, pixels: Tensor, windows: Tensor) -> Regions:
        """Regions of pictures prepared by `self.preprocessing`: pixels and windows, batched."""
        grid = self.features(self.normalise(pixels))
        vectors = grid.permute(0, 2, 3, 1).flatten(1, 2)
        boxes = grid_boxes(grid.shape[2], grid.shape[3], windows)
        return Regions(vectors, vectors.new_ones(vectors.shape[:2], dtype=torch.bool), boxes)

    @property
    def spec(self) -> dict[str, Any]:
        """What `create_encoder(**spec)` needs to make this encoder again; plain JSON."""
        return {
            "name": self.name,
            "stage": self.stage,
            "size": self.preprocessing.size,
            "fit": self.preprocessing.fit,
            "weights": self._chosen_weights,
            "sha256": self._weights.sha256,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "Encoder":
        """The encoder that a `spec` (of a checkpoint, say) describes."""
        return create_encoder(**spec)


class SideBySide(Encoder):
    """Several encoders of one grid: a region has the vectors of all, one after another.

    Each has three channels of the input for itself, in its own normalisation, so that a word's
    attribution there adds up to what all of them saw of the picture.

    >>> encoder = create_encoder("efficientnet_lite0+efficientnet_lite1", size=64)
    >>> encoder.dim, encoder.grid, encoder.stage
    (2560, (2, 2), 'head+head')
    """

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        nn.Module.__init__(self)
        self.encoders = nn.ModuleList(encoders)
        self.name = "+".join(part.name for part in encoders)
        self.stage = "+".join(part.stage for part in encoders)
        self.preprocessing = encoders[0].preprocessing  # normalising apart, it is that of all
        self.dim = sum(part.dim for part in encoders)
        self.grid = encoders[0].grid
        if any(part.grid != self.grid for part in encoders):
            grids = ", ".join(f"{part.name} {part.grid[0]} x {part.grid[1]}" for part in encoders)
            size = self.preprocessing.size
            raise SightlineError(
                f"{self.name}: the grids differ at {size} px ({grids}); choose another size, or "
                "other stages, such as stage4+stage4"
            )

    @property
    def parts(self) -> list[Encoder]:
        return [part for part in self.encoders if isinstance(part, Encoder)]

    @property
    def fingerprint(self) -> str:
        facts = [part.fingerprint for part in self.parts]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def at_size(self, size: int) -> Encoder:
        return SideBySide([part.at_size(size) for part in self.parts]).eval()

    def normalise(self, pixels: Tensor) -> Tensor:
        return torch.cat([part.normalise(pixels) for part in self.parts], 1)

    def features(self, x: Tensor) -> Tensor:
        pairs = zip(self.parts, x.chunk(len(self.parts), 1), strict=True)
        return torch.cat([part.features(channels) for part, channels in pairs], 1)

    def classify(self, pixels: Tensor) -> Tensor:
        raise SightlineError(f"{self.name}: ask one of them")

    @property
    def spec(self) -> dict[str, Any]:
        specs = [part.spec for part in self.parts]
        joined = {key: "+".join(spec[key] for spec in specs) for key in ("name", "stage", "sha256")}
        return {**specs[0], **joined}


def create_encoder(
    name: str,
    stage: str | None = None,
    size: int | None = None,
    fit: Fit = "squash",
    weights: Path | str | None = None,
    sha256: str | None = None,
    fold: bool = True,
) -> Encoder:
    """Build an encoder with its trained weights.

    `stage` and `size` default to the encoder's own (`encoder_entry(name)`). `weights` names a file
    in torchvision's layout, in place of those that were installed or fetched; `sha256` insists on
    its content. `fold=False` keeps the batch norms apart from the convolutions. Names joined by
    `+` (and stages, if given) are encoders side by side, at the size of the first.

    >>> encoder = create_encoder("efficientnet_lite0", stage="stage4")
    >>> encoder.dim, encoder.grid
    (112, (14, 14))
    """
    if "+" in name:
        return _side_by_side(name, stage, size, fit, weights, sha256, fold)
    card = encoder_entry(name)
    stage, size = stage or card.stage, size or card.size
    if stage not in card.stages:
        raise SightlineError(f"{name} has no '{stage}': choose one of {', '.join(card.stages)}")
    if fit not in get_args(Fit):
        raise SightlineError(f"unknown fit '{fit}': use squash or crop")
    if not 32 <= size <= 1024:
        wrong = "too small" if size < 32 else "too large"
        raise SightlineError(f"an input of {size} pixels is {wrong} for {name}: from 32 to 1024")
    network = None
    if weights is None and isinstance(card.weights, ComputedWeights):
        network = card.build(card.convention, False)
        file = WeightsFile(Path(card.name), _sha256(network), card.convention)
    else:
        file = find_weights(card, weights)
    if sha256 is not None and sha256 != file.sha256:
        raise WeightsError(
            f"{file.path} has different content than expected (SHA-256 {file.sha256[:8]}…, "
            f"not {sha256[:8]}…): give the original file"
        )
    if network is None:
        network = _load_network(card, file)
    if fold:
        fold_batch_norms(network)
    network.requires_grad_(False)
    convention = file.convention
    preprocessing = Preprocessing(size, fit, convention.channels, convention.mean, convention.std)
    chosen = None if weights is None else str(file.path.resolve())
    return Encoder(card, network, stage, preprocessing, file, chosen).eval()


def _side_by_side(
    name: str,
    stage: str | None,
    size: int | None,
    fit: Fit,
    weights: Path | str | None,
    sha256: str | None,
    fold: bool,
) -> Encoder:
    names = name.split("+")
    stages = stage.split("+") if stage else [None] * len(names)
    hashes = sha256.split("+") if sha256 else [None] * len(names)
    if weights is not None:
        raise SightlineError(f"{name}: 'weights' is one file, but these are {len(names)} encoders")
    if len(stages) != len(names):
        raise SightlineError(f"{name}: {len(names)} encoders, but stages for {len(stages)}")
    size = size or encoder_entry(names[0]).size
    parts = zip(names, stages, hashes, strict=True)
    return SideBySide([create_encoder(n, s, size, fit, None, h, fold) for n, s, h in parts]).eval()


def _load_network(card: EncoderEntry, file: WeightsFile) -> Network:
    state = {k: v.float() if v.is_floating_point() else v for k, v in read_weights(file).items()}
    # The weights take the place of parameters that were never filled with random numbers.
    with torch.device("meta"):
        network = card.build(file.convention, "classifier.0.weight" in state)
    try:
        network.load_state_dict(state, assign=True)
    except RuntimeError as error:
        reason = textwrap.shorten(str(error).split("\n")[-1], 120, placeholder=" …")
        raise WeightsError(f"{file.path} does not contain {card.name}: {reason}") from None
    if not all(bool(tensor.isfinite().all()) for tensor in state.values()):
        raise WeightsError(f"{file.path} holds numbers that are not finite: copy it again")
    return network


def _sha256(network: Network) -> str:
    """The hash of weights that are in no file."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
