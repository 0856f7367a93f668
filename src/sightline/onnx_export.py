"""A captioner as two ONNX graphs, for programs without torch.

    encoder.onnx    pixels (B, size, size, 3), bytes -> memory of the pictures, and the first state
    step.onnx       the last words (B, K), state, memory -> logits (B, K, V), attention, state
    captioner.json  the vocabulary, the size of the pixels, the limits of decoding, all names

`examples/onnx_caption.py` captions a picture with them, by onnxruntime and NumPy alone. Regions are
not rounded to half precision as they are in `Captioner.encode`, so that log-probabilities differ in
the third digit from those that `sightline caption` prints.
"""

import json
import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sightline.captioner import Captioner
from sightline.encoders.encoder import Encoder
from sightline.errors import ConfigError, NotApplicableError
from sightline.extras import require
from sightline.files import atomic_write
from sightline.models.interface import CaptionModel, State
from sightline.models.layers import additive_energy
from sightline.text.vocabulary import END, PAD, START, UNKNOWN

ENCODER, STEP, CARD = "encoder.onnx", "step.onnx", "captioner.json"


class _PlainOperations(TorchFunctionMode):
    """Replaces what is written for speed in torch by operations that ONNX has."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        keywords: dict[str, Any] | None = None,
    ) -> Any:
        keywords = keywords or {}
        if function is additive_energy:
            keys, query, vector = arguments
            sums = keys.unsqueeze(1) + query.unsqueeze(2)
            squashed = torch.relu(sums) if keywords.get("rectified") else torch.tanh(sums)
            return squashed @ vector
        if function is torch.unique:  # (saves work in a beam search; a graph takes every word)
            (tokens,) = arguments
            return tokens.flatten(), torch.arange(tokens.numel()).view_as(tokens)
        return function(*arguments, **keywords)


class _EncoderGraph(nn.Module):
    def __init__(self, encoder: Encoder, model: CaptionModel) -> None:
        super().__init__()
        self.encoder, self.model = encoder, model

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        with _PlainOperations():
            whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(pixels.shape[0], 4)
            memory = self.model.encode(self.encoder(pixels, whole))
            return (*memory.values(), *self.model.start(memory).values())


class _StepGraph(nn.Module):
    def __init__(self, model: CaptionModel, state: list[str], memory: list[str]) -> None:
        super().__init__()
        self.model, self.state, self.memory = model, state, memory

    def forward(self, tokens: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        with _PlainOperations():
            state = dict(zip(self.state, tensors[: len(self.state)], strict=True))
            memory = dict(zip(self.memory, tensors[len(self.state) :], strict=True))
            step = self.model.step(tokens, state, memory)
            return (step.logits, step.attention, *(step.state[name] for name in self.state))


def export_onnx(captioner: Captioner, folder: Path) -> None:
    """Write a captioner as ONNX into a folder.

    >>> export_onnx(sightline.load(), Path("onnx"))  # doctest: +SKIP
    """
    require("onnx", "ONNX")
    if captioner.model.black_box or not captioner.vocabulary.whole_words:
        raise ConfigError("onnx: only captioners of Sightline are exported; others have exporters")
    encoder, model = captioner.encoder.cpu(), captioner.model.cpu()
    if not encoder.sees_pixels:
        raise ConfigError("onnx: the captioner reads a detector's features, and has no encoder")
    folder.mkdir(parents=True, exist_ok=True)
    size = encoder.preprocessing.size
    pixels = torch.randint(0, 256, (2, size, size, 3), dtype=torch.uint8)
    with torch.no_grad():
        whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(2, 4)
        memory = model.encode(encoder(pixels, whole))
        words = torch.full((2, 3), START)
        first = model.step(words, model.start(memory, 3), memory).state
        second = model.step(words, first, memory).state
    state_names = [f"state_{name}" for name in first]
    memory_names = [f"memory_{name}" for name in memory]
    _export(
        _EncoderGraph(encoder, model),
        (pixels,),
        folder / ENCODER,
        ["pixels"],
        [*memory_names, *state_names],
        {"pixels": {0: "pictures"}},
    )
    shapes = {
        "tokens": {0: "pictures", 1: "rows"},
        "tensors": (*_growing(first, second), *({0: "pictures"} for _ in memory)),
    }
    _export(
        _StepGraph(model, list(first), list(memory)),
        (words, *first.values(), *memory.values()),
        folder / STEP,
        ["tokens", *state_names, *memory_names],
        ["logits", "attention", *(f"next_{name}" for name in state_names)],
        shapes,
    )
    _write_card(captioner, folder / CARD, state_names, memory_names)


def _growing(first: State, second: State) -> list[dict[int, str]]:
    """The axes of a state that vary: pictures, rows, and what is longer after another word."""
    axes = []
    for name, tensor in first.items():
        sizes = zip(tensor.shape, second[name].shape, strict=True)
        longer = [axis for axis, (before, after) in enumerate(sizes) if before != after]
        axes.append({0: "pictures", 1: "rows"} | dict.fromkeys(longer, "words"))
    return axes


def _export(
    graph: nn.Module,
    given: tuple[Tensor, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    shapes: dict[str, Any],
) -> None:
    for name in ("torch.onnx", "onnxscript", "torch.onnx._internal.exporter"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                graph.eval(),
                given,
                dynamo=True,
                input_names=inputs,
                output_names=outputs,
                dynamic_shapes=shapes,
                optimize=True,
                verbose=False,
            )
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        raise NotApplicableError(
            f"onnx: this captioner cannot be exported ({type(error).__name__}: {reason})"
        ) from None
    assert program is not None
    with atomic_write(path, "wb") as file:
        file.write(program.model_proto.SerializeToString())


def _write_card(captioner: Captioner, path: Path, state: list[str], memory: list[str]) -> None:
    preprocessing, limits = captioner.encoder.preprocessing, captioner.options.constraints
    card = {
        "size": preprocessing.size,
        "fit": preprocessing.fit,
        "words": list(captioner.vocabulary.words),
        "start": START,
        "end": END,
        "never": [PAD, START, UNKNOWN],
        "beam": captioner.options.beam,
        "length_power": captioner.options.length_power,
        "max_length": limits.max_length,
        "no_repeat_ngram": limits.no_repeat_ngram,
        "state": state,
        "memory": memory,
    }
    with atomic_write(path) as file:
        json.dump(card, file, ensure_ascii=False, indent=1)
