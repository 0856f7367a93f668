"""The part of a transformers captioner that sees: pixels in, image tokens out."""

import hashlib
import json
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image, Resampling
from PIL.Image import new as new_image
from torch import Tensor, nn

from sightline.adapters.family import ONE_AT_A_TIME, Family, resolve
from sightline.encoders.encoder import Encoder
from sightline.encoders.preprocessing import WHOLE, Preprocessing, Window
from sightline.errors import SightlineError
from sightline.regions import Regions, grid_boxes


class ProcessorPreprocessing(Preprocessing):
    """The resizing and cropping of a transformers image processor, up to the bytes of pixels.

    Where its family takes pictures of any shape, a picture is made a square of `size` pixels.
    """

    processor: Any

    def __init__(self, processor: Any, size: int | None) -> None:
        self.__dict__["processor"] = processor
        self.__dict__["any_shape"] = size is not None
        super().__init__(
            size or side_of(processor),
            mean=_bytes(processor, "image_mean", 0.0),
            std=_bytes(processor, "image_std", 1.0),
        )

    def prepare(self, picture: Image, part: Window = WHOLE) -> tuple[NDArray[np.uint8], Window]:
        """Pixels and their window, as the captioner's own processor makes them."""
        if part != WHOLE:
            width, height = picture.size
            picture = picture.crop(
                (part[0] * width, part[1] * height, part[2] * width, part[3] * height)
            )
        if self.__dict__["any_shape"]:
            square = picture.resize((self.size, self.size), Resampling.BICUBIC, reducing_gap=3.0)
            return np.array(square), part
        made = self.processor(
            images=picture, do_rescale=False, do_normalize=False, return_tensors="np"
        )
        pixels = np.asarray(made["pixel_values"])[0]
        pixels = np.moveaxis(pixels, 0, -1) if pixels.shape[0] == 3 else pixels
        return np.ascontiguousarray(pixels.round().clip(0, 255).astype(np.uint8)), _crop(
            self.processor, picture, part
        )


def _bytes(processor: Any, name: str, default: float) -> tuple[float, float, float]:
    """A mean or deviation of an image processor, on the scale of bytes."""
    given = getattr(processor, name, None)
    if given is None or not getattr(processor, "do_normalize", True):
        given = [default] * 3
    red, green, blue = (255 * float(number) for number in given)
    return red, green, blue


def side_of(processor: Any) -> int:
    """Pixels of a side, as an image processor gives them."""
    size = processor.crop_size if getattr(processor, "do_center_crop", False) else processor.size
    size = dict(size) if not isinstance(size, int) else {"height": size}
    return int(size.get("height") or size.get("shortest_edge") or size.get("longest_edge") or 224)


def _crop(processor: Any, picture: Image, part: Window) -> Window:
    """The window that is left of a picture by cropping its centre."""
    if not getattr(processor, "do_center_crop", False):
        return part
    size = dict(processor.size) if not isinstance(processor.size, int) else {}
    if "shortest_edge" not in size:
        return part
    side = side_of(processor)
    scale = size["shortest_edge"] / min(picture.size)
    shown = [min(side / (scale * length), 1.0) for length in picture.size]
    return ((1 - shown[0]) / 2, (1 - shown[1]) / 2, (1 + shown[0]) / 2, (1 + shown[1]) / 2)


_LARGEST_SIDE = 2048  # pixels


def _square(family: Family, processor: Any, size: int | None) -> int | None:
    """The side of the square that a picture is made, where its processor keeps pictures' shapes."""
    if family.crops and hasattr(processor, "max_image_size"):
        crop = int(processor.max_image_size["longest_edge"])
        if not processor.do_image_splitting:
            return crop
        return crop * math.ceil((size or int(processor.size["longest_edge"])) / crop)
    return (size or family.size) if family.size else None


