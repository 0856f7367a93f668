"""METEOR's aligner: a beam search for the alignment with the most matched words."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sightline.metrics.meteor.matching import EXACT, Match

_BEAM = 40

# What a path through the search holds: its key (smaller is better), where its last match ends in
# the candidate (-1 after a word left unmatched), the first word of the reference not yet passed,
# the candidate's matched words as bits, and its matches as a linked list.
_Path = tuple[int, int, int, int, Any]
_key = itemgetter(0)


def align(matches: Sequence[Sequence[Match]], candidate_length: int) -> list[Match]:
    """Choose matches that do not overlap; `matches[i]` are those that begin at reference word i.

    Alignments are compared by matched words of both captions, where an inexact match counts half
    its words, rounded down; then by chunks; then by the distance between matched positions.

    >>> one, other = Match(0, 1, 3, 1, EXACT), Match(1, 1, 0, 1, EXACT)
    >>> align([[one], [other, other]], 4) == [one, other]
    True
    """
    fixed = _unambiguous(matches, candidate_length)
    if sum(map(len, matches)) == len(fixed):
        return list(fixed.values())
    return sorted([*fixed.values(), *_search(matches, fixed)])


def _unambiguous(matches: Sequence[Sequence[Match]], candidate_length: int) -> dict[int, Match]:
    """Matches whose words, on both sides, no other match covers: every path takes them."""
    cover = [0] * len(matches)
    other_cover = [0] * candidate_length
    for options in matches:
        for start, length, other, other_length, _ in options:
            for place in range(start, start + length):
                cover[place] += 1
            for place in range(other, other + other_length):
                other_cover[place] += 1
    fixed = {}
    for options in matches:
        if len(options) == 1:
            start, length, other, other_length, _ = match = options[0]
            covers = cover[start : start + length] + other_cover[other : other + other_length]
            if max(covers) == 1:
                fixed[start] = match
    return fixed


def _search(matches: Sequence[Sequence[Match]], fixed: dict[int, Match]) -> list[Match]:
    """The matches of the best path beyond the fixed ones."""
    # One integer orders the paths. Distances can never add up to a chunk, nor chunks to a word.
    chunk = 1 + sum(abs(match.start - match.other) for options in matches for match in options)
    word = chunk * (len(matches) + 2)
    paths: list[_Path] = [(0, -1, 0, 0, None)]
    for place, options in enumerate(matches):
        if len(paths) > 1:
            paths.sort(
                key=_key
            )  # a stable sort, as METEOR's: of equal paths the earlier stays first
            del paths[_BEAM:]
        if place in fixed:
            paths = _take(fixed[place], paths, chunk)
        elif options:
            paths = _grow(place, options, paths, chunk, word)
        else:
            paths = [
                path
                if path[1] == -1 or place < path[2]
                else (path[0] + chunk, -1, place, path[3], path[4])
                for path in paths
            ]
    paths.sort(key=_key)
    best = min(paths[:_BEAM], key=lambda path: path[0] + chunk * (path[1] != -1))
    chosen: list[Match] = []
    link = best[4]
    while link:
        match, link = link
        chosen.append(match)
    return chosen


def _take(match: Match, paths: list[_Path], chunk: int) -> list[_Path]:
    """Every path takes a fixed match, whose words and distance change nothing between them."""
    start, length, other, other_length, _ = match
    end, passed = other + other_length, start + length
    return [
        (key if last in (-1, other) else key + chunk, end, passed, used, link)
        for key, last, _, used, link in paths
    ]


def _grow(
    place: int, options: Sequence[Match], paths: list[_Path], chunk: int, word: int
) -> list[_Path]:
    """Every path takes each match that is still free, or leaves the word unmatched."""
    steps = [
        (
            match,
            match.other,
            match.other + match.other_length,
            place + match.length,
            ((1 << match.other_length) - 1) << match.other,
            word * _words(match),
            abs(place - match.other),
        )
        for match in options
    ]
    grown: list[_Path] = []
    for path in paths:
        key, last, passed, used, link = path
        if place < passed:
            grown.append(path)
            continue
        broken = 0 if last == -1 else chunk
        for match, other, end, next_passed, bits, gain, distance in steps:
            if not used & bits:
                cost = 0 if other == last else broken
                grown.append((key - gain + cost, end, next_passed, used | bits, (match, link)))
                # METEOR adds the distance of a match to the path it grew from: the paths that grow
                # from there later carry it, the one with the match does not.
                key += distance
        grown.append((key + broken, -1, place, used, link))
    return grown


def _words(match: Match) -> int:
    """Matched words of both captions, as the search counts them."""
    if match.matcher == EXACT:
        return match.length + match.other_length
    return match.length // 2 + match.other_length // 2
