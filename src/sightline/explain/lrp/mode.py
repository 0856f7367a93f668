"""Running a captioner's own forward pass with its operations replaced by rules.

There is no second copy of any captioner. A mode stands between the model and torch: of every
operation whose inputs carry relevance it looks up the rule. Who carries relevance is known by
`requires_grad`: word vectors, regions and pixels do, and all that is made of them, but for what
comes out of a *gate*. A gate is whatever is squashed to weigh something else: sigmoid, softmax with
the energies it is taken of, and what a captioner calls one (`unit_gate`). Its output is cut off, a
constant like any other, so that of gate times signal the signal takes all (Arras et al. 2017), and
nothing goes into the network that made the attention. An operation without a rule is refused by its
name, and constants are accounted for wherever they join a signal.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.errors import NotApplicableError
from sightline.explain.gradient_mode import (
    PLAIN_FORMS,
    PLAIN_LAYERS,
    RECTIFIERS,
    GradientMode,
    attend,
    indices,
    masked_scatter,
)
from sightline.explain.lrp.convolution import Convolution
from sightline.explain.lrp.operations import (
    ATTENTION,
    GATES,
    JOINS,
    LINEAR,
    MATRIX_PRODUCTS,
    PLAIN,
    PRODUCTS,
    REDUCTIONS,
    SQUASHES,
    SUMS,
)
from sightline.explain.lrp.replaced import Replaced, out_of_place
from sightline.explain.lrp.rules import (
    AttentionSum,
    absorb,
    absorb_all,
    identity_rule,
    multiply,
    normalise,
    pad,
    refuse,
    softmax_rule,
    uniform_rule,
)


class LRPMode(GradientMode):
    """Every operation carries relevance backwards by its rule, as multipliers R / x.

    `absorbed` `(2, B)` is an input, too: the first row of its gradient is what constants (biases,
    positions) absorbed of each picture's relevance, the second what ε did. For no pictures there is
    none, and nothing is counted.

    `through_attention` makes signals of the weights of attention: half of what a weighted sum has
    goes to the weights, and through the softmax to what they were made of (AttnLRP: Achtibat et al.
    2024). Other gates stay gates.

    >>> x, mode = torch.tensor([[1.0, 2.0]], requires_grad=True), LRPMode(1, epsilon=0.0)
    >>> with mode:
    ...     y = torch.sigmoid(x) * torch.tanh(x)
    >>> bool(torch.isclose(x * torch.autograd.grad(y.sum(), x)[0], y).all())  # R(x) = R(y) = y
    True
    """

    def __init__(
        self,
        pictures: int = 0,
        epsilon: float = 0.01,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
        through_attention: bool = False,
    ) -> None:
        super().__init__()
        self.epsilon, self.through_attention = epsilon, through_attention
        if pictures:
            self.absorbed = torch.zeros(2, pictures, dtype=dtype, device=device, requires_grad=True)
        self._sums: dict[int, AttentionSum] = {}
        self._replaced = Replaced()
        # The last convolution, and the last with a rectifier; either with its output.
        self._convolved: tuple[Tensor, Convolution] | None = None
        self._rectified: tuple[Tensor, Convolution] | None = None

    def apply(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if any(map(self._replaced.holds, _flat((*args, *kwargs.values())))):
            raise NotApplicableError.no_rule(f"{name} of what was changed in place")
        changing = out_of_place(name) or (function if kwargs.get("inplace") else None)
        if changing is not None and any(map(_carries, args)):
            return self._change(name.removesuffix("_"), changing, args, kwargs)
        if name == "__setitem__" and any(map(_carries, args)):
            return self._write(*args)
        if name == "view" and _carries(args[0]):  # a rule may have laid it out in another order
            function = torch.Tensor.reshape
        if name in PLAIN_LAYERS:
            with self:
                return PLAIN_LAYERS[name](*args, **kwargs)
        if any(map(_carries, kwargs.values())):
            raise NotApplicableError.no_rule(f"{name} with named tensors")
        if self.through_attention and name in ATTENTION:
            with self:
                return PLAIN_FORMS[name](*args, **kwargs)
        if name == "scaled_dot_product_attention":
            return self._absorb(attend(*args, **kwargs, constant=True))
        if name in LINEAR and any(map(_carries, args[1:3])):
            made = function(*args, **kwargs)
            return refuse(made, f"{name} whose weights are made of the picture")
        if name in JOINS:
            return self._join(function, *args, **kwargs)
        if name == "linear" and args[0].requires_grad:
            return self._multiply(*args, **kwargs)
        if name in ("conv1d", "conv3d") and args[0].requires_grad:
            return self._convolve_words(function, *args, **kwargs)
        if name == "addmm" and not kwargs and not any(map(_carries, (args[0], args[2]))):
            return self._absorb(function(*args), args[0])
        if name == "layer_norm" and args[0].requires_grad and len(args[1]) == 1:
            return self._normalise(*args, **kwargs)
        if name == "conv2d" and args[0].requires_grad:
            return self._convolve(*args, **kwargs)
        if name in RECTIFIERS and self._convolved and args[0] is self._convolved[0]:
            return self._rectify(function)
        if name == "pad" and args[0].requires_grad and _with_zeros(*args[2:], **kwargs):
            return pad(*args[:2])
        if name == "matmul" and _weighs(*args):
            return self._attention_sum(*args)
        if name in ("div", "true_divide") and _carries(args[0]):  # (a divisor is a constant)
            return function(args[0], _detached(args[1]), **kwargs)
        if name == "masked_scatter" and any(map(_carries, args)):
            return self._scatter(*args)
        if name == "masked_fill" and _carries(args[0]):
            return self._fill(function, *args, **kwargs)
        if name == "where" and len(args) == 3:
            return self._choose(*args)
        output = function(*args, **kwargs)
        if name in PLAIN or (name in ("maximum", "minimum") and all(map(_carries, args))):
            return output
        if isinstance(output, tuple | list):
            return type(output)(
                refuse(part, name) if isinstance(part, Tensor) and part.requires_grad else part
                for part in output
            )
        if not isinstance(output, Tensor) or not output.requires_grad:
            return output
        if name.endswith("_") and not name.startswith("_"):
            raise NotApplicableError.no_rule(name)  # in place, and nothing does the same elsewhere
        if name in SUMS | PRODUCTS and any(isinstance(part, Tensor) for part in kwargs.values()):
            return refuse(output, f"{name} with named tensors")
        if name == "softmax" and self.through_attention:
            return self._soften(output, *args, **kwargs)
        if name in GATES:
            return output.detach()
        if name in SQUASHES:
            return identity_rule(args[0], output)
        if name in REDUCTIONS:
            return self._absorb(output)
        if name in PRODUCTS:
            signals = [_carries(part) for part in _flat(args)]
            if sum(signals) > 2:
                return refuse(output, name)
            product = uniform_rule(output) if sum(signals) == 2 else output
            return self._absorb(product) if name in MATRIX_PRODUCTS else product
        if name in SUMS:
            signals = [isinstance(part, Tensor) and part.requires_grad for part in args[:2]]
            if all(signals):
                return self._absorb(output)
            without = [
                torch.zeros_like(part) if signal else part
                for part, signal in zip(args, signals, strict=False)
            ]
            return self._add(output, function(*without, **kwargs))
        return refuse(output, name)

    def _change(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What changes a tensor in place makes a new one: the old is not to be used again."""
        x, kwargs = args[0], {key: part for key, part in kwargs.items() if key != "inplace"}
        output = self.apply(name, function, args, kwargs)
        if output.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            self._replaced.add(x)
        elif "dropout" not in name:  # (which does nothing, but in training)
            raise NotApplicableError.no_rule(f"{name}_")  # it changes the shape alone
        return output

    def _write(self, base: Tensor, index: Any, value: Any) -> None:
        """`base[index] = value`, in place: what is constant of either is absorbed."""
        index, joined = indices(index), base.clone()
        constant = torch.zeros_like(base) if _carries(base) else base.detach().clone()
        joined[index] = value
        constant[index] = 0 if _carries(value) else value
        base.copy_(absorb(joined, constant, 0.0, self.absorbed))

    def _join(
        self, function: Callable[..., Tensor], parts: Any, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Constants that are joined to signals take along what they have of the relevance."""
        if not any(map(_carries, parts)):
            return function(parts, *args, **kwargs)
        parts = [part if _carries(part) else absorb_all(part, self.absorbed) for part in parts]
        return function(parts, *args, **kwargs)

    def _fill(self, function: Callable[..., Tensor], x: Tensor, mask: Tensor, value: Any) -> Tensor:
        """Numbers that are filled in are constants; -inf, of energies, is refused further on."""
        if _carries(value):
            return refuse(function(x, mask, value), "masked_fill with a number of the picture's")
        output = function(x, mask, value)
        if self.through_attention and value == -math.inf:
            return output  # of energies: the softmax makes nothing of it
        if not math.isfinite(value):
            return refuse(output, f"masked_fill with {float(value)}")
        return absorb(output, mask * float(value), 0.0, self.absorbed)

    def _scatter(self, base: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        """Where either is a constant, it is absorbed."""
        output = masked_scatter(base, mask, source)
        zeros = torch.zeros_like(output)
        taken, left = (zeros if _carries(part) else output.detach() for part in (source, base))
        return absorb(output, torch.where(mask, taken, left), 0.0, self.absorbed)

    def _choose(self, mask: Any, x: Any, other: Any) -> Tensor:
        """Where a constant is taken instead of a signal, it is absorbed."""
        if not (isinstance(mask, Tensor) and mask.dtype == torch.bool):
            mask, x = x, mask  # `x.where(mask, other)`
        output = torch.where(mask, x, other)
        if not output.requires_grad:
            return output
        zeros = torch.zeros_like(output)
        taken, left = (zeros if _carries(part) else part for part in (x, other))
        return absorb(output, torch.where(mask, taken, left) + zeros, 0.0, self.absorbed)

    def _convolve_words(
        self,
        function: Callable[..., Tensor],
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor:
        """Convolutions that are not of pictures: linear maps, by the ε-rule."""
        bias = None if bias is None else bias.detach()
        z = function(x, weight.detach(), bias, *args, **kwargs)
        over_places = (slice(None), *(None,) * (z.dim() - 2))
        return self._absorb(z, None if bias is None else bias[over_places])

    def _absorb(self, z: Tensor, constant: Tensor | float | None = None) -> Tensor:
        if isinstance(constant, Tensor):
            constant = constant.detach()
        return absorb(z, constant, self.epsilon, self.absorbed)

    def _add(self, z: Tensor, constant: Tensor) -> Tensor:
        """A sum `z` with a constant; -∞ hides energies from the softmax, as `masked_fill` does."""
        hidden = constant.detach() == -math.inf
        if not self.through_attention or not hidden.any():
            return self._absorb(z, constant)
        shown = self._absorb(z.masked_fill(hidden, 0), constant.masked_fill(hidden, 0))
        return shown.masked_fill(hidden, -math.inf)

    def _soften(self, y: Tensor, x: Tensor, dim: int = -1, *_: Any, **__: Any) -> Tensor:
        return softmax_rule(x, y, dim, self.absorbed)

    def _multiply(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        bias = None if bias is None else bias.detach()
        return multiply(x, weight.detach(), bias, self.epsilon, self.absorbed)

    def _attention_sum(self, weights: Tensor, values: Tensor) -> Tensor:
        if id(values) not in self._sums:
            self._sums[id(values)] = AttentionSum(
                values
            )  # (which keeps the values, and so their id)
        return self._absorb(self._sums[id(values)].sum(weights))

    def _normalise(
        self,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        assert len(shape) == 1
        return normalise(x, weight, bias, eps, self.absorbed)

    def _convolve(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        if padding == "valid":
            padding = 0
        if isinstance(padding, str):
            return refuse(
                functional.conv2d(x, weight, bias, stride, padding, dilation, groups),
                f"conv2d with padding '{padding}'",
            )
        options = {
            "stride": _pair(stride),
            "padding": _pair(padding),
            "dilation": _pair(dilation),
            "groups": groups,
        }
        before = None
        if self._rectified and x is self._rectified[0]:
            before = self._rectified[1]
        convolution = Convolution(x, weight, bias, options, self.absorbed, before)
        output = convolution.output()
        self._convolved = output, convolution
        return output

    def _rectify(self, rectifier: Callable[..., Tensor]) -> Tensor:
        assert self._convolved is not None
        convolution = self._convolved[1]
        output = convolution.output(rectifier)
        self._rectified = output, convolution
        return output


def _weighs(weights: Tensor, values: Tensor) -> bool:
    """Whether a product is of constant weights `(B, K, L)` with values `(B, L, D)`."""
    constant = not weights.requires_grad and values.requires_grad
    return constant and weights.dim() == values.dim() == 3 and len(weights) == len(values)


def _with_zeros(mode: str = "constant", value: float | None = None) -> bool:
    return mode == "constant" and not value


def _pair(number: int | Sequence[int]) -> tuple[int, ...]:
    return (number, number) if isinstance(number, int) else tuple(number)


def _carries(part: Any) -> bool:
    """Whether it carries relevance: a weight may want a gradient, too, and carries none."""
    return isinstance(part, Tensor) and part.requires_grad and not isinstance(part, nn.Parameter)


def _flat(args: Sequence[Any]) -> list[Any]:
    """Operands, also where an operation takes them as a list."""
    return [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]


def _detached(part: Any) -> Any:
    return part.detach() if isinstance(part, Tensor) else part
