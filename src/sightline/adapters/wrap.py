"""Captioners of transformers, from their parts or from a folder."""

import contextlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL.Image import new as new_image
from torch import Tensor, nn
from torch.nn import functional

from sightline.adapters.encoder import AdaptedEncoder
from sightline.adapters.families import FAMILIES
from sightline.adapters.family import Family
from sightline.adapters.folder import check_folder, check_size
from sightline.adapters.model import AdaptedModel
from sightline.adapters.vocabulary import PieceVocabulary
from sightline.errors import CheckpointError, ConfigError, SightlineError
from sightline.extras import require
from sightline.files import expand

_SPELLED_OUT = {"NewGELUActivation", "FastGELUActivation", "GELUTanh"}
Parts = tuple[AdaptedEncoder, AdaptedModel, PieceVocabulary]


def adapt(model: Any, processor: Any, prompt: str | None = None, size: int | None = None) -> Parts:
    """The encoder, the model and the vocabulary of a transformers captioner.

    `size` is the side of the square that a picture is made, if the captioner takes any shape.

    The model is put into evaluation mode, its parameters are frozen, and its attention is
    computed in plain operations (transformers calls it eager), which explanations can see into.
    """
    family = find_family(model)
    tokenizer, image_processor = parts_of(processor)
    model.eval().requires_grad_(False)
    with _quiet():  # a part that has no other attention says so
        model.set_attn_implementation("eager")
    _name_activations(model)
    encoder = AdaptedEncoder(model, family, image_processor, size)
    inputs, start = _ask(model, family, processor, tokenizer, prompt, encoder)
    end = _end(model, tokenizer)
    adapted = AdaptedModel(model, family, inputs, start, end).eval()
    adapted.to(next(model.parameters()).device)
    size = adapted.vocabulary_size - 4
    return encoder, adapted, PieceVocabulary(tokenizer, size, end, space_first=False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Transformers says less for a while: what is wrong is an error of ours."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def _name_activations(model: nn.Module) -> None:
    """GELUs that transformers spells out are computed by torch's, which LRP has a rule for."""
    for module in model.modules():
        if type(module).__name__ in _SPELLED_OUT:
            module.forward = partial(functional.gelu, approximate="tanh")


def find_family(model: Any) -> Family:
    """The family of a model."""
    model_type = getattr(getattr(model, "config", None), "model_type", None)
    if model_type not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise ConfigError(
            f"{type(model).__name__}: no family of captioners is called '{model_type}'; known "
            f"are {known}"
        )
    return FAMILIES[model_type]


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
    made = processor(images=picture, text=_write(processor, family, prompt), return_tensors="pt")
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


def _write(processor: Any, family: Family, prompt: str) -> str:
    """The prompt as the captioner was taught to be asked."""
    if getattr(processor, "chat_template", None):
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        written: str = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )
        return written
    return family.template.format(prompt=prompt)


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


def load_parts(name: str, prompt: str | None = None) -> Parts:
    """The captioner in a folder of transformers' layout, or of the Hugging Face Hub by its name.

    No code that comes with it is run, and nothing is unpickled.
    """
    require("transformers", "a captioner of transformers")
    import transformers

    folder = expand(name)
    if not folder.is_dir() and (name.startswith((".", "/", "~")) or name.count("/") != 1):
        raise CheckpointError(f"hf:{name}: there is no such folder")
    where = str(folder) if folder.is_dir() else name
    if folder.is_dir():
        check_folder(folder)
    config = _load(where, transformers.AutoConfig)
    named = _class_of(config)
    kind = named or transformers.AutoModelForImageTextToText
    if config.model_type not in FAMILIES:
        raise CheckpointError(
            f"hf:{name}: a model of the type '{config.model_type}'; captioners that Sightline can "
            f"adapt are {', '.join(sorted(FAMILIES))}"
        )
    if folder.is_dir():
        with _one_line(where), _quiet(), torch.device("meta"):
            empty = named(config) if named else kind.from_config(config)
        check_size(folder, empty)
    model = _load(where, kind, dtype=torch.float32, use_safetensors=True)
    if FAMILIES[config.model_type].prompted:
        processor = _load(where, transformers.AutoProcessor)
    else:
        kinds = (transformers.AutoImageProcessor, transformers.AutoTokenizer)
        processor = tuple(_load(where, kind) for kind in kinds)
    with _one_line(where):
        return adapt(model, processor, prompt)


def _class_of(config: Any) -> Any:
    """The class of transformers that a configuration names; None, if it is not there."""
    import transformers

    names = getattr(config, "architectures", None)
    for name in names if isinstance(names, list) else ():
        kind = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind
    return None


def _load(where: str, kind: Any, **options: Any) -> Any:
    """A part of a captioner; what is wrong with it in one line."""
    with _one_line(where), _quiet():
        return kind.from_pretrained(where, trust_remote_code=False, **options)


@contextlib.contextmanager
def _one_line(where: str) -> Iterator[None]:
    """Whatever transformers raises for files that are not as it expects, as one line."""
    try:
        yield
    except (SightlineError, MemoryError):
        raise
    except Exception as error:  # it checks little, so that the error may be of any kind
        reason = " ".join(str(error).split())
        if "trust_remote_code" in reason:
            raise CheckpointError(
                f"hf:{where}: brings Python code of its own (trust_remote_code), which Sightline "
                "never runs, since it could do anything on this machine; use a version of this "
                "captioner that transformers itself knows"
            ) from None
        if not Path(where).is_dir():
            reason = (
                f"is no folder here, and cannot be fetched from the Hugging Face Hub ({reason})"
            )
        raise CheckpointError(f"hf:{where}: {textwrap.shorten(reason, 240)}") from None
