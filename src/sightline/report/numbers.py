"""The numbers of a word, each with its meaning, for those who want them."""

from sightline.captions import Word
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report.wording import likelihood, percent
from sightline.support.foreign import MEANING as FOREIGN_MEANING
from sightline.support.word_scores import MEANING

_SIGNALS = {
    "beta": "gate β of the captioner: how far it lets the picture in",
    "sentinel": "gate β of the captioner: how far it relies on what it has said",
}

_ABSORBED = "absorbed by the encoder", "of the picture's part: what does not reach its pixels"
_UNSHOWN = {  # of the picture's part, what the heatmap of a method leaves out for another reason
    "contrastive_lrp": (
        "claimed by previous words",
        "of the picture's part: what the heatmap leaves out, as previous words rest on it",
    )
}


def numbers_of_word(word: Word) -> list[dict[str, str]]:
    """What is known of a word whatever method explains it: name, value and meaning of each.

    >>> numbers_of_word(Word("cat", -1.386, (), ()))[0]["value"]
    '25 %'
    """
    rows = [
        _row(
            "probability",
            likelihood(word.log_probability),
            "how likely the captioner found this word here, after the words before it",
        )
    ]
    for name in _SIGNALS.keys() & word.signals.keys():
        rows.append(_row(name, f"{word.signals[name]:.2f}", _SIGNALS[name]))
    if word.support is not None:
        meaning = "how likely it is that the picture supports the word, by the scores that follow"
        rows.append(_row("support", percent(word.support.score), meaning))
        for name, value in word.support.evidence.items():
            meaning = (FOREIGN_MEANING | MEANING).get(name, "a score of the check")
            rows.append(_row(name, f"{value:.3g}", meaning))
    return rows


def numbers_of_explanation(why: Explanation) -> list[dict[str, str]]:
    """What a method adds to them; shares only where they are parts of one whole."""
    rows = [_row("score", f"{why.total:+.2f}", "the captioner's score of the word, its logit")]
    if not find_method(why.method).adds_up:
        return rows
    share = percent(why.image_share)
    unshown, what = _UNSHOWN.get(why.method, _ABSORBED)
    parts = [
        ("the picture", why.image_relevance, f"of the score: {share} of what the inputs have"),
        ("previous words", why.language_relevance, "of the score: what the words before it have"),
        ("constants", why.bias, "of the score: what depends neither on the picture nor on words"),
        ("ε", why.epsilon, "of the score: what LRP's stabiliser absorbs"),
        ("the heatmap", why.image_relevance - why.encoder, "what all its pixels add up to"),
        (unshown, why.encoder, what),
    ]
    return rows + [_row(name, f"{value:+.2f}", meaning) for name, value, meaning in parts]


def _row(name: str, value: str, meaning: str) -> dict[str, str]:
    return {"name": name, "value": value, "meaning": meaning}
