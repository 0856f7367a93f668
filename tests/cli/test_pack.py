"""`sightline pack`."""

import copy
import json
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

import sightline
from sightline.checkpoint import load_config, load_encoder, load_model, save_checkpoint
from sightline.checkpoint.packing import mean_of
from sightline.cli.caption import command as caption
from sightline.cli.evaluate import command as evaluate
from sightline.cli.pack import command as pack
from sightline.config import to_dict
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import CheckpointError, ConfigError
from sightline.models.registry import MODELS, create_model


def test_what_is_packed_is_half_as_large_and_says_the_same(
    checkpoint: Path, examples: Path, tmp_path: Path
) -> None:
    packed, card = tmp_path / "packed", tmp_path / "card.md"
    card.write_text("# Ours\n")
    assert CliRunner().invoke(pack, [str(checkpoint), "-o", str(packed)]).exit_code == 0
    names = {"config.json", "model.safetensors", "README.md"}
    assert {file.name for file in packed.iterdir()} == names
    assert all(t.dtype == torch.float16 for t in load_file(packed / "model.safetensors").values())
    before, after = (
        json.loads((folder / "config.json").read_text()) for folder in (checkpoint, packed)
    )
    assert before.pop("sha256") != after.pop("sha256")  # of other files
    assert before == after
    picture = examples / "cat.jpg"
    before, after = (sightline.load(path).caption(picture) for path in (checkpoint, packed))
    assert after.text == before.text
    assert after.log_probability == pytest.approx(before.log_probability, abs=0.05)
    assert after.log_probability != before.log_probability  # the weights were rounded

    # Packed again over itself, with a card of one's own.
    again = ["-o", str(packed), "--card", str(card)]
    assert CliRunner().invoke(pack, [str(packed), *again]).exit_code == 0
    assert (packed / "README.md").read_text() == "# Ours\n"


def test_of_several_checkpoints_the_weights_are_means(checkpoint: Path, tmp_path: Path) -> None:
    other, packed = tmp_path / "other", tmp_path / "packed"
    shutil.copytree(checkpoint, other)
    weights = load_file(checkpoint / "model.safetensors")
    moved = {name: tensor + 0.5 for name, tensor in weights.items()}
    save_file(moved, other / "model.safetensors")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"sha256": {}}))
    arguments = [str(checkpoint), str(other), "-o", str(packed), "--length-power", "1.1"]
    assert CliRunner().invoke(pack, arguments).exit_code == 0
    for name, tensor in load_file(packed / "model.safetensors").items():
        assert torch.allclose(tensor.float(), weights[name] + 0.25, atol=2e-3)
    assert sightline.load(packed).options.length_power == 1.1
    assert "mean_of" in json.loads((packed / "config.json").read_text())["training"]

    # One that is named twice weighs double, and the first decides the size of the pictures.
    config = json.loads((other / "config.json").read_text())
    larger = {**config, "encoder": {**config["encoder"], "size": 96}}
    (other / "config.json").write_text(json.dumps(larger))
    twice = [str(other), str(other), str(checkpoint), "-o", str(packed)]
    assert CliRunner().invoke(pack, twice).exit_code == 0
    for name, tensor in load_file(packed / "model.safetensors").items():
        assert torch.allclose(tensor.float(), weights[name] + 1 / 3, atol=2e-3)
    assert sightline.load(packed).encoder.spec["size"] == 96

    (other / "config.json").write_text(json.dumps({**config, "vocabulary": ["dog"]}))
    result = CliRunner().invoke(pack, arguments)
    assert isinstance(result.exception, CheckpointError)
    assert "has another model, encoder or vocabulary than" in str(result.exception)


def test_weights_that_two_names_share_are_saved_and_averaged_once(
    checkpoint: Path, tmp_path: Path
) -> None:
    config = load_config(checkpoint)
    model, _ = load_model(checkpoint, config)
    shared = next(iter(model.parameters()))
    model.register_parameter("again", shared)
    before = shared.detach().clone()
    save_checkpoint(tmp_path / "saved", model, config, "# Ours")
    saved = load_file(tmp_path / "saved" / "model.safetensors")
    assert torch.equal(saved["again"], before)

    other = copy.deepcopy(model)
    with torch.no_grad():
        other.get_parameter("again").add_(0.5)
    mean = mean_of([model, other]).get_parameter("again")
    assert mean is shared
    assert torch.allclose(mean, before + 0.25)


