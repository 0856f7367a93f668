"""A family of transformers captioners: where its image tokens are, and how it is asked."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from sightline.adapters.continuation import GoesOn, go_on

ONE_AT_A_TIME = threading.RLock()
"""Held while a captioner runs: it is changed for as long, to be told what it sees and watched."""

Pixels = Callable[[Any, Tensor], dict[str, Any]]
"""Of a model and its pixels `(B, 3, h, w)`, the arguments of what makes its image tokens."""


def plain_pixels(model: Any, x: Tensor) -> dict[str, Any]:
    """What most families take: the pixels as they are."""
    return {"pixel_values": x}


@dataclass(frozen=True)
class Family:
    """What Sightline must know to see into a captioner; everything else is its own forward pass.

    Image tokens are vectors that each belong to a place of the picture. Where a captioner goes on
    to condense them into queries of no place (BLIP-2, Kosmos-2), they are those before that.
    """

    model_type: str  # of its configuration
    name: str  # for people
    image_tokens: str  # the function that makes them, from the model on: `vision_model.forward`
    attention: str  # the modules with attention weights of words, as a pattern of their names
    condenser: str = ""  # those of the queries, where words see the image tokens through queries
    # The caption goes to a decoder of its own; otherwise it follows the prompt.
    decodes: bool = False
    # Where the function's outcome has the tokens; `list` is a list of each picture's.
    field: Literal["last_hidden_state", "pooler_output", "list"] = "last_hidden_state"
    pixels: Pixels = plain_pixels
    pixel_input: str = "pixel_values"  # what the forward pass calls them
    dummy: tuple[int, ...] = (3, 1, 1)  # the shape of pixels in the place of real ones
    # Whether the processor writes the prompt, with a place for the picture in it.
    prompted: bool = False
    prompt: str = ""  # unless another is given
    template: str = "{prompt}"  # where the processor has no chat template
    speaker: str = ""  # the module that has a key-value cache; by default the whole model
    goes_on: GoesOn = go_on
    crops: bool = False  # whether a large picture is seen in crops and once as a whole
    size: int | None = None  # pixels of a side, where the family takes pictures of any shape


def resolve(model: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that has a function, and the function's name.

    >>> resolve(nn.Sequential(nn.Linear(2, 3)), "0.forward")
    (Linear(in_features=2, out_features=3, bias=True), 'forward')
    """
    owner, _, name = path.rpartition(".")
    return model.get_submodule(owner), name
