"""A captioner whose matrices are laid out once for the processor, for many pictures."""

import copy
import platform
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import has_torch_function

# What is packed is there twice.
_MOST_PARAMETERS = 50_000_000

Model = TypeVar("Model", bound=nn.Module)


class PackedLinear(nn.Module):
    """A linear layer with a copy of its weights in oneDNN's own order of blocks.

    With the 160 rows of a batch's beams it takes two thirds of the time, with the five of one
    picture a quarter. A row's product does not depend on the rows beside it, which otherwise it
    may in its last bits. Where somebody asks for a gradient or an explanation, it is plain.
    """

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = plain.weight, plain.bias
        with torch.no_grad():
            self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(plain.weight, None)

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or not x.numel() or has_torch_function((x,)):
            return functional.linear(x, self.weight, self.bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._packed, self.bias, "none", [], ""
        )
        return product


def pack(model: Model) -> Model:
    """The same captioner, sharing all its parameters, with packed copies of its matrices.

    It is for captioning only: it does not notice when the weights change. On other processors and
    devices, and for very large captioners, it is the captioner itself.

    >>> model = nn.Sequential(nn.Linear(3, 2))
    >>> pack(model)[0].weight is model[0].weight
    True
    """
    parameters = list(model.parameters())
    if not _can_pack(parameters):
        return model
    shared = {id(tensor): tensor for tensor in [*parameters, *model.buffers()]}
    packed = copy.deepcopy(model, shared)
    for module in list(packed.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, PackedLinear(child))
    return packed


def _can_pack(parameters: list[nn.Parameter]) -> bool:
    return (
        platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and all(p.device.type == "cpu" and p.dtype == torch.float32 for p in parameters)
        and sum(p.numel() for p in parameters) <= _MOST_PARAMETERS
    )
