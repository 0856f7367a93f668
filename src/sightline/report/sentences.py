"""What the page says in plain sentences: of a caption, of a word, of a word that is not there."""

import math
from collections.abc import Mapping

from sightline.captions import DOUBTFUL, NOT_SUPPORTED, SEEN, Counterfactual, UnknownWord, Word
from sightline.explain.methods import find_method
from sightline.explanation import Explanation
from sightline.report.heatmaps import Heatmap
from sightline.report.report import Report
from sightline.report.wording import likelihood, listed, readable

_MOSTLY = 2 / 3  # of the relevance: what a word is mostly said for
_SHARED = 1 / 2  # of two heatmaps, if they show the same thing
_AS_LIKELY = 2 / 3  # of a word's probability is left: it would have been said anyway


def verdict_of_caption(report: Report) -> str:
    """One sentence on the whole caption.

    >>> verdict_of_caption(captioner.report("photo.jpg"))  # doctest: +SKIP
    '5 of 6 checked words are seen in the picture; “frisbee” is not.'
    """
    supports = [(w.text, w.support.verdict) for w in report.caption.words if w.support is not None]
    if not supports:
        return "Its words were not checked against the picture."
    seen = sum(verdict == SEEN for _, verdict in supports)
    doubtful = list(dict.fromkeys(text for text, verdict in supports if verdict == DOUBTFUL))
    missing = list(dict.fromkeys(text for text, verdict in supports if verdict == NOT_SUPPORTED))
    if len(supports) == 1:
        verdict = {SEEN: "seen in the picture", DOUBTFUL: "doubtful"}.get(
            supports[0][1], "not seen in the picture"
        )
        return f"The one checked word, “{supports[0][0]}”, is {verdict}."
    if seen == len(supports):
        return f"All {seen} checked words are seen in the picture."
    sentence = f"{seen} of {len(supports)} checked words {_are(seen)} seen in the picture; "
    if seen == 0:
        sentence = f"None of {len(supports)} checked words is clearly seen in the picture; "
    if doubtful:
        sentence += f"{listed(doubtful)} {_are(len(doubtful))} doubtful"
    if missing:
        sentence += f"{', and ' if doubtful else ''}{listed(missing)} {_are(len(missing))} not"
        sentence += " supported" if doubtful or seen == 0 else ""
    return sentence + "."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def thing_shown(heatmap: Heatmap, things: Mapping[str, Heatmap]) -> str | None:
    """Of things that are in the picture, the one that a heatmap shows: both share the larger part.

    None if it shows several, or none. (By contrastive LRP, of six photographs in `examples`: dog
    and grass, bird and water, man and tie share 1 to 18 %; “body” of “body of water” and water 57.)

    >>> import numpy as np
    >>> left, right = (Heatmap(np.float32([row]), 1.0) for row in ([1, 0], [0, 1]))
    >>> thing_shown(left, {"dog": left, "grass": right})
    'dog'
    """
    shown = [thing for thing, other in things.items() if heatmap.shared(other) > _SHARED]
    return shown[0] if len(shown) == 1 else None


def why_said(
    why: Explanation, heatmap: Heatmap, words: tuple[str, ...], thing: str | None = None
) -> str:
    """Why a caption, whose words are given, says one of them; `thing` is what its map shows.

    >>> why_said(why, heatmap(why, 192), ("a", "brown", "dog"))  # doctest: +SKIP
    'Said because of what is in the middle of the picture, and because it follows “brown”.'
    """
    seen = heatmap.strongest(1)
    looked = f"what is {seen} of the picture" if seen else None
    if why.method == "attention":
        return f"The captioner looked most at {looked}." if looked else "It looked nowhere."
    method = find_method(why.method)
    if not method.adds_up:
        counts = f"{looked} counts most" if looked else "nothing in the picture"
        return f"{method.label}: {counts}."
    before = _most_relevant_word(why, words)
    if looked and thing:
        looked = f"the “{thing}” {seen} of the picture"
    language = "of the words before it" + (f", above all “{before}”" if before else "")
    if why.place == 0:
        language = "captions often begin with it"
    elif before is None:
        language = "of how captions usually go on"
    if looked is None or why.image_relevance <= 0:
        return f"Said because {language}, although the picture as a whole speaks against it."
    if why.image_share >= _MOSTLY or why.language_relevance <= 0:
        return f"Said mostly because of {looked}."
    if why.image_share <= 1 - _MOSTLY:
        return f"Said mostly because {language}, less because of {looked}."
    if before is not None:
        language = f"it comes after “{before}”"
    return f"Said because of {looked}, and because {language}."


