"""Scores without references: how well a caption fits its picture, by a CLIP that the user names.

CLIPScore (Hessel et al. 2021, eq. 1) is w max(cos(caption, picture), 0) with w = 2.5, and
RefCLIPScore (eq. 2) the harmonic mean of it and of max(max over references of cos(caption,
reference), 0). PAC-S (Sarto et al. 2023) is the same with w = 2, of a CLIP that was tuned with
positive augmentation. As in the authors' tools, captions are prefixed by "A photo depicts". The
scale w and the folder of the weights are part of a score's name: scores of different weights or
scales cannot be compared.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sightline.errors import DataError
from sightline.metrics.clip_model import clip_model
from sightline.metrics.score import Floats, Score
from sightline.pictures import Picture
from sightline.progress import progress

SCALES = {"CLIPScore": 2.5, "PAC-S": 2.0}
_PREFIX = "A photo depicts "
_TOGETHER = 32  # pictures
_LONG_WORK = 200  # pictures; fewer take seconds


def clipscore(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    pictures: Sequence[Picture],
    clip: Path | str,
    *,
    name: str = "CLIPScore",
) -> tuple[Score, ...]:
    """CLIPScore, and RefCLIPScore if every picture has references; or PAC-S and RefPAC-S.

    `clip` is a folder in the layout of `transformers`: a `CLIPModel` in safetensors, and its
    tokenizer. Values are those of the papers, not times 100.

    >>> scores = clipscore(["a dog"], [[]], ["dog.jpg"], "clip-vit-base-patch32")  # doctest: +SKIP
    >>> scores[0].name  # doctest: +SKIP
    'CLIPScore (clip-vit-base-patch32 w=2.5)'
    """
    if not len(candidates) == len(references) == len(pictures):
        raise DataError(
            f"{name}: {len(candidates)} captions, {len(references)} lists of references and "
            f"{len(pictures)} pictures do not correspond"
        )
    if not candidates:
        raise DataError("there is nothing to score: no candidate was given")
    model = clip_model(Path(clip).resolve())
    has_references = all(references)
    fits, agrees = np.empty(len(candidates)), np.empty(len(candidates))
    starts = range(0, len(candidates), _TOGETHER)
    work = progress(starts, name, total=len(starts), unit="part", show=len(pictures) >= _LONG_WORK)
    for first in work:
        some = slice(first, first + _TOGETHER)
        texts = [*candidates[some]]
        owners = [n for n, said in enumerate(references[some]) for _ in said]
        texts += [text for said in references[some] for text in said]
        seen, said = model.embed(pictures[some], [_PREFIX + text for text in texts])
        count = len(seen)
        fits[some] = (seen * said[:count]).sum(-1).double().numpy()
        if has_references:
            alike = (said[count:] * said[:count][owners]).sum(-1).double().numpy()
            best = np.full(count, -np.inf)
            np.maximum.at(best, owners, alike)
            agrees[some] = best
    values = SCALES[name] * np.maximum(fits, 0)
    label = f"({Path(clip).resolve().name} w={SCALES[name]:g})"
    scores = [Score(f"{name} {label}", float(values.mean()), values)]
    if has_references:
        both = _harmonic_mean(values, np.maximum(agrees, 0))
        scores.append(Score(f"Ref{name} {label}", float(both.mean()), both))
    return tuple(scores)


def _harmonic_mean(one: Floats, other: Floats) -> Floats:
    total = one + other
    return np.divide(2 * one * other, total, out=np.zeros_like(total), where=total > 0)
