"""A detector of words: which words would people say of a picture? It never reads a caption.

A captioner that mistakes a cup for a telephone believes itself. The detector is a second opinion,
from the same regions: for each frequent word the probability that a reference caption says it, as
the detectors of Fang et al. (2015, "From captions to visual concepts and back"), but of the whole
picture at once, which takes no longer than a word of the captioner.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.errors import DataError
from sightline.metrics.word_labels import LabelIndex
from sightline.progress import progress
from sightline.regions import Regions
from sightline.text.stemmer import stem
from sightline.text.stop_words import is_content
from sightline.text.tokenizer import tokenize

FEWEST_PICTURES = 1000  # to learn from
_RAREST = 0.002  # share of the pictures whose captions say a word that is detected
_MOST = 1000  # words
_WIDTH = 384
_EPOCHS, _BATCH, _RATE, _DECAY, _DROPOUT = 8, 256, 0.002, 0.01, 0.4
_FEWEST_STEPS = 300  # of small datasets, more epochs


@dataclass(frozen=True, eq=False)
class WordDetector:
    """Two layers over the mean and the maximum of a picture's regions; a logit for each word.

    Words of one stem are one word. `prior` has the log-odds of each stem among all pictures.

    >>> detector = WordDetector(
    ...     ("dog",), torch.tensor([-1.0]), torch.eye(2), torch.zeros(2), torch.ones(1, 2),
    ...     torch.zeros(1),
    ... )
    >>> regions = Regions(torch.ones(1, 3, 1), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> detector.scores(regions, [["dogs", "cat"]])
    [[(3.0, -1.0), (0.0, -1.0)]]
    """

    stems: tuple[str, ...]
    prior: Tensor  # (N,)
    hidden_weight: Tensor  # (H, 2 D)
    hidden_bias: Tensor
    weight: Tensor  # (N, H)
    bias: Tensor

    def logits(self, regions: Regions) -> Tensor:
        """The log-odds `(B, N)` that a caption of each picture says each word."""
        picture = pooled(regions).to(self.hidden_weight)
        hidden = functional.linear(picture, self.hidden_weight, self.hidden_bias).relu()
        return functional.linear(hidden, self.weight, self.bias)

    @torch.no_grad()
    def scores(
        self, regions: Regions, words: Sequence[Sequence[str]]
    ) -> list[list[tuple[float, float]]]:
        """For the words of each picture the evidence for it, and its prior, both in log-odds.

        They add up to the log-odds that the word is right. For a word that it cannot detect, there
        is no evidence either way, and it is as rare as the rarest.
        """
        number = {each: n for n, each in enumerate(self.stems)}
        evidence = (self.logits(regions) - self.prior).tolist()
        prior, rarest = self.prior.tolist(), float(self.prior.min())

        def score(row: list[float], word: str) -> tuple[float, float]:
            n = number.get(stem(word))
            return (0.0, rarest) if n is None else (row[n], prior[n])

        return [
            [score(row, word) for word in said] for row, said in zip(evidence, words, strict=True)
        ]

    def to(self, device: torch.device | str) -> "WordDetector":
        """The same on another device."""
        return WordDetector(self.stems, *(tensor.to(device) for tensor in self._tensors()))

    def pack(self) -> tuple[dict[str, Tensor], list[str]]:
        """Its tensors, by their names in a file, and its stems."""
        named = zip(_NAMES, self._tensors(), strict=True)
        return {name: tensor.half() for name, tensor in named}, list(self.stems)

    @classmethod
    def unpack(cls, stems: Sequence[str], tensors: dict[str, Tensor]) -> "WordDetector":
        """What `pack` gave; a `ValueError` if its parts do not fit together."""
        parts = [tensors[name].float() for name in _NAMES]
        (width, inputs), count = parts[1].shape, len(stems)
        shapes = [(count,), (width, inputs), (width,), (count, width), (count,)]
        if [tuple(part.shape) for part in parts] != shapes:
            raise ValueError("the detector's parts do not fit together")
        if not all(part.isfinite().all() for part in parts):
            raise ValueError("the detector has numbers that are not finite")
        return cls(tuple(map(str, stems)), *parts)

    def _tensors(self) -> list[Tensor]:
        return [self.prior, self.hidden_weight, self.hidden_bias, self.weight, self.bias]


_NAMES = [
    f"detector.{part}" for part in ("prior", "hidden_weight", "hidden_bias", "weight", "bias")
]


def pooled(regions: Regions) -> Tensor:
    """The mean and the maximum `(B, 2 D)` of each picture's regions."""
    mask = regions.mask[..., None]
    mean = (regions.vectors * mask).sum(1) / mask.sum(1).clamp(min=1)
    highest = regions.vectors.masked_fill(~mask, float("-inf")).amax(1)
    return torch.cat([mean, highest], 1)


def fit_detector(
    batches: Iterable[Regions], references: Sequence[Sequence[str]], *, show_progress: bool = False
) -> WordDetector:
    """Learn from the regions of training pictures and their captions, by cross-entropy."""
    if len(references) < FEWEST_PICTURES:
        raise DataError(f"a detector of words needs at least {FEWEST_PICTURES:,} pictures")
    bar = progress(None, "pooling", total=len(references), unit="picture", show=show_progress)
    with bar:
        rows = []
        for regions in batches:
            rows.append(pooled(regions).half())
            bar.update(len(regions))
    features = torch.cat(rows)
    words = _frequent_words(references)
    index = LabelIndex(words)
    targets = torch.zeros(len(references), len(words), dtype=torch.bool)
    for row, captions in zip(targets, references, strict=True):
        row[sorted(index.confirmed(captions))] = True
    prior = torch.logit(targets.float().mean(0), eps=1e-4)
    mean, scale = features.float().mean(0), features.float().std(0) + 1e-3
    network = _train((features - mean) / scale, targets, prior, show_progress)
    hidden, output = network[1], network[4]
    # What is stored reads regions as they are, and in half precision.
    weight = hidden.weight / scale
    parts = (prior, weight, hidden.bias - weight @ mean, output.weight, output.bias)
    stems = tuple(stem(word) for word in words)
    return WordDetector(stems, *(part.detach().half().float() for part in parts))


def _frequent_words(references: Sequence[Sequence[str]]) -> list[str]:
    """The most frequent word of each stem that enough pictures are described by."""
    words: Counter[str] = Counter()
    for captions in references:
        words.update({token for caption in captions for token in tokenize(caption)})
    pictures: Counter[str] = Counter()
    word_of: dict[str, str] = {}
    for word, count in words.most_common():
        if is_content(word):
            pictures[stem(word)] += count
            word_of.setdefault(stem(word), word)
    fewest = _RAREST * len(references)
    return [word_of[each] for each, count in pictures.most_common(_MOST) if count >= fewest]


def _train(features: Tensor, targets: Tensor, prior: Tensor, show_progress: bool) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Dropout(_DROPOUT),
            nn.Linear(features.shape[1], _WIDTH),
            nn.ReLU(),
            nn.Dropout(_DROPOUT),
            nn.Linear(_WIDTH, targets.shape[1]),
        )
        nn.init.zeros_(network[4].weight)  # type: ignore[arg-type]
        network[4].bias.data.copy_(prior)  # type: ignore[operator]
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
        batches = len(features) // _BATCH
        epochs = max(_EPOCHS, -(-_FEWEST_STEPS // batches))
        steps = epochs * batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
        bar = progress(None, "learning words", total=steps, unit="step", show=show_progress)
        with bar:
            for _ in range(epochs):
                order = torch.randperm(len(features))[: batches * _BATCH]
                for rows in order.view(batches, _BATCH):
                    logits = network(features[rows].float())
                    wanted = targets[rows].float()
                    loss = functional.binary_cross_entropy_with_logits(logits, wanted)
                    optimizer.zero_grad()
                    torch.autograd.backward(loss * targets.shape[1])
                    optimizer.step()
                    schedule.step()
                    bar.update()
    return network
