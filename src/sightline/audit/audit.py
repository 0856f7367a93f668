"""An audit: captions that others wrote, judged, and written down as tables and a report."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL import Image

from sightline.audit import sentences
from sightline.audit.deliveries import Delivery, read_delivery
from sightline.audit.judging import assignments, judge_all
from sightline.audit.references import match_references, reference_scores
from sightline.audit.summary import audit_scores, compare_systems, doubt, summarise
from sightline.audit.words_table import write_words
from sightline.bulk.items import readable
from sightline.bulk.records import model_name
from sightline.captioner import Captioner
from sightline.data.readers import read_dataset
from sightline.errors import ConfigError, PictureError
from sightline.files import atomic_write
from sightline.kept_records import KeptRecords, Record
from sightline.metrics.score import Score, number
from sightline.metrics.scoring import DEFAULT, check_metrics
from sightline.pictures import open_picture
from sightline.progress import progress
from sightline.report.embedding import jpeg_uri
from sightline.report.heatmaps import fit
from sightline.report.page import render_audit, render_page
from sightline.text.vocabulary import SPECIAL

JUDGED = "judged.jsonl"
SHOWN = 200  # pictures in the report, the worst ones
PAGES = 12  # of them with an explanation page
_THUMBNAIL = 320  # pixels of the longer side


def audit_captions(
    captions: Path | str,
    output: Path | str,
    images: Path | str | None = None,
    *,
    against: Path | str | None = None,
    captioner: Captioner | None = None,
    references: Path | str | None = None,
    metrics: Sequence[str] = DEFAULT,
    pages: int = PAGES,
    show_progress: bool = False,
) -> dict[str, Any]:
    """Judge captions from a file or folder, and write the audit into the folder `output`.

    `against` are those of a second system, of the same pictures. `references` is a dataset of
    reference captions: then the systems are scored, and the judge's calibration is measured. The
    judge is the bundled captioner unless another is given. The folder gets `audit.json`, which is
    also returned, `words.csv` and `words.parquet`, `report.html`, and explanation pages of the
    worst `pages` pictures. What was judged is kept, and an interrupted audit goes on there.

    >>> audit_captions("vendor.csv", "report", "photos")["systems"][0]["words"]  # doctest: +SKIP
    5120
    """
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file; give a folder for the report")
    check_metrics(metrics)
    dataset = None if references is None else read_dataset(references)
    deliveries = [read_delivery(path, images) for path in (captions, against) if path is not None]
    names = _names(deliveries, [Path(path) for path in (captions, against) if path is not None])
    judge = captioner or Captioner.load()
    work = assignments(deliveries)
    about = {"judge": _judge_name(judge), "captions": _digest(deliveries), "systems": names}
    kept = KeptRecords(folder / JUDGED, about)
    records = judge_all(judge, work, kept, show_progress=show_progress)
    said = None
    if dataset is not None:
        said = match_references(records, dataset, Path(str(references)))
    document = _document(judge, names, records, said, metrics)
    shown = _thumbnails(document["pictures"][:SHOWN])
    _write_pages(judge, shown[:pages], folder, show_progress)
    addresses = {each["number"]: each["page"] for each in shown}
    for each in document["pictures"]:
        each["page"] = addresses.get(each["number"])
    with atomic_write(folder / "audit.json") as file:
        json.dump(document, file, ensure_ascii=False, indent=1)
    with atomic_write(folder / "report.html") as file:
        file.write(render_audit({**document, "pictures": shown}))
    write_words(folder, records, names)
    return document


def _names(deliveries: Sequence[Delivery], paths: Sequence[Path]) -> list[str]:
    names = [delivery.name for delivery in deliveries]
    if len(set(names)) < len(names):
        names = [f"{path.resolve().parent.name}/{path.name}" for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [readable(name) for name in names]


def _judge_name(judge: Captioner) -> str:
    """Which captioner, and by which weights of its scores."""
    classifier = judge.support_classifier
    weights = repr((classifier.names, classifier.combination.weights.tolist()))
    return f"{model_name(judge)}:{hashlib.sha256(weights.encode()).hexdigest()[:8]}"


def _digest(deliveries: Sequence[Delivery]) -> str:
    digest = hashlib.sha256()
    for delivery in deliveries:
        for given in delivery.captions:
            line = f"{given.name}\0{given.picture}\0{given.text}\0"
            digest.update(line.encode("utf-8", "replace"))
        digest.update(b"\n")
    return digest.hexdigest()[:16]


def _document(
    judge: Captioner,
    names: Sequence[str],
    records: Sequence[Record],
    references: list[tuple[str, ...]] | None,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """All that the report shows, as plain JSON; see docs/audit.md."""
    systems = []
    for system, name in enumerate(names):
        summary = {"name": name, **summarise(records, system, references)}
        said = references or [()] * len(records)
        scores = reference_scores(records, said, system, metrics)
        summary["metrics"] = {score.name: number(score.corpus) for score in scores}
        systems.append(summary | {"sentence": sentences.of_system(summary)})
    pictures = [
        _picture(n, record, list(references[n]) if references else [])
        for n, record in enumerate(records)
        if record["captions"]
    ]
    pictures.sort(key=lambda picture: -picture["doubt"])
    problems = [
        {"picture": record["picture"], "why": why}
        for record in records
        for why in record["problems"]
    ]
    foreign = judge.support_classifier.foreign
    unfamiliar = sum(record["unfamiliar"] for record in records)
    return {
        "title": f"Audit of {' and '.join(names)}",
        "headline": sentences.headline(systems),
        "notes": sentences.notes(len(problems), unfamiliar, foreign is not None),
        "judge": {
            "name": model_name(judge),
            "words": len(judge.vocabulary) - len(SPECIAL),
            "calibration": None if foreign is None else list(foreign.calibration),
        },
        "systems": systems,
        "comparison": _comparison(records, references, metrics) if len(names) == 2 else [],
        "comparison_note": sentences.COMPARISON,
        "calibration_note": (
            sentences.CALIBRATED_THERE if references is None else sentences.CALIBRATED_HERE
        ),
        "problems": problems,
        "audited": len(records),
        "pictures": pictures,
    }


def _picture(number: int, record: Record, references: list[str]) -> Record:
    captions = [
        {
            **caption,
            "note": sentences.of_caption(caption),
            "words": [{**word, "note": sentences.of_word(word)} for word in caption["words"]],
        }
        for caption in record["captions"]
    ]
    return {
        "number": number,
        "name": record["picture"],
        "file": record["file"],
        "page": None,
        "unfamiliar": record["unfamiliar"],
        "doubt": round(max(map(doubt, record["captions"])), 4),
        "captions": captions,
        "references": references,
    }


def _comparison(
    records: Sequence[Record], references: list[tuple[str, ...]] | None, metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Two systems on the pictures that both captioned."""
    both = [
        n
        for n, record in enumerate(records)
        if {caption["system"] for caption in record["captions"]} == {0, 1}
    ]
    if not both:
        return []
    shared = [records[n] for n in both]
    pairs: list[tuple[Score, Score]] = list(
        zip(audit_scores(shared, 0), audit_scores(shared, 1), strict=True)
    )
    if references is not None:
        texts = [references[n] for n in both]
        scored = (reference_scores(shared, texts, system, metrics) for system in (0, 1))
        pairs += zip(*scored, strict=True)
    return compare_systems(pairs)


