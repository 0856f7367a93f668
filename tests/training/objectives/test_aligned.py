"""The game of paper 0: terms against their definitions, players apart, runs that resume."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from sightline.checkpoint import read_pointers
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.recipe import load_recipe
from sightline.text.vocabulary import PAD
from sightline.training.loop import train
from sightline.training.objectives.registry import create_objective
from tiny_batch import make_batch

SIZES = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 12}


def make_model(name: str = "aligned_transformer", **options: Any) -> CaptionModel:
    torch.manual_seed(0)
    return create_model(name, 12, 5, {**SIZES, "dropout": 0.0, **options})


def losses(terms: Any) -> torch.Tensor:
    return sum(
        (term.weight * term.total for term in terms.values() if term.weight), torch.zeros(())
    )


def test_terms_are_those_of_both_passes() -> None:
    model, batch = make_model(), make_batch()
    objective = create_objective({"name": "aligned", "label_smoothing": 0.1, "penalty": 0.5})
    terms = objective.terms(model, batch, 0)
    passes = model(batch.regions, batch.inputs, perturb=True)

    def likelihood(unrolled: Any) -> float:
        log_p = unrolled.logits.log_softmax(-1).gather(3, batch.targets[..., None]).squeeze(3)
        return -log_p.masked_fill(batch.targets == PAD, 0.0).sum().item()

    assert terms["nll"].total.item() == pytest.approx(likelihood(passes.aligned), rel=1e-5)
    assert terms["perturbed"].total.item() == pytest.approx(likelihood(passes.perturbed), rel=1e-5)
    assert terms["nll"].total.item() != pytest.approx(terms["perturbed"].total.item(), rel=1e-4)
    weights = {name: term.weight for name, term in terms.items()}
    assert weights == {
        "nll": 1, "smoothing": 0.1, "perturbed": -1, "penalty": 0.5, "mask": 0, "gate": 0,
    }  # fmt: skip

    memory = model.encode(batch.regions)
    words = model.start(memory, 2)
    layers = model.decoder(batch.inputs, words, memory, perturb=True).picture_attention
    penalty, mean = 0.0, 0.0
    for b, there in enumerate((3, 2)):
        for k in range(2):
            for t in range(3):
                if batch.targets[b, k, t] != PAD:
                    masks = torch.stack([layer.mask[b, :, k * 3 + t, :there] for layer in layers])
                    penalty += ((1 - masks) ** 2).sum().item() / 4  # two layers of two heads
                    mean += masks.mean().item()
    assert terms["penalty"].total.item() == pytest.approx(penalty, rel=1e-5)
    assert terms["mask"].total.item() == pytest.approx(mean, rel=1e-5)
    assert {term.per for term in terms.values()} == {"word"}


def test_a_stand_in_batch_weighs_nothing() -> None:
    terms = create_objective({"name": "aligned"}).terms(make_model(), make_batch(weight=0.0), 0)
    assert all(float(term.total.detach()) == 0 for term in terms.values())


def test_the_captioner_learns_as_if_the_masks_did_not() -> None:
    """One backward pass gives each player its own gradient."""
    model, batch = make_model(), make_batch()

    def gradients(options: dict[str, Any]) -> dict[str, torch.Tensor | None]:
        model.zero_grad()
        losses(create_objective(options).terms(model, batch, 0)).backward()
        return {name: p.grad for name, p in model.named_parameters()}

    alone = gradients({"name": "cross_entropy"})
    weak = gradients({"name": "aligned", "penalty": 0.0})
    strong = gradients({"name": "aligned", "penalty": 100.0})
    for name in alone:
        if ".mask." in name:
            assert alone[name] is None
            assert not torch.allclose(weak[name], strong[name])
        else:
            torch.testing.assert_close(weak[name], alone[name])
            torch.testing.assert_close(strong[name], alone[name])


def test_masks_learn_to_hurt_captions_as_far_as_the_penalty_allows() -> None:
    ends = {}
    for penalty in (0.001, 10.0):
        model, batch = make_model(), make_batch()
        masks = [p for name, p in model.named_parameters() if ".mask." in name]
        optimizer = torch.optim.Adam(masks, 0.05)
        objective = create_objective({"name": "aligned", "penalty": penalty})
        first = objective.terms(model, batch, 0)
        for _ in range(40):
            optimizer.zero_grad()
            losses(objective.terms(model, batch, 0)).backward()
            optimizer.step()
        last = objective.terms(model, batch, 0)
        ends[penalty] = float(last["mask"].total.detach() / batch.tokens)
        if penalty == 0.001:
            assert last["perturbed"].total > first["perturbed"].total
    assert ends[10.0] > 0.95
    assert ends[0.001] < ends[10.0] - 0.1


def test_a_model_without_alignment_is_refused_in_one_line() -> None:
    for name in ("transformer", "spatial_transformer"):
        with pytest.raises(ConfigError, match=r"^objective aligned: the model has no"):
            create_objective({"name": "aligned"}).check(make_model(name))
    with pytest.raises(ConfigError, match=r"^objective.penalty: must be at least 0"):
        create_objective({"name": "aligned", "penalty": -1.0})


@pytest.mark.parametrize(("mask", "way"), [(0.001, "raise"), (0.999, "lower")])
def test_masks_that_collapse_are_said_once(
    mask: float, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    objective = create_objective({"name": "aligned"})
    objective.observe({"mask": 0.5})
    objective.observe({"mask": mask})
    assert capsys.readouterr().err == ""  # one step is no collapse
    again = create_objective({"name": "aligned"})
    again.load_state(objective.state())
    for _ in range(600):
        again.observe({"mask": mask})
    said = capsys.readouterr().err
    assert said.startswith("Warning: the masks have collapsed to 0.")
    assert said.endswith(f": {way} objective.penalty\n")
    assert said.count("\n") == 1
    resumed = create_objective({"name": "aligned"})
    resumed.load_state(again.state())
    resumed.observe({"mask": mask})
    assert capsys.readouterr().err == ""


MODEL = {"name": "aligned_transformer", **SIZES, "dropout": 0.2, "alignment": {"fusion": "decay"}}


def test_a_run_trains_the_players_its_objective_names(tiny_recipe: Path, tmp_path: Path) -> None:
    recipe = yaml.safe_load(tiny_recipe.read_text())
    for objective in ("aligned", "cross_entropy"):
        recipe |= {"model": MODEL, "objective": {"name": objective}, "epochs": 1}
        tiny_recipe.write_text(yaml.safe_dump(recipe))
        run = tmp_path / objective
        train(load_recipe(tiny_recipe), run)
        weights = load_file(run / read_pointers(run)["last"] / "model.safetensors")
        assert weights["decoder.layers.1.picture.steps"] == (6 if objective == "aligned" else 0)

        torch.manual_seed(0)  # the recipe's
        sizes = len(weights["decoder.output_bias"]), weights["project.weight"].shape[1]
        options = {key: value for key, value in MODEL.items() if key != "name"}
        fresh = create_model("aligned_transformer", *sizes, options).state_dict()
        for name, tensor in weights.items():
            if ".mask." in name:
                assert torch.equal(tensor, fresh[name]) == (objective == "cross_entropy")
            elif name.endswith("feed_forward.inner.weight"):
                assert not torch.equal(tensor, fresh[name])


def test_several_processes_find_all_gradients_in_one_backward_pass() -> None:
    """A parameter without a gradient would stop the second step."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        model, batch = make_model(), make_batch()
        shared = torch.nn.parallel.DistributedDataParallel(model)
        objective = create_objective({"name": "aligned"})
        for _ in range(3):
            losses(objective.terms(shared, batch, 0)).backward()
    finally:
        torch.distributed.destroy_process_group()
    assert all(parameter.grad is not None for parameter in model.parameters())
