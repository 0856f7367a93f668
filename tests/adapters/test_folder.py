"""A folder of transformers' layout is looked at before transformers builds what it describes."""

import json

import pytest

import sightline
from sightline.errors import CheckpointError


@pytest.mark.parametrize(
    ("keys", "value", "says"),
    [
        (("text_config", "num_hidden_layers"), 10**9, "'num_hidden_layers' must be at most 512"),
        (("text_config", "vocab_size"), 10**6, "describes a captioner of"),
        (("vision_config", "image_size"), 10**12, "'image_size' must be at most"),
        (("architectures",), ["os"], None),  # as if it named none
    ],
)
def test_what_is_described_is_no_larger_than_its_weights(folder, keys, value, says):
    path = folder / "config.json"
    whole = path.read_text()
    config = part = json.loads(whole)
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(json.dumps(config))
    try:
        if says is None:
            assert len(sightline.load(f"hf:{folder}").vocabulary) > 4
        else:
            with pytest.raises(CheckpointError, match=says):
                sightline.load(f"hf:{folder}")
    finally:
        path.write_text(whole)


def test_a_folder_that_is_whole_is_loaded(folder):
    assert len(sightline.load(f"hf:{folder}").vocabulary) > 4