def _thumbnails(pictures: Sequence[Record]) -> list[Record]:
    """The same with small pictures in them; one that is gone since has none."""
    shown = []
    for picture in pictures:
        try:
            image = open_picture(Path(picture["file"]), reduced_to=_THUMBNAIL)
        except PictureError:
            image = Image.new("RGB", (4, 3), "gray")
        size = fit(*image.size, _THUMBNAIL)
        small = image.resize(size, Image.Resampling.LANCZOS)
        shown.append(
            {
                **picture,
                "thumbnail": jpeg_uri(small, 75),
                "width": size[0],
                "height": size[1],
            }
        )
    return shown


def _write_pages(
    judge: Captioner, pictures: Sequence[Record], folder: Path, show_progress: bool
) -> None:
    """The explanation page of each picture's most doubtful caption; its address is noted."""
    work = progress(pictures, "explaining", total=len(pictures), unit="page", show=show_progress)
    for picture in work:
        caption = max(picture["captions"], key=doubt)
        name = f"pages/{picture['number']:05d}.html"
        try:
            report = judge.report(Path(picture["file"]), caption=caption["text"])
        except (ConfigError, PictureError):  # such as a caption without a known word
            continue
        with atomic_write(folder / name) as file:
            file.write(render_page(report, index="../report.html"))
        picture["page"] = quote(name)
