"""A captioner of transformers' in a folder."""

import pytest

from sightline.adapters.tiny import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("captioners") / "tiny"
    model, (image_processor, tokenizer) = tiny("blip")
    for part in (model, image_processor, tokenizer):
        part.save_pretrained(path)
    return path
