"""The families of transformers captioners that Sightline sees into, one entry each."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.adapters.continuation import (
    go_on_decoding,
    go_on_in_three,
    go_on_looking,
    go_on_numbered,
    go_on_within,
)
from sightline.adapters.family import Family

DESCRIBE = "Describe the picture in one sentence."


def _crops(model: Any, x: Tensor) -> dict[str, Any]:
    """Idefics takes a large picture as crops, row by row, and once more made small.

    (Its processor makes it small with Lanczos' filter; the mean of pixels is nearly the same.)
    """
    side = model.config.vision_config.image_size
    pictures, channels, height, width = x.shape
    if height <= side:
        return {"pixel_values": x[:, None]}
    rows, columns = height // side, width // side
    cells = x.reshape(pictures, channels, rows, side, columns, side)
    crops = cells.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    whole = functional.avg_pool2d(x, (rows, columns))
    return {"pixel_values": torch.cat([crops, whole[:, None]], 1)}


def _packed_patches(model: Any, x: Tensor) -> dict[str, Any]:
    """Qwen2-VL takes the patches of all pictures in one row, those of an image token together.

    A patch is seen twice, as two frames of a film that stands still.
    """
    vision = model.config.vision_config
    patch, merged, frames = (
        vision.patch_size,
        vision.spatial_merge_size,
        vision.temporal_patch_size,
    )
    pictures, channels, height, width = x.shape
    rows, columns = height // patch // merged, width // patch // merged
    cells = x.reshape(pictures, channels, rows, merged, patch, columns, merged, patch)
    # (picture, row, column, row within, column within, channel, y, x)
    cells = cells.permute(0, 2, 5, 3, 6, 1, 4, 7).flatten(0, 4)
    films = cells[:, :, None].expand(-1, -1, frames, -1, -1)
    grid = torch.tensor([[1, rows * merged, columns * merged]], device=x.device)
    return {
        "pixel_values": films.reshape(len(cells), -1),
        "image_grid_thw": grid.expand(pictures, -1),
    }


def _numbered_patches(model: Any, x: Tensor) -> dict[str, Any]:
    """Pix2Struct takes patches with the numbers of their row and column before the pixels."""
    patch = model.config.vision_config.patch_size
    pictures, channels, height, width = x.shape
    rows, columns = height // patch, width // patch
    cells = x.reshape(pictures, channels, rows, patch, columns, patch).permute(0, 2, 4, 3, 5, 1)
    row, column = torch.meshgrid(
        torch.arange(1, rows + 1, device=x.device),
        torch.arange(1, columns + 1, device=x.device),
        indexing="ij",
    )
    numbers = torch.stack([row, column], -1).to(x).expand(pictures, -1, -1, -1)
    return {"flattened_patches": torch.cat([numbers, cells.flatten(3)], -1).flatten(1, 2)}


FAMILIES = {
    family.model_type: family
    for family in (
        Family(
            "vision-encoder-decoder",
            "VisionEncoderDecoder (ViT-GPT2)",
            image_tokens="encoder.forward",
            attention=r"decoder\..*(crossattention|encoder_attn)$",
            decodes=True,
            goes_on=go_on_decoding,
        ),
        Family(
            "blip",
            "BLIP",
            image_tokens="vision_model.forward",
            attention=r"text_decoder\..*crossattention\.self$",
            speaker="text_decoder",
            goes_on=go_on_looking,
        ),
        Family(
            "git",
            "GIT",
            image_tokens="git.image_encoder.forward",
            attention=r"git\.encoder\..*attention\.self$",
            goes_on=go_on_numbered,
        ),
        Family(
            "blip-2",
            "BLIP-2",
            image_tokens="vision_model.forward",
            attention=r"language_model\..*self_attn$",
            condenser=r"qformer\..*crossattention\.attention$",
            speaker="language_model",
            goes_on=go_on_within("language_model"),
            prompted=True,
        ),
        Family(
            "llava",
            "LLaVA",
            image_tokens="model.get_image_features",
            attention=r"language_model\..*self_attn$",
            field="list",
            prompted=True,
            prompt=DESCRIBE,
            template="USER: <image>\n{prompt} ASSISTANT:",
        ),
        Family(
            "paligemma",
            "PaliGemma",
            image_tokens="model.get_image_features",
            attention=r"language_model\..*self_attn$",
            field="pooler_output",
            prompted=True,
            prompt="caption en",
            template="<image>{prompt}",
        ),
        *(
            Family(
                model_type,
                name,
                image_tokens="model.get_image_features",
                attention=r"text_model\..*self_attn$",
                field="list",
                pixels=_crops,
                crops=True,
                dummy=(1, 3, 1, 1),
                prompted=True,
                prompt=DESCRIBE,
                template="User:<image>{prompt}\nAssistant:",
            )
            for model_type, name in (("idefics3", "Idefics3"), ("smolvlm", "SmolVLM"))
        ),
        *(
            Family(
                model_type,
                name,
                image_tokens="model.get_image_features",
                attention=r"language_model\..*self_attn$",
                field="list",
                pixels=_packed_patches,
                prompted=True,
                prompt=DESCRIBE,
                template="<|vision_start|><|image_pad|><|vision_end|>{prompt}",
                goes_on=go_on_in_three,
                size=448,
            )
            for model_type, name in (("qwen2_vl", "Qwen2-VL"), ("qwen2_5_vl", "Qwen2.5-VL"))
        ),
        Family(
            "florence2",
            "Florence-2",
            image_tokens="model.get_image_features",
            attention=r"decoder\..*encoder_attn$",
            decodes=True,
            goes_on=go_on_decoding,
            field="pooler_output",
            prompted=True,
            prompt="<CAPTION>",
        ),
        Family(
            "pix2struct",
            "Pix2Struct",
            image_tokens="encoder.forward",
            attention=r"decoder\..*encoder_decoder_attention\.attention$",
            decodes=True,
            pixels=_numbered_patches,
            pixel_input="flattened_patches",
            goes_on=go_on_decoding,
            size=512,
        ),
        Family(
            "kosmos-2",
            "Kosmos-2",
            image_tokens="vision_model.forward",
            attention=r"text_model\..*self_attn$",
            condenser=r"image_to_text_projection\.x_attn$",
            speaker="text_model",
            goes_on=go_on_within("text_model"),
            prompted=True,
            prompt="An image of",
        ),
    )
}
