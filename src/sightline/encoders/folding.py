"""Fold batch norms into the convolutions before them: the same function in fewer steps."""

import torch
from torch import nn


def fold_batch_norms(module: nn.Module) -> nn.Module:
    """Fold, in place, every `BatchNorm2d` registered right after a `Conv2d` of the same parent.

    With its running statistics a batch norm is an affine map of each channel, so scaling the
    kernel and the bias does the same. It saves a pass over each feature map, and LRP needs it
    (Montavon et al. 2019: relevance is propagated through the merged layer). The norm's place is
    taken by an `Identity`.

    >>> pair = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4))
    >>> fold_batch_norms(pair)[1]
    Identity()
    """
    for parent in list(module.modules()):
        previous: nn.Module | None = None
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.BatchNorm2d) and isinstance(previous, nn.Conv2d):
                _fold(previous, child)
                setattr(parent, name, nn.Identity())
            previous = child
    return module


@torch.no_grad()
def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError("a batch norm without running statistics cannot be folded")
    # Double precision, so that folding costs no more accuracy than storing the result.
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    shift = -norm.running_mean.double()
    if convolution.bias is not None:
        shift += convolution.bias.double()
    if norm.affine:
        scale *= norm.weight.double()
    bias = shift * scale
    if norm.affine:
        bias += norm.bias.double()
    kernel = convolution.weight
    convolution.weight = nn.Parameter(
        (kernel.double() * scale[:, None, None, None]).to(kernel.dtype), kernel.requires_grad
    )
    convolution.bias = nn.Parameter(bias.to(kernel.dtype), kernel.requires_grad)
