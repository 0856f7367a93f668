"""An accelerator that is not there: tensors of the CPU that say, and are held to, another device.

What runs inside `accelerator()` may put tensors on the device `ACCELERATOR`. They stay ordinary
tensors of the CPU, but the storages that belong to the device are known, and an operation that a
real accelerator would refuse raises `DeviceError` with the name of the operation and the line that
asked for it. Random numbers of the device come from a generator of its own.
"""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# A name that torch knows, and needs no driver for; no tensor of a test is really there.
ACCELERATOR = torch.device("meta")
HOST = torch.device("cpu")

_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}

_to, _numpy = torch.Tensor.to, torch.Tensor.numpy
_get, _set = torch.Tensor.__getitem__, torch.Tensor.__setitem__
_tensor, _as_tensor = torch.tensor, torch.as_tensor
_manual_seed, _get_device_module = torch.manual_seed, torch.get_device_module


class DeviceError(AssertionError):
    """An operation that an accelerator would refuse, or that would quietly wait for it."""


class DeviceMode(TorchDispatchMode):
    """Follows every operation, those of backward passes and of other modes among them."""

    def __init__(self) -> None:
        super().__init__()
        # By address, which is not given away again while there is a weak reference to it.
        self._storages: dict[int, StorageWeakRef] = {}  # of the accelerator
        self._unplaced: dict[int, StorageWeakRef] = {}  # of whichever device they are used on
        self._destination: torch.device | None = None
        self.random = torch.Generator()  # what the device draws from by default
        self.generators: dict[int, torch.Generator] = {}  # others of the device, by address

    def device(self, tensor: Tensor) -> torch.device:
        """Where a tensor is said to be."""
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
        if tensor.is_mkldnn:  # weights that oneDNN has laid out, for processors alone
            return HOST
        return ACCELERATOR if tensor.untyped_storage()._cdata in self._storages else HOST

    def move(self, tensor: Tensor, device: torch.device) -> Tensor:
        """A copy on another device."""
        if self.device(tensor) == device:
            return tensor
        self._destination = device
        try:
            with torch._C.DisableTorchFunction():
                return tensor.clone()
        finally:
            self._destination = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        # Python indexes by lists, too, which torch brings to the device: `_check_index` sees what
        # indexes, and here it does not count.
        counted = [args[0], args[2:], kwargs] if name in _INDEXING else [args, kwargs]
        tensors = [leaf for leaf in tree_leaves(counted) if isinstance(leaf, Tensor)]
        device = HOST
        if self._destination is not None:
            device = self._destination
        elif kwargs.get("device") == ACCELERATOR or ACCELERATOR in map(self.device, tensors):
            device = ACCELERATOR
            self._check(func, name, args, tensors)
        if name == "copy_":
            device = self.device(args[0])
        if "device" in kwargs:
            kwargs["device"] = HOST
        generator = kwargs.get("generator")
        if generator and (generator._cdata in self.generators) != (device == ACCELERATOR):
            _fail(f"{name}: draws from a generator of another device")
        if device == HOST:
            result = func(*args, **kwargs)
            if not tensors and isinstance(result, Tensor) and _made_by_autograd():
                _remember(self._unplaced, result)
            return result
        drawn = torch.Tag.nondeterministic_seeded in func.tags and not generator
        with self._drawing() if drawn else contextlib.nullcontext():
            result = func(*args, **kwargs)
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                _remember(self._storages, leaf)
        return result

    def _check(self, func: Any, name: str, args: tuple[Any, ...], tensors: list[Tensor]) -> None:
        if name == "copy_":
            return
        for tensor in tensors:
            # A number of the host may go into an operation, but nothing may be written to it.
            number = tensor.dim() == 0 and _takes_numbers(func, name)
            written = func._schema.is_mutable and tensor is args[0]
            if tensor.untyped_storage()._cdata in self._unplaced:
                _remember(self._storages, tensor)
            elif self.device(tensor) == HOST and (written or not number):
                _fail(f"{name}: takes tensors of two devices, one {tuple(tensor.shape)} of the CPU")

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        """Random numbers from the device's generator, and not from the CPU's."""
        kept = torch.get_rng_state()
        torch.set_rng_state(self.random.get_state())
        try:
            yield
        finally:
            self.random.set_state(torch.get_rng_state())
            torch.set_rng_state(kept)


