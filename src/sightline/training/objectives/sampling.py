"""Captions sampled from a model in the middle of training."""

import torch
from torch import Tensor
from torch.nn import functional

from sightline.decoding.constraints import Constraints, constrain_
from sightline.decoding.stepwise import SampleOptions, sample, sample_words
from sightline.models.interface import CaptionModel, Memory, select_rows
from sightline.text.vocabulary import END, PAD, START


def sample_captions(
    captioner: CaptionModel,
    memory: Memory,
    count: int,
    limits: Constraints,
    temperature: float = 1.0,
) -> Tensor:
    """Captions `(B, count, T)` from the captioner's distribution.

    The seed comes from torch's global generator, whose state a checkpoint keeps.
    """
    seed = int(torch.randint(2**31, ()))
    options = SampleOptions(count, temperature, seed=seed, constraints=limits)
    return sample(captioner, memory, options).tokens


def sample_with_rollouts(
    captioner: CaptionModel, memory: Memory, rollouts: int, limits: Constraints
) -> Tensor:
    """A caption of each picture, and completions of each of its prefixes, all drawn alike.

    Where the longest caption has P words, its end among them, rows are
    `(B, 1 + (P - 1) * rollouts, T)`: the caption, then so many completions of its first word, of
    its first two, and so on. A caption that has ended is its own completion.

    All are decoded in one batch: after every word its rollouts fork off the caption. So no prefix
    is read twice, and there are no more steps than words.
    """
    pictures, device = len(next(iter(memory.values()))), next(iter(memory.values())).device
    generator = torch.Generator(device).manual_seed(int(torch.randint(2**31, ())))
    forks = torch.zeros(pictures, rollouts, dtype=torch.long, device=device)
    state = captioner.start(memory)
    tokens = torch.full((pictures, 1, 1), START, device=device)
    for _ in range(limits.max_length + 1):
        logits, state, *_ = captioner.step(tokens[:, :, -1], state, memory)
        allowed = functional.log_softmax(logits, -1, dtype=torch.float32)
        constrain_(allowed, tokens, limits)
        words = sample_words(functional.softmax(allowed, -1), generator)[..., None]
        tokens = torch.cat([tokens, words], 2)
        ended = ((words == END) | (words == PAD)).squeeze(2)
        if ended.all():
            break
        if not ended[:, 0].all():
            rows = torch.arange(tokens.shape[1], device=device).expand(pictures, -1)
            rows = torch.cat([rows, forks], 1)
            state = select_rows(state, rows)
            tokens = tokens.gather(1, rows[..., None].expand(-1, -1, tokens.shape[2]))
    return tokens[..., 1:]
