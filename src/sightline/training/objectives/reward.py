"""What a caption is worth in self-critical training: a weighted sum of metrics."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sightline.config import nearest
from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError
from sightline.metrics.reward import CiderReward
from sightline.metrics.score import Floats
from sightline.metrics.scoring import check_metrics, score
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import END, PAD, Vocabulary

# What a recipe calls a metric, the metric that computes it, and the score's name there.
_SCORES = {
    "bleu1": ("bleu", "BLEU-1"),
    "bleu2": ("bleu", "BLEU-2"),
    "bleu3": ("bleu", "BLEU-3"),
    "bleu4": ("bleu", "BLEU-4"),
    "rouge_l": ("rouge-l", "ROUGE-L"),
    "meteor": ("meteor", "METEOR"),
    "chair": ("chair", "CHAIRi"),  # the share of a caption's objects that no reference names
}
REWARDS = ("cider_d", *_SCORES)


def check_weights(weights: dict[str, float]) -> None:
    """Refuse metrics that no reward can be made of.

    >>> check_weights({"cider": 1.0})
    Traceback (most recent call last):
    sightline.errors.ConfigError: objective.reward: no metric is called 'cider'; did you mean \
'cider_d'?
    """
    if not weights:
        raise ConfigError(f"objective.reward: give a metric, one of {', '.join(REWARDS)}")
    for name in weights:
        if name not in REWARDS:
            hint = nearest(name, list(REWARDS))
            raise ConfigError(f"objective.reward: no metric is called '{name}'; {hint}")
    if weights.get("chair", -1.0) >= 0:
        raise ConfigError(
            "objective.reward: give chair a weight below 0, as it is the share of made-up objects"
        )
    check_metrics([_SCORES[name][0] for name in weights if name in _SCORES])


class Reward:
    """The reward of captions of training pictures, given as word ids.

    CIDEr-D is computed on ids, over references counted once, with the document frequencies of these
    pictures; the other metrics read the captions as text. A word of the references that the
    vocabulary lacks gets an id of its own, so that the reward is the metric's own value.
    """

    def __init__(
        self,
        weights: dict[str, float],
        images: Sequence[CaptionedImage],
        vocabulary: Vocabulary,
        count_end: bool = True,
    ) -> None:
        check_weights(weights)
        self.weights, self.vocabulary = weights, vocabulary
        self.references = [image.captions for image in images]
        if "cider_d" in weights:
            unknown: dict[str, int] = {}
            ids = [
                [
                    [
                        vocabulary.id(word)
                        if word in vocabulary
                        else unknown.setdefault(word, len(vocabulary) + len(unknown))
                        for word in tokenize(caption)
                    ]
                    for caption in captions
                ]
                for captions in self.references
            ]
            self.cider = CiderReward(ids, END, count_end)

    def __call__(self, tokens: Tensor, images: Tensor) -> Tensor:
        """The rewards `(B, S)` of captions `(B, S, T)` of the pictures `images` `(B,)`."""
        pictures, samples, _ = tokens.shape
        rows = tokens.flatten(0, 1).cpu().numpy()
        which = images.cpu().numpy().repeat(samples)
        total: Floats = np.zeros(len(rows))
        if "cider_d" in self.weights:
            ended = np.where(rows == PAD, END, rows)
            total += self.weights["cider_d"] * self.cider.score_ids(ended, which)
        read = {name: _SCORES[name] for name in self.weights if name in _SCORES}
        if read:
            captions = [self.vocabulary.decode(row) for row in rows.tolist()]
            references = [self.references[image] for image in which]
            metrics = list(dict.fromkeys(metric for metric, _ in read.values()))
            scores = score(captions, references, metrics)
            for name, (_, score_name) in read.items():
                total += self.weights[name] * scores[score_name].per_image
        return torch.from_numpy(total).float().view(pictures, samples).to(tokens.device)