def why_unsaid(
    why: Explanation, heatmap: Heatmap, counterfactual: Counterfactual, words: tuple[Word, ...]
) -> str:
    """Why a caption does not say a word.

    >>> why_unsaid(why, heatmap(why, 192), counterfactual, caption.words)  # doctest: +SKIP
    '“cat” had 2 % as word 3; “dog” had 60 % and was said. What is at the left speaks for it.'
    """
    chance = f"“{why.word}” had {likelihood(counterfactual.word.log_probability)} "
    chance += f"as word {counterfactual.place + 1}"
    if max(counterfactual.everywhere) == counterfactual.word.log_probability:
        chance += ", where it was likeliest"
    if counterfactual.place < len(words):
        said = words[counterfactual.place]
        chance += f"; “{said.text}” had {likelihood(said.log_probability)} and was said."
    else:
        chance += ", where the caption ends."
    sides = [
        f"{side} {place} of the picture"
        for side, place in (
            ("for it speaks what is", heatmap.strongest(1)),
            ("against it what is", heatmap.strongest(-1)),
        )
        if place is not None
    ]
    evidence = ", ".join(sides) or "nothing in the picture speaks for it"
    return f"{chance} {evidence[0].upper()}{evidence[1:]}."


def otherwise(word: Word) -> str | None:
    """What would have been said instead.

    >>> otherwise(Word("dog", math.log(0.6), (("puppy", math.log(0.12)),), ()))
    'Otherwise it would most likely have said “puppy” (12 %).'
    >>> otherwise(Word("cat", math.log(0.2), (("<end>", math.log(0.5)),), ()))
    'It would rather have ended the caption (50 %) than said “cat” (20 %).'
    """
    others = [other for other in word.alternatives if other[0] != "<unknown>"]
    if not others:
        return None
    text, log_probability = others[0]
    ended = text == "<end>"
    chance = likelihood(log_probability)
    if log_probability > word.log_probability:
        rather = f"ended the caption ({chance})" if ended else f"said “{text}” ({chance})"
        than = f"than {'said ' if ended else ''}“{word.text}” ({likelihood(word.log_probability)})"
        return f"It would rather have {rather} {than}."
    if ended:
        return f"Otherwise it would most likely have ended the caption ({chance})."
    return f"Otherwise it would most likely have said “{text}” ({chance})."


def support_of_word(word: Word) -> str | None:
    """Whether the picture supports a word, and if not, how that agrees with a heatmap that glows.

    >>> support_of_word(word)  # doctest: +SKIP
    'The picture does not support it: of other pictures it would be said nearly as readily.'
    """
    if word.support is None:
        return None
    if word.support.verdict == SEEN:
        return "The picture supports it."
    verdict = "does not support it"
    if word.support.verdict == DOUBTFUL:
        verdict = "may or may not support it"
    return f"The picture {verdict}: {_weakness(word)}."


def unknown_word(unknown: UnknownWord, known: int) -> str:
    """That the captioner does not know a word, and the nearest that it knows, of `known` words.

    >>> unknown_word(UnknownWord("trumpet", "horn", "meaning"), 8800)
    '“trumpet” is not among its 8,800 words; the nearest that it knows is “horn”.'
    """
    start = f"“{unknown.text}” is not among its {known:,} words; "
    if unknown.nearest is None:
        return start + "it knows none that is near."
    if unknown.nearest_by == "spelling":
        return start + f"spelt most like it is “{unknown.nearest}”."
    return start + f"the nearest that it knows is “{unknown.nearest}”."


def read_as(word: Word) -> str:
    """What stood in for a word of a given caption that the captioner does not know.

    >>> read_as(Word("espresso", -3.0, (), (), read_as="coffee"))
    'It was read as “coffee”, and is not explained.'
    """
    known = word.read_as is not None and not word.read_as.startswith("<")
    stand_in = f"“{word.read_as}”" if known else "an unknown word"
    return f"It was read as {stand_in}, and is not explained."


def _weakness(word: Word) -> str:
    """The plainest of the scores that speak against a word."""
    assert word.support is not None
    probability = math.exp(word.log_probability)

    def remains(score: str) -> float:
        """The share of the probability that is left without the picture, or a part of it."""
        lost = word.support.evidence.get(score, probability)  # type: ignore[union-attr]
        return 1 - lost / max(probability, 1e-12)

    ratio = word.support.evidence.get("log_ratio")  # of a caption that somebody else wrote
    if ratio is not None and ratio > -math.log(_AS_LIKELY):
        return "it would hardly be mentioned in captions of this picture"
    if ratio is not None or remains("other_picture") >= _AS_LIKELY:
        return "it would be said of other pictures nearly as readily"
    if remains("blank") >= _AS_LIKELY:
        return "it would be said of an empty picture nearly as readily"
    if remains("occlusion") >= _AS_LIKELY:
        return "it would be said nearly as readily with what glows here hidden"
    return "what glows here is weak evidence, all things weighed"


def _most_relevant_word(why: Explanation, words: tuple[str, ...]) -> str | None:
    """The previous word that speaks most for a word, unless it is none, or the start."""
    most = int(why.words.argmax())
    if most == 0 or why.words[most] <= 0:
        return None
    return readable(words[most - 1])
