"""The attention of every word of Transformers' own captions, layer by layer, and its importance."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.captioner import Captioner
from sightline.captions import Caption
from sightline.data.dataset import CaptionedImage
from sightline.encoded_picture import EncodedPicture
from sightline.errors import ConfigError
from sightline.experiments.captioned import caption_of, every_picture
from sightline.experiments.experiment import Record, Subject, Task
from sightline.models.transformer import Transformer
from sightline.text.vocabulary import START

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CaptionAttention:
    """A caption of T words, and how each looked at the L regions in every layer; heads averaged.

    Of a captioner without alignment, `aligned` is `attention` and there are no masks.
    """

    picture: EncodedPicture
    caption: Caption
    attention: Floats  # α `(T, layers, L)`; sums to one
    aligned: Floats  # α^a `(T, layers, L)`, as the values were summed with; sums to more
    masks: Floats | None  # m `(T, layers, L)`
    importance: Floats  # ‖∇h p(y)‖ `(T, L)` (paper 0, section 3)


def caption_attention(captioner: Captioner, image: CaptionedImage) -> CaptionAttention:
    """Caption a picture, and look into a Transformer while it says each word."""
    model = require_transformer(captioner)
    picture, caption = caption_of(captioner, image)
    words = torch.tensor(
        captioner.vocabulary.encode(caption.text), device=picture.regions.mask.device
    )
    tokens = torch.cat([words.new_tensor([START]), words[:-1]])[None, None]
    hidden = model.hidden(picture.regions).detach().requires_grad_()
    memory = model.remember(hidden, picture.regions.mask)
    importance = gradient_importance(model, hidden, tokens, words, picture.regions.mask)
    with torch.no_grad():
        maps = model.attention_maps(tokens, memory)
    there = picture.regions.mask[0]

    def plain(of_heads: Tensor) -> Floats:
        array: Floats = of_heads[0, 0].mean(2)[..., there].double().cpu().numpy()
        return array

    return CaptionAttention(
        picture,
        caption,
        plain(maps.raw),
        plain(maps.used),
        None if maps.masks is None else plain(maps.masks),
        importance[:, there].double().cpu().numpy(),
    )


def gradient_importance(
    model: Transformer, hidden: Tensor, tokens: Tensor, words: Tensor, mask: Tensor
) -> Tensor:
    """‖∇h_i p(y_t)‖ `(T, L)` of the words `(T,)` said after `tokens` `(1, 1, T)`.

    Masks are constants to the captioner (paper 0, eq. 11), and so they are to this gradient.
    """
    memory = model.remember(hidden, mask)
    probabilities = torch.softmax(model.unroll(tokens, memory).logits[0, 0], -1)
    said = probabilities.gather(1, words[:, None]).squeeze(1)
    every = torch.eye(len(words), dtype=said.dtype, device=said.device)
    (gradients,) = torch.autograd.grad(said, hidden, every, is_grads_batched=True)
    importance: Tensor = torch.linalg.vector_norm(gradients[:, 0], dim=-1)
    return importance


def require_transformer(captioner: Captioner) -> Transformer:
    """Its model, if it has layers of attention to look into."""
    if not isinstance(captioner.model, Transformer):
        raise ConfigError(
            "this experiment is of Transformers; give a run of transformer, aligned_transformer "
            "or spatial_transformer"
        )
    return captioner.model


def require_masks(seen: CaptionAttention, subject: Subject) -> Floats:
    """The masks m, if the captioner has any."""
    if seen.masks is None:
        raise ConfigError(f"{subject.name}: has no alignment; give runs of aligned captioners")
    return seen.masks


def transformer_tasks(
    subjects: Sequence[Subject], measure: Callable[[CaptionAttention, Subject], Record]
) -> Iterator[Task]:
    """A task for every picture of every subject."""
    return every_picture(
        subjects,
        lambda subject, image, _: measure(caption_attention(subject.captioner, image), subject),
    )