def test_encoders_that_were_trained_are_averaged_too(checkpoint: Path, tmp_path: Path) -> None:
    config = load_config(checkpoint)
    model, _ = load_model(checkpoint, config)
    trained = TrainableStages(load_encoder(checkpoint, config), "stage4")
    weights = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    for name, moved in (("one", 0.0), ("other", 0.5)):
        trained.load_state_dict({key: tensor + moved for key, tensor in weights.items()})
        save_checkpoint(tmp_path / name, model, config, "# Ours", trainable=trained)
    packed = tmp_path / "packed"
    sources = [str(tmp_path / "one"), str(tmp_path / "other")]
    assert CliRunner().invoke(pack, [*sources, "-o", str(packed)]).exit_code == 0
    for name, tensor in load_file(packed / "encoder.safetensors").items():
        assert torch.allclose(tensor.float(), weights[name] + 0.25, atol=1e-2)
    assert sightline.load(packed).encoder.tuned is not None


def test_a_captioner_that_counts_its_steps_is_packed_with_those_of_the_first(
    checkpoint: Path, examples: Path, tmp_path: Path
) -> None:
    config = load_config(checkpoint)
    options = MODELS.builtin["aligned_transformer"].tiny[0]
    words = len(load_model(checkpoint, config)[1])
    model = create_model("aligned_transformer", words, config["region_dim"], options)
    config |= {"model": {"name": "aligned_transformer", **to_dict(model.config)}}
    for name, steps in (("one", 7), ("other", 2)):
        for key, tensor in model.named_buffers():
            if key.endswith(".steps"):
                tensor.fill_(steps)
        save_checkpoint(tmp_path / name, model, config, "# Ours")
    packed, sources = tmp_path / "packed", [str(tmp_path / name) for name in ("one", "other")]
    done = CliRunner().invoke(pack, [*sources, "-o", str(packed)], catch_exceptions=False)
    assert done.exit_code == 0
    weights = load_file(packed / "model.safetensors")
    assert {int(t) for name, t in weights.items() if name.endswith(".steps")} == {7}
    sightline.load(packed).caption(examples / "cat.jpg")


def test_a_card_that_is_no_utf8_is_one_line(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "card.md").write_bytes(b"caf\xe9")
    arguments = [checkpoint, "-o", tmp_path / "packed", "--card", tmp_path / "card.md"]
    result = CliRunner().invoke(pack, [str(each) for each in arguments])
    assert isinstance(result.exception, ConfigError)
    assert "save it as UTF-8" in str(result.exception)


def test_a_folder_that_holds_something_else_is_left_alone(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    result = CliRunner().invoke(pack, [str(checkpoint), "-o", str(tmp_path)])
    assert isinstance(result.exception, CheckpointError)
    assert "holds holiday.jpg" in str(result.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["holiday.jpg"]


def test_a_project_with_a_config_is_no_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    for name in ("config.json", "thesis.txt", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    result = CliRunner().invoke(pack, [str(checkpoint), "-o", str(tmp_path)])
    assert "holds .git" in str(result.exception)
    (tmp_path / ".git/HEAD").unlink()
    (tmp_path / ".git").rmdir()
    (tmp_path / "thesis.txt").unlink()
    result = CliRunner().invoke(pack, [str(checkpoint), "-o", str(tmp_path)])
    assert "format None" in str(result.exception)
    assert (tmp_path / "config.json").read_text() == "{}"


def test_weights_that_were_damaged_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        sightline.load(copy)


def test_what_was_packed_repeats_itself_no_more_than_it_was_told(
    checkpoint: Path, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    picture, packed = examples / "cat.jpg", tmp_path / "packed"

    def words(*options: str) -> list[str]:
        done = CliRunner().invoke(caption, [str(picture), *options], catch_exceptions=False)
        return done.stdout.strip().split(": ")[1].split()

    arguments = [str(checkpoint), "-o", str(packed), "--no-repeat", "1"]
    assert CliRunner().invoke(pack, arguments, catch_exceptions=False).exit_code == 0
    said = words("--model", str(packed))
    assert len(said) == len(set(said))
    without = words("--model", str(packed), "--no-repeat", "0")
    assert len(without) > len(set(without))
    assert without == words("--model", str(checkpoint))

    data = write_scenes(make_scene_dataset(1, 1, 2), tmp_path / "scenes")
    for options, repeats in ([], False), (["--no-repeat", "0"], True):
        arguments = [str(packed), "--data", str(data), "--metrics", "bleu", *options]
        assert CliRunner().invoke(evaluate, arguments, catch_exceptions=False).exit_code == 0
        found = json.loads((packed / "evaluation-test" / "captions.json").read_text())
        captions = [own["caption"].split() for own in found]
        assert any(len(own) > len(set(own)) for own in captions) == repeats
        scores = json.loads((packed / "evaluation-test" / "scores.json").read_text())
        assert scores["no_repeat_ngram"] == (0 if repeats else 1)
