"""The explanation methods by name, and one way to ask any of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sightline.config import nearest
from sightline.data.vocabulary import PAD, START, Vocabulary
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
    """Why a caption of one picture has the words it has, or has not others; see `explain_all`.

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
    sights = None if sight is None else [sight]
    return explain_all(model, vocabulary, regions, [caption], words, method, sights, **options)[0]


def explain_all(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    words: str | Sequence[Asked] = "all",
    method: str = "lrp",
    sights: Sequence[Sight] | None = None,
    **options: Any,
) -> list[list[Explanation]]:
    """The same for a caption of each of several pictures, in one pass.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("soft_attention", 6, 5, {"state_width": 4}).eval()
    >>> regions = Regions(torch.ones(2, 3, 5), torch.ones(2, 3) > 0, torch.zeros(2, 3, 4))
    >>> found = explain_all(model, Vocabulary(["a", "cat"]), regions, [[4, 5], [5]])
    >>> [[why.word for why in own] for own in found]
    [['a', 'cat'], ['cat']]
    """
    if method not in METHODS:
        raise ConfigError(
            f"explain: no method is called '{method}'; {nearest(method, list_methods())}"
        )
    asked = [ask(words, caption, vocabulary) for caption in captions]
    # No word is explained by later ones: they are left out.
    tokens = [
        [START, *caption][: max((place for place, _ in questions), default=0) + 1]
        for caption, questions in zip(captions, asked, strict=True)
    ]
    if not any(asked):
        return [[] for _ in asked]
    # Shorter captions are filled up with nothing, fewer questions with one that is not answered.
    places, ids = _rectangle([q or [(0, PAD)] for q in asked], (0, PAD)).unbind(-1)
    subject = Subject(
        model,
        regions,
        _rectangle(tokens, PAD)[:, None],
        places,
        ids,
        None if not sights else sights[0].encoder,
        None if not sights else torch.cat([sight.x for sight in sights]),
    )
    evidence = METHODS[method](subject, **options)
    shown: Sequence[Sight | None] = sights or [None] * len(captions)
    return [
        _describe(method, vocabulary, evidence, regions, b, tokens[b], asked[b], shown[b])
        for b in range(len(captions))
    ]


def _rectangle(rows: Sequence[Sequence[Any]], filling: Any) -> Tensor:
    length = max(len(row) for row in rows)
    return torch.tensor([[*row, *[filling] * (length - len(row))] for row in rows])


def _describe(
    method: str,
    vocabulary: Vocabulary,
    evidence: Evidence,
    regions: Regions,
    b: int,
    tokens: Sequence[int],
    questions: Sequence[tuple[int, int]],
    sight: Sight | None,
) -> list[Explanation]:
    """The explanations of picture `b`."""
    pictures = None if sight is None else _paint(evidence, regions, sight, b)
    there = regions.mask[b]
    boxes = tuple(tuple(box) for box in regions.boxes[b][there].tolist())
    return [
        Explanation(
            method=method,
            word=vocabulary.words[word],
            place=place,
            total=float(evidence.total[b, n]),
            regions=evidence.regions[b, n][there].float().numpy(),
            boxes=boxes,
            previous=tuple(vocabulary.words[token] for token in tokens[: place + 1]),
            words=evidence.words[b, n, : place + 1].float().numpy(),
            picture=None if pictures is None else pictures[n].float().numpy(),
            bias=_number(evidence.bias, b, n),
            epsilon=_number(evidence.epsilon, b, n),
            encoder=_number(evidence.encoder, b, n),
        )
        for n, (place, word) in enumerate(questions)
    ]


def _paint(evidence: Evidence, regions: Regions, sight: Sight, b: int) -> Tensor:
    """Relevance `(N, H, W)` with the pixels of the picture."""
    if evidence.pixels is not None:
        return paint(evidence.pixels[b], sight.window, sight.size)
    return paint_boxes(evidence.regions[b], regions.boxes[b], sight.size)


def _number(absorbed: Tensor | None, b: int, n: int) -> float:
    return 0.0 if absorbed is None else float(absorbed[b, n])
