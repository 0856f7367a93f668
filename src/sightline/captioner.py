"""`Captioner`: a picture in; captions, their support and their explanations out."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image, Resampling
from PIL.Image import fromarray as image_of
from PIL.Image import new as new_image
from torch.nn.utils.rnn import pad_sequence

from sightline.adapters.source import Source, find_source
from sightline.adapters.wrap import Parts, adapt, load_parts
from sightline.captions import Caption, Counterfactual, Support, UnknownWord, Word
from sightline.checkpoint import find_checkpoint, load_config, load_encoder, load_model
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.description import describe_captions
from sightline.decoding.ensemble import Ensemble
from sightline.decoding.hypotheses import Hypotheses
from sightline.decoding.words import describe_words, next_words
from sightline.devices import choose_device
from sightline.encoded_picture import EncodedPicture, join_regions
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed import collate
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.errors import ConfigError, NotApplicableError
from sightline.explain.methods import explain_captions, find_method
from sightline.explain.targets import Target
from sightline.explanation import Explanation
from sightline.models.interface import CaptionModel
from sightline.pictures import Picture, open_picture
from sightline.progress import progress
from sightline.regions import Regions
from sightline.report.heatmaps import fit
from sightline.report.report import DEFAULT_METHODS, Report
from sightline.support.classifier import SupportClassifier, has_classifier, load_classifier
from sightline.support.familiarity import Familiarity, load_familiarity
from sightline.text.nearest import nearest_word
from sightline.text.stop_words import is_content
from sightline.text.tokenizer import tokenize
from sightline.text.vocabulary import END, PAD, SPECIAL, UNKNOWN, Vocabulary

AnyPicture = Picture | EncodedPicture
Prepared = tuple[NDArray[np.uint8], tuple[float, float, float, float]]  # pixels and their window
_ONE = (Path, str, bytes, Image, np.ndarray, EncodedPicture)

# What captioners must have in common to be averaged, as their configuration calls it.
_SHARED = {"vocabulary": "vocabulary", "encoder": "encoder", "tuned": "tuned encoder"}
EXPLAINED_TOGETHER = 4  # pictures: their feature maps take some 150 megabytes each
_AT_ONCE = 16  # pictures of 384 x 384 pixels or less that are encoded together
_BLANK = (224, 224)  # a picture of which only the features are there
SUPPORT_WEIGHT = 1.0  # chosen on COCO dev (docs/support.md)
_REPORT_SIDE = 1024  # pixels of the longer side of a report's picture: smaller than cameras take


class Captioner:
    """An image encoder, a captioning model and its vocabulary, ready to caption pictures.

    A picture is a path, the bytes of a file, a `PIL.Image` or an array. To caption, check and
    explain a picture without encoding it again, pass the result of `encode`.

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
    def load(cls, *paths: Path | str, device: str | torch.device = "auto") -> "Captioner":
        """Load a checkpoint folder or a training run; several of them make an ensemble.

        Without paths, load the bundled captioner. `hf:FOLDER` is a captioner of transformers.
        """
        place = choose_device(device)
        sources = [source for path in paths if (source := find_source(path)) is not None]
        if sources:
            return cls._adapt(sources, len(paths), place)
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
        return cls(encoder.to(place), model.to(place), loaded[0][1], options, checkpoint)

    @classmethod
    def _adapt(cls, sources: Sequence[Source], count: int, place: torch.device) -> "Captioner":
        """A captioner that is not ours."""
        if count > 1:
            raise ConfigError(f"{sources[0]}: only captioners of Sightline make an ensemble")
        captioner = _of_parts(load_parts(sources[0].name), sources[0].folder)
        captioner.encoder.to(place)
        captioner.model.to(place)
        return captioner

    @property
    def device(self) -> torch.device:
        """Where the captioner computes."""
        return next(self.model.parameters()).device

    # --- pictures -------------------------------------------------------------------------------

    def open(self, picture: Picture) -> Image:
        """Open a picture upright, decoded no larger than needed; raises a `PictureError`."""
        return open_picture(picture, reduced_to=2 * self.encoder.preprocessing.size)

    @overload
    def encode(self, pictures: AnyPicture) -> EncodedPicture: ...  # type: ignore[overload-overlap]
    @overload
    def encode(self, pictures: Sequence[AnyPicture]) -> list[EncodedPicture]: ...
    def encode(self, pictures: AnyPicture | Sequence[AnyPicture]) -> Any:
        """Open and encode a picture, or each of a list. Encoded pictures are returned unchanged.

        >>> picture = captioner.encode("photo.jpg")  # doctest: +SKIP
        >>> captioner.explain(picture, captioner.caption(picture))  # doctest: +SKIP
        """
        if isinstance(pictures, _ONE):
            return self.encode([pictures])[0]
        encoded = {n: p for n, p in enumerate(pictures) if isinstance(p, EncodedPicture)}
        if isinstance(self.encoder, PrecomputedEncoder):
            return [
                encoded[n] if n in encoded else self._look_up(self.encoder, p)  # type: ignore[arg-type]
                for n, p in enumerate(pictures)
            ]
        unseen = [n for n in range(len(pictures)) if n not in encoded]
        at_once = max(1, min(_AT_ONCE, _AT_ONCE * 384**2 // self.encoder.preprocessing.size**2))
        for start in range(0, len(unseen), at_once):
            numbers = unseen[start : start + at_once]
            images = [self.open(pictures[n]) for n in numbers]  # type: ignore[arg-type]
            encoded |= zip(numbers, self._encode(images), strict=True)
        return [encoded[n] for n in range(len(pictures))]

    def _encode(self, images: Sequence[Image]) -> list[EncodedPicture]:
        return self.encode_prepared([self.encoder.preprocessing.prepare(i) for i in images], images)

    def encode_prepared(
        self, prepared: Sequence[Prepared], images: Sequence[Image] | None = None
    ) -> list[EncodedPicture]:
        """Encode what `encoder.preprocessing` made of pictures, such as in other threads.

        Without `images`, the pictures are as the encoder sees them.
        """
        images = images or [image_of(pixels) for pixels, _ in prepared]
        pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared])).to(self.device)
        windows = torch.tensor([window for _, window in prepared], device=self.device)
        with torch.inference_mode():
            regions = self.encoder(pixels, windows)
        # Half precision, as in the cache that training reads: the same numbers in, the same out.
        vectors = regions.vectors.half().float() if self.encoder.cached else regions.vectors.clone()
        regions = Regions(vectors, regions.mask.clone(), regions.boxes.clone())
        return [
            EncodedPicture(image, pixels[n : n + 1], windows[n : n + 1], regions[[n]])
            for n, image in enumerate(images)
        ]

    def _look_up(self, encoder: PrecomputedEncoder, picture: Picture) -> EncodedPicture:
        """A picture whose regions are known by its name; it is blank if only they are there."""
        regions = collate([encoder.look_up(picture)])
        regions = Regions(regions.vectors.half().float(), regions.mask, regions.boxes)
        exists = Path(picture).exists()  # type: ignore[arg-type]
        image = self.open(picture) if exists else new_image("RGB", _BLANK, "white")
        whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]], device=self.device)
        no_pixels = torch.empty(1, 0, 0, 3, dtype=torch.uint8, device=self.device)
        return EncodedPicture(image, no_pixels, whole, regions.to(self.device))

    # --- captions -------------------------------------------------------------------------------

    @overload
    def caption(self, pictures: AnyPicture, **options: Any) -> Caption: ...
    @overload
    def caption(self, pictures: Sequence[AnyPicture], **options: Any) -> list[Caption]: ...
    def caption(self, pictures: AnyPicture | Sequence[AnyPicture], **options: Any) -> Any:
        """The best caption of a picture, or of each picture of a list.

        Options are those of `captions`.
        """
        if isinstance(pictures, _ONE):
            return self.captions([pictures], **options)[0][0]
        return [best[0] for best in self.captions(pictures, **options)]

    def captions(
        self,
        pictures: Sequence[AnyPicture],
        *,
        alternatives: int = 5,
        avoid: Sequence[str] = (),
        require: Sequence[str] = (),
        check: bool = False,
        details: bool = True,
        **options: Any,
    ) -> list[list[Caption]]:
        """The `n_best` captions of each picture, best first.

        `options` are fields of `BeamOptions` (`beam`, `n_best`, `groups` …) and of `Constraints`
        (`max_length`, `no_repeat_ngram` …). `avoid` and `require` are lists of words. With
        `check`, words come with their support, as from the method `check`. Without `details`, words
        have no alternatives, attention and signals: it is faster, and the captions are the same.
        """
        search = self._search_options(options, avoid, require)
        classifier = self.support_classifier if check else None
        encoded = self.encode(pictures)
        if not encoded:
            return []
        regions = join_regions(encoded)
        with torch.no_grad():
            memory = self.model.encode(regions)
            hypotheses = beam_search(self.model, memory, search)
        if hypotheses.scores[:, 0].isneginf().any():
            raise ConfigError("no caption meets these constraints: relax them")
        captions = self._describe(
            hypotheses, memory, regions, encoded, alternatives if details else None
        )
        captions = self._doubted(regions, captions)
        if classifier is None:
            return captions
        # One row for each caption, in order: a picture with three of them is there three times.
        rows = [b for b, of_picture in enumerate(captions) for _ in of_picture]
        everything = [caption for of_picture in captions for caption in of_picture]
        checked = iter(self._check(classifier, regions, everything, rows))
        return [[next(checked) for _ in of_picture] for of_picture in captions]

    def caption_without_unsupported(
        self, picture: AnyPicture, caption: Caption, **options: Any
    ) -> tuple[list[str], Caption | None]:
        """Of the captions of a beam, the one that the picture supports best, if it is another.

        Returns the content words that it no longer says, and the caption; nothing and None if
        `caption` is the best. `options` are those of `captions`.
        """
        beam = options.get("beam", self.options.beam)
        options |= {"n_best": max(beam, options.get("n_best", 1)), "check": True}
        best = max(self.captions([picture], **options)[0], key=preference)
        if best.text == caption.text:
            return [], None
        kept = {word.text for word in best.words}
        checked = [word.text for word in caption.words if word.support is not None]
        return [word for word in dict.fromkeys(checked) if word not in kept], best

    def read(self, picture: AnyPicture, caption: str, *, alternatives: int = 5) -> Caption:
        """A caption that somebody else wrote, with the probabilities that its words have here.

        A word that the captioner does not know is read as the nearest one that it knows by form or
        by meaning, or as `<unknown>` if none is near; `Word.read_as` says so.

        >>> captioner.read("photo.jpg", "A cat sleeps.").words[1].alternatives  # doctest: +SKIP
        (('dog', -0.3), …)
        """
        tokens = tokenize(caption)
        if not tokens:
            raise ConfigError(f"the caption '{caption}' has no words")
        read_as = [None if token in self.vocabulary else self._stand_in(token) for token in tokens]
        ids = self.vocabulary.encode(caption)
        if any(read_as):
            read_words = [other or token for token, other in zip(tokens, read_as, strict=True)]
            ids = [
                i
                for place, word in enumerate(read_words)
                for i in self.vocabulary.encode_word(word, first=place == 0)
            ]
        (read,) = self._read(self.encode(picture), [[*ids, END]], alternatives)
        if len(read.words) != len(tokens):  # its own pieces make other words of it
            return dataclasses.replace(read, given=True)
        words = zip(read.words, tokens, read_as, strict=True)
        return dataclasses.replace(
            read,
            text=" ".join(tokens),
            words=tuple(
                dataclasses.replace(word, text=token, read_as=other) for word, token, other in words
            ),
            given=True,
        )

    def _stand_in(self, word: str) -> str:
        """What is read in the place of an unknown word. One that is only spelt like it misleads."""
        near = self.nearest(word) if is_content(word) else UnknownWord(word, None, None)
        return near.nearest if near.nearest and near.nearest_by != "spelling" else SPECIAL[UNKNOWN]

    def nearest(self, word: str) -> UnknownWord:
        """A word that the captioner does not know, with the nearest one that it knows.

        By meaning where WordNet is installed (the extra `spice`), otherwise by spelling.

        >>> captioner.nearest("zebra")  # doctest: +SKIP
        UnknownWord(text='zebra', nearest='horse', nearest_by='meaning')
        """
        near = nearest_word(word, [known for known, _ in self.vocabulary.complete_words()])
        return UnknownWord(word, *(near or (None, None)))

    def counterfactual(
        self, picture: AnyPicture, caption: Caption, word: str, place: int | None = None
    ) -> Counterfactual:
        """A word that the caption does not say: how likely it was, and which words were likelier.

        `place` is its position (from 0; one past the last word is the end). By default it is the
        position where the word is most likely.

        >>> captioner.counterfactual("photo.jpg", caption, "cat").place  # doctest: +SKIP
        1
        """
        texts = [said.text for said in caption.words]
        self._require_known([word])
        if place is None and word in texts:
            raise ConfigError(
                f"the caption does say '{word}'; to ask about another position, give it"
            )
        if place is not None and not 0 <= place <= len(texts):
            raise ConfigError(f"the caption has {len(texts)} words, and no position {place}")
        if place is not None and texts[place : place + 1] == [word]:
            raise ConfigError(f"the caption does say '{word}' there; give another position")
        said_ids = [self._word_ids(said, n) for n, said in enumerate(caption.words)]
        rows = [
            [
                *itertools.chain.from_iterable(said_ids[:before]),
                *self.vocabulary.encode_word(word, first=before == 0),
            ]
            for before in range(len(texts) + 1)
        ]
        words = [row.words[-1] for row in self._read(self.encode(picture), rows, alternatives=5)]
        everywhere = tuple(candidate.log_probability for candidate in words)
        if place is None:
            place = int(np.argmax(everywhere))
        return Counterfactual(words[place], place, everywhere)

    def _likeliest(self, picture: EncodedPicture, caption: Caption) -> dict[str, tuple[int, float]]:
        """Of each word, where the captioner found it most likely, and its log-probability there."""
        ids = [*self.ids_of(caption), END]
        with torch.no_grad():
            memory = self.model.encode(picture.regions)
            tokens = torch.tensor([[ids]], device=self.device)
            # Only where a word begins can another one stand.
            begins = [span.start for span in self.vocabulary.spans(ids[:-1])] + [len(ids) - 1]
            best = next_words(self.model, memory, tokens)[0, 0, begins].max(0)
        places, chances = best.indices.tolist(), best.values.tolist()
        return {
            word: (places[number], chances[number])
            for word, number in self.vocabulary.complete_words()
        }

    def _word_ids(self, word: Word, place: int) -> list[int]:
        """What a word is made of as the captioner reads it; others know only its text."""
        return list(word.ids) or self.vocabulary.encode_word(
            word.read_as or word.text, first=place == 0
        )

    def ids_of(self, caption: Caption) -> list[int]:
        """The ids of a caption's words, or of their pieces, without start and end."""
        return [i for n, word in enumerate(caption.words) for i in self._word_ids(word, n)]

    def _read(
        self, picture: EncodedPicture, rows: Sequence[Sequence[int]], alternatives: int
    ) -> list[Caption]:
        """Given words of a picture, a caption for each row, by one parallel pass."""
        tokens = pad_sequence([torch.tensor(row) for row in rows], True, PAD)[None].to(self.device)
        with torch.no_grad():
            memory = self.model.encode(picture.regions)
            log_probs = describe_words(self.model, memory, tokens, 1).log_probs.sum(-1)
        scores = log_probs / (tokens != PAD).sum(-1) ** self.options.length_power
        hypotheses = Hypotheses(tokens, log_probs, scores)
        return self._describe(hypotheses, memory, picture.regions, [picture], alternatives)[0]

    def _describe(
        self,
        hypotheses: Hypotheses,
        memory: dict[str, torch.Tensor],
        regions: Regions,
        pictures: Sequence[EncodedPicture],
        alternatives: int | None,
    ) -> list[list[Caption]]:
        images = [picture.image for picture in pictures]
        captions = describe_captions(
            self.model, self.vocabulary, hypotheses, memory, regions, images, alternatives
        )
        if self.familiarity is None:
            return captions
        return [
            [dataclasses.replace(caption, unfamiliar=unfamiliar) for caption in of_picture]
            for of_picture, unfamiliar in zip(
                captions, self.familiarity.unfamiliar(regions), strict=True
            )
        ]

    def _doubted(
        self, regions: Regions, captions: Sequence[Sequence[Caption]]
    ) -> list[list[Caption]]:
        """Captions of pictures; those of whose best one little is found come as unfamiliar."""
        if not self.can_check:
            return [list(of_picture) for of_picture in captions]
        said = [of_picture[0].text.split() for of_picture in captions]
        doubted = self.support_classifier.finds_little(regions, said)
        return [
            [dataclasses.replace(c, unfamiliar=doubt or c.unfamiliar) for c in of_picture]
            for of_picture, doubt in zip(captions, doubted, strict=True)
        ]

    def _search_options(
        self, options: dict[str, Any], avoid: Sequence[str], require: Sequence[str]
    ) -> BeamOptions:
        if both := sorted(set(avoid) & set(require)):
            raise ConfigError(f"both required and to be avoided: {', '.join(both)}")
        options = {
            **options,
            "avoid": self._ids(avoid, "avoided"),
            "require": self._ids(require, "required")[: len(require)],
        }
        # A list of five needs at least five beams; nobody wants to be told so.
        options["beam"] = max(options.get("beam", self.options.beam), options.get("n_best", 1))
        return self.options.changed(options)

    def _ids(self, words: Sequence[str], what: str) -> tuple[int, ...]:
        """The ids of words, of which each must have one of its own; other spellings come last."""
        self._require_known(words)
        spellings = [self.vocabulary.spellings(word) for word in words]
        for word, ids in zip(words, spellings, strict=True):
            if not ids:
                raise ConfigError(
                    f"'{word}' has several pieces in this captioner's vocabulary; only words of "
                    f"one piece can be {what}"
                )
        return (*(ids[0] for ids in spellings), *(i for ids in spellings for i in ids[1:]))

    def _require_known(self, words: Sequence[str]) -> None:
        unknown = [f"'{word}'" for word in words if word not in self.vocabulary]
        if unknown:
            kind = "word" if len(unknown) == 1 else "words"
            raise ConfigError(f"the captioner does not know the {kind} {', '.join(unknown)}")

    # --- support --------------------------------------------------------------------------------

    @overload
    def check(self, pictures: AnyPicture, captions: Caption) -> Caption: ...
    @overload
    def check(
        self, pictures: Sequence[AnyPicture], captions: Sequence[Caption]
    ) -> list[Caption]: ...
    def check(self, pictures: Any, captions: Any) -> Any:
        """The same caption, with the picture's support for each content word; or a list of each.

        The checkpoint must have been fitted with `sightline fit-support`.

        >>> caption = captioner.check("photo.jpg", caption)  # doctest: +SKIP
        >>> [word.text for word in caption.unsupported]  # doctest: +SKIP
        ['frisbee']
        """
        if isinstance(captions, Caption):
            return self.check([pictures], [captions])[0]
        encoded = self.encode(pictures)
        if not encoded:
            return []
        # A picture with several captions is looked at once.
        numbers = {id(picture): n for n, picture in enumerate({id(p): p for p in encoded}.values())}
        regions = join_regions([*{id(picture): picture for picture in encoded}.values()])
        rows = [numbers[id(picture)] for picture in encoded]
        return self._check(self.support_classifier, regions, captions, rows)

    @property
    def can_check(self) -> bool:
        """Whether `check` works: the checkpoint was fitted with `sightline fit-support`."""
        return self.checkpoint is not None and has_classifier(self.checkpoint)

    @functools.cached_property
    def support_classifier(self) -> SupportClassifier:
        """The classifier of supported words that is stored in the checkpoint."""
        if self.checkpoint is None:
            raise ConfigError(
                "words can be checked only by a single captioner from a checkpoint, not by an "
                "ensemble or a captioner made in memory"
            )
        return load_classifier(self.checkpoint, self.device)

    @functools.cached_property
    def familiarity(self) -> Familiarity | None:
        """What tells pictures that are unlike those it knows, if the checkpoint has it."""
        return None if self.checkpoint is None else load_familiarity(self.checkpoint)

    def _check(
        self,
        classifier: SupportClassifier,
        regions: Regions,
        captions: Sequence[Caption],
        rows: Sequence[int],
    ) -> list[Caption]:
        """Captions with the support of their words; `rows` numbers the picture of each."""
        checked: list[list[Support | None]] = [[] for _ in captions]
        foreign = [n for n, caption in enumerate(captions) if caption.given and classifier.foreign]
        own = [n for n in range(len(captions)) if n not in set(foreign)]
        ids = [self.ids_of(caption) for caption in captions]
        if own:
            of_own = regions[[rows[n] for n in own]]
            supports = classifier.check(self.model, self.vocabulary, of_own, [ids[n] for n in own])
            for n, support in zip(own, supports, strict=True):
                checked[n] = support
        if foreign and classifier.foreign:
            supports = classifier.foreign.check(
                self.model,
                self.vocabulary,
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

    # --- explanations ---------------------------------------------------------------------------

    @overload
    def explain(
        self, pictures: AnyPicture, captions: Caption | str | None = None, **options: Any
    ) -> list[Explanation]: ...
    @overload
    def explain(
        self,
        pictures: Sequence[AnyPicture],
        captions: Sequence[Caption | str] | None = None,
        **options: Any,
    ) -> list[list[Explanation]]: ...
    def explain(
        self,
        pictures: AnyPicture | Sequence[AnyPicture],
        captions: Any = None,
        *,
        words: str | Sequence[Target] = "all",
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
        if isinstance(pictures, _ONE):
            given = None if captions is None else [captions]
            return self.explain([pictures], given, words=words, method=method, **options)[0]
        find_method(method)  # a wrong name costs nothing
        encoded = self.encode(pictures)
        said = self.caption(encoded) if captions is None else captions
        if len(said) != len(encoded):
            raise ConfigError(f"explain: {len(said)} captions for {len(encoded)} pictures")
        ids = [self.vocabulary.encode(c) if isinstance(c, str) else self.ids_of(c) for c in said]
        explanations: list[list[Explanation]] = []
        for first in range(0, len(encoded), EXPLAINED_TOGETHER):
            some = slice(first, first + EXPLAINED_TOGETHER)
            explanations += explain_captions(
                self.model,
                self.vocabulary,
                join_regions(encoded[some]),
                ids[some],
                words,
                method,
                encoded[some],
                self.encoder,
                **options,
            )
        return explanations

    def report(
        self,
        picture: AnyPicture,
        *,
        name: str | None = None,
        caption: str | None = None,
        words: Sequence[str] = ("all",),
        methods: Sequence[str] = DEFAULT_METHODS,
        why_not: Sequence[tuple[str, int | None]] = (),
        show_progress: bool = False,
    ) -> Report:
        """Explain words of a caption by several methods, for a page, a figure or a program.

        By default it explains the captioner's own caption; one that is given may have words that
        the captioner does not know. `words` are words of the caption, explained wherever they
        occur, or "all". `why_not` are words that it does not say, each with a position (from 0),
        or None for the position where it is most likely. Of a word that the captioner does not
        know, the nearest that it knows is explained; one that the caption says is explained as
        such. If the captioner can check words, they come with their support. `name` is the
        picture's name, by default that of its file. A method that cannot explain this captioner
        is skipped, and the report says why, as long as another one can.

        >>> captioner.report("photo.jpg", why_not=[("cat", None)])  # doctest: +SKIP
        Report(name='photo.jpg', …)
        """
        steps = self.report_steps(
            picture, name=name, caption=caption, words=words, methods=methods, why_not=why_not
        )
        grown: Iterable[Report] = progress(
            steps, "explaining", total=2 + len(methods), unit="step", show=show_progress
        )
        *_, report = grown
        return report

    def report_steps(
        self,
        picture: AnyPicture,
        *,
        name: str | None = None,
        caption: Caption | str | None = None,
        words: Sequence[str] = ("all",),
        methods: Sequence[str] = DEFAULT_METHODS,
        why_not: Sequence[tuple[str, int | None]] = (),
    ) -> Iterator[Report]:
        """A report as it grows: the caption, then its support, then one method after the other.

        A `caption` that is not text is the captioner's own. The rest is as for `report`. Whoever
        stops asking for the next step spares its work.

        >>> for report in captioner.report_steps("photo.jpg"):  # doctest: +SKIP
        ...     print(report.methods, report.pending)
        """
        if name is None:
            name = Path(picture).name if isinstance(picture, Path | str) else "picture"
        shown = _to_show(picture, self.encode(picture))
        if isinstance(caption, str):
            said = self.read(shown, caption)
        else:
            said = caption or self.caption(shown)
        strange = [word.text for word in said.words] + [word for word, _ in why_not]
        unknown = {word: self.nearest(word) for word in strange if word not in self.vocabulary}
        if said.words and all(word.text in unknown for word in said.words):
            raise ConfigError(f"the captioner knows none of the words of '{said.text}'")
        counterfactuals = [
            self.counterfactual(shown, said, word, place)
            for word, place in _unsaid(said, why_not, unknown)
        ]
        targets: list[Target] = [
            *(place for place in _places(said, words) if said.words[place].text not in unknown),
            *((each.place, each.word.text) for each in counterfactuals),
        ]
        if not targets:
            raise ConfigError(
                "there is no word to explain: the caption is empty, or no word was given"
            )
        report = Report(
            name,
            shown.image,
            said,
            (),
            tuple(counterfactuals),
            readers_own=isinstance(caption, str),
            unknown=tuple(unknown.values()),
            likeliest=self._likeliest(shown, said),
            pending=tuple(methods),
        )
        yield report
        if self.can_check:
            report = dataclasses.replace(report, caption=self.check(shown, said))
        yield report
        for number, method in enumerate(methods, 1):
            try:
                explanations = self.explain(shown, said, words=targets, method=method)
                report = report.with_explanations(explanations, tuple(methods[number:]))
            except NotApplicableError as error:
                skipped = {**report.skipped, method: str(error)}
                if len(skipped) == len(methods):
                    raise
                report = dataclasses.replace(
                    report, skipped=skipped, pending=tuple(methods[number:])
                )
            yield report


def wrap(model: Any, processor: Any, prompt: str | None = None) -> Captioner:
    """A captioner of transformers, with its processor, as one of ours.

    `processor` may be a pair of an image processor and a tokenizer. `prompt` is what the captioner
    is asked, by default what its family was trained to be asked. The model is put into evaluation
    mode, its parameters are frozen, and its attention is computed in plain operations.

    >>> captioner = sightline.wrap(model, processor)  # doctest: +SKIP
    >>> captioner.explain("photo.jpg")  # doctest: +SKIP
    """
    return _of_parts(adapt(model, processor, prompt))


def _of_parts(parts: Parts, folder: Path | None = None) -> Captioner:
    encoder, model, vocabulary = parts
    options = BeamOptions().changed({"max_length": model.longest})
    return Captioner(encoder, model, vocabulary, options, folder)


def preference(caption: Caption) -> float:
    """How a checked caption ranks among others: its own score, and what the picture says of it.

    Each adds a logarithm of a probability, of a word on average.
    """
    supports = [word.support.score for word in caption.words if word.support is not None]
    logs = [math.log(max(score, 1e-6)) for score in supports]
    return caption.score + SUPPORT_WEIGHT * sum(logs) / max(len(logs), 1)


def _to_show(picture: AnyPicture, encoded: EncodedPicture) -> EncodedPicture:
    """The same pixels and regions, of an image as fine as a reader's screen.

    A file is decoded once more for it: larger than captioners need, smaller than cameras take.
    """
    image = encoded.image
    if isinstance(picture, bytes) or (isinstance(picture, Path | str) and Path(picture).exists()):
        image = open_picture(picture, reduced_to=_REPORT_SIDE)
    size = fit(image.width, image.height, _REPORT_SIDE)
    if size != image.size:
        image = image.resize(size, Resampling.LANCZOS)
    return dataclasses.replace(encoded, image=image)


def _unsaid(
    caption: Caption, why_not: Sequence[tuple[str, int | None]], unknown: dict[str, UnknownWord]
) -> list[tuple[str, int | None]]:
    """What can be asked about: known words for unknown ones, but none that the caption says."""
    said = [word.text for word in caption.words]
    known = [(unknown[word].nearest if word in unknown else word, place) for word, place in why_not]
    return [
        (word, place)
        for word, place in dict.fromkeys(known)
        if word is not None
        and not (word in said if place is None else said[place : place + 1] == [word])
    ]


def _places(caption: Caption, words: Sequence[str]) -> list[int]:
    said = [word.text for word in caption.words]
    if "all" in words:
        return list(range(len(said)))
    for word in words:
        if word not in said:
            raise ConfigError(
                f"the caption '{caption}' does not say '{word}': give a word of the caption, or "
                "ask why it does not say this one"
            )
    return [place for place, word in enumerate(said) if word in words]
