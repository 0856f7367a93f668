"""Beam search, for all pictures of a batch and all their beams in one tensor step."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from torch import Tensor

from sightline.config import Range, from_dict, nearest, to_dict
from sightline.decoding.constraints import Constraints, constrain_
from sightline.decoding.hypotheses import Hypotheses
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel, Memory, select_pictures, select_rows
from sightline.progress import advance
from sightline.text.vocabulary import END, PAD, START


@dataclass(frozen=True)
class BeamOptions:
    """How to search. With `groups`, each of them has `beam` beams of its own."""

    beam: Annotated[int, Range(1, 1000)] = 5
    n_best: Annotated[int, Range(1, 1000)] = 1
    length_power: float = 0.7  # scores are log-probabilities / length ** this; 0: plain sums
    # Diverse beam search (Vijayakumar et al. 2016): several groups of beams, each discouraged from
    # the words that earlier groups choose.
    groups: Annotated[int, Range(1, 1000)] = 1
    diversity: float = 0.5
    constraints: Constraints = field(default_factory=Constraints)

    def __post_init__(self) -> None:
        if min(self.beam, self.groups, self.n_best) < 1:
            raise ConfigError("decoding: beam, groups and n_best must be at least 1")
        if self.diversity < 0:
            raise ConfigError("decoding: diversity must be at least 0")
        if self.n_best > self.beam * self.groups:
            raise ConfigError(
                f"decoding: {self.n_best} captions need more than {self.beam * self.groups} "
                "beams; widen the beam"
            )
        if self.groups > 1 and self.constraints.require:
            raise ConfigError("decoding: required words cannot be combined with diverse groups")

    def changed(self, options: Any, where: str = "decoding") -> "BeamOptions":
        """These, with other values for some, and for some of the constraints: all on one level.

        >>> BeamOptions().changed({"beam": 3, "max_length": 9}).constraints.max_length
        9
        """
        if not isinstance(options, dict):
            raise ConfigError(f"{where}: must be a group of keys, not {options!r}")
        values = to_dict(self)
        limits = values.pop("constraints")
        for name, value in options.items():
            if name not in values and name not in limits:
                hint = nearest(str(name), [*values, *limits])
                raise ConfigError(f"{where}: no decoding option is called '{name}'; {hint}")
            (limits if name in limits else values)[name] = value
        return from_dict(BeamOptions, {**values, "constraints": limits}, where)


@torch.no_grad()
def beam_search(model: CaptionModel, memory: Memory, options: BeamOptions) -> Hypotheses:
    """The `n_best` captions of each picture.

    Every row holds a caption. One that has ended keeps its place among the rows with its score, and
    is never extended; a picture is done when all its rows have ended, and leaves the batch.

    Rows come in blocks `(B, N, beam)`. Without further wishes N is 1. For diverse search a block is
    a group. For required words (single words; grid beam search, Hokamp & Liu 2017) block n holds
    captions with n of them said, and only captions of the last block may end.
    """
    limits = options.constraints
    blocks = max(options.groups, len(limits.require) + 1)
    pictures = len(next(iter(memory.values())))
    rows, device = blocks * options.beam, next(iter(memory.values())).device

    # Before the first word all rows of a picture are alike: one of them takes that step for all.
    state = model.start(memory)
    tokens = torch.full((pictures, rows, 1), START, device=device)
    log_probs = torch.full((pictures, blocks, options.beam), float("-inf"), device=device)
    # One live row per group; the others are copies until words tell them apart.
    log_probs[:, : 1 if limits.require else blocks, 0] = 0.0
    log_probs = log_probs.flatten(1)
    sums = log_probs.new_zeros(pictures, rows, 0)  # log_probs after each word
    length = torch.zeros_like(tokens[:, :, 0])
    finished = torch.zeros_like(length, dtype=torch.bool)

    done = _Done(pictures, options, device)
    active = torch.arange(pictures, device=device)
    for t in range(limits.max_length + 1):
        advance(t, limits.max_length + 1)
        step = model.step(tokens[:, : rows if t else 1, -1], state, memory)
        logits = step.logits.expand(-1, rows, -1)
        if t == 0:  # the widest tensor, made once: fresh memory costs more than what is done in it
            room = logits.new_empty(logits.shape, dtype=torch.float32)
        next_word = torch.log_softmax(logits, -1, torch.float32, out=room[: len(logits)])
        constrain_(next_word, tokens, limits)
        if limits.require:
            next_word[:, : -options.beam, END] = float("-inf")
        length = torch.where(finished, length, t + 1)

        shape = (len(next_word), blocks, options.beam)
        scale = length.view(shape) ** options.length_power
        parents, words = _choose(
            next_word.view(*shape, -1), log_probs.view(shape), scale, tokens, options
        )
        of_word = next_word.flatten(1).gather(1, parents * next_word.shape[2] + words)
        log_probs = log_probs.gather(1, parents) + of_word
        tokens = _extended(tokens, parents, words)
        sums = _extended(sums, parents, log_probs)
        length, finished = length.gather(1, parents), finished.gather(1, parents) | (words == END)
        state = select_rows(step.state, parents if t else torch.zeros_like(parents))

        # Rows that hold nothing (fewer captions are possible than there are rows) count as ended.
        over = (finished | (log_probs == float("-inf"))).all(1)
        if over.any():
            done.put(active[over], tokens[over], sums[over], length[over], finished[over])
            keep = ~over
            active, tokens, log_probs = active[keep], tokens[keep], log_probs[keep]
            sums = sums[keep]
            length, finished = length[keep], finished[keep]
            state, memory = select_pictures(state, keep), select_pictures(memory, keep)
        if not len(active):
            break
    return done.best()


def _extended(rows: Tensor, parents: Tensor, last: Tensor) -> Tensor:
    """What the parents `(B, K)` of new rows hold `(B, K, T)`, with one more at the end."""
    return torch.cat([rows.gather(1, parents[..., None].expand_as(rows)), last[..., None]], 2)


def _choose(
    next_word: Tensor, log_probs: Tensor, scale: Tensor, tokens: Tensor, options: BeamOptions
) -> tuple[Tensor, Tensor]:
    """The next rows `(B, N * beam)`: which row each comes from and which word it adds.

    A candidate is a row, of which `log_probs` and `scale` `(B, N, beam)` are known, and a word,
    with the log-probabilities `next_word` `(B, N, beam, V)`. It is ranked by the sum of both after
    division by the scale.
    """
    beam = options.beam
    if options.constraints.require:
        next_word, (log_probs, scale), row = _with_required(
            next_word, (log_probs, scale), tokens, options
        )
        rows, words = _best(next_word, log_probs, scale, beam)
        return row.expand(len(rows), -1, -1).gather(2, rows).flatten(1), words.flatten(1)
    if options.groups == 1:
        rows, words = _best(next_word, log_probs, scale, beam)
        return rows.flatten(1), words.flatten(1)
    parents: list[Tensor] = []
    chosen: list[Tensor] = []
    said = torch.zeros_like(next_word[:, 0, 0])
    for group in range(options.groups):
        block = (slice(None), slice(group, group + 1))
        penalty = options.diversity * said[:, None, None] * scale[block][..., None]
        rows, words = _best(next_word[block] - penalty, log_probs[block], scale[block], beam)
        parents.append(rows[:, 0] + group * beam)
        chosen.append(words[:, 0])
        said.scatter_add_(1, words[:, 0], torch.ones_like(words[:, 0], dtype=said.dtype))
        said[:, PAD] = 0  # captions that have ended repel nobody
    return torch.cat(parents, 1), torch.cat(chosen, 1)


def _best(next_word: Tensor, log_probs: Tensor, scale: Tensor, beam: int) -> tuple[Tensor, Tensor]:
    """The best candidates of each block: rows within the block, and words, `(B, N, beam)`.

    All candidates of a row have its log-probability and its scale, so only those with the `beam`
    likeliest words of each row can be among them.
    """
    values, indices = _likeliest(next_word, min(beam, next_word.shape[-1]))
    rank = (log_probs[..., None] + values) / scale[..., None]
    best = rank.flatten(2).topk(beam).indices
    return best // rank.shape[-1], indices.flatten(2).gather(2, best)


_CHUNK = 64  # words; torch's topk over as many is quick, and so is the maximum of each


def _likeliest(next_word: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk` over a vocabulary, of which only the chunks with the largest maxima are searched.

    >>> _likeliest(torch.arange(1000.0), 2)[1].tolist()
    [999, 998]
    """
    words = next_word.shape[-1]
    chunks = words // _CHUNK
    if chunks < 4 * count:  # most of them would be searched
        return next_word.topk(count)
    even = next_word[..., : chunks * _CHUNK].reshape(*next_word.shape[:-1], chunks, _CHUNK)
    best = even.amax(-1).topk(count).indices[..., None]
    within = torch.arange(_CHUNK, device=next_word.device)
    rest = torch.arange(chunks * _CHUNK, words, device=next_word.device)
    rest = rest.expand(*next_word.shape[:-1], -1)
    candidates = torch.cat([(best * _CHUNK + within).flatten(-2), rest], -1)
    top = next_word.gather(-1, candidates).topk(count)
    return top.values, candidates.gather(-1, top.indices)


