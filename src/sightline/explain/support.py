"""Whether a picture supports a word."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Support:
    """How well a picture supports a word.

    >>> Support(0.9, "seen", {"occlusion": 0.9}).verdict
    'seen'
    """

    score: float  # from 0 to 1
    verdict: str  # "seen", "doubtful" or "not supported"
    evidence: dict[str, float]  # the single scores it was made of