def _remember(storages: dict[int, StorageWeakRef], tensor: Tensor) -> None:
    storage = tensor.untyped_storage()
    if len(storages) > 20000:
        for address in [address for address, one in storages.items() if one.expired()]:
            del storages[address]
    storages.setdefault(storage._cdata, StorageWeakRef(storage))


def _made_by_autograd() -> bool:
    """Whether the engine of backward passes asks for zeros, which it makes where they belong."""
    frame = sys._getframe(2)
    while any(part in frame.f_code.co_filename for part in ("_compile.py", "_dynamo")):
        frame = frame.f_back
    return frame.f_code.co_name == "_engine_run_backward"


@contextlib.contextmanager
def accelerator() -> Iterator[DeviceMode]:
    """While this lasts there is an accelerator, and mixing devices fails."""
    mode = DeviceMode()

    def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        given = kwargs.pop("device", args[0] if args else None)
        if isinstance(given, Tensor):
            kwargs["dtype"], given = given.dtype, mode.device(given)
        if not isinstance(given, torch.device | str):
            return _to(tensor, *args, **kwargs)
        dtype = kwargs.get("dtype") or next((a for a in args if isinstance(a, torch.dtype)), None)
        with_dtype = tensor if dtype is None else _to(tensor, dtype)
        return mode.move(with_dtype, torch.device(given))

    def numpy(tensor: Tensor, *, force: bool = False) -> Any:
        if mode.device(tensor) == ACCELERATOR and not force:
            _fail("numpy: of a tensor that is on the accelerator")
        return _numpy(tensor, force=force)

    def get(tensor: Tensor, index: Any) -> Any:
        _check_index(mode, tensor, index)
        return _get(tensor, index)

    def set_(tensor: Tensor, index: Any, value: Any) -> None:
        _check_index(mode, tensor, index)
        _set(tensor, index, value)

    def made_by(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def made(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
            tensor = make(data, **kwargs)
            return tensor if device is None else mode.move(tensor, torch.device(device))

        return made

    class Generator(torch.Generator):
        def __new__(cls, device: Any = HOST) -> "Generator":
            generator = super().__new__(cls, HOST)
            if torch.device(device) == ACCELERATOR:
                mode.generators[generator._cdata] = generator
            return generator

    def manual_seed(seed: int) -> torch.Generator:
        mode.random.manual_seed(seed)
        return _manual_seed(seed)

    def device_module(device: Any = None) -> Any:
        if torch.device(device) != ACCELERATOR:
            return _get_device_module(device)
        random = mode.random
        return mock.Mock(get_rng_state=random.get_state, set_rng_state=random.set_state)

    with contextlib.ExitStack() as stack:
        methods = {"to": to, "cpu": lambda tensor: to(tensor, HOST), "numpy": numpy}
        methods |= {"__getitem__": get, "__setitem__": set_, "device": property(mode.device)}
        functions = {"tensor": made_by(_tensor), "as_tensor": made_by(_as_tensor)}
        functions |= {"manual_seed": manual_seed, "Generator": Generator}
        functions |= {"get_device_module": device_module}
        for place, replaced in ((torch.Tensor, methods), (torch, functions)):
            for name, value in replaced.items():
                if name.startswith("__"):
                    value.__name__ = name  # which the modes of explanations go by
                stack.enter_context(mock.patch.object(place, name, value))
        stack.enter_context(mode)
        yield mode


def _takes_numbers(func: Any, name: str) -> bool:
    filling = name.startswith(("fill", "masked_fill", "index_put", "_index_put", "_foreach"))
    return filling or torch.Tag.pointwise in func.tags


def _check_index(mode: DeviceMode, tensor: Tensor, index: Any) -> None:
    """An index of the CPU works on an accelerator, after waiting for it and a copy."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Tensor) and part.dim() and mode.device(part) != mode.device(tensor):
            _fail(f"index: {tuple(part.shape)} is on another device than what it indexes")


def _fail(what: str) -> None:
    ours = [f for f in traceback.extract_stack() if "site-packages" not in f.filename]
    asked = next(f for f in reversed(ours) if f.filename != __file__)
    raise DeviceError(f"{what} ({Path(asked.filename).name}:{asked.lineno}: {asked.line})")
