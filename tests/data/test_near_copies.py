"""The same photograph in two datasets."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image, ImageEnhance

from sightline.cli.data_copies import command
from sightline.data.dataset import CaptionedImage
from sightline.data.near_copies import BITS, MOST, fingerprint, near_copies


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image.resize((256, 256)),  # squashed, as COCO is laid out for training
        lambda image: image.resize((image.width // 3, image.height // 3)),
        lambda image: ImageEnhance.Brightness(image).enhance(1.2),
        lambda image: image.convert("L"),
    ],
)
def test_a_changed_photograph_is_a_near_copy_and_another_is_not(examples: Path, change) -> None:
    pictures = [Image.open(path).convert("RGB") for path in sorted(examples.glob("*.jpg"))]
    signs = np.array([fingerprint(picture) for picture in pictures])
    changed = np.array([fingerprint(change(picture)) for picture in pictures])
    bits = (BITS - signs @ changed.T) / 2
    assert (bits.diagonal() <= MOST).all()
    assert bits[~np.eye(len(bits), dtype=bool)].min() > 2 * MOST


def test_pairs_come_nearest_first_and_unreadable_pictures_are_counted(
    examples: Path, tmp_path: Path
) -> None:
    paths = sorted(examples.glob("*.jpg"))[:3]
    Image.open(paths[1]).resize((200, 200)).save(tmp_path / "small.jpg", quality=60)
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    first = [CaptionedImage(path.name, path, ("a",), "test") for path in paths]
    names = (tmp_path / "small.jpg", paths[2], tmp_path / "broken.jpg")
    second = [CaptionedImage(path.name, path, ("a",), "train") for path in names]
    found = near_copies(first, second)
    assert [(pair.first.picture, pair.second.picture) for pair in found.pairs] == [
        (paths[2], paths[2]),
        (paths[1], tmp_path / "small.jpg"),
    ]
    assert found.pairs[0].bits == 0
    assert found.unreadable == 1
    assert found.by_split() == {("test", "train"): 2}


def test_the_command(examples: Path, tmp_path: Path) -> None:
    for name, pictures in (("a", "c*.jpg"), ("b", "cat.jpg"), ("c", "[!c]*.jpg")):
        lines = [
            json.dumps({"image": str(path), "captions": ["a cat"], "split": "test"})
            for path in sorted(examples.glob(pictures))
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    a, b, c = (str(tmp_path / f"{name}.jsonl") for name in "abc")
    result = CliRunner().invoke(command, [a, b])
    assert result.exit_code == 1
    assert "1 near-copies" in result.stdout
    assert "cat.jpg (0 bits)" in result.stdout
    (pair,) = json.loads(CliRunner().invoke(command, [a, b, "--json"]).stdout)["pairs"]
    assert pair["splits"] == ["test", "test"]
    assert CliRunner().invoke(command, [a, c]).exit_code == 0
