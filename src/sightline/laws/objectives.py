"""The laws of training objectives, on a small captioner and a batch of two pictures."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError
from sightline.laws.law import Law, require, require_shape
from sightline.laws.models import REGION_DIM, VOCABULARY, cases
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, SPECIAL, START, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.objective import Objective, Term
from sightline.training.objectives.registry import OBJECTIVES, create_objective

WORDS = ("a", "cat", "dog", "sits", "runs", "red", "green")


@dataclass(frozen=True)
class ObjectiveCase:
    """An objective by its name, with the first of our captioners that it accepts."""

    name: str

    def create(self) -> Objective:
        objective = create_objective({"name": self.name, **OBJECTIVES.find(self.name).tiny})
        images = [
            CaptionedImage("0", Path("0.jpg"), ("a cat sits", "a red cat"), "train"),
            CaptionedImage("1", Path("1.jpg"), ("a dog runs",), "train"),
        ]
        assert len(SPECIAL) + len(WORDS) == VOCABULARY
        objective.prepare(images, Vocabulary(WORDS))
        return objective

    @cached_property
    def model(self) -> CaptionModel:
        objective, reasons = self.create(), []
        for name in MODELS.builtin:
            model = cases(name)[0].model.train()
            try:
                objective.check(model)
            except ConfigError as error:
                reasons.append(str(error))
            else:
                return model
        raise ConfigError(f"it accepts none of our captioners: {reasons[0]}")

    def batch(self, weight: float = 1.0) -> CaptionBatch:
        torch.manual_seed(1)
        targets = torch.tensor([[[4, 5, 7, END], [4, 9, 5, END]], [[4, 6, 8, END], [PAD] * 4]])
        start = torch.full((2, 2, 1), START)
        inputs = torch.cat([start, targets[..., :-1]], 2)
        mask = torch.tensor([[True, True, True], [True, True, False]])
        regions = Regions(torch.randn(2, 3, REGION_DIM).double(), mask, torch.zeros(2, 3, 4))
        return CaptionBatch(regions, inputs, targets, weight, torch.arange(2))

    def terms(self, objective: Objective, batch: CaptionBatch | None = None) -> dict[str, Term]:
        torch.manual_seed(3)
        return objective.terms(self.model, batch or self.batch(), 0)


def _loss(terms: dict[str, Term]) -> Tensor:
    parts = [term.weight * term.total for term in terms.values() if term.weight]
    require(parts, "every term has weight 0")
    return torch.stack(parts).sum()


def _terms_are_finite(case: ObjectiveCase) -> None:
    terms = case.terms(case.create())
    require(isinstance(terms, dict) and terms, "terms: there are none")
    for name, term in terms.items():
        require(isinstance(term, Term), f"{name}: is {type(term).__name__}, not a Term")
        require_shape(term.total, (), name)
        require(term.total.isfinite(), f"{name}: is {term.total.item()}")
        require(term.per in ("word", "caption"), f"{name}: is per '{term.per}'")


def _gradients_reach_parameters(case: ObjectiveCase) -> str | None:
    _loss(case.terms(case.create())).backward()  # type: ignore[no-untyped-call]
    gradients = {name: p.grad for name, p in case.model.named_parameters()}
    reached = [name for name, gradient in gradients.items() if gradient is not None]
    require(reached, "no parameter has a gradient")
    for name in reached:
        gradient = gradients[name]
        require(
            gradient is None or gradient.isfinite().all(), f"the gradient of {name}: not finite"
        )
    idle = [n for n, gradient in gradients.items() if gradient is None or not gradient.any()]
    return f"no gradient reaches {', '.join(idle)}" if idle else None


def _weight_zero_weighs_nothing(case: ObjectiveCase) -> None:
    for name, term in case.terms(case.create(), case.batch(weight=0.0)).items():
        require(
            term.total.item() == 0, f"{name}: is {term.total.item():.2g} for a batch of weight 0"
        )


def _values(terms: dict[str, Term]) -> dict[str, float]:
    return {name: term.total.item() for name, term in terms.items()}


def _state_goes_through_a_checkpoint(case: ObjectiveCase) -> None:
    objective = case.create()
    objective.observe(_values(case.terms(objective)))
    state = json.loads(json.dumps(objective.state()))
    require(isinstance(state, dict), "state: must be a dictionary of numbers")
    loaded = case.create()
    loaded.load_state(state)
    require(
        loaded.state() == objective.state(), f"state: {loaded.state()}, not {objective.state()}"
    )
    before, after = _values(case.terms(objective)), _values(case.terms(loaded))
    for name in before:
        require(
            abs(before[name] - after[name]) < 1e-9, f"{name}: another one after loading its state"
        )


OBJECTIVE_LAWS = [
    Law("terms are finite numbers", _terms_are_finite),
    Law("gradients reach the captioner", _gradients_reach_parameters),
    Law("a batch of weight 0 weighs nothing", _weight_zero_weighs_nothing),
    Law("its state goes through a checkpoint", _state_goes_through_a_checkpoint),
]
