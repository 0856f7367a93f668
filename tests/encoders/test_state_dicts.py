"""Files of weights are read as data: damaged ones are named, code in them is never run."""

import pytest
import torch
from safetensors.torch import save_file

from sightline.encoders.registry import TORCHVISION
from sightline.encoders.state_dicts import read_weights
from sightline.encoders.weights import WeightsFile, file_sha256
from sightline.errors import WeightsError


def file_at(path):
    return WeightsFile(path, file_sha256(path), TORCHVISION)


class Mischief:
    """Unpickling this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_both_formats(tmp_path):
    state = {"a": torch.arange(3.0), "b": torch.ones(2, 2)}
    torch.save(state, tmp_path / "weights.pth")
    save_file(state, tmp_path / "weights.safetensors")
    for name in ("weights.pth", "weights.safetensors"):
        read = read_weights(file_at(tmp_path / name))
        assert torch.equal(read["a"], state["a"])
        assert torch.equal(read["b"], state["b"])


def test_code_in_a_file_is_not_run(tmp_path):
    torch.save({"a": Mischief(str(tmp_path / "ran"))}, tmp_path / "evil.pth")
    with pytest.raises(WeightsError, match="never run"):
        read_weights(file_at(tmp_path / "evil.pth"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["short.pth", "short.safetensors"])
def test_a_file_cut_short_is_damaged(name, tmp_path):
    state = {"a": torch.randn(100, 100)}
    whole = tmp_path / name
    if whole.suffix == ".pth":
        torch.save(state, whole)
    else:
        save_file(state, whole)
    whole.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(WeightsError, match="damaged"):
        read_weights(file_at(whole))


def test_a_whole_model_is_no_state_dict(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "list.pth")
    with pytest.raises(WeightsError, match="contains no state dict"):
        read_weights(file_at(tmp_path / "list.pth"))


def test_changed_content_is_noticed(tmp_path):
    save_file({"a": torch.zeros(4)}, tmp_path / "weights.safetensors")
    file = file_at(tmp_path / "weights.safetensors")
    save_file({"a": torch.ones(4)}, tmp_path / "weights.safetensors")
    with pytest.raises(WeightsError, match="not the expected release"):
        read_weights(file)
