"""Our word ids and a transformers captioner's own."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sightline.text.vocabulary import END, PAD, SPECIAL, START, UNKNOWN

NEVER = -1e4  # the logit of what is never said: its probability is nothing, its logit a number
_PLACES = ("image_token_id", "image_token_index", "video_token_id")


class PieceIds(NamedTuple):
    """Ids are the captioner's own, after our four special ones."""

    pieces: Tensor  # of each of our ids, the captioner's
    banned: Tensor  # what is never said

    @classmethod
    def of(cls, config: Any, end: int) -> "PieceIds":
        """Those of a captioner's configuration; `end` is its id of the end."""
        size: int = config.get_text_config(decoder=True).vocab_size
        pieces = torch.arange(len(SPECIAL) + size) - len(SPECIAL)
        pieces[[PAD, START, END, UNKNOWN]] = end
        banned = torch.zeros(len(pieces), dtype=torch.bool)
        banned[[PAD, START, UNKNOWN, end + len(SPECIAL)]] = True
        for name in _PLACES:  # of pictures: one that was said would ask for another picture
            if isinstance(place := getattr(config, name, None), int) and 0 <= place < size:
                banned[place + len(SPECIAL)] = True
        return cls(pieces, banned)

    def choose(self, logits: Tensor) -> Tensor:
        """Logits of our ids, of those of the captioner's own."""
        return logits[..., self.pieces].masked_fill(self.banned, NEVER)
