"""A CLIP model in a folder on disk: unit vectors of pictures and captions."""

import functools
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL.Image import Image, Resampling

from sightline.errors import MissingExtraError, WeightsError
from sightline.files import DATA_BYTES, read_bytes
from sightline.parsing import parse_json
from sightline.pictures import Picture, open_picture

if TYPE_CHECKING:
    from torch import Tensor

_MEAN = (0.48145466, 0.4578275, 0.40821073)  # of OpenAI's CLIP
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


class ClipModel:
    """CLIP as `transformers` stores it; nothing outside the folder is read, nothing fetched."""

    def __init__(self, tokenizer: Any, model: Any, preprocessing: dict[str, Any]) -> None:
        self._tokenizer, self._model = tokenizer, model.eval()
        self._longest = int(model.config.text_config.max_position_embeddings)
        self._side = int(model.config.vision_config.image_size)
        self._mean = np.array(preprocessing.get("image_mean", _MEAN), np.float32)
        self._deviation = np.array(preprocessing.get("image_std", _DEVIATION), np.float32)

    def embed(
        self, pictures: Sequence[Picture], captions: Sequence[str]
    ) -> tuple["Tensor", "Tensor"]:
        """Unit vectors `(N, D)` of pictures and `(M, D)` of captions, at least one of each."""
        import torch

        pixels = np.stack([self._pixels(open_picture(picture)) for picture in pictures])
        tokens = self._tokenizer(
            list(captions),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        )
        with torch.inference_mode():
            out = self._model(
                input_ids=tokens["input_ids"],
                attention_mask=tokens["attention_mask"],
                pixel_values=torch.from_numpy(pixels),
            )
        normalize = torch.nn.functional.normalize
        return normalize(out.image_embeds, dim=-1), normalize(out.text_embeds, dim=-1)

    def _pixels(self, picture: Image) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """`(3, S, S)`: the shorter side to S, bicubic; the middle; normalised. CLIP's own way."""
        factor = self._side / min(picture.size)
        size = (
            max(self._side, round(picture.width * factor)),
            max(self._side, round(picture.height * factor)),
        )
        resized = picture.convert("RGB").resize(size, Resampling.BICUBIC)
        left, upper = (size[0] - self._side) // 2, (size[1] - self._side) // 2
        middle = resized.crop((left, upper, left + self._side, upper + self._side))
        values = np.asarray(middle, np.float32) / 255
        return np.ascontiguousarray(((values - self._mean) / self._deviation).transpose(2, 0, 1))


@functools.lru_cache(maxsize=2)
def clip_model(folder: Path) -> ClipModel:
    """Load a model folder in the layout of `transformers`."""
    if not (folder / "config.json").is_file():
        raise WeightsError(f"'{folder}' is not a model folder: it has no config.json")
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("CLIPScore", "bertscore") from error
    stored = folder / "preprocessor_config.json"
    preprocessing = {}
    if stored.is_file():
        text = read_bytes(stored, DATA_BYTES).decode("utf-8", "replace")
        preprocessing = parse_json(text, str(stored), WeightsError)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        transformers.utils.logging.disable_progress_bar()  # it would stay on the screen
        model = transformers.CLIPModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,  # other weight files are pickles, which may run code
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = (str(error).split("\n", maxsplit=1) or ["unreadable"])[0]
        raise WeightsError(f"cannot load the CLIP model in '{folder}': {reason}") from error
    return ClipModel(tokenizer, model, preprocessing)
