"""HACap: a MANAGER sets goals from a discriminator's features, a WORKER says words (paper 2)."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.config import Range, Width, require_at_least
from sightline.errors import ConfigError
from sightline.models.discriminator import LAYERS, Discriminator
from sightline.models.interface import CaptionModel, Memory, State, Step, Unrolled
from sightline.models.layers import (
    Dropout,
    additive_energy,
    barrier,
    masked_mean,
    unit_gate,
    without_dropout,
)
from sightline.models.sru import SRU
from sightline.regions import Regions


@dataclass(frozen=True)
class HierarchicalConfig:
    """Sizes of the model; defaults are the paper's and, where it is silent, the released code's."""

    # Annotation vectors are projected to it; 0: taken as they are.
    region_width: Annotated[int, Range(0, 16_384)] = 512
    word_width: Width = 256
    worker_width: Width = 256
    manager_width: Width = 256
    goal_width: Width = 6
    attention_width: Width = 512
    discriminator_width: Width = 256  # of its words, and of the features it leaks
    discriminator_sees_picture: bool = False  # the paper's future work: is it a caption of *this*?
    dropout: float = 0.5  # the released code's, before the verdict; ours, on regions and words too

    def __post_init__(self) -> None:
        require_at_least(
            1,
            "model",
            word_width=self.word_width,
            worker_width=self.worker_width,
            manager_width=self.manager_width,
            goal_width=self.goal_width,
            attention_width=self.attention_width,
            discriminator_width=self.discriminator_width,
        )
        require_at_least(0, "model", region_width=self.region_width)
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model: dropout must be from 0 to below 1, not {self.dropout}")


class Judged(NamedTuple):
    """A teacher-forced pass, and the discriminator's verdicts on other captions of the pictures."""

    unrolled: Unrolled
    verdicts: Tensor  # (B, N): logits that a person wrote them
    drawn: Unrolled | None = None  # a pass without dropout, over captions that were drawn without


