"""Recipes: every key checked, overrides, defaults printed."""

import re
from pathlib import Path

import pytest
import yaml

from sightline.encoders.registry import encoder_entry
from sightline.errors import ConfigError, MissingExtraError
from sightline.extras import EXTRAS
from sightline.models.registry import MODELS, model_config
from sightline.recipe import Recipe, dump_recipe, load_recipe
from sightline.recipes import find_recipe, shipped_recipes, summary
from sightline.training.objectives.registry import create_objective
from sightline.training.recipe_check import check


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_is_valid(name: str) -> None:
    check(load_recipe(name))


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_says_what_it_is_and_how_to_train_it(name: str) -> None:
    path = find_recipe(name)
    assert 20 < len(summary(path)) < 140
    for command in re.findall(r"^# sightline train (\S+)", path.read_text("utf-8"), re.MULTILINE):
        assert command == name


def test_every_model_has_a_recipe_for_every_dataset() -> None:
    for folder in ("scenes", "flickr8k", "flickr30k", "coco", "coco_20000"):
        assert {f"{folder}/{model}" for model in MODELS.builtin} <= set(shipped_recipes())


def test_a_file_is_read_before_a_shipped_recipe_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Path("scenes/soft_attention")
    copy.parent.mkdir()
    copy.write_text(find_recipe(copy).read_text("utf-8").replace("epochs:", "epochs: 1 #"))
    assert find_recipe("scenes/soft_attention") == copy
    assert load_recipe("scenes/soft_attention").epochs == 1


def test_an_unknown_name_is_one_line_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'scenes/grid_td'"):
        load_recipe("scenes/grid-td")
    with pytest.raises(ConfigError, match="neither a file nor the name of a recipe; `sightline re"):
        load_recipe("xyz")


def test_a_printed_recipe_reads_back_as_itself(tiny_recipe: Path, tmp_path: Path) -> None:
    recipe = load_recipe(tiny_recipe)
    printed = tmp_path / "printed.yaml"
    printed.write_text(dump_recipe(recipe))
    assert load_recipe(printed) == recipe
    assert "weight_decay" in printed.read_text()  # a default that the tiny recipe does not name


def test_overrides_reach_nested_keys_and_take_scientific_numbers(tiny_recipe: Path) -> None:
    recipe = load_recipe(
        tiny_recipe, ("epochs=7", "optimizer.learning_rate=5e-4", "model.state_width=32")
    )
    assert (recipe.epochs, recipe.optimizer.learning_rate) == (7, 5e-4)
    assert recipe.model_options["state_width"] == 32


def test_overrides_reach_further_stages_by_number(tiny_recipe: Path) -> None:
    stages = (
        "then=[{objective: {name: self_critical}, epochs: 1}, {objective: {name: x}, epochs: 2}]"
    )
    recipe = load_recipe(
        tiny_recipe, (stages, "then.0.encoder.train_from=stage4", "then.1.epochs=5")
    )
    first, second = recipe.then
    assert first.encoder is not None
    assert first.encoder.train_from == "stage4"
    assert (first.epochs, second.epochs) == (1, 5)
    for number in ("2", "-1", "first"):
        with pytest.raises(ConfigError, match=f"'{number}': must be the index of one of 2"):
            load_recipe(tiny_recipe, (stages, f"then.{number}.epochs=5"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("optimizer.lerning_rate=1", "did you mean 'learning_rate'"),
        ("epochs=many", "epochs: must be a whole number, not 'many'"),
        ("schedule.name=linear", "must be one of constant, cosine, noam, plateau"),
        ("dev.beam=2.5", "dev.beam: must be a whole number"),
        ("epochs", "an override must be key=value"),
        ("epochs.x=1", "'epochs' is not a group of keys"),
        ("data.path=somewhere", "give either 'path' or 'scenes'"),
        ("model={}", "model: 'name' is missing"),
        ("optimizer.betas=[0.9]", "must be a list of 2, not of 1"),
        ("optimizer.betas=[0.9, 1.5]", "betas, decay and average must be from 0 to below 1"),
        ("optimizer.learning_rate=-1", r"optimizer.learning_rate: must be at least 0, not -1"),
        ("batch.size=0", "batch.size: must be at least 1, not 0"),
        ("batch.captions=0", "batch.captions: must be at least 1, not 0"),
        ("batch={by: length, captions: 2}", "batch.captions: is of batches of pictures"),
        ("encoder.precision=16", "encoder.precision: must be one of 32, bf16, not 16"),
        ("dev.every=0", "dev.every: must be at least 1"),
        ("dev.beam=0", "dev.beam: must be at least 1"),
        ("data.dev_from_train=5", "data.dev_from_train: does not apply to scenes"),
        ("data.max_captions=5", "data.max_captions: does not apply to scenes"),
        ("data.train_pictures=5", "data.train_pictures: does not apply to scenes"),
        ("data.min_count=0", "data.min_count: must be at least 1"),
        ("epochs=0", "epochs: must be at least 1"),
        ("log_every=0", "log_every: must be at least 1"),
        ("checkpoint_every=0", "checkpoint_every: must be at least 1"),
        ("devices=0", "devices: must be at least 1"),
    ],
)
def test_a_bad_override_is_one_clear_line(tiny_recipe: Path, override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_recipe(tiny_recipe, (override,))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "says"), [("a: [", "not YAML"), ("- 1", "a group of keys")])
def test_a_file_that_is_no_recipe(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_recipe(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(tmp_path / "absent.yaml")


def test_unknown_models_and_objectives_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'soft_attention'"):
        model_config("soft_atention")
    with pytest.raises(ConfigError, match="did you mean 'cross_entropy'"):
        create_objective({"name": "crossentropy"})
    with pytest.raises(ConfigError, match="did you mean 'label_smoothing'"):
        create_objective({"name": "cross_entropy", "label_smooting": 0.1})


def test_defaults_alone_need_only_data() -> None:
    assert yaml.safe_load(dump_recipe(load_default()))["batch"]["size"] == 32


def load_default() -> Recipe:
    from sightline.config import from_dict

    return from_dict(Recipe, {"data": {"path": "x"}}, "recipe")


@pytest.mark.parametrize(
    "change",
    [
        "dev.metric=METEOR",
        "then=[{objective: {name: self_critical, reward: {meteor: 1}}, epochs: 1}]",
    ],
)
def test_a_missing_part_is_found_before_training(
    tiny_recipe: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(load_recipe(tiny_recipe, (change,)))
    monkeypatch.setitem(EXTRAS, "meteor", ("not_installed_here",))
    with pytest.raises(MissingExtraError, match=r"meteor needs .*sightline\[meteor\]"):
        check(load_recipe(tiny_recipe, (change,)))


def test_recipes_name_the_weights_that_have_to_be_given() -> None:
    for name in shipped_recipes():
        encoder = load_recipe(name).encoder
        if encoder_entry(encoder.name).weights is None:
            assert f"encoder.weights={encoder.name}.pth" in find_recipe(name).read_text("utf-8")
