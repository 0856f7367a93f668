"""Fit a captioner's support classifier on held-out pictures, and report how good it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sightline.captioner import Captioner, RemoteCaptioner
from sightline.data.dataset import CaptionedImage
from sightline.data.unlike_photographs import unlike_photographs
from sightline.encoded_picture import join_regions
from sightline.encoders.encode import encode_all
from sightline.encoders.region_cache import RegionCache
from sightline.errors import ConfigError
from sightline.evaluation.remote_support import NO_REGIONS, collect_remote
from sightline.metrics.bootstrap import interval
from sightline.metrics.score import number
from sightline.regions import Regions
from sightline.support.calibration import calibrate
from sightline.support.classifier import BATCH, SupportClassifier, save_classifier
from sightline.support.familiarity import (
    Familiarity,
    fit_familiarity,
    mean_region,
    save_familiarity,
)
from sightline.support.fit import (
    Sample,
    auc_table,
    choose_others,
    collect,
    combined_scores,
    fit_classifier,
    found_of_captions,
    held_out_scores,
    make_reference_regions,
    verdict_counts,
)
from sightline.support.foreign_fit import collect_foreign, fit_foreign
from sightline.support.logistic import Floats
from sightline.support.word_classifier import WordClassifier
from sightline.support.word_detector import FEWEST_PICTURES, fit_detector

OTHER_KINDS = 480  # pictures unlike photographs that familiarity is fitted to


@dataclass(frozen=True, eq=False)
class SupportReport:
    """The words of some pictures' captions, and how well their support tells right from wrong."""

    pictures: str
    sample: Sample
    scores: Floats  # of the combination
    classifier: WordClassifier
    unfamiliar: float | None = None  # the share of the pictures that are called so

    def only(self, words: Sequence[str]) -> "SupportReport":
        """The same for some words alone, such as the objects of paper 4's table 3."""
        chosen = np.isin(self.sample.words, words)
        name = f"{self.pictures}, these words alone"
        sample, scores = self.sample.only(chosen), self.scores[chosen]
        return SupportReport(name, sample, scores, self.classifier, self.unfamiliar)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: AUC with 95 % intervals, and how many words of each verdict are right, and
        of those with about the same support.
        """
        sample, scores = self.sample, {}
        for score in auc_table(sample, self.scores) if sample.words else ():
            low, high = interval(score)
            bounds = {"low": number(low), "high": number(high)}
            scores[score.name] = {"auc": number(score.corpus), **bounds}
        counts = verdict_counts(self.classifier, self.scores, sample.right)
        return {
            "pictures": self.pictures,
            "words": len(sample.words),
            "right": int(sample.right.sum()),
            "unfamiliar": self.unfamiliar,
            "scores": scores,
            "verdicts": {
                verdict: {"words": words, "right": right}
                for verdict, (words, right) in counts.items()
            },
            "calibration": calibrate(self.scores, sample.right, sample.pictures),
        }


def fit_support(
    captioner: Captioner,
    held_out: Sequence[CaptionedImage] = (),
    reported: Sequence[CaptionedImage] = (),
    *,
    learnt_from: Sequence[CaptionedImage] = (),
    others: Sequence[Path] = (),
    split: str = "dev",
    report_on: str = "test",
    cache: Path | None = None,
    show_progress: bool = False,
) -> list[SupportReport]:
    """Fit on `held_out` pictures, store the result in the checkpoint; report there and elsewhere.

    The captioner captions the pictures; each content word is right or wrong by their references.
    A second classifier, for captions that others wrote, is fitted to the references themselves and
    to the same with words swapped.
    Without `held_out` pictures what is stored is reported on. `others` are pictures to put in the
    place of one; by default some of those held out, which are then left out of the fit. From
    `learnt_from`, training pictures, a detector of words learns, if they are enough.

    >>> fit_support(captioner, dataset.split("dev"))[0].to_json()["right"]  # doctest: +SKIP
    3120
    """
    if captioner.checkpoint is None:
        raise ConfigError(
            "a support classifier is stored in a checkpoint: load the captioner from one"
        )
    if isinstance(captioner, RemoteCaptioner):
        return _fit_remote(captioner, held_out, reported, split, report_on, show_progress)
    stored = None if held_out else captioner.support_classifier
    familiarity = captioner.familiarity
    # The regions of a black box are pixels, too raw to learn from.
    opaque = bool(captioner.model.black_box)
    detects = len(learnt_from) >= FEWEST_PICTURES and stored is None and not opaque
    seen = (*held_out, *reported, *(learnt_from if detects else ()))
    pictures = [*(image.picture for image in seen), *others]
    regions = encode_all(pictures, captioner.encoder, cache, show_progress=show_progress)
    model, vocabulary, options = captioner.model, captioner.vocabulary, captioner.options
    reports = []
    if stored is not None:
        classifier = stored
    else:
        taken, rest = ([], held_out) if others else choose_others(held_out)
        references = make_reference_regions(
            others or [image.picture for image in taken], regions, captioner.device
        )
        detector = None
        if detects:
            captions = [image.captions for image in learnt_from]
            batches = _batches(learnt_from, regions)
            detector = fit_detector(batches, captions, show_progress=show_progress)
            detector = detector.to(captioner.device)
        sample = collect(
            model,
            vocabulary,
            options,
            rest,
            regions,
            references,
            detector,
            show_progress=show_progress,
        )
        foreign = None
        if vocabulary.whole_words:  # (its scores are of single ids)
            foreign = collect_foreign(
                model, vocabulary, rest, regions, references, detector, show_progress=show_progress
            )
        judge = fit_foreign(foreign)
        classifier = replace(fit_classifier(sample, references, detector), foreign=judge)
        familiarity = None
        if captioner.encoder.sees_pixels and not opaque:  # nobody has features of drawn pictures
            familiarity = _fit_familiarity(captioner, held_out, regions)
        save_classifier(captioner.checkpoint, classifier)
        if familiarity is not None:
            save_familiarity(captioner.checkpoint, familiarity)
        share = _share_unfamiliar(familiarity, classifier, rest, regions, sample)
        name = f"{split}, fitted on"
        reports.append(SupportReport(name, sample, held_out_scores(sample), classifier, share))
        if foreign is not None and judge is not None:
            name, scores = f"{split}, captions that people wrote", held_out_scores(foreign.sample)
            reports.append(SupportReport(name, foreign.sample, scores, judge))
    if reported:
        references = classifier.reference_regions
        sample = collect(
            model,
            vocabulary,
            options,
            reported,
            regions,
            references,
            classifier.detector,
            show_progress=show_progress,
        )
        scores = combined_scores(sample, classifier)
        share = _share_unfamiliar(familiarity, classifier, reported, regions, sample)
        reports.append(SupportReport(report_on, sample, scores, classifier, share))
        if classifier.foreign is not None:
            judge = classifier.foreign
            others_wrote = collect_foreign(
                *(model, vocabulary, reported, regions, references, classifier.detector),
                judge.prior,
                show_progress=show_progress,
            )
            if others_wrote is not None:
                scores = combined_scores(others_wrote.sample, judge)
                name = f"{report_on}, captions that people wrote"
                reports.append(SupportReport(name, others_wrote.sample, scores, judge))
    return reports


def _fit_remote(
    captioner: RemoteCaptioner,
    held_out: Sequence[CaptionedImage],
    reported: Sequence[CaptionedImage],
    split: str,
    report_on: str,
    show_progress: bool,
) -> list[SupportReport]:
    assert captioner.checkpoint is not None
    reports = []
    if held_out:
        sample = collect_remote(captioner, held_out, show_progress=show_progress)
        classifier = fit_classifier(sample, NO_REGIONS)
        save_classifier(captioner.checkpoint, classifier)
        name, scores = f"{split}, fitted on", held_out_scores(sample)
        reports.append(SupportReport(name, sample, scores, classifier))
    else:
        classifier = captioner.support_classifier
    if reported:
        sample = collect_remote(captioner, reported, show_progress=show_progress)
        scores = combined_scores(sample, classifier)
        reports.append(SupportReport(report_on, sample, scores, classifier))
    return reports


def _fit_familiarity(
    captioner: Captioner, images: Sequence[CaptionedImage], cache: RegionCache
) -> Familiarity:
    """Fitted to the pictures of a dataset, and to pictures of other kinds."""
    pictures = unlike_photographs(OTHER_KINDS)
    others = [
        mean_region(join_regions(captioner.encode(pictures[first : first + BATCH]))).cpu()
        for first in range(0, len(pictures), BATCH)
    ]
    familiar = [mean_region(regions) for regions in _batches(images, cache)]
    return fit_familiarity(
        np.concatenate(familiar).astype(np.float64), np.concatenate(others).astype(np.float64)
    )


def _share_unfamiliar(
    familiarity: Familiarity | None,
    classifier: SupportClassifier,
    images: Sequence[CaptionedImage],
    cache: RegionCache,
    sample: Sample,
) -> float | None:
    """The share of pictures that are of another kind, or of whose caption little is found."""
    if familiarity is None and classifier.detector is None:
        return None
    called = np.zeros(len(images), dtype=bool)
    if familiarity is not None:
        called = np.concatenate([familiarity.unfamiliar(some) for some in _batches(images, cache)])
    if classifier.detector is not None:
        for picture, found in found_of_captions(sample).items():
            called[picture] |= found < classifier.unsure
    return float(np.mean(called))


def _batches(images: Sequence[CaptionedImage], cache: RegionCache) -> Iterator[Regions]:
    rows = cache.rows([cache.key(image.picture) for image in images])
    for first in range(0, len(rows), BATCH):
        yield cache.regions(rows[first : first + BATCH])
