"""What an audit found: of each system, and of two against each other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from sightline.audit.judging import UNKNOWN
from sightline.captions import DOUBTFUL, NOT_SUPPORTED, SEEN, VERDICTS
from sightline.kept_records import Record
from sightline.metrics.bootstrap import compare, interval
from sightline.metrics.score import Floats, Score, number
from sightline.metrics.word_labels import label_words
from sightline.support.calibration import calibrate
from sightline.text.word_kinds import KINDS

OFTEN = 30  # words that are listed as most often made up
EXAMPLES = 4  # pictures for each of them


class JudgedWord(NamedTuple):
    """A word of a caption, and where it was said."""

    picture: int  # its number in the audit
    caption: int  # its number among the picture's captions
    word: Record


def words_of(records: Sequence[Record], system: int) -> Iterator[JudgedWord]:
    """The content words of a system's captions."""
    for n, record in enumerate(records):
        for m, caption in enumerate(record["captions"]):
            if caption["system"] == system:
                for word in caption["words"]:
                    if word["verdict"] is not None:
                        yield JudgedWord(n, m, word)


def summarise(
    records: Sequence[Record],
    system: int,
    references: Sequence[Sequence[str]] | None = None,
) -> dict[str, Any]:
    """One system: its verdicts, by kind of word; words made up; unknown words; calibration.

    `references` are those of each picture, empty where there are none.
    """
    words = list(words_of(records, system))
    captions = [
        caption
        for record in records
        for caption in record["captions"]
        if caption["system"] == system
    ]
    scores = audit_scores(records, system)
    return {
        "captions": len(captions),
        "captions_marked": sum(map(is_marked, captions)),
        **_verdicts(words),
        "scores": {score.name: _estimate(score) for score in scores if not np.isnan(score.corpus)},
        "kinds": [
            {"kind": kind, **_verdicts(some)}
            for kind in KINDS
            if (some := [each for each in words if each.word["kind"] == kind])
        ],
        "made_up": _made_up(words),
        "unknown_words": _unknown_words(words),
        "calibration": None if references is None else _calibration(words, references),
    }


def is_marked(caption: Record) -> bool:
    """Whether a word of a caption is not supported."""
    return any(word["verdict"] == NOT_SUPPORTED for word in caption["words"])


def doubt(caption: Record) -> float:
    """How doubtful a caption is: unsupported words count most, then doubtful ones, then support."""
    verdicts = Counter(word["verdict"] for word in caption["words"])
    supports = [word["support"] for word in caption["words"] if word["support"] is not None]
    least = min(supports, default=1.0)
    return 10 * verdicts[NOT_SUPPORTED] + verdicts[DOUBTFUL] + 1 - least


def _verdicts(words: Sequence[JudgedWord]) -> dict[str, int]:
    counts = Counter(each.word["verdict"] for each in words)
    return {"words": len(words)} | {verdict: counts[verdict] for verdict in (*VERDICTS, UNKNOWN)}


def _made_up(words: Sequence[JudgedWord]) -> list[dict[str, Any]]:
    """The words that were most often not supported, with where."""
    said: dict[str, list[JudgedWord]] = {}
    for each in words:
        said.setdefault(each.word["text"], []).append(each)
    rows = []
    for text, uses in said.items():
        unsupported = [each for each in uses if each.word["verdict"] == NOT_SUPPORTED]
        if unsupported:
            worst = sorted(unsupported, key=lambda each: each.word["support"])
            instead = Counter(
                each.word["instead"][0]["text"] for each in unsupported if each.word["instead"]
            )
            rows.append(
                {
                    "text": text,
                    "kind": uses[0].word["kind"],
                    "said": len(uses),
                    "unsupported": len(unsupported),
                    "instead": [word for word, _ in instead.most_common(3)],
                    "examples": [[each.picture, each.caption] for each in worst[:EXAMPLES]],
                }
            )
    rows.sort(key=lambda row: (-row["unsupported"], -row["unsupported"] / row["said"], row["text"]))
    return rows[:OFTEN]


def _unknown_words(words: Sequence[JudgedWord]) -> list[dict[str, Any]]:
    counts = Counter(
        (each.word["text"], each.word["read_as"])
        for each in words
        if each.word["verdict"] == UNKNOWN
    )
    return [
        {"text": text, "read_as": None if read_as.startswith("<") else read_as, "said": times}
        for (text, read_as), times in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _calibration(
    words: Sequence[JudgedWord], references: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """Of words with about the same support, the share that the references confirm."""
    known = [each for each in words if each.word["verdict"] != UNKNOWN and references[each.picture]]
    right = [label_words([each.word["text"]], references[each.picture])[0] for each in known]
    return calibrate(np.array([each.word["support"] for each in known]), np.array(right))


def audit_scores(records: Sequence[Record], system: int) -> list[Score]:
    """Scores of a system that can be resampled by picture: shares of its words, mean support."""
    counts = np.zeros((len(records), 6))  # seen, doubtful, not supported, support, known, all
    for each in words_of(records, system):
        row = counts[each.picture]
        row[5] += 1
        if each.word["verdict"] != UNKNOWN:
            row[VERDICTS.index(each.word["verdict"])] += 1
            row[3] += each.word["support"]
            row[4] += 1
    return [
        _share("words not supported", counts[:, [VERDICTS.index(NOT_SUPPORTED), 4]]),
        _share("words seen", counts[:, [VERDICTS.index(SEEN), 4]]),
        _share("mean support", counts[:, [3, 4]]),
        _share(
            "words unknown to the judge",
            np.column_stack([counts[:, 5] - counts[:, 4], counts[:, 5]]),
        ),
    ]


def _share(name: str, statistics: Floats) -> Score:
    return Score(name, float(_ratio(statistics.sum(0))), _ratio(statistics), statistics, _ratio)


def _ratio(sums: Floats) -> Floats:
    part, whole = sums[..., 0], sums[..., 1]
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def _estimate(score: Score) -> dict[str, float | None]:
    low, high = interval(score)
    return {"value": number(score.corpus), "low": number(low), "high": number(high)}


def compare_systems(pairs: Sequence[tuple[Score, Score]]) -> list[dict[str, Any]]:
    """Two systems on the same pictures: each score of both, the difference and its interval."""
    rows = []
    for one, other in pairs:
        difference = compare(one, other)
        values = asdict(difference) | {"difference": difference.difference}
        rows.append({key: number(v) if isinstance(v, float) else v for key, v in values.items()})
    return rows
