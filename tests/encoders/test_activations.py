"""Rectifiers overwrite their input in inference mode, and nowhere else."""

import pytest
import torch
from torch import nn

from sightline.encoders.activations import ReLU, ReLU6


@pytest.mark.parametrize(("ours", "plain"), [(ReLU(), nn.ReLU()), (ReLU6(), nn.ReLU6())])
def test_same_function_and_input_kept_outside_inference_mode(ours, plain):
    x = torch.tensor([-3.0, 0.5, 9.0])
    before = x.clone()
    assert torch.equal(ours(x), plain(before))
    with torch.no_grad():
        assert torch.equal(ours(x), plain(before))
    assert torch.equal(x, before)
    with torch.inference_mode():
        assert torch.equal(ours(x), plain(before))
    assert not torch.equal(x, before)
