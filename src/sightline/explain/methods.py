"""The explanation methods by name, and one function to run any of them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sightline.config import nearest
from sightline.encoded_picture import EncodedPicture
from sightline.encoders.encoder import Encoder
from sightline.errors import ConfigError, NotApplicableError
from sightline.explain.attention import attention
from sightline.explain.attribution import Attribution
from sightline.explain.gradients import (
    grad_cam,
    gradient_input,
    guided_backpropagation,
    guided_grad_cam,
)
from sightline.explain.lrp.contrastive import contrastive_lrp
from sightline.explain.lrp.method import attn_lrp, lrp
from sightline.explain.occlusion import occlusion
from sightline.explain.rollout import gradient_rollout
from sightline.explain.targets import Target, Targets, WordTarget, find_targets
from sightline.explain.upsampling import upsample, upsample_boxes
from sightline.explanation import Explanation
from sightline.models.interface import CaptionModel
from sightline.plugins import Registry
from sightline.regions import Regions
from sightline.text.vocabulary import PAD, SPECIAL, START, Vocabulary


@dataclass(frozen=True)
class Method:
    """A way to explain a word: how it is computed, and how it is described to readers."""

    attribute: Callable[..., Attribution]  # of Targets, and the method's own options
    label: str
    sentence: str  # for readers who do not know the papers
    # Its numbers add up to the word's score, so that shares of them mean something.
    adds_up: bool = False
    # Below zero is evidence against the word; otherwise there are sizes alone.
    signed: bool = True
    # It tells the pixels of a region apart; others show each region as a whole.
    finer: bool = False
    # It needs no more than a captioner's probabilities.
    of_black_boxes: bool = False


_METHODS = {
    "lrp": Method(
        lrp,
        "LRP",
        "Layer-wise relevance propagation (LRP) passes the word's score back through the "
        "captioner, step by step, to the regions of the picture and to the previous words. These "
        "parts add up to the score. Within the regions it continues to the pixels, to show where.",
        adds_up=True,
        finer=True,
    ),
    "contrastive_lrp": Method(
        contrastive_lrp,
        "Contrastive LRP",
        "Contrastive LRP gives regions and previous words the same parts of the word's score as "
        "LRP does. Its heatmap shows regions that the captioner looked at and that speak for the "
        "word, and leaves out what previous words already rest on. Within a region, it shows what "
        "the encoder saw there.",
        adds_up=True,
        finer=True,
    ),
    "attn_lrp": Method(
        attn_lrp,
        "AttnLRP",
        "AttnLRP is LRP that also passes the word's score back through the attention, so that it "
        "shows why the captioner looked where it did. Its parts add up to the score.",
        adds_up=True,
        finer=True,
    ),
    "grad_cam": Method(
        grad_cam,
        "Grad-CAM",
        "Grad-CAM weights the features of each region by how strongly the word's score depends on "
        "them.",
    ),
    "guided_grad_cam": Method(
        guided_grad_cam,
        "Guided Grad-CAM",
        "Guided Grad-CAM shows which pixels the word's score depends on, where Grad-CAM finds "
        "evidence for the word. It does not say which speak against it.",
        signed=False,
        finer=True,
    ),
    "attention": Method(
        attention,
        "Attention",
        "Attention shows where the captioner looked for the word, whether or not it affected the "
        "word. It shows no evidence against a word, and nothing about the previous words.",
        signed=False,
    ),
    "gradient_rollout": Method(
        gradient_rollout,
        "Gradient x rollout",
        "Gradient x rollout follows attention through all layers of the captioner, each weight as "
        "much as the word's score depends on it. It shows no evidence against a word.",
        signed=False,
    ),
    "gradient_input": Method(
        gradient_input,
        "Gradient x input",
        "Gradient x input multiplies each pixel by how strongly the word's score depends on it.",
        finer=True,
    ),
    "guided_backpropagation": Method(
        guided_backpropagation,
        "Guided backpropagation",
        "Guided backpropagation shows which pixels the word's score depends on, along paths "
        "through the encoder that raise it. It does not say which speak against it.",
        signed=False,
        finer=True,
    ),
    "occlusion": Method(
        occlusion,
        "Occlusion",
        "Occlusion hides one part of the picture, or one previous word, at a time, and shows how "
        "much the word's score falls.",
        of_black_boxes=True,
    ),
}


METHODS = Registry("methods", Method, "explain: no method is called", _METHODS)


def list_methods() -> list[str]:
    """Names of the explanation methods.

    >>> "lrp" in list_methods()
    True
    """
    return METHODS.names()


def find_method(name: str) -> Method:
    """A method by its name; an error names the nearest one there is.

    >>> find_method("grad_cam").label
    'Grad-CAM'
    """
    return METHODS.find(name)


def explain_captions(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    words: str | Sequence[Target] = "all",
    method: str = "lrp",
    pictures: Sequence[EncodedPicture] = (),
    encoder: Encoder | None = None,
    *,
    pixels: bool | None = None,
    **options: Any,
) -> list[list[Explanation]]:
    """Explain why captions, one for each picture, have their words, or do not have others.

    Captions are word ids without start and end. `words` selects the targets, as described in
    `find_targets`. `options` are passed to the method. Without `pictures` and the `encoder` that
    made their regions, explanations end at the regions; so do those of an encoder without pixels.
    `pixels` asks to go on to them, or not to; by default the encoder decides.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("soft_attention", 6, 5, {"state_width": 4}).eval()
    >>> regions = Regions(torch.ones(2, 3, 5), torch.ones(2, 3) > 0, torch.zeros(2, 3, 4))
    >>> vocabulary = Vocabulary(["a", "cat"])
    >>> explained = explain_captions(model, vocabulary, regions, [[4, 5], [5]])
    >>> [[why.word for why in explanations] for explanations in explained]
    [['a', 'cat'], ['cat']]
    """
    chosen = find_method(method)
    _check_options(method, chosen, options)
    if model.black_box and not chosen.of_black_boxes:
        raise NotApplicableError(f"{chosen.label}: {model.black_box}")
    targets = [find_targets(words, caption, vocabulary) for caption in captions]
    shown: Sequence[EncodedPicture | None] = pictures or [None] * len(captions)
    # The pieces of a word that is not said follow each other in no caption that is given.
    spelled = [
        [n for n, target in enumerate(of_caption) if _is_spelled_elsewhere(target, caption)]
        for caption, of_caption in zip(captions, targets, strict=True)
    ]
    if any(spelled):
        return _explain_spelled(
            model,
            vocabulary,
            regions,
            captions,
            targets,
            spelled,
            method,
            shown,
            encoder,
            pixels,
            options,
        )
    # No word is explained by later ones: they are left out.
    tokens = [
        [START, *caption][: max((t.start + len(t.ids) for t in of_caption), default=1)]
        for caption, of_caption in zip(captions, targets, strict=True)
    ]
    if not any(targets):
        return [[] for _ in targets]
    device = regions.vectors.device
    pieces = [
        [(target.start + n, piece) for target in of_caption for n, piece in enumerate(target.ids)]
        for of_caption in targets
    ]
    # Shorter captions are filled up with nothing, fewer targets with one that is not answered.
    places, ids = _rectangle([p or [(0, PAD)] for p in pieces], (0, PAD), device).unbind(-1)
    x = None
    goes_on = pixels if pixels is not None else encoder is None or not encoder.stops_at_regions
    if encoder is not None and encoder.sees_pixels and pictures and goes_on:
        x = encoder.normalise(torch.cat([picture.pixels for picture in pictures]))
    tensors = Targets(
        model, regions, _rectangle(tokens, PAD, device)[:, None], places, ids, encoder, x
    )
    attribution = chosen.attribute(tensors, **options)
    return [
        _describe(method, vocabulary, attribution, regions, b, captions[b], targets[b], shown[b])
        for b in range(len(captions))
    ]


def _check_options(name: str, method: Method, options: dict[str, Any]) -> None:
    parameters = list(inspect.signature(method.attribute).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for option in options:
        if option not in known:
            hint = nearest(option, known) if known else "it has none"
            raise ConfigError(f"explain: {name} has no option '{option}'; {hint}")


def _is_spelled_elsewhere(target: WordTarget, caption: Sequence[int]) -> bool:
    _, _, start, ids = target
    return len(ids) > 1 and tuple(caption[start : start + len(ids)]) != ids


def _explain_spelled(
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Sequence[int]],
    targets: Sequence[Sequence[WordTarget]],
    spelled: Sequence[Sequence[int]],
    method: str,
    shown: Sequence[EncodedPicture | None],
    encoder: Encoder | None,
    pixels: bool | None,
    options: dict[str, Any],
) -> list[list[Explanation]]:
    """Each word of several pieces that is not said, as the end of a caption that says it."""

    def explain(b: int, caption: Sequence[int], asked: Sequence[Target]) -> list[Explanation]:
        picture = shown[b]
        return explain_captions(
            model,
            vocabulary,
            regions[[b]],
            [caption],
            asked,
            method,
            [] if picture is None else [picture],
            encoder,
            pixels=pixels,
            **options,
        )[0]

    explained = []
    for b, (caption, of_caption) in enumerate(zip(captions, targets, strict=True)):
        asked: list[Target] = [
            (t.place, t.text) for n, t in enumerate(of_caption) if n not in spelled[b]
        ]
        others = iter(explain(b, caption, asked))
        explained.append(
            [
                explain(b, [*caption[: target.start], *target.ids], [target.place])[0]
                if n in spelled[b]
                else next(others)
                for n, target in enumerate(of_caption)
            ]
        )
    return explained


def _rectangle(rows: Sequence[Sequence[Any]], filling: Any, device: torch.device) -> Tensor:
    length = max(len(row) for row in rows)
    filled = [[*row, *[filling] * (length - len(row))] for row in rows]
    return torch.tensor(filled, device=device)


def _describe(
    method: str,
    vocabulary: Vocabulary,
    attribution: Attribution,
    regions: Regions,
    b: int,
    caption: Sequence[int],
    targets: Sequence[WordTarget],
    picture: EncodedPicture | None,
) -> list[Explanation]:
    """The explanations of picture `b`. A word's relevance is the sum of its pieces'."""
    heatmaps = None if picture is None else _upsample(attribution, regions, picture, b)
    visible = regions.mask[b]
    boxes = tuple(tuple(box) for box in regions.boxes[b][visible].tolist())
    spans = vocabulary.spans(caption)
    explanations = []
    first = 0
    for place, text, start, ids in targets:
        rows = slice(first, first + len(ids))
        first += len(ids)
        of_pieces = attribution.words[b, rows].sum(0)
        previous = [
            of_pieces[0],
            *(of_pieces[1 + span.start : 1 + span.stop].sum() for span in spans[:place]),
        ]
        # What later pieces owe to the word's own first ones is of no other word.
        of_itself = float(of_pieces[1 + start : start + len(ids)].sum())
        heatmap = None if heatmaps is None else heatmaps[rows].sum(0)
        explanations.append(
            Explanation(
                method=method,
                word=text,
                place=place,
                total=float(attribution.total[b, rows].sum()),
                regions=attribution.regions[b, rows].sum(0)[visible].float().cpu().numpy(),
                boxes=boxes,
                previous=(SPECIAL[START], *(span.text for span in spans[:place])),
                words=torch.stack(previous).float().cpu().numpy(),
                heatmap=None if heatmap is None else heatmap.float().cpu().numpy(),
                bias=_number(attribution.bias, b, rows) + of_itself,
                epsilon=_number(attribution.epsilon, b, rows),
                encoder=_number(attribution.encoder, b, rows),
                picture=None if picture is None else picture.image,
            )
        )
    return explanations


def _upsample(
    attribution: Attribution, regions: Regions, picture: EncodedPicture, b: int
) -> Tensor:
    """Relevance `(N, H, W)` with the pixels of the picture."""
    if attribution.pixels is not None:
        return upsample(attribution.pixels[b], picture.window[0], picture.size)
    return upsample_boxes(attribution.regions[b], regions.boxes[b], picture.size)


def _number(absorbed: Tensor | None, b: int, rows: slice) -> float:
    return 0.0 if absorbed is None else float(absorbed[b, rows].sum())
