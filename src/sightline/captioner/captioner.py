"""`Captioner`: a picture in; captions, their support and their explanations out."""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, overload

import torch

from sightline.adapters.wrap import adapt
from sightline.captioner.encoding import ONE, AnyPicture, as_shown
from sightline.captioner.loading import find_remote, load_parts, of_adapted
from sightline.captioner.subject import places_of, unsaid
from sightline.captioner.writer import CaptionWriter
from sightline.captions import Caption
from sightline.encoded_picture import join_regions
from sightline.errors import ConfigError, NotApplicableError
from sightline.explain.methods import explain_captions, find_method
from sightline.explain.targets import Target
from sightline.explanation import Explanation
from sightline.models.packed import pack
from sightline.progress import progress
from sightline.report.report import DEFAULT_METHODS, Report

EXPLAINED_TOGETHER = 4  # pictures: their feature maps take some 150 megabytes each


class Captioner(CaptionWriter):
    """An image encoder, a captioning model and its vocabulary, ready to caption pictures.

    A picture is a path, the bytes of a file, a `PIL.Image` or an array. To caption, check and
    explain a picture without encoding it again, pass the result of `encode`.

    >>> captioner = sightline.load()  # doctest: +SKIP
    >>> captioner.caption("photo.jpg").text  # doctest: +SKIP
    'a dog runs through the grass'
    """

    _remote: ClassVar[
        Callable[[str, Path | None], "Captioner"]
    ]  # `remote.py`, which builds on this

    @classmethod
    def load(cls, *paths: Path | str, device: str | torch.device = "auto") -> "Captioner":
        """Load a checkpoint folder or a training run; several of them make an ensemble.

        Without paths, load the bundled captioner. `hf:FOLDER` is a captioner of transformers,
        `http://…` one behind an API in the OpenAI chat shape.
        """
        if (server := find_remote(paths)) is not None:
            return cls._remote(server.name, server.folder)
        return cls(*load_parts(paths, device))

    def packed(self) -> "Captioner":
        """The same captioner, faster with many pictures: see `sightline.models.packed`.

        >>> captioner = sightline.load().packed()  # doctest: +SKIP
        """
        captioner = copy.copy(self)
        captioner.model = pack(self.model)
        return captioner

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
    @torch.inference_mode(False)
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
        if isinstance(pictures, ONE):
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
        is skipped, and the report says why, as long as another one can; the default for one that
        cannot be seen into is occlusion.

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
        if self.model.black_box and tuple(methods) == DEFAULT_METHODS:  # of which none can see it
            methods = ("occlusion",)
        shown = as_shown(picture, self.encode(picture))
        if isinstance(caption, str):
            said = self.read(shown, caption)
            if self.can_check and not said.unfamiliar:
                # Its own caption says whether it knows the picture, whoever wrote this one.
                own = self.caption(shown, details=False)
                said = dataclasses.replace(said, unfamiliar=own.unfamiliar)
        else:
            said = caption or self.caption(shown)
        strange = [word.text for word in said.words] + [word for word, _ in why_not]
        unknown = {word: self.nearest(word) for word in strange if word not in self.vocabulary}
        if said.words and all(word.text in unknown for word in said.words):
            raise ConfigError(f"the captioner knows none of the words of '{said.text}'")
        counterfactuals = [
            self.counterfactual(shown, said, word, place)
            for word, place in unsaid(said, why_not, unknown)
        ]
        targets: list[Target] = [
            *(place for place in places_of(said, words) if said.words[place].text not in unknown),
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
        if self.can_check and not said.is_checked:
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


def wrap(
    model: Any, processor: Any, prompt: str | None = None, size: int | None = None
) -> Captioner:
    """A captioner of transformers, with its processor, as one of ours.

    `processor` may be a pair of an image processor and a tokenizer. `prompt` is what the captioner
    is asked, by default what its family was trained to be asked. `size` is the side of the square
    that pictures are made, in pixels, if the captioner takes any shape. The model is put into
    evaluation mode, its parameters are frozen, and its attention is computed in plain operations.

    >>> captioner = sightline.wrap(model, processor)  # doctest: +SKIP
    >>> captioner.explain("photo.jpg")  # doctest: +SKIP
    """
    return Captioner(*of_adapted(adapt(model, processor, prompt, size)))
