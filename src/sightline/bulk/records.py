"""What is known of a captioned picture, and the row that tables hold of it."""

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from sightline.bulk.items import Item, key_of
from sightline.captioner import Captioner
from sightline.captions import SEEN, Caption, known
from sightline.version import __version__

_DIGITS = 6  # of log-probabilities: the rest is noise of the arithmetic

Row = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A picture that could not be captioned, or a place on a list that names none; and why."""

    name: str
    # missing, unreadable, damaged, format; source: a row, shard, folder or address that gives none;
    # output: what is there for it is damaged, or another's, or the output cannot name it
    kind: str
    error: str  # one line

    @property
    def key(self) -> int:
        """As of an `Item`."""
        return key_of(self.name)

    def row(self) -> Row:
        return {"path": self.name, "kind": self.kind, "error": self.error}


@dataclass(frozen=True)
class Record:
    """A captioned picture."""

    item: Item
    sha256: str
    captions: list[Caption]  # best first
    model: str
    # With `avoid_unsupported`: the best supported caption, and the words that it does not say.
    avoided: tuple[str, ...] | None = None
    without: Caption | None = None

    @property
    def caption(self) -> Caption:
        """The caption to use: the one without unsupported words, if there is one."""
        return self.without or self.captions[0]

    @property
    def unfamiliar(self) -> bool | None:
        """Whether the picture is unlike those the captioner knows; None: it cannot tell."""
        return self.captions[0].unfamiliar

    @property
    def is_marked(self) -> bool:
        """Whether a word of it is doubtful or not supported."""
        return any(w.support and w.support.verdict != SEEN for w in self.caption.words)

    def row(self, attention: bool = False) -> Row:
        """The columns of every table. Attention is large, and there only on request."""
        caption = self.caption
        row: Row = {
            "path": self.item.name,
            "sha256": self.sha256,
            "caption": caption.text,
            "log_probability": known(round(caption.log_probability, _DIGITS)),
            "words": [
                {
                    "text": word.text,
                    "log_probability": known(round(word.log_probability, _DIGITS)),
                    "verdict": word.support and word.support.verdict,
                    "support": word.support and round(word.support.score, _DIGITS),
                }
                | ({"attention": list(word.attention)} if attention else {})
                for word in caption.words
            ],
            "unfamiliar": self.unfamiliar,
            "model": self.model,
            "version": __version__,
        }
        if attention:
            row["boxes"] = [list(box) for box in caption.boxes]
        if len(self.captions) > 1:
            row["captions"] = [other.text for other in self.captions]
        if self.avoided is not None:
            row["avoided"] = list(self.avoided)
        return row


def content_size(item: Item | Failure) -> int:
    """How many bytes came with an item of a list; none, if they are read when it is opened."""
    return len(item.content or b"") if isinstance(item, Item) else 0


def model_name(captioner: Captioner) -> str:
    """A captioner's folder, and a hash of all that decides its captions.

    >>> model_name(sightline.load())  # doctest: +SKIP
    'bundled:0d5c3f9a61b2'
    """
    digest = hashlib.sha256(captioner.encoder.fingerprint.encode())
    digest.update(repr(captioner.options).encode())
    digest.update("\n".join(captioner.vocabulary.words).encode())
    for name, tensor in sorted(captioner.model.state_dict().items()):
        digest.update(name.encode())
        values = tensor.detach().cpu().contiguous().flatten()
        digest.update(values.view(torch.uint8).numpy().tobytes())  # (NumPy has no bfloat16)
    folder = captioner.checkpoint
    name = type(captioner.model).__name__.lower() if folder is None else folder.name
    if folder is not None and name.startswith("step-"):
        name = f"{folder.resolve().parent.name}/{name}"
    return f"{name}:{digest.hexdigest()[:12]}"
