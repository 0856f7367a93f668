"""A tiny captioner of each family, of random weights: what laws and benchmarks are tried on.

Nothing is downloaded: configurations are small, tokenizers and processors are made here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

WORDS = [
    "a",
    "the",
    "two",
    "red",
    "blue",
    "dog",
    "cat",
    "ball",
    "runs",
    "sits",
    "on",
    "grass",
    "with",
    "near",
    "and",
]
_SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<image>")
_SPECIAL_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIDE, PATCH = 32, 8  # pixels
_IMAGE = _SPECIAL.index("<image>")
_WIDTH = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_TEXT = {**_WIDTH, "intermediate_size": 24, "vocab_size": 0, "max_position_embeddings": 128}
_VISION = {**_WIDTH, "intermediate_size": 24, "image_size": SIDE, "patch_size": PATCH}


def tiny_tokenizer(words: Sequence[str] = WORDS, extra: Sequence[str] = ()) -> Any:
    """A tokenizer that spells: whole words where it knows them, else letters.

    >>> tokenizer = tiny_tokenizer()
    >>> tokenizer.tokenize("a dog barks")
    ['▁a', '▁dog', '▁b', 'a', 'r', 'k', 's']
    """
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,:!?<>|_-0123456789"
    special = (*_SPECIAL, *extra)
    pieces = [*special, *(f"▁{word}" for word in words), *(f"▁{letter}" for letter in letters)]
    pieces += [*letters, "▁"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    model = WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix="")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=["<image>", *extra],
    )


class TinyProcessor:
    """What a processor does that matters here: it writes a prompt with a place for the picture."""

    chat_template = None

    def __init__(self, tokenizer: Any, image_processor: Any, places: int, **extra: Any) -> None:
        self.tokenizer, self.image_processor = tokenizer, image_processor
        self.places, self.extra = places, extra

    def __call__(self, images: Any, text: str, **options: Any) -> dict[str, Any]:
        before, _, after = text.rpartition("<image>")
        begin = [self.tokenizer.bos_token_id, *self._ids(before), *[_IMAGE] * self.places]
        ids = torch.tensor([[*begin, *self._ids(after)]])
        made = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return made | {name: make(ids) for name, make in self.extra.items()}

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def _pixels() -> Any:
    from transformers import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})


def _vision_encoder_decoder(tokenizer: Any, size: int) -> Any:
    from transformers import (
        GPT2Config,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
    )

    text = GPT2Config(
        vocab_size=size,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=64,
        add_cross_attention=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(**_VISION), text)
    config.decoder_start_token_id, config.pad_token_id = tokenizer.bos_token_id, 0
    return VisionEncoderDecoderModel(config), (_pixels(), tokenizer)


def _blip(tokenizer: Any, size: int) -> Any:
    from transformers import BlipConfig, BlipForConditionalGeneration

    text = _text(size) | {"encoder_hidden_size": 16, "sep_token_id": 2}
    model = BlipForConditionalGeneration(BlipConfig(text_config=text, vision_config=_VISION))
    return model, (_pixels(), tokenizer)


def _git(tokenizer: Any, size: int) -> Any:
    from transformers import GitConfig, GitForCausalLM

    return GitForCausalLM(GitConfig(vision_config=_VISION, **_text(size))), (_pixels(), tokenizer)


def _blip_2(tokenizer: Any, size: int) -> Any:
    from transformers import Blip2Config, Blip2ForConditionalGeneration

    queries = 3
    text = _text(size) | {"model_type": "opt", "ffn_dim": 24, "word_embed_proj_dim": 16}
    qformer = {**_WIDTH, "intermediate_size": 24, "encoder_hidden_size": 16, "vocab_size": size}
    config = Blip2Config(
        vision_config=_VISION,
        qformer_config=qformer,
        text_config=text,
        num_query_tokens=queries,
        image_token_index=_IMAGE,
    )
    processor = TinyProcessor(tokenizer, _pixels(), queries)
    return Blip2ForConditionalGeneration(config), processor


def _llava(tokenizer: Any, size: int) -> Any:
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    config = LlavaConfig(
        vision_config={**_VISION, "model_type": "clip_vision_model"},
        text_config={**_text(size), "model_type": "llama", "num_key_value_heads": 1},
        image_token_index=_IMAGE,
        vision_feature_layer=-1,
    )
    processor = TinyProcessor(tokenizer, _pixels(), (SIDE // PATCH) ** 2)
    return LlavaForConditionalGeneration(config), processor


def _paligemma(tokenizer: Any, size: int) -> Any:
    from transformers import PaliGemmaConfig, PaliGemmaForConditionalGeneration

    text = _text(size) | {"model_type": "gemma", "num_key_value_heads": 1, "head_dim": 8}
    config = PaliGemmaConfig(
        vision_config={**_VISION, "model_type": "siglip_vision_model", "projection_dim": 16},
        text_config=text,
        image_token_index=_IMAGE,
        projection_dim=16,
    )
    processor = TinyProcessor(
        tokenizer, _pixels(), (SIDE // PATCH) ** 2, token_type_ids=torch.zeros_like
    )
    return PaliGemmaForConditionalGeneration(config), processor


_MERGED = 2  # patches a side of an image token of Idefics


def _idefics3(tokenizer: Any, size: int) -> Any:
    """Its own processor cuts pictures into four crops."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 2 * SIDE}, max_image_size={"longest_edge": SIDE}
    )
    tokens = (SIDE // PATCH // _MERGED) ** 2
    processor = Idefics3Processor(images, tokenizer, image_seq_len=tokens)
    config = Idefics3Config(**_idefics_parts(len(tokenizer)))
    return Idefics3ForConditionalGeneration(config), processor


def _smolvlm(tokenizer: Any, size: int) -> Any:
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    model = SmolVLMForConditionalGeneration(SmolVLMConfig(**_idefics_parts(size)))
    return model, TinyProcessor(tokenizer, _pixels(), (SIDE // PATCH // _MERGED) ** 2)


def _idefics_parts(size: int) -> dict[str, Any]:
    return {
        "vision_config": _VISION,
        "text_config": {**_text(size), "model_type": "llama", "num_key_value_heads": 1},
        "scale_factor": _MERGED,
        "image_token_id": _IMAGE,
    }


def _qwen2_vl(tokenizer: Any, size: int) -> Any:
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    cells = SIDE // PATCH
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10_000.0}
    vision = {"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "mlp_ratio": 2}
    config = Qwen2VLConfig(
        text_config=_text(size) | {"num_key_value_heads": 1, "rope_parameters": rope},
        vision_config={**vision, "patch_size": PATCH, "spatial_merge_size": 2},
        image_token_id=_IMAGE,
        video_token_id=size - 1,
        vision_start_token_id=size - 2,
        vision_end_token_id=size - 3,
    )
    processor = TinyProcessor(
        tokenizer,
        _pixels(),
        (cells // 2) ** 2,
        image_grid_thw=lambda ids: torch.tensor([[1, cells, cells]]),
        mm_token_type_ids=lambda ids: (ids == _IMAGE).int(),
    )
    return Qwen2VLForConditionalGeneration(config), processor


def _florence2(tokenizer: Any, size: int) -> Any:
    from transformers import Florence2Config, Florence2ForConditionalGeneration

    text = {"vocab_size": size, "d_model": 16, "max_position_embeddings": 64}
    text |= {f"{part}_layers": 2 for part in ("encoder", "decoder")}
    text |= {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
    text |= {f"{part}_ffn_dim": 24 for part in ("encoder", "decoder")}
    text |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    vision = {
        "depths": (1, 1),
        "embed_dim": (8, 16),
        "num_heads": (1, 2),
        "num_groups": (1, 2),
        "patch_size": (7, 3),
        "patch_stride": (4, 2),
        "patch_padding": (3, 1),
        "patch_prenorm": (False, True),
        "window_size": 2,
        "projection_dim": 16,
        "max_position_embeddings": 8,
    }
    config = Florence2Config(
        text_config={**text, "model_type": "bart"}, vision_config=vision, image_token_id=_IMAGE
    )
    return Florence2ForConditionalGeneration(config), TinyProcessor(tokenizer, _pixels(), 17)


def _pix2struct(tokenizer: Any, size: int) -> Any:
    from transformers import Pix2StructConfig, Pix2StructForConditionalGeneration

    text = {"vocab_size": size, "hidden_size": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2}
    text |= {"num_heads": 2, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2}
    vision = {
        **_WIDTH,
        "patch_embed_hidden_size": 3 * PATCH**2,
        "d_ff": 24,
        "d_kv": 8,
        "seq_len": 32,
    }
    config = Pix2StructConfig(text_config=text, vision_config={**vision, "patch_size": PATCH})
    return Pix2StructForConditionalGeneration(config), (_pixels(), tokenizer)


def _kosmos_2(tokenizer: Any, size: int) -> Any:
    from transformers import Kosmos2Config, Kosmos2ForConditionalGeneration

    queries = 3
    text = {"vocab_size": size, "embed_dim": 16, "layers": 2, "ffn_dim": 24, "attention_heads": 2}
    config = Kosmos2Config(
        text_config=text | {"max_position_embeddings": 128, **_SPECIAL_IDS},
        vision_config=_VISION,
        latent_query_num=queries,
    )
    processor = TinyProcessor(
        tokenizer,
        _pixels(),
        queries,
        image_embeds_position_mask=lambda ids: (ids == _IMAGE).long(),
    )
    return Kosmos2ForConditionalGeneration(config), processor


def _text(size: int) -> dict[str, Any]:
    return {**_TEXT, "vocab_size": size, **_SPECIAL_IDS}


_TINY: dict[str, Callable[[Any, int], Any]] = {
    "vision-encoder-decoder": _vision_encoder_decoder,
    "blip": _blip,
    "git": _git,
    "blip-2": _blip_2,
    "llava": _llava,
    "paligemma": _paligemma,
    "idefics3": _idefics3,
    "smolvlm": _smolvlm,
    "qwen2_vl": _qwen2_vl,
    "florence2": _florence2,
    "pix2struct": _pix2struct,
    "kosmos-2": _kosmos_2,
}
TINY = tuple(_TINY)


def tiny(model_type: str, seed: int = 0) -> tuple[Any, Any]:
    """The model and the processor of a tiny captioner of a family; pictures have `SIDE` pixels."""
    tokenizer = tiny_tokenizer()
    torch.manual_seed(seed)
    model, processor = _TINY[model_type](tokenizer, len(tokenizer))
    with torch.no_grad():  # far enough from nothing that every part tells
        for parameter in model.parameters():
            parameter.mul_(2)
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model.eval(), processor
