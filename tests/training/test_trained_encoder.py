"""A captioner trained together with the last stages of its encoder."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from lightning_fabric import Fabric
from safetensors.torch import load_file

import sightline
from sightline.checkpoint import find_checkpoint, load_config, read_pointers
from sightline.cli.pack import command as pack
from sightline.encoders.encoder import Encoder
from sightline.errors import CheckpointError, ConfigError
from sightline.evaluation.captioning import caption_cached
from sightline.evaluation.results import results_of
from sightline.recipe import load_recipe
from sightline.training.loop import Trainer, train


@pytest.fixture
def run(tiny_recipe: Path, tmp_path: Path) -> Path:
    overrides = ("encoder.train_from=stage4", "encoder.learning_rate=0.01", "epochs=2")
    train(load_recipe(tiny_recipe, overrides), tmp_path / "run")
    return tmp_path / "run"


def test_the_checkpoint_holds_what_was_trained_and_captions_with_it(
    run: Path, tmp_path: Path
) -> None:
    folder = find_checkpoint(run)
    captioner = sightline.load(run)
    frozen = Encoder.from_spec(load_config(folder)["encoder"])
    assert captioner.encoder.fingerprint != frozen.fingerprint  # another cache
    assert not any(parameter.requires_grad for parameter in captioner.encoder.parameters())
    assert "trained from stage4" in (folder / "README.md").read_text()
    assert results_of(run)[-1].encoder == "efficientnet_lite0 64 px from stage4"

    # What the loop captioned by way of the cache is what the captioner sees in the pictures.
    trainer = Trainer(Fabric(accelerator="cpu"), load_recipe(run / "recipe.yaml"), run, False)
    trainer.resume()
    images = trainer.dev_images
    by_cache = caption_cached(
        trainer.captioner,
        trainer.vocabulary,
        images,
        trainer.cache,
        captioner.options,
        trainable=trainer.trainable,
    )
    assert [caption.text for caption in captioner.caption([i.picture for i in images])] == by_cache
    pixels = torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8)
    window = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    assert not torch.equal(
        captioner.encoder(pixels, window).vectors, frozen(pixels, window).vectors
    )

    packed = tmp_path / "packed"
    assert CliRunner().invoke(pack, [str(run), "-o", str(packed)]).exit_code == 0
    trainable = load_file(packed / "encoder.safetensors").values()
    assert all(tensor.dtype == torch.float16 for tensor in trainable)
    assert sightline.load(packed).encoder.fingerprint == captioner.encoder.fingerprint

    # Of an ensemble all must see alike.
    config = json.loads((packed / "config.json").read_text())
    (packed / "config.json").write_text(json.dumps({**config, "tuned": {"from": "stage4"}}))
    with pytest.raises(ConfigError, match="another tuned encoder than"):
        sightline.load(run, packed)
    (packed / "config.json").write_text(json.dumps({**config, "tuned": {}}))
    with pytest.raises(CheckpointError, match="tuned: 'from' is missing"):
        sightline.load(packed)


def test_a_stage_trains_what_was_frozen_and_takes_it_back_if_captions_get_worse(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = "{objective: {name: cross_entropy}, epochs: 1, encoder: {train_from: stage4, "
    stage += "learning_rate: 0.01}, dev: {metric: BLEU-4, every: 1, beam: 2, tolerance: 0.1}}"
    recipe = load_recipe(tiny_recipe, ("epochs=1", "dev.every=1", f"then=[{stage}]"))
    trainer = Trainer(Fabric(accelerator="cpu"), recipe, tmp_path / "run", False)
    trainer.run.mkdir()
    trainer.resume()
    scores, seen = iter([0.5, 0.1]), []

    def score(captions: list[str]) -> dict[str, float]:
        seen.append(trainer.regions.trainable.fingerprint)
        return {"BLEU-4": next(scores)}

    monkeypatch.setattr(trainer, "_score", score)
    trainer.train()
    frozen, trained = seen
    assert trained != frozen
    assert trainer.regions.trainable.fingerprint == frozen
    assert "tuned" not in load_config(find_checkpoint(trainer.run, phase=1))
    assert (
        load_config(trainer.run / read_pointers(trainer.run)["last"])["tuned"]["sha256"] == frozen
    )


def test_a_stage_may_see_larger_pictures(tiny_recipe: Path, tmp_path: Path) -> None:
    stage = "{objective: {name: cross_entropy}, epochs: 1, encoder: {train_from: stage4"
    larger, after = f"{stage}, size: 96}}}}", f"{stage}}}}}"
    recipe = load_recipe(
        tiny_recipe, ("epochs=1", "dev.every=1", f"then=[{larger}, {after}]", "data.mirror=true")
    )
    assert [s.encoder.size for s in recipe.phases()] == [64, 96, 96]
    trainer = Trainer(Fabric(accelerator="cpu"), recipe, tmp_path / "run", False)
    cells = [
        cache.regions(np.array([0])).vectors.shape[1] for cache in trainer.regions.caches.values()
    ]
    # Of the encoder's own stage; then of the one before it, which two stages of the run share.
    assert cells == [4 * 4, 12 * 12]
    trainer.run.mkdir()
    trainer.resume()
    trainer.train()

    run = trainer.run
    last, first = run / read_pointers(run)["last"], find_checkpoint(run, phase=1)
    assert [load_config(c)["encoder"]["size"] for c in (first, last)] == [64, 96]
    assert sightline.load(last).encoder.grid == (6, 6)

    # It goes on with the size of the stage that it is in.
    trainer = Trainer(Fabric(accelerator="cpu"), recipe, run, False)
    trainer.resume()
    assert trainer.encoder.spec["size"] == 96
    with pytest.raises(ConfigError, match=r"then\[0\]\.encoder\.size: must be at least 32, not 16"):
        load_recipe(tiny_recipe, (f"then=[{stage}, size: 16}}}}]",))


def test_a_stage_may_see_cuts_of_its_pictures(tiny_recipe: Path, tmp_path: Path) -> None:
    stage = "{objective: {name: cross_entropy}, epochs: 1, encoder: {train_from: stage4"
    cut = f"{stage}, learning_rate: 0.01, random_cut: 0.5}}}}"
    recipe = load_recipe(tiny_recipe, ("epochs=1", "dev.every=1", f"then=[{cut}, {stage}}}}}]"))
    assert [s.encoder.random_cut for s in recipe.phases()] == [1.0, 0.5, 0.5]
    trainer = Trainer(Fabric(accelerator="cpu"), recipe, tmp_path / "run", False)
    # Of the trained stages nothing is cached but the dev pictures.
    assert [len(cache) for cache in trainer.regions.caches.values()] == [24 + 6, 6]
    trainer.run.mkdir()
    trainer.resume()
    before = trainer.regions.trainable.fingerprint
    trainer.train()
    assert trainer.regions.trainable.fingerprint != before
    for share in (0, 1.5):
        with pytest.raises(
            ConfigError, match=r"encoder\.random_cut: must be a share of the picture"
        ):
            load_recipe(tiny_recipe, (f"encoder.random_cut={share}",))


def test_a_stage_that_cannot_be_trained_is_refused_before_anything_is_encoded(
    tiny_recipe: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.train_from: .* not 'stage5'"):
        train(load_recipe(tiny_recipe, ("encoder.train_from=stage5",)), tmp_path / "run")
    assert not list(tmp_path.glob("efficientnet*"))


def test_encoders_side_by_side_are_read_but_not_trained(tiny_recipe: Path, tmp_path: Path) -> None:
    both = "efficientnet_lite0+efficientnet_lite1"
    over = (f"encoder.name={both}", "encoder.stage=stage5+stage5", "epochs=1", "dev.every=1")
    train(load_recipe(tiny_recipe, over), tmp_path / "run")
    assert sightline.load(tmp_path / "run").encoder.name == both
    (row,) = results_of(tmp_path / "run")
    assert row.encoder == f"{both} 64 px"
    with pytest.raises(ConfigError, match=r"encoder\.train_from: .* cannot be trained"):
        train(load_recipe(tiny_recipe, (*over, "encoder.train_from=stage5")), tmp_path / "other")
