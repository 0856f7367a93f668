"""`Captioner`: a picture in; captions with everything that is known of their words out."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sightline.captions import Caption, Unsaid, Word
from sightline.checkpoint import find_checkpoint, load_config, load_encoder, load_model
from sightline.data.vocabulary import END, PAD, Vocabulary
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.ensemble import Ensemble
from sightline.decoding.hypotheses import Hypotheses
from sightline.decoding.words import describe_words
from sightline.encoders.encoder import Encoder
from sightline.encoders.regions import Regions
from sightline.errors import ConfigError
from sightline.explain.explanation import Explanation
from sightline.explain.methods import Sight, explain_all
from sightline.explain.questions import Asked
from sightline.explain.support import Judge, has_judge, load_judge
from sightline.metrics.tokenizer import tokenize
from sightline.models.interface import CaptionModel, Memory
from sightline.pictures import open_picture

Picture = Path | str | bytes | Image

# What captioners must have in common to be averaged, as their configuration calls it.
_SHARED = {"vocabulary": "vocabulary", "encoder": "encoder", "tuned": "tuned encoder"}
EXPLAINED_TOGETHER = 4  # pictures: their feature maps take some 150 megabytes each


class Captioner:
    """An image encoder, a captioner and its words, ready for pictures.

    >>> captioner = sightline.load()  # doctest: +SKIP
    >>> captioner.caption("photo.jpg").text  # doctest: +SKIP
    'a dog runs through the grass'
    """

    def __init__(
        self,
        encoder: Encoder,
        model: CaptionModel,
        vocabulary: Vocabulary,
        options: BeamOptions | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self.encoder, self.model, self.vocabulary = encoder, model.eval(), vocabulary
        self.options = options or BeamOptions()
        self.checkpoint = checkpoint  # the folder it comes from, if it comes from one

    @classmethod
    def load(cls, *paths: Path | str) -> "Captioner":
        """From a checkpoint folder or a training run; from several, their ensemble.

        From nothing: the captioner that comes with the package.
        """
        folders = [find_checkpoint(Path(path)) for path in paths] or [find_checkpoint()]
        configs = [load_config(folder) for folder in folders]
        for folder, config in zip(folders[1:], configs[1:], strict=True):
            for part, name in _SHARED.items():
                if config.get(part) != configs[0].get(part):
                    raise ConfigError(
                        f"{folder}: has another {name} than {folders[0]}; only captioners with the "
                        f"same {name} can be averaged"
                    )
        loaded = [
            load_model(folder, config) for folder, config in zip(folders, configs, strict=True)
        ]
        model = loaded[0][0] if len(loaded) == 1 else Ensemble([model for model, _ in loaded])
        options = BeamOptions().changed(
            configs[0].get("decoding", {}), f"{folders[0] / 'config.json'}: decoding"
        )
        encoder = load_encoder(folders[0], configs[0])
        checkpoint = folders[0] if len(folders) == 1 else None
        return cls(encoder, model, loaded[0][1], options, checkpoint)

    @overload
    def caption(self, pictures: Picture, **options: Any) -> Caption: ...
    @overload
    def caption(self, pictures: Sequence[Picture], **options: Any) -> list[Caption]: ...
    def caption(self, pictures: Picture | Sequence[Picture], **options: Any) -> Any:
        """The best caption of a picture, or of each picture of a list.

        Options are those of `captions`.
        """
        if isinstance(pictures, Path | str | bytes | Image):
            return self.captions([pictures], **options)[0][0]
        return [best[0] for best in self.captions(pictures, **options)]

    def captions(
        self,
        pictures: Sequence[Picture],
        *,
        alternatives: int = 5,
        avoid: Sequence[str] = (),
        require: Sequence[str] = (),
        check: bool = False,
        **options: Any,
    ) -> list[list[Caption]]:
        """The `n_best` captions of each picture, best first.

        `options` are fields of `BeamOptions` (`beam`, `n_best`, `groups` …) and of `Constraints`
        (`max_length`, `no_repeat_ngram` …); `avoid` and `require` are words. With `check`, the
        words have their support, as `check` gives it.
        """
        search = self._search_options(options, avoid, require)
        judge = self.judge if check else None
        opened = [self.open(picture) for picture in pictures]
        if not opened:
            return []
        regions = self.regions(opened)
        with torch.no_grad():
            memory = self.model.encode(regions)
            found = beam_search(self.model, memory, search)
            if found.scores[:, 0].isneginf().any():
                raise ConfigError("no caption meets these limits: ask for less")
            captions = self._describe(found, memory, regions, opened, alternatives)
        if judge is None:
            return captions
        # One row for each caption, in order: a picture with three of them is there three times.
        rows = torch.tensor([b for b, own in enumerate(captions) for _ in own])
        checked = iter(self._check(judge, regions[rows], [c for own in captions for c in own]))
        return [[next(checked) for _ in own] for own in captions]

    def check(self, picture: Picture, caption: Caption) -> Caption:
        """The same caption with the support of its content words by the picture.

        The checkpoint must have been fitted for it: `sightline fit-support`.

        >>> caption = captioner.check("photo.jpg", caption)  # doctest: +SKIP
        >>> [word.text for word in caption.unsupported]  # doctest: +SKIP
        ['frisbee']
        """
        return self._check(self.judge, self.regions([self.open(picture)]), [caption])[0]

    @property
    def can_check(self) -> bool:
        """Whether `check` works: the captioner comes from a checkpoint that was fitted for it."""
        return self.checkpoint is not None and has_judge(self.checkpoint)

    @functools.cached_property
    def judge(self) -> Judge:
        """What decides whether words are supported, as the checkpoint holds it."""
        if self.checkpoint is None:
            raise ConfigError(
                "to check words takes one captioner from a checkpoint, to which that was fitted; "
                "not several, or one made in memory"
            )
        return load_judge(self.checkpoint)

    def _check(self, judge: Judge, regions: Regions, captions: Sequence[Caption]) -> list[Caption]:
        """Captions, one for each picture, with the support of their words."""
        ids = [[self.vocabulary.id(word.text) for word in caption.words] for caption in captions]
        checked = judge.check(self.model, self.vocabulary, regions, ids)
        return [
            dataclasses.replace(
                caption,
                words=tuple(
                    dataclasses.replace(word, support=support)
                    for word, support in zip(caption.words, own, strict=True)
                ),
            )
            for caption, own in zip(captions, checked, strict=True)
        ]

    def read(self, picture: Picture, caption: str, *, alternatives: int = 5) -> Caption:
        """A caption that somebody else gave, with what this captioner has to say of its words.

        >>> captioner.read("photo.jpg", "A cat sleeps.").words[1].alternatives  # doctest: +SKIP
        (('dog', -0.3), …)
        """
        tokens = tokenize(caption)
        if not tokens:
            raise ConfigError(f"the caption '{caption}' has no words")
        ids = self._ids(tokens)
        return self._read(self.open(picture), [[*ids, END]], alternatives)[0]

    def unsaid(
        self, picture: Picture, caption: Caption, word: str, place: int | None = None
    ) -> Unsaid:
        """A word that a caption does not say: how likely it was, and what was likelier.

        It is asked for at a `place` (from 0; one past the last word is the end) or, without one,
        where it is likeliest.

        >>> captioner.unsaid("photo.jpg", caption, "cat").place  # doctest: +SKIP
        1
        """
        ids = [self.vocabulary.id(own.text) for own in caption.words]
        (other,) = self._ids([word])
        if place is None and other in ids:
            raise ConfigError(f"the caption does say '{word}'; to ask of another place, name it")
        if place is not None and not 0 <= place <= len(ids):
            raise ConfigError(f"the caption has {len(ids)} words, and no place {place}")
        if place is not None and ids[place : place + 1] == [other]:
            raise ConfigError(f"the caption does say '{word}' there; name another place")
        rows = [[*ids[:before], other] for before in range(len(ids) + 1)]
        words = [row.words[-1] for row in self._read(self.open(picture), rows, alternatives=5)]
        everywhere = tuple(own.log_probability for own in words)
        if place is None:
            place = int(np.argmax(everywhere))
        return Unsaid(words[place], place, everywhere)

    @overload
    def explain(
        self, pictures: Picture, captions: Caption | str | None = None, **options: Any
    ) -> list[Explanation]: ...
    @overload
    def explain(
        self,
        pictures: Sequence[Picture],
        captions: Sequence[Caption | str] | None = None,
        **options: Any,
    ) -> list[list[Explanation]]: ...
    def explain(
        self,
        pictures: Picture | Sequence[Picture],
        captions: Any = None,
        *,
        words: str | Sequence[Asked] = "all",
        method: str = "lrp",
        **options: Any,
    ) -> Any:
        """What the words of a caption come from: of the picture, and of the words before.

        Of a list of pictures, a list for each. The captions are the captioner's own unless they
        are given. `words` is "all", or a list of places (from 0), of words that the caption says,
        or of pairs of a place and a word: why is, or is not, that word there? `options` are those
        of the method.

        >>> captioner.explain("photo.jpg", words=[(1, "cat")])  # doctest: +SKIP
        [Explanation(method='lrp', word='cat', place=1, …)]
        """
        if isinstance(pictures, Path | str | bytes | Image):
            given = None if captions is None else [captions]
            return self.explain([pictures], given, words=words, method=method, **options)[0]
        opened = [self.open(picture) for picture in pictures]
        said = self.caption(opened) if captions is None else captions
        if len(said) != len(opened):
            raise ConfigError(f"explain: {len(said)} captions of {len(opened)} pictures")
        ids = [self.vocabulary.encode(c if isinstance(c, str) else c.text) for c in said]
        found: list[list[Explanation]] = []
        for first in range(0, len(opened), EXPLAINED_TOGETHER):
            some = slice(first, first + EXPLAINED_TOGETHER)
            found += self._explain(opened[some], ids[some], words, method, options)
        return found

    def _explain(
        self,
        opened: Sequence[Image],
        captions: Sequence[Sequence[int]],
        words: str | Sequence[Asked],
        method: str,
        options: dict[str, Any],
    ) -> list[list[Explanation]]:
        pixels, windows = self._prepare(opened)
        sights = [
            Sight(self.encoder, x, window, (picture.height, picture.width))
            for x, window, picture in zip(
                torch.split(self.encoder.normalise(pixels), 1), windows, opened, strict=True
            )
        ]
        regions = self._encode(pixels, windows)
        found = explain_all(
            self.model, self.vocabulary, regions, captions, words, method, sights, **options
        )
        return [
            [dataclasses.replace(why, photograph=picture) for why in own]
            for own, picture in zip(found, opened, strict=True)
        ]

    def _read(
        self, picture: Image, rows: Sequence[Sequence[int]], alternatives: int
    ) -> list[Caption]:
        """Given words of a picture, a caption for each row, by one parallel pass."""
        regions = self.regions([picture])
        tokens = pad_sequence([torch.tensor(row) for row in rows], True, PAD)[None]
        with torch.no_grad():
            memory = self.model.encode(regions)
            log_probs = describe_words(self.model, memory, tokens, 1).log_probs.sum(-1)
            scores = log_probs / (tokens != PAD).sum(-1) ** self.options.length_power
            given = Hypotheses(tokens, log_probs, scores)
            return self._describe(given, memory, regions, [picture], alternatives)[0]

    def regions(self, pictures: Sequence[Image]) -> Regions:
        """What the encoder sees of opened pictures."""
        return self._encode(*self._prepare(pictures))

    def _encode(self, pixels: Tensor, windows: Tensor) -> Regions:
        with torch.inference_mode():
            regions = self.encoder(pixels, windows)
        # Half precision, as in the cache that training reads: the same numbers in, the same out.
        return Regions(regions.vectors.half().float(), regions.mask.clone(), regions.boxes.clone())

    def open(self, picture: Picture) -> Image:
        """A picture as `captions` takes it, opened once; or a `PictureError`."""
        if isinstance(picture, Image):
            return picture.convert("RGB")
        return open_picture(picture, reduced_to=2 * self.encoder.preprocessing.size)

    def _prepare(self, pictures: Sequence[Image]) -> tuple[Tensor, Tensor]:
        """Pixels `(B, size, size, 3)` and the windows `(B, 4)` that they show."""
        prepared = [self.encoder.preprocessing.prepare(picture) for picture in pictures]
        pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared]))
        return pixels, torch.tensor([window for _, window in prepared])

    def _search_options(
        self, options: dict[str, Any], avoid: Sequence[str], require: Sequence[str]
    ) -> BeamOptions:
        options = {**options, "avoid": self._ids(avoid), "require": self._ids(require)}
        # A list of five needs at least five beams; nobody wants to be told so.
        options["beam"] = max(options.get("beam", self.options.beam), options.get("n_best", 1))
        return self.options.changed(options)

    def _ids(self, words: Sequence[str]) -> tuple[int, ...]:
        unknown = [f"'{word}'" for word in words if word not in self.vocabulary]
        if unknown:
            kind = "word" if len(unknown) == 1 else "words"
            raise ConfigError(f"the captioner does not know the {kind} {', '.join(unknown)}")
        return tuple(self.vocabulary.id(word) for word in words)

    def _describe(
        self,
        found: Hypotheses,
        memory: Memory,
        regions: Regions,
        pictures: Sequence[Image],
        alternatives: int,
    ) -> list[list[Caption]]:
        details = describe_words(self.model, memory, found.tokens, alternatives)
        captions = []
        for b, picture in enumerate(pictures):
            there = regions.mask[b]
            boxes = tuple(tuple(box) for box in regions.boxes[b][there].tolist())
            own = []
            # Where fewer captions are possible than were asked for, the rest score -inf.
            for n in range(int(found.scores[b].isfinite().sum())):
                words = tuple(
                    Word(
                        text=self.vocabulary.words[token],
                        log_probability=float(details.log_probs[b, n, t]),
                        alternatives=tuple(
                            (self.vocabulary.words[i], float(p))
                            for i, p in zip(
                                details.alternatives[b, n, t].tolist(),
                                details.alternative_log_probs[b, n, t].tolist(),
                                strict=True,
                            )
                            if i != token
                        ),
                        attention=tuple(details.attention[b, n, t][there].tolist()),
                        signals={k: float(v[b, n, t]) for k, v in details.signals.items()},
                    )
                    for t, token in enumerate(found.tokens[b, n].tolist())
                    if token not in (END, PAD)
                )
                own.append(
                    Caption(
                        text=" ".join(word.text for word in words),
                        words=words,
                        log_probability=float(found.log_probs[b, n]),
                        score=float(found.scores[b, n]),
                        boxes=boxes,
                        picture=picture,
                    )
                )
            captions.append(own)
        return captions
