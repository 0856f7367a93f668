"""A captioner as a writer: captions of pictures, and which of their words the picture supports."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, overload

import torch

from sightline.captioner.encoding import ONE, AnyPicture
from sightline.captioner.reader import CaptionReader
from sightline.captioner.wording import single_ids
from sightline.captions import Caption
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.encoded_picture import join_regions
from sightline.errors import CheckpointError, ConfigError, SightlineError
from sightline.regions import Regions
from sightline.support.checking import check_captions
from sightline.support.classifier import SupportClassifier, has_classifier, load_classifier
from sightline.text.vocabulary import START

SUPPORT_WEIGHT = 1.0  # chosen on COCO dev (docs/support.md)


class CaptionWriter(CaptionReader):
    """A reader that writes captions by beam search, and checks them."""

    @overload
    def caption(self, pictures: AnyPicture, **options: Any) -> Caption: ...
    @overload
    def caption(self, pictures: Sequence[AnyPicture], **options: Any) -> list[Caption]: ...
    def caption(self, pictures: AnyPicture | Sequence[AnyPicture], **options: Any) -> Any:
        """The best caption of a picture, or of each picture of a list.

        Options are those of `captions`.
        """
        if isinstance(pictures, ONE):
            return self.captions([pictures], **options)[0][0]
        return [best[0] for best in self.captions(pictures, **options)]

    @torch.inference_mode(False)  # whoever calls it: evidence is computed with gradients
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
        if not hypotheses.scores[:, 0].isfinite().all():
            raise self._why_none(regions)
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

    def _why_none(self, regions: Regions) -> SightlineError:
        """Why there is no caption for a picture."""
        start = torch.full((len(regions), 1, 1), START, device=regions.mask.device)
        with torch.no_grad():
            logits = self.model(regions, start).logits
        if logits.isnan().any():
            return CheckpointError(
                "the captioner's probabilities are not numbers: its weights are damaged, or its "
                "settings for pictures"
            )
        return ConfigError("no caption meets these constraints: relax them")

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

    @overload
    def check(self, pictures: AnyPicture, captions: Caption) -> Caption: ...
    @overload
    def check(
        self, pictures: Sequence[AnyPicture], captions: Sequence[Caption]
    ) -> list[Caption]: ...
    @torch.inference_mode(False)
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
        if len(captions) != len(encoded):
            raise ConfigError(f"check: {len(captions)} captions for {len(encoded)} pictures")
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
            "avoid": single_ids(self.vocabulary, avoid, "avoided"),
            "require": single_ids(self.vocabulary, require, "required")[: len(require)],
        }
        # A list of five needs at least five beams; nobody wants to be told so.
        options["beam"] = max(options.get("beam", self.options.beam), options.get("n_best", 1))
        return self.options.changed(options)

    def _check(
        self,
        classifier: SupportClassifier,
        regions: Regions,
        captions: Sequence[Caption],
        rows: Sequence[int],
    ) -> list[Caption]:
        """Captions with the support of their words; `rows` numbers the picture of each."""
        ids = [self.ids_of(caption) for caption in captions]
        return check_captions(classifier, self.model, self.vocabulary, regions, captions, ids, rows)


def preference(caption: Caption) -> float:
    """How a checked caption ranks among others: its own score, and what the picture says of it.

    Each adds a logarithm of a probability, of a word on average.
    """
    supports = [word.support.score for word in caption.words if word.support is not None]
    logs = [math.log(max(score, 1e-6)) for score in supports]
    return caption.score + SUPPORT_WEIGHT * sum(logs) / max(len(logs), 1)
