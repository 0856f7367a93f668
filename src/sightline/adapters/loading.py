"""Captioners of transformers from a folder, or from the Hugging Face Hub."""

import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from sightline.adapters.families import FAMILIES
from sightline.adapters.folder import check_folder, check_size
from sightline.adapters.quiet import quiet
from sightline.adapters.source import Source
from sightline.adapters.wrap import Parts, adapt
from sightline.errors import CheckpointError, SightlineError
from sightline.extras import require


def load_parts(name: str, prompt: str | None = None) -> Parts:
    """The captioner in a folder of transformers' layout, or of the Hugging Face Hub by its name.

    No code that comes with it is run, and nothing is unpickled.
    """
    require("transformers", "a captioner of transformers")
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    source = Source(name)
    source.require_folder()
    folder = source.folder
    where = name if folder is None else str(folder)
    if folder is not None:
        check_folder(folder)
    config = _load(where, transformers.AutoConfig)
    named = _class_of(config)
    kind = named or transformers.AutoModelForImageTextToText
    family = FAMILIES.get(config.model_type)
    if family is None and config.model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        raise CheckpointError(
            f"hf:{name}: a model of the type '{config.model_type}', which makes no text of pictures"
        )
    if folder is not None:
        with _one_line(where), quiet(), torch.device("meta"):
            empty = named(config) if named else kind.from_config(config)
        check_size(folder, empty)
    model = _load(where, kind, dtype=torch.float32, use_safetensors=True)
    if family is None or family.prompted:
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
    with _one_line(where), quiet():
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
