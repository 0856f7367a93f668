"""Several captioners as one: their next-word probabilities are averaged."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel, Memory, State, Step
from sightline.regions import Regions


class Ensemble(CaptionModel):
    """Captioners that read the same regions and know the same words, driven as one.

    Probabilities, not logits, are averaged: every member says how likely a word is, and a member
    that is sure counts for as much as it is sure.
    """

    def __init__(self, members: Sequence[CaptionModel]) -> None:
        super().__init__()
        if not members:
            raise ConfigError("ensemble: no captioner was given")
        self.members = nn.ModuleList(members)

    def encode(self, regions: Regions) -> Memory:
        return self._join([member.encode(regions) for member in self._models()])

    def start(self, memory: Memory, rows: int = 1) -> State:
        pairs = zip(self._models(), self._split(memory), strict=True)
        return self._join([member.start(member_memory, rows) for member, member_memory in pairs])

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        steps = [
            member.step(tokens, member_state, member_memory)
            for member, member_state, member_memory in zip(
                self._models(), self._split(state), self._split(memory), strict=True
            )
        ]
        log_probs = torch.stack([functional.log_softmax(step.logits, -1) for step in steps])
        return Step(
            log_probs.logsumexp(0) - math.log(len(steps)),
            self._join([step.state for step in steps]),
            torch.stack([step.attention for step in steps]).mean(0),
            {
                name: torch.stack([step.signals[name] for step in steps]).mean(0)
                for name in steps[0].signals
                if all(name in step.signals for step in steps)
            },
        )

    def _models(self) -> list[CaptionModel]:
        return [member for member in self.members if isinstance(member, CaptionModel)]

    @staticmethod
    def _join(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {f"{i}.{name}": t for i, part in enumerate(parts) for name, t in part.items()}

    def _split(self, joined: dict[str, Tensor]) -> list[dict[str, Tensor]]:
        parts: list[dict[str, Tensor]] = [{} for _ in self.members]
        for name, tensor in joined.items():
            number, _, key = name.partition(".")
            parts[int(number)][key] = tensor
        return parts