def _with_required(
    next_word: Tensor, of_row: tuple[Tensor, Tensor], tokens: Tensor, options: BeamOptions
) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
    """Candidates of each block `(B, N, 2 * beam, V)`, what is known of their rows, and the rows.

    Block n takes rows of its own that say no further required word, and rows of block n - 1 that
    say one more.
    """
    blocks, beam = next_word.shape[1:3]
    required = torch.tensor(options.constraints.require, device=next_word.device)
    unsaid = (tokens[..., None] != required).all(2).view(-1, blocks, beam, len(required))
    is_new = torch.zeros_like(next_word, dtype=torch.bool)
    is_new[..., required] = unsaid
    stay = next_word.masked_fill(is_new, float("-inf"))
    # Nothing is new to the last block, so nothing of it rolls round to the first.
    advance = next_word.masked_fill(~is_new, float("-inf")).roll(1, 1)
    row = torch.arange(blocks * beam, device=next_word.device).view(1, blocks, beam)
    log_probs, scale, row = (torch.cat([x, x.roll(1, 1)], 2) for x in (*of_row, row))
    return torch.cat([stay, advance], 2), (log_probs, scale), row


class _Done:
    """Where pictures put their captions when they are done."""

    def __init__(self, pictures: int, options: BeamOptions, device: torch.device) -> None:
        rows = options.beam * max(options.groups, len(options.constraints.require) + 1)
        self.options = options
        self.tokens = torch.full(
            (pictures, rows, options.constraints.max_length + 1), PAD, device=device
        )
        self.log_probs = torch.full((pictures, rows), float("-inf"), device=device)
        self.scores = self.log_probs.clone()
        self.word_log_probs = torch.zeros(self.tokens.shape, device=device)

    def put(
        self, pictures: Tensor, tokens: Tensor, sums: Tensor, length: Tensor, ended: Tensor
    ) -> None:
        log_probs = sums[..., -1].masked_fill(~ended, float("-inf"))
        nothing = (log_probs == float("-inf"))[..., None]
        self.tokens[pictures, :, : tokens.shape[2] - 1] = tokens[:, :, 1:].masked_fill(nothing, PAD)
        words = sums.diff(dim=2, prepend=torch.zeros_like(sums[..., :1]))
        self.word_log_probs[pictures, :, : words.shape[2]] = words.masked_fill(nothing, 0.0)
        self.log_probs[pictures] = log_probs
        self.scores[pictures] = log_probs / length.clamp(min=1) ** self.options.length_power

    def best(self) -> Hypotheses:
        """The best of every group first, then the second best of every group, and so on.

        A caption that an earlier group found too comes after all that are new, and a row that holds
        none comes last.
        """
        rows = self.scores.shape[1]
        scores = self.scores.view(len(self.scores), self.options.groups, -1)
        place = scores.argsort(2, descending=True).argsort(2).flatten(1)
        if self.options.groups > 1:
            same = (self.tokens[:, :, None] == self.tokens[:, None]).all(-1)
            place = place + same.tril(-1).any(-1) * self.options.beam
            place = place.masked_fill(self.scores == float("-inf"), rows)
        order = self.scores.argsort(stable=True, dim=1, descending=True)
        order = order.gather(1, place.gather(1, order).argsort(stable=True, dim=1))
        order = order[:, : self.options.n_best]
        words = order[..., None].expand(-1, -1, self.tokens.shape[2])
        tokens = self.tokens.gather(1, words)
        longest = int((tokens != PAD).sum(-1).max())
        return Hypotheses(
            tokens[..., :longest],
            self.log_probs.gather(1, order),
            self.scores.gather(1, order),
            self.word_log_probs.gather(1, words)[..., :longest],
        )
