"""Captioners of transformers as captioners of ours."""

import inspect
from functools import partial
from typing import Any

import torch
from PIL.Image import new as new_image
from torch import Tensor, nn
from torch.nn import functional

from sightline.adapters.black_box import BlackBoxModel
from sightline.adapters.encoder import AdaptedEncoder, side_of
from sightline.adapters.families import DESCRIBE, FAMILIES
from sightline.adapters.family import Family
from sightline.adapters.model import AdaptedModel
from sightline.adapters.piece_ids import PieceIds
from sightline.adapters.pixel_encoder import PixelEncoder
from sightline.adapters.quiet import quiet
from sightline.adapters.vocabulary import PieceVocabulary
from sightline.errors import ConfigError
from sightline.text.vocabulary import SPECIAL

_SPELLED_OUT = {"NewGELUActivation", "FastGELUActivation", "GELUTanh"}
WhiteBox = tuple[AdaptedEncoder, AdaptedModel, PieceVocabulary]
BlackBox = tuple[PixelEncoder, BlackBoxModel, PieceVocabulary]
Parts = WhiteBox | BlackBox


def adapt(model: Any, processor: Any, prompt: str | None = None, size: int | None = None) -> Parts:
    """The encoder, the model and the vocabulary of a transformers captioner.

    One of a family that Sightline knows is seen into; any other is a black box. `size` is the side
    of the square that a picture is made, if the captioner takes any shape.
    """
    model_type = getattr(getattr(model, "config", None), "model_type", None)
    if model_type in FAMILIES:
        return see_into(model, processor, prompt, size)
    return black_box(model, processor, prompt)


def see_into(
    model: Any, processor: Any, prompt: str | None = None, size: int | None = None
) -> WhiteBox:
    """A captioner of a family.

    The model is put into evaluation mode, its parameters are frozen, and its attention is
    computed in plain operations (transformers calls it eager), which explanations can see into.
    """
    family = FAMILIES[model.config.model_type]
    tokenizer, image_processor = parts_of(processor)
    model.eval().requires_grad_(False)
    with quiet():  # a part that has no other attention says so
        model.set_attn_implementation("eager")
    _name_activations(model)
    encoder = AdaptedEncoder(model, family, image_processor, size)
    inputs, start = _ask(model, family, processor, tokenizer, prompt, encoder)
    end = _end(model, tokenizer)
    adapted = AdaptedModel(model, family, inputs, start, end).eval()
    adapted.to(next(model.parameters()).device)
    size = adapted.vocabulary_size - len(SPECIAL)
    if not all(0 <= number < size for number in (*start.tolist(), end)):
        raise ConfigError(f"{type(model).__name__}: captions begin or end with an unknown word")
    return encoder, adapted, PieceVocabulary(tokenizer, size, end, space_first=False)


def black_box(model: Any, processor: Any, prompt: str | None = None) -> BlackBox:
    """A captioner of any architecture that makes text of a picture. Nothing in it is changed."""
    if not callable(getattr(model, "get_output_embeddings", None)):
        raise ConfigError(f"{type(model).__name__}: is no captioner of transformers")
    tokenizer, image_processor = parts_of(processor)
    model.eval().requires_grad_(False)
    decodes = bool(getattr(model.config, "is_encoder_decoder", False))
    begin, end = _start(model, tokenizer), _end(model, tokenizer)
    if isinstance(processor, tuple | list):  # nobody else writes the prompt
        words = tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
        asked: Any = (image_processor, None if decodes else torch.tensor([[begin, *words]]))
        text = ""
    else:
        place = getattr(processor, "image_token", None) or getattr(tokenizer, "image_token", None)
        template = f"{place}\n{{prompt}}" if place else "{prompt}"
        asked, text = processor, _write(processor, template, DESCRIBE if prompt is None else prompt)
    encoder = PixelEncoder(model.config.model_type, side_of(image_processor))
    ids = PieceIds.of(model.config, end)
    start = begin if decodes else None
    adapted = BlackBoxModel(model, asked, text, start, ids, encoder.cell).eval()
    device = next(model.parameters()).device
    size = adapted.vocabulary_size - len(SPECIAL)
    return (
        encoder.to(device),
        adapted.to(device),
        PieceVocabulary(tokenizer, size, end, space_first=False),
    )


def _name_activations(model: nn.Module) -> None:
    """GELUs that transformers spells out are computed by torch's, which LRP has a rule for."""
    for module in model.modules():
        if type(module).__name__ in _SPELLED_OUT:
            module.forward = partial(functional.gelu, approximate="tanh")


def parts_of(processor: Any) -> tuple[Any, Any]:
    """The tokenizer and the image processor of a processor, or of a pair of them."""
    pair = processor if isinstance(processor, tuple | list) else (processor, processor)
    tokenizer = next(
        (getattr(p, "tokenizer", p) for p in pair if _has(p, "tokenizer", "decode")), None
    )
    image_processor = next(
        (getattr(p, "image_processor", p) for p in pair if _has(p, "image_processor", "resize")),
        None,
    )
    if tokenizer is None or image_processor is None:
        raise ConfigError(
            "wrap: give the captioner's processor, or a pair of its image processor and its "
            "tokenizer"
        )
    return tokenizer, image_processor


def _has(part: Any, holder: str, method: str) -> bool:
    return getattr(part, holder, None) is not None or (
        hasattr(part, method) and not hasattr(part, "attributes")
    )


def _ask(
    model: Any,
    family: Family,
    processor: Any,
    tokenizer: Any,
    prompt: str | None,
    encoder: AdaptedEncoder,
) -> tuple[dict[str, Tensor], Tensor]:
    """What the prompt makes of the model's inputs, and the word ids that captions follow."""
    prompt = family.prompt if prompt is None else prompt
    begin = _start(model, tokenizer)
    if not family.prompted:
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
        return {}, torch.tensor([begin, *ids])
    side = encoder.preprocessing.size
    picture = new_image("RGB", (side, side), "gray")
    options = {"size": {"longest_edge": side}} if family.crops else {}
    text = _write(processor, family.template, prompt)
    made = processor(images=picture, text=text, return_tensors="pt", **options)
    accepted = inspect.signature(model.forward).parameters
    inputs = {
        name: tensor
        for name, tensor in made.items()
        if name in accepted and name not in (family.pixel_input, "pixel_attention_mask")
    }
    if family.decodes:
        return inputs, torch.tensor([begin])
    ids = inputs.pop("input_ids")[0]
    return inputs, ids


def _write(processor: Any, template: str, prompt: str) -> str:
    """The prompt as the captioner was taught to be asked."""
    if getattr(processor, "chat_template", None):
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        written: str = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )
        return written
    return template.format(prompt=prompt)


def _start(model: Any, tokenizer: Any) -> int:
    """The id that captions begin with."""
    configs = [model.generation_config, model.config, model.config.get_text_config(decoder=True)]
    names = ("decoder_start_token_id", "bos_token_id")
    for name in names:
        for config in configs:
            if isinstance(number := getattr(config, name, None), int):
                return number
    for number in (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id):
        if isinstance(number, int):
            return number
    raise ConfigError(f"{type(model).__name__}: neither it nor its tokenizer says how text begins")


def _end(model: Any, tokenizer: Any) -> int:
    """The id that captions end with."""
    configs = [model.generation_config, model.config.get_text_config(decoder=True), tokenizer]
    for config in configs:
        number = getattr(config, "eos_token_id", None)
        number = number[0] if isinstance(number, list | tuple) and number else number
        if isinstance(number, int):
            return number
    raise ConfigError(f"{type(model).__name__}: neither it nor its tokenizer says how text ends")
