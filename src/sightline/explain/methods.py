"""The explanation methods by name, and one way to ask any of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sightline.config import nearest
from sightline.data.vocabulary import START, Vocabulary
from sightline.encoders.encoder import Encoder
from sightline.encoders.regions import Regions
from sightline.errors import ConfigError
from sightline.explain.attention import attention
from sightline.explain.explanation import Explanation
from sightline.explain.gradients import (
    grad_cam,
    gradient_input,
    guided_backpropagation,
    guided_grad_cam,
)
from sightline.explain.lrp import lrp
from sightline.explain.occlusion import occlusion
from sightline.explain.painting import paint, paint_boxes
from sightline.explain.questions import Asked, ask
from sightline.explain.subject import Evidence, Subject
from sightline.models.interface import CaptionModel

METHODS: dict[str, Callable[..., Evidence]] = {
    "attention": attention,
    "gradient_input": gradient_input,
    "grad_cam": grad_cam,
    "guided_backpropagation": guided_backpropagation,
    "guided_grad_cam": guided_grad_cam,
    "lrp": lrp,
    "occlusion": occlusion,
}


@dataclass(frozen=True, eq=False)
class Sight:
    """The picture itself, where there is more of it than its regions."""

    encoder: Encoder
    x: Tensor  # (1, 3, h, w): the encoder's input
    window: Tensor  # (4,): the part of the picture that it shows
    size: tuple[int, int]  # (H, W) of the picture


def list_methods() -> list[str]:
    """Names that `explain` knows.

    >>> "lrp" in list_methods()
    True
    """
    return list(METHODS)


def explain(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    caption: Sequence[int],
    words: str | Sequence[Asked] = "all",
    method: str = "lrp",
    sight: Sight | None = None,
    **options: Any,
) -> list[Explanation]:
    """Why a caption of one picture has the words it has, or has not others.

    `caption` is word ids without start and end; which `words` are explained is said as `ask` has
    it. `options` are the method's own. Without `sight`, explanations end at the regions.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("soft_attention", 6, 5, {"state_width": 4}).eval()
    >>> regions = Regions(torch.ones(1, 3, 5), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> vocabulary = Vocabulary(["a", "cat"])
    >>> [why.word for why in explain(model, vocabulary, regions, [4, 5])]
    ['a', 'cat']
    >>> explain(model, vocabulary, regions, [4, 5], words=[(0, "cat")])[0].regions.shape
    (3,)
    """
    if method not in METHODS:
        raise ConfigError(
            f"explain: no method is called '{method}'; {nearest(method, list_methods())}"
        )
    questions = ask(words, caption, vocabulary)
    tokens = [START, *caption][: max((place for place, _ in questions), default=0) + 1]
    places, ids = torch.tensor(questions, dtype=torch.long).view(-1, 2).T[:, None]
    if not questions:
        return []
    subject = Subject(
        model,
        regions,
        torch.tensor(tokens)[None, None],
        places,
        ids,
        None if sight is None else sight.encoder,
        None if sight is None else sight.x,
    )
    evidence = METHODS[method](subject, **options)
    pictures = None if sight is None else _paint(evidence, regions, sight)
    there = regions.mask[0]
    boxes = tuple(tuple(box) for box in regions.boxes[0][there].tolist())
    return [
        Explanation(
            method=method,
            word=vocabulary.words[word],
            place=place,
            total=float(evidence.total[0, n]),
            regions=evidence.regions[0, n][there].float().numpy(),
            boxes=boxes,
            previous=tuple(vocabulary.words[token] for token in tokens[: place + 1]),
            words=evidence.words[0, n, : place + 1].float().numpy(),
            picture=None if pictures is None else pictures[n].float().numpy(),
            bias=_number(evidence.bias, n),
            epsilon=_number(evidence.epsilon, n),
            encoder=_number(evidence.encoder, n),
        )
        for n, (place, word) in enumerate(questions)
    ]


def _paint(evidence: Evidence, regions: Regions, sight: Sight) -> Tensor:
    """Relevance `(N, H, W)` with the pixels of the picture."""
    if evidence.pixels is not None:
        return paint(evidence.pixels[0], sight.window, sight.size)
    return paint_boxes(evidence.regions[0], regions.boxes[0], sight.size)


def _number(absorbed: Tensor | None, n: int) -> float:
    return 0.0 if absorbed is None else float(absorbed[0, n])
