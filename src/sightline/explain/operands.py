"""The operands of torch's operations: in their places, however a captioner names them."""

from typing import Any

_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_JOIN = ("tensors", "dim")
_PLACES = {
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack"), _JOIN),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONVOLUTION),
    "linear": ("input", "weight", "bias"),
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "scaled_dot_product_attention": ("query", "key", "value", "attn_mask", "dropout_p"),
    "addmm": ("input", "mat1", "mat2"),
    "mm": ("input", "mat2"),
    "bmm": ("input", "mat2"),
    "where": ("condition", "input", "other"),
    "masked_fill": ("input", "mask", "value"),
    "masked_scatter": ("input", "mask", "source"),
    "softmax": ("input", "dim"),
    "embedding": (),  # in one order here and in another there; which are words is seen
}


def bind(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands that were given by name, at their places among the others.

    >>> bind("mul", (2,), {"other": 3})
    ((2, 3), {})
    >>> bind("cat", (), {"dim": 1, "tensors": [4, 5]})
    (([4, 5], 1), {})
    """
    if not kwargs:
        return args, kwargs
    placed, rest = list(args), dict(kwargs)
    for operand in _PLACES.get(name.removesuffix("_"), ("input", "other"))[len(args) :]:
        if operand not in rest:
            break
        placed.append(rest.pop(operand))
    return tuple(placed), rest
