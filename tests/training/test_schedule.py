"""Learning rates and optimisers."""

import math

import pytest
import torch

from sightline.recipe import OptimizerRecipe, ScheduleRecipe
from sightline.training.schedule import create_optimizer, learning_rate_factor


@pytest.mark.parametrize("name", ["constant", "cosine", "noam", "plateau"])
def test_every_schedule_warms_up_evenly_to_the_full_rate(name: str) -> None:
    recipe = ScheduleRecipe(name, warmup=10)
    shares = [learning_rate_factor(recipe, step, 100) for step in range(10)]
    assert shares == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(learning_rate_factor(recipe, step, 100) for step in range(100)) == pytest.approx(1.0)


def test_after_warming_up() -> None:
    cosine = ScheduleRecipe("cosine", warmup=0, minimum=0.1)
    assert learning_rate_factor(cosine, 50, 100) == pytest.approx(0.55)
    assert learning_rate_factor(cosine, 100, 100) == pytest.approx(0.1)
    noam = ScheduleRecipe("noam", warmup=25)
    assert learning_rate_factor(noam, 99, 1000) == pytest.approx(math.sqrt(25 / 100))
    assert learning_rate_factor(ScheduleRecipe("constant", warmup=5), 99, 100) == 1.0


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_optimisers_take_the_recipes_numbers(name: str) -> None:
    recipe = OptimizerRecipe(name, 0.02, 0.3, (0.8, 0.9), 0.7)
    optimizer = create_optimizer(torch.nn.Linear(1, 1), recipe)
    group = optimizer.param_groups[0]
    assert type(optimizer).__name__.lower() == name
    assert (group["lr"], group["weight_decay"]) == (0.02, 0.3)
    assert group["alpha"] == 0.7 if name == "rmsprop" else group["betas"] == (0.8, 0.9)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_on_a_cpu_adam_passes_over_the_weights_once(name: str) -> None:
    """And moves them as torch's other implementation does."""
    recipe = OptimizerRecipe(name, 0.02, 0.3)
    layers = [torch.nn.Linear(3, 2) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    optimizers = [create_optimizer(layer, recipe) for layer in layers]
    assert optimizers[0].param_groups[0]["fused"]
    optimizers[1].param_groups[0]["fused"] = False
    for step in range(5):
        for layer, optimizer in zip(layers, optimizers, strict=True):
            optimizer.zero_grad()
            layer(torch.full((1, 3), step - 2.0)).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(layers[0].weight, layers[1].weight)


def test_a_tail_has_a_rate_of_its_own_and_no_decay() -> None:
    captioner, trainable = torch.nn.Linear(1, 1), torch.nn.Linear(2, 2)
    recipe = OptimizerRecipe("adamw", 0.02, 0.3)
    own, other = create_optimizer(captioner, recipe, trainable, 0.001).param_groups
    assert own["params"] == list(captioner.parameters())
    assert other["params"] == list(trainable.parameters())
    assert (own["full_rate"], own["weight_decay"]) == (0.02, 0.3)
    assert (other["full_rate"], other["weight_decay"]) == (0.001, 0.0)


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_a_step_is_seen_by_the_versions_of_the_weights(name: str) -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = create_optimizer(layer, OptimizerRecipe(name, 0.02))
    before = layer.weight._version
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert layer.weight._version > before
