"""The support of the words of captions: the captioner's own, or given by somebody else."""

import dataclasses
from collections.abc import Sequence

from sightline.captions import Caption, Support
from sightline.models.interface import CaptionModel
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier
from sightline.text.vocabulary import Vocabulary


def check_captions(
    classifier: SupportClassifier,
    model: CaptionModel,
    vocabulary: Vocabulary,
    regions: Regions,
    captions: Sequence[Caption],
    ids: Sequence[Sequence[int]],
    rows: Sequence[int],
) -> list[Caption]:
    """Captions with the support of their words, which have `ids`.

    `rows` numbers the picture of each. A caption that was given is judged as such, if the
    classifier was fitted for that.
    """
    checked: list[list[Support | None]] = [[] for _ in captions]
    foreign = [n for n, caption in enumerate(captions) if caption.given and classifier.foreign]
    others = [n for n in range(len(captions)) if n not in set(foreign)]
    if others:
        of_others = regions[[rows[n] for n in others]]
        supports = classifier.check(model, vocabulary, of_others, [ids[n] for n in others])
        for n, support in zip(others, supports, strict=True):
            checked[n] = support
    if foreign and classifier.foreign:
        supports = classifier.foreign.check(
            model,
            vocabulary,
            regions,
            [ids[n] for n in foreign],
            [rows[n] for n in foreign],
            classifier.reference_regions,
            classifier.detector,
        )
        for n, support in zip(foreign, supports, strict=True):
            checked[n] = support
    return [
        dataclasses.replace(
            caption,
            words=tuple(
                dataclasses.replace(word, support=support)
                for word, support in zip(caption.words, supports, strict=True)
            ),
        )
        for caption, supports in zip(captions, checked, strict=True)
    ]
