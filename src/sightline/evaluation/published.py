"""Published scores on the Flickr8k test split, for the table of results."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A row of somebody else's table, in percent as it is printed there."""

    system: str
    scores: dict[str, float]
    protocol: str  # how it was measured, where that is not how we do it


def _scores(
    bleu: tuple[float, float, float, float], meteor: float, cider: float | None = None
) -> dict[str, float]:
    named = {f"BLEU-{n}": score for n, score in enumerate(bleu, 1)} | {"METEOR": meteor}
    return named if cider is None else named | {"CIDEr-D": cider}


_PAPER = "frozen VGGnet; BLEU without brevity penalty"
_TUNED = "pycocoevalcap, beam 4, epoch chosen by dev BLEU-4"

PUBLISHED = (
    Published(
        "Show, Attend and Tell, soft (paper 1)", _scores((67, 44.8, 29.9, 19.5), 18.93), _PAPER
    ),
    Published(
        "Show, Attend and Tell, hard (paper 1)", _scores((67, 45.7, 31.4, 21.3), 20.30), _PAPER
    ),
    Published(
        "LSTM of 512 over a frozen ResNet-50 (aravindvarier)",
        _scores((60.0, 42.3, 29.3, 20.1), 20.8, 52.7),
        _TUNED,
    ),
    Published(
        "LSTM of 1,024 over a tuned ResNet-101 (aravindvarier)",
        _scores((63.0, 45.4, 31.9, 22.0), 21.9, 58.6),
        _TUNED,
    ),
    Published(
        "Transformer decoder over a tuned ResNet-101 (aravindvarier)",
        _scores((61.6, 43.5, 29.6, 19.4), 19.9, 50.5),
        _TUNED,
    ),
)