class Hierarchical(CaptionModel):
    """At every word: the attention looks where the WORKER's features of the word before say, the
    WORKER reads the last word and what is seen there, the MANAGER sets a goal from what the
    discriminator makes of the words so far, and the goal guides which word comes next.

    That order is the paper's; in the released code the WORKER reads what was seen one word ago.
    Three gradients stop: from the attention into the WORKER's features (section 4.2), from the
    MANAGER into the discriminator, which its own loss alone trains, and from that loss into
    everything else.

    The coordinates of a goal are signals `goal_0`, `goal_1`, …, numbers of a word as β is, so
    that every caption that is described, drawn or trained on carries its goals; `goals_of` makes
    them vectors again. What is leaked is `discriminator.features`.
    """

    config: HierarchicalConfig

    def __init__(self, vocabulary_size: int, region_dim: int, config: HierarchicalConfig) -> None:
        super().__init__()
        self.config = config
        n, m, a = config.worker_width, config.word_width, config.attention_width
        d = config.region_width or region_dim
        self.project = nn.Linear(region_dim, d) if config.region_width else nn.Identity()
        self.discriminator = Discriminator(
            vocabulary_size,
            config.discriminator_width,
            config.goal_width,
            region_dim if config.discriminator_sees_picture else 0,
            config.dropout,
        )
        self.manager = SRU(config.manager_width, config.discriminator_width)
        self.manager_to_goal = nn.Linear(config.manager_width, config.goal_width)
        self.context_to_goal = nn.Linear(d, config.goal_width, bias=False)
        self.embedding = nn.Embedding(vocabulary_size, m)
        self.worker = SRU(n, m, d)
        self.key = nn.Linear(d, a, bias=False)  # L_img
        # L_lang with b_a, and f_β: all that the attention takes of the WORKER, in one product.
        self.from_worker = nn.Linear(n, a + 1)
        self.score = nn.Parameter(torch.empty(a))  # W_e (a constant would cancel in the softmax)
        self.context_to_output = nn.Linear(d, n, bias=False)
        self.output = nn.Linear(config.goal_width * n, vocabulary_size, bias=False)
        self.dropout = Dropout(config.dropout)
        self._initialise()

    def _initialise(self) -> None:
        """Xavier for all but the SRUs, which are orthogonal (section 4.4), and W_e; biases zero."""
        for layer in self.children():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.xavier_uniform_(layer.weight)
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)
        a = self.config.attention_width
        for block in (self.from_worker.weight[:a], self.from_worker.weight[a:]):
            nn.init.xavier_uniform_(block.data)
        # Ours: look everywhere at first. Xavier's W_e prefers some regions from the start, and as
        # no gradient tells the WORKER where to look, that is rarely unlearnt.
        nn.init.uniform_(self.score, -0.01, 0.01)

    def encode(self, regions: Regions) -> Memory:
        annotations = self.dropout(self.project(regions.vectors))
        memory = {
            "annotations": annotations,
            "keys": self.key(annotations),
            "barrier": barrier(regions.mask, annotations),
            "context": masked_mean(annotations, regions.mask),
        }
        if self.config.discriminator_sees_picture:
            # Of length one: raw activations would drown the caption.
            picture = masked_mean(regions.vectors, regions.mask)
            memory["picture"] = functional.normalize(picture, 2, -1)
        return memory

    def start(self, memory: Memory, rows: int = 1) -> State:
        """Nothing read and nothing planned; the first context is the mean annotation."""
        config, context = self.config, memory["context"]
        rows_of = (len(context), rows)
        attention = functional.softmax(memory["barrier"], -1)
        return {
            "discriminator": context.new_zeros(*rows_of, LAYERS, config.discriminator_width),
            "manager": context.new_zeros(*rows_of, config.manager_width),
            "worker": context.new_zeros(*rows_of, config.worker_width),
            # Where to look for the next word: this is known as soon as a word has been read.
            "context": context.unsqueeze(1).expand(-1, rows, -1).contiguous(),
            "attention": attention.unsqueeze(1).expand(-1, rows, -1).contiguous(),
            "beta": context.new_ones(*rows_of),
        }

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        leaked, extractor = self.discriminator.step(
            tokens, state["discriminator"], memory.get("picture")
        )
        plan, manager = self.manager.step(self.manager.language(leaked.detach()), state["manager"])
        words = self.worker.language(self.dropout(self.embedding(tokens)))
        context = state["context"]
        features, worker = self.worker.step(words + self.worker.image(context), state["worker"])
        logits, signals = self._predict(features, context, plan)
        after = {"discriminator": extractor, "manager": manager, "worker": worker}
        after["context"], after["attention"], after["beta"] = self._look(features, memory)
        return Step(logits, after, state["attention"], {"beta": state["beta"], **signals})

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """The discriminator and the MANAGER read all words at once; words leave at once, too. Only
        the WORKER is a loop, because where it looks depends on what it read.
        """
        state = self.start(memory, tokens.shape[1])
        leaked = self.discriminator.features(tokens, memory.get("picture")).detach()
        plans = self.manager(self.manager.language(leaked), state["manager"])
        words = self.worker.language(self.dropout(self.embedding(tokens))).unbind(2)
        cell = state["worker"]
        features: list[Tensor] = []
        attended = [(state["context"], state["attention"], state["beta"])]
        for t, word in enumerate(words):
            if t > 0:
                attended.append(self._look(features[-1], memory))
            now, cell = self.worker.step(word + self.worker.image(attended[-1][0]), cell)
            features.append(now)
        contexts, attentions, betas = (
            torch.stack(parts, 2) for parts in zip(*attended, strict=True)
        )
        logits, signals = self._predict(torch.stack(features, 2), contexts, plans)
        return Unrolled(logits, attentions, {"beta": betas, **signals})

    @overload
    def forward(self, regions: Regions, tokens: Tensor) -> Unrolled: ...

    @overload
    def forward(
        self, regions: Regions, tokens: Tensor, judged: Tensor, drawn: Tensor | None = None
    ) -> Judged: ...

    def forward(
        self,
        regions: Regions,
        tokens: Tensor,
        judged: Tensor | None = None,
        drawn: Tensor | None = None,
    ) -> Unrolled | Judged:
        """The teacher-forced pass and, if captions `judged` `(B, N, T)` are given, verdicts on
        them; with `drawn`, a pass over these words without dropout, too. It is one call, so that
        several processes can gather the gradients of all.
        """
        memory = self.encode(regions)
        unrolled = self.unroll(tokens, memory)
        if judged is None:
            return unrolled
        verdicts = self.discriminator(judged, memory.get("picture"))
        if drawn is None:
            return Judged(unrolled, verdicts)
        with without_dropout(self):
            return Judged(unrolled, verdicts, self.unroll(drawn, self.encode(regions)))

    def _look(self, features: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """Where the WORKER's features say to look next: the context z, α and β (section 3.5)."""
        # "There is no gradient sent back to the language model" (section 4.2).
        query, gate = self.from_worker(features.detach()).split([len(self.score), 1], -1)
        energy = additive_energy(memory["keys"], query, self.score, rectified=True)
        attention = functional.softmax(energy + memory["barrier"][:, None], -1)
        beta = torch.sigmoid(gate)
        return beta * (attention @ memory["annotations"]), attention, beta.squeeze(-1)

    def _predict(
        self, features: Tensor, context: Tensor, plan: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The goal, and the words it leads to.

        Word v has a vector of the goal's length that is linear in what the WORKER knows, and its
        logit is the product of the two: Σ_k goal_k (W_k u)_v. That is one product of W with all
        goal_k u_j; the words' vectors, six times as large as the logits, are never made.
        """
        goal = unit_gate(self.manager_to_goal(plan) + self.context_to_goal(context))
        known = self.dropout(features + self.context_to_output(context))
        logits = self.output((goal[..., :, None] * known[..., None, :]).flatten(-2))
        return logits, {f"goal_{k}": part for k, part in enumerate(goal.unbind(-1))}


def goals_of(signals: dict[str, Tensor]) -> Tensor:
    """The goals `(..., goal_width)`, of length one, in the signals of a step or of whole captions.

    >>> goals_of({"beta": torch.zeros(2), "goal_0": torch.zeros(2), "goal_1": torch.ones(2)})
    tensor([[0., 1.],
            [0., 1.]])
    """
    width = sum(name.startswith("goal_") for name in signals)
    return torch.stack([signals[f"goal_{k}"] for k in range(width)], -1)


def goal_collapse(goals: Tensor, said: Tensor) -> Tensor:
    """How alike the goals of a caption are: the mean cosine of all pairs of its words `(...)`.

    `goals` `(..., T, W)` have length one; `said` `(..., T)` marks the words that count. It is 1
    where all words of a caption follow one goal, the collapse that section 5.4 reports; a caption
    of fewer than two words has no pair, and 0.

    >>> goals = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(float(goal_collapse(goals, torch.tensor([True, True, True]))), 4)
    0.3333
    """
    words = said.sum(-1)
    # |Σ g|² is the sum over all ordered pairs, each word with itself included.
    pairs = (goals * said[..., None]).sum(-2).square().sum(-1) - words
    return pairs / (words * (words - 1)).clamp(min=1)
