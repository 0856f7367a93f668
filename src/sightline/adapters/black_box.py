"""A transformers captioner of an architecture that Sightline does not know.

Nothing is assumed of its inside. Its own processor makes its inputs of each picture, and its own
forward pass gives the logits of the next word.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from PIL.Image import fromarray
from torch import Tensor, nn

from sightline.adapters.piece_ids import PieceIds
from sightline.adapters.pixel_encoder import put_together
from sightline.models.interface import CaptionModel, Memory, State, Step, Unrolled
from sightline.regions import Regions

_PREFIX = "input_"


class BlackBoxModel(CaptionModel):
    """Pixels and word pieces in, logits out, by the captioner's own pass over all words so far."""

    longest = 40  # pieces of a caption

    def __init__(
        self,
        model: nn.Module,
        processor: Any,
        prompt: str,
        start: int | None,
        ids: PieceIds,
        cell: int,
    ) -> None:
        super().__init__()
        self.model, self.processor, self.prompt, self.cell = model, processor, prompt, cell
        self.start_id = start  # of a decoder of its own; otherwise words follow the prompt
        config: Any = model.config
        self.black_box = (
            f"Sightline does not see into captioners of the type '{config.model_type}'; occlusion "
            "explains any captioner"
        )
        self.register_buffer("pieces", ids.pieces, persistent=False)
        self.register_buffer("banned", ids.banned, persistent=False)
        self.vocabulary_size = len(ids.pieces)

    pieces: Tensor
    banned: Tensor

    def encode(self, regions: Regions) -> Memory:
        """What the processor makes of each picture, with the prompt."""
        accepted = inspect.signature(self.model.forward).parameters
        made: list[dict[str, Tensor]] = []
        for pixels in put_together(regions, self.cell).cpu().numpy():
            inputs = process(self.processor, fromarray(pixels), self.prompt)
            made.append({name: t for name, t in inputs.items() if name in accepted})
        device = regions.mask.device
        memory = {
            _PREFIX + name: torch.stack([inputs[name] for inputs in made]).to(device)
            for name in made[0]
        }
        return memory | {"mask": regions.mask}

    def start(self, memory: Memory, rows: int = 1) -> State:
        return {"said": memory["mask"].new_zeros(len(memory["mask"]), rows, 0, dtype=torch.long)}

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        said = torch.cat([state["said"], tokens[..., None]], -1)
        unrolled = self.unroll(said, memory)
        return Step(unrolled.logits[:, :, -1], {"said": said}, unrolled.attention[:, :, -1], {})

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        pictures, rows, length = tokens.shape
        said = self.pieces[tokens.flatten(0, 1)[:, 1:]]
        logits = self.model(**self._inputs(said, memory, rows)).logits[:, -length:]
        logits = PieceIds(self.pieces, self.banned).choose(logits)
        mask = memory["mask"]
        even = mask / mask.sum(-1, keepdim=True).clamp(min=1)
        attention = even[:, None, None].expand(-1, rows, length, -1).to(logits)
        return Unrolled(torch.unflatten(logits, 0, (pictures, rows)), attention, {})

    def _inputs(self, said: Tensor, memory: Memory, rows: int) -> dict[str, Any]:
        """The arguments of the forward pass, for rows of word ids after the prompt."""
        # Of a picture a processor makes `(1, ...)`, or rows of patches that are joined.
        inputs: dict[str, Any] = {
            name.removeprefix(_PREFIX): tensor.repeat_interleave(rows, 0).flatten(0, 1)
            for name, tensor in memory.items()
            if name.startswith(_PREFIX)
        }
        if self.start_id is not None:
            begin = said.new_full((len(said), 1), self.start_id)
            return inputs | {"decoder_input_ids": torch.cat([begin, said], 1), "use_cache": False}
        prompt = inputs["input_ids"]
        following = {"input_ids": said, "attention_mask": torch.ones_like(said)}
        for name, tensor in inputs.items():
            if tensor.shape == prompt.shape:
                more = following.get(name, torch.zeros_like(said)).to(tensor)
                inputs[name] = torch.cat([tensor, more], 1)
        return inputs | {"use_cache": False}


def process(processor: Any, picture: Any, prompt: str) -> dict[str, Tensor]:
    """The inputs that a processor makes of one picture and the prompt."""
    if isinstance(processor, Sequence):  # an image processor, and word ids that are there already
        image_processor, ids = processor
        made = dict(image_processor(images=picture, return_tensors="pt"))
        return made | ({} if ids is None else {"input_ids": ids})
    return dict(processor(images=picture, text=prompt, return_tensors="pt"))