class AdaptedEncoder(Encoder):
    """What makes the image tokens of a captioner. Explanations stop there, unless they are asked
    to go on to the pixels: that is dearer, and no more faithful.
    """

    stops_at_regions = True
    model: Any  # (its weights are the captioner's: this is a view of it, and not saved twice)
    cells: Tensor  # where the tokens of the grid stand among all, row by row of the grid
    cached = False  # its regions are many and wide: they are made when they are needed

    def __init__(
        self, model: nn.Module, family: Family, processor: Any, size: int | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.__dict__["model"] = model
        self.family = family
        self.name, self.stage = family.model_type, "image tokens"
        self.preprocessing = ProcessorPreprocessing(processor, _square(family, processor, size))
        mean, std = torch.tensor([self.preprocessing.mean, self.preprocessing.std]).view(
            2, 1, 3, 1, 1
        )
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std.clamp(min=1e-6), persistent=False)
        side = self.preprocessing.size
        prepared, _ = self.preprocessing.prepare(new_image("RGB", (40, 30), "gray"))
        if prepared.shape != (side, side, 3) or side > _LARGEST_SIDE:
            raise SightlineError(
                f"{family.name}: its processor makes pictures {prepared.shape}, not squares of "
                f"{side} pixels (at most {_LARGEST_SIDE})"
            )
        device = next(model.parameters()).device
        self.to(device)
        with torch.no_grad():
            tokens = self.vectors(torch.ones(1, 3, side, side, device=device))
        self.dim = tokens.shape[2]
        crops = max(side // self.model.config.vision_config.image_size, 1) if family.crops else 1
        views = crops**2 + (crops > 1)  # the crops, and then the whole picture made small
        across = math.isqrt(tokens.shape[1] // views)
        # Without crops, tokens of the whole picture, such as CLIP's class token, come first.
        whole = tokens.shape[1] - views * across**2
        if whole > (crops == 1) or not across:
            raise SightlineError(
                f"{family.name}: {tokens.shape[1]} image tokens are no square grid; give the "
                "family another size"
            )
        self.crops, self.across, self.whole = crops, across, whole
        self.grid = (crops * across, crops * across)
        numbers = torch.arange((crops * across) ** 2).view(crops, crops, across, across)
        self.register_buffer("cells", whole + numbers.transpose(1, 2).flatten(), persistent=False)
        self.to(device)

    @property
    def fingerprint(self) -> str:
        facts = [self.name, self.preprocessing.size, *self.preprocessing.mean]
        facts.append(self.model.config.to_json_string())
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.preprocessing.size}

    def at_size(self, size: int) -> Encoder:
        raise SightlineError(f"{self.family.name}: takes pictures of its own size alone")

    def classify(self, pixels: Tensor) -> Tensor:
        raise SightlineError(f"{self.family.name}: knows no ImageNet classes")

    one_at_a_time = True  # it runs the captioner's own model: see `ONE_AT_A_TIME`

    def vectors(self, x: Tensor) -> Tensor:
        owner, name = resolve(self.model, self.family.image_tokens)
        with ONE_AT_A_TIME:
            output = getattr(owner, name)(**self.family.pixels(self.model, x.to(self.model.dtype)))
        if self.family.field == "list":
            return torch.stack(list(output.pooler_output))
        tokens: Tensor = getattr(output, self.family.field)
        return tokens

    def features(self, x: Tensor) -> Tensor:
        """The tokens of the grid `(B, dim, h, w)`, without those of the whole picture."""
        return torch.unflatten(self.vectors(x)[:, self.cells].mT, 2, self.grid)

    def boxes(self, windows: Tensor) -> Tensor:
        """The boxes of tokens, those of the whole picture and those of its small view too."""
        boxes = grid_boxes(*self.grid, windows)[:, self.cells.argsort()]
        if self.whole:
            return torch.cat([windows[:, None], boxes], 1)
        if self.crops > 1:
            return torch.cat([boxes, grid_boxes(self.across, self.across, windows)], 1)
        return boxes

    def on_grid(self, numbers: Tensor) -> Tensor:
        """Numbers of the tokens over the grid.

        What a token of the small view has is shared out to its cells. A class token has no cell.
        """
        laid_out = torch.unflatten(numbers[..., self.cells], -1, self.grid)
        if self.crops == 1:
            return laid_out
        small = torch.unflatten(numbers[..., len(self.cells) :], -1, (self.across, self.across))
        for axis in (-2, -1):
            small = small.repeat_interleave(self.crops, axis)
        return laid_out + small / self.crops**2

    def forward(self, pixels: Tensor, windows: Tensor) -> Regions:
        vectors = self.vectors(self.normalise(pixels))
        mask = vectors.new_ones(vectors.shape[:2], dtype=torch.bool)
        return Regions(vectors, mask, self.boxes(windows))
