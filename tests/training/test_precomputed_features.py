"""Features of a detector from end to end: train, caption, evaluate, explain."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from click.testing import CliRunner
from PIL import Image

from sightline.captioner import Captioner
from sightline.cli.main import cli
from sightline.data.readers import read_dataset
from sightline.encoders.encode import cache_for, encode_all
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.errors import ConfigError, DataError, PictureError
from sightline.evaluation.evaluate import evaluate
from sightline.recipe import load_recipe
from sightline.training.loop import train
from sightline.training.recipe_check import check
from tiny_recipe import TINY

THINGS = ("ball", "box", "cat", "dog")
WIDTH = 8


def things_of(number: int) -> list[int]:
    """What a picture shows: one to four things, each a region."""
    return list(np.random.default_rng(number).permutation(4)[: 1 + number % 4])


def arrays_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(number)
    things = things_of(number)
    vectors = random.normal(0, 0.1, (len(things), WIDTH)).astype(np.float32)
    vectors[np.arange(len(things)), things] += 2
    low, size = random.uniform(0, 0.5, (len(things), 2)), random.uniform(0.1, 0.5, (len(things), 2))
    return vectors, np.concatenate([low, low + size], 1).astype(np.float32)


@pytest.fixture(params=["npz", "tsv"])
def features(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "npz":
        folder = tmp_path / "features"
        folder.mkdir()
        for number in range(40):
            vectors, boxes = arrays_of(number)
            np.savez(folder / f"{number}.npz", features=vectors, boxes=boxes)
        return folder
    lines = []
    for number in range(40):
        vectors, boxes = arrays_of(number)
        pixels = boxes * np.float32([200, 100, 200, 100])
        columns = [str(number), "200", "100", str(len(boxes))]
        columns += [base64.b64encode(array.tobytes()).decode() for array in (pixels, vectors)]
        lines.append("\t".join(columns))
    path = tmp_path / "features.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def recipe(features: Path, tmp_path: Path) -> Path:
    """Captions of pictures most of which are not there, only their features."""
    data = tmp_path / "captions.jsonl"
    records = [
        {
            "image": f"COCO_{number:012d}.jpg",
            "captions": ["a " + " and a ".join(sorted(THINGS[t] for t in things_of(number)))],
            "split": "train" if number < 28 else "dev" if number < 34 else "test",
        }
        for number in range(40)
    ]
    data.write_text("\n".join(map(json.dumps, records)))
    Image.new("RGB", (60, 30), "red").save(tmp_path / "COCO_000000000035.jpg")
    path = tmp_path / "recipe.yaml"
    encoder = {"name": "precomputed", "features": str(features), "cache": str(tmp_path / "cache")}
    own = {"data": {"path": str(data), "min_count": 1}, "encoder": encoder}
    path.write_text(yaml.safe_dump({**TINY, **own}))
    return path


def test_from_training_to_explanations(recipe: Path, features: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(load_recipe(recipe, ("epochs=12", "dev.every=12")), run)
    losses = [json.loads(line).get("nll") for line in (run / "history.jsonl").open()]
    losses = [loss for loss in losses if loss is not None]
    assert losses[-1] < losses[0] / 2

    captioner = Captioner.load(run, device="cpu")
    absent, there = tmp_path / "COCO_000000000037.jpg", tmp_path / "COCO_000000000035.jpg"
    together = captioner.caption([absent, there, "36"])
    for name, number, caption in zip((absent, there, "36"), (37, 35, 36), together, strict=True):
        assert len(caption.boxes) == len(things_of(number))  # padding is no region
        np.testing.assert_allclose(caption.boxes, arrays_of(number)[1], atol=1e-6)
        assert captioner.caption(name).text == caption.text
    assert together[1].picture is not None
    assert together[1].picture.size == (60, 30)

    images = read_dataset(tmp_path / "captions.jsonl").split("test")
    evaluation = evaluate(captioner, images, ["bleu"], cache=tmp_path / "cache")
    assert list(evaluation.captions) == captioner_texts(captioner, images)
    assert len(list((tmp_path / "cache").glob("precomputed-*"))) == 1

    for method in ("lrp", "grad_cam", "guided_grad_cam", "occlusion", "attention"):
        for why in captioner.explain(there, method=method):
            assert len(why.regions) == len(why.boxes) == len(things_of(35))
            assert why.encoder == 0  # nothing went on to pixels
            assert why.heatmap is not None
            assert why.heatmap.shape == (30, 60)
            assert why.heatmap.sum() == pytest.approx(why.regions.sum(), rel=1e-3, abs=1e-4)
    (first, *_) = captioner.explain(there, method="lrp")
    assert abs(first.remainder) < 1e-3 * max(abs(first.total), 1)

    result = CliRunner().invoke(cli, ["caption", str(absent), "--model", str(run)])
    assert result.exit_code == 0, result.output
    assert together[0].text in result.output
    page = tmp_path / "page.html"
    result = CliRunner().invoke(cli, ["explain", str(absent), "--model", str(run), "-o", str(page)])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(cli, ["caption", "nobody.jpg", "--model", str(run)])
    assert result.exit_code == 1
    assert "has no features of this picture" in result.output

    with pytest.raises(PictureError, match="go by the names of pictures"):
        captioner.caption(Image.new("RGB", (8, 8)))
    check_words(run, tmp_path)

    features.rename(tmp_path / "elsewhere")  # the captioner loads without them
    moved = Captioner.load(run, device="cpu")
    with pytest.raises((DataError, PictureError), match=r"has no features|is not a file"):
        moved.caption(absent)


def check_words(run: Path, folder: Path) -> None:
    """Fit a check to pictures of which every other has references that confirm nothing."""
    data = folder / "check.jsonl"
    records = [
        {
            "image": f"COCO_{number:012d}.jpg",
            "captions": [" ".join(THINGS[t] for t in things_of(number)) if number % 2 else "none"],
            "split": "dev" if number < 30 else "test",
        }
        for number in range(40)
    ]
    data.write_text("\n".join(map(json.dumps, records)))
    arguments = ["--data", str(data), "--report-on", "test", "--json"]
    result = CliRunner().invoke(cli, ["fit-support", str(run), *arguments])
    assert result.exit_code == 0, result.output
    fitted, *_ = json.loads(result.stdout)
    assert 10 <= fitted["right"] < fitted["words"]
    assert fitted["unfamiliar"] is None

    captioner = Captioner.load(run, device="cpu")
    references = captioner.support_classifier.reference_regions
    taken = range(0, 30, 3)[:8]
    assert references.mask[1:].sum(1).tolist() == [len(things_of(number)) for number in taken]
    mean = np.concatenate([arrays_of(number)[0] for number in taken]).mean(0)
    np.testing.assert_allclose(references.vectors[0, 0], mean, atol=2e-3)  # no padding in it
    pictures = [folder / f"COCO_{number:012d}.jpg" for number in (37, 35, 36)]
    together = captioner.captions(pictures, check=True)
    for picture, (caption,) in zip(pictures, together, strict=True):
        alone = captioner.check(picture, captioner.caption(picture))
        scores = [word.support and word.support.score for word in alone.words]
        assert any(score is not None for score in scores)
        assert [word.support and word.support.score for word in caption.words] == pytest.approx(
            scores, abs=1e-4
        )
    absent = str(pictures[0])
    result = CliRunner().invoke(cli, ["caption", absent, "--model", str(run), "--check", "all"])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(
        cli, ["evaluate", str(run), "--split", "test", "--metrics", "bleu", "--json"]
    )
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    images = read_dataset(folder / "captions.jsonl").split("test")
    evaluation = evaluate(captioner, images, ["bleu"], cache=folder / "cache")
    assert printed["scores"] == evaluation.summary()["scores"]


def captioner_texts(captioner: Captioner, images: tuple) -> list[str]:
    return [caption.text for caption in captioner.caption([image.picture for image in images])]


def test_the_cache_holds_any_number_of_regions_and_goes_on(features: Path, tmp_path: Path) -> None:
    encoder = PrecomputedEncoder(features)
    assert encoder.dim == WIDTH
    names = [Path(f"{number}.jpg") for number in range(40)]
    root = tmp_path / "cache"
    encode_all(names[:13], encoder, root)
    first = cache_for(encoder, root)
    for file in ("vectors.f16", "boxes.f32"):  # a batch that was not finished
        with (first.folder / file).open("ab") as torn:
            torn.write(b"torn")
    cache = encode_all(names, encoder, root)
    rows = cache.rows([cache.key(name) for name in names])
    regions = cache.regions(rows[[7, 4, 39, 7]])
    assert regions.mask.sum(1).tolist() == [4, 1, 4, 4]
    for row, number in enumerate((7, 4, 39, 7)):
        vectors, boxes = arrays_of(number)
        there = regions.mask[row]
        assert torch.equal(regions.vectors[row][there], torch.from_numpy(vectors).half().float())
        torch.testing.assert_close(regions.boxes[row][there], torch.from_numpy(boxes))
        assert not regions.vectors[row][~there].any()
    sizes = sum(len(things_of(number)) for number in range(40))
    assert (cache.folder / "vectors.f16").stat().st_size == sizes * WIDTH * 2
    with pytest.raises(DataError, match=r"1 pictures' features cannot be read, the first: x\.jpg"):
        encode_all([Path("x.jpg")], encoder, root)


def test_other_features_of_a_picture_are_other_regions(tmp_path: Path) -> None:
    folder = tmp_path / "features"
    folder.mkdir()
    np.savez(folder / "1.npz", features=np.ones((2, 3)), boxes=np.zeros((2, 4)))
    encoder, picture = PrecomputedEncoder(folder), Path("1.jpg")
    before = encode_all([picture], encoder, tmp_path)
    key = before.key(picture)
    np.savez(folder / "1.npz", features=np.zeros((1, 3)), boxes=np.zeros((1, 4)))
    after = encode_all([picture], encoder, tmp_path)
    assert after.key(picture) != key
    assert after.regions(after.rows([after.key(picture)])).vectors.shape == (1, 1, 3)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("encoder.features=null", "'features' and the name precomputed go together"),
        ("encoder.name=efficientnet_lite0", "'features' and the name precomputed go together"),
        ("encoder.train_from=stage5", "encoder.train_from: does not apply to precomputed features"),
        ("encoder.random_cut=0.5", "encoder.random_cut: does not apply to precomputed features"),
        ("encoder.precision=bf16", "encoder.precision: does not apply to precomputed features"),
        ("encoder.size=96", "encoder.size: does not apply to precomputed features"),
        ("data.mirror=true", "data.mirror: precomputed features cannot be mirrored"),
    ],
)
def test_what_features_cannot_do(recipe: Path, override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check(load_recipe(recipe, (override,)))


@pytest.mark.parametrize(
    ("name", "says"), [("nowhere", "not there"), ("folder", "no .npz file"), ("text", "no .tsv")]
)
def test_a_place_without_features(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("this is nothing of the kind\n")
    with pytest.raises(DataError, match=says):
        PrecomputedEncoder(tmp_path / name)
