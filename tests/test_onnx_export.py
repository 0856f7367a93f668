"""ONNX: the graphs give what torch gives, for any number of pictures and rows."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sightline.captioner import Captioner
from sightline.onnx_export import export_onnx

pytestmark = pytest.mark.process  # the exporter takes half a minute

EXAMPLE = Path(__file__).parents[1] / "examples" / "onnx_caption.py"


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory) -> tuple[Captioner, Path]:
    captioner = Captioner.load(checkpoint, device="cpu")
    folder = tmp_path_factory.mktemp("onnx")
    export_onnx(captioner, folder)
    return captioner, folder


def session(path: Path):
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(graph, **given):
    names = {node.name for node in graph.get_inputs()}
    outputs = graph.run(None, {name: value for name, value in given.items() if name in names})
    return dict(zip([node.name for node in graph.get_outputs()], outputs, strict=True))


@pytest.mark.parametrize("pictures", [1, 3])
def test_parity_with_torch(exported, pictures):
    captioner, folder = exported
    model, size = captioner.model, captioner.encoder.preprocessing.size
    pixels = torch.randint(0, 256, (pictures, size, size, 3), dtype=torch.uint8)
    card = json.loads((folder / "captioner.json").read_text("utf-8"))
    with torch.no_grad():
        windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(pictures, 4)
        regions = captioner.encoder(pixels, windows)
        memory = model.encode(regions)
        state = model.start(memory)
    given = run(session(folder / "encoder.onnx"), pixels=pixels.numpy())
    grid = captioner.encoder.grid
    assert given["memory_keys"].shape[1] == grid[0] * grid[1]
    for name, tensor in memory.items():
        np.testing.assert_allclose(given[f"memory_{name}"], tensor, atol=1e-4, rtol=1e-4)
    step = session(folder / "step.onnx")
    tokens = torch.full((pictures, 1), card["start"])
    for rows in (1, 4, 4):
        tokens = tokens[:, :1].expand(-1, rows)
        state = {name: tensor[:, :1].expand(-1, rows, -1) for name, tensor in state.items()}
        given |= {name: given[name][:, :1].repeat(rows, 1) for name in card["state"]}
        with torch.no_grad():
            expected = model.step(tokens, state, memory)
        outputs = run(step, tokens=tokens.numpy(), **given)
        np.testing.assert_allclose(outputs["logits"], expected.logits, atol=1e-4)
        np.testing.assert_allclose(outputs["attention"], expected.attention, atol=1e-4)
        given |= {name: outputs[f"next_{name}"] for name in card["state"]}
        state, tokens = expected.state, expected.logits.argmax(-1)


def said_by_example(folder: Path, picture: Path) -> str:
    command = [sys.executable, EXAMPLE, folder, picture]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_example_captions_without_torch(exported, examples):
    captioner, folder = exported
    picture = examples / "cat.jpg"
    assert said_by_example(folder, picture) == captioner.caption(picture, beam=1).text
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 45
    assert "torch" not in EXAMPLE.read_text("utf-8").split('"""')[2]


@pytest.mark.parametrize("fit", ["squash", "crop"])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_the_example_sees_and_says_what_the_captioner_does(
    exported, examples, tmp_path, monkeypatch, fit, n
):
    captioner, folder = exported
    # (Not a JPEG, which the captioner decodes at a fraction of its size.)
    with Image.open(examples / "palace.jpg") as picture:
        picture.save(tmp_path / "palace.png")
    for name in ("encoder.onnx", "step.onnx"):
        (tmp_path / name).symlink_to(folder / name)
    card = json.loads((folder / "captioner.json").read_text("utf-8"))
    (tmp_path / "captioner.json").write_text(json.dumps(card | {"fit": fit, "no_repeat_ngram": n}))
    preprocessing = dataclasses.replace(captioner.encoder.preprocessing, fit=fit)
    monkeypatch.setattr(captioner.encoder, "preprocessing", preprocessing)
    caption = captioner.caption(tmp_path / "palace.png", beam=1, no_repeat_ngram=n)
    assert said_by_example(tmp_path, tmp_path / "palace.png") == caption.text


def test_the_example_says_what_the_bundled_captioner_does(examples, tmp_path):
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    captioner = Captioner.load(device="cpu")
    export_onnx(captioner, tmp_path)
    picture = examples / "cat.jpg"
    assert said_by_example(tmp_path, picture) == captioner.caption(picture, beam=1).text
