"""CLIPScore, RefCLIPScore and PAC-S on tiny random weights, against the papers' arithmetic."""

import csv
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from sightline.cli.score import command
from sightline.errors import DataError, PictureError, WeightsError
from sightline.metrics import clipscore
from sightline.metrics.scoring import score

CANDIDATES = ["a red dog", "two cats", "a dog runs on the grass"]
REFERENCES = [["a dog"], ["cats", "two cats sit on grass"], ["the dog runs"]]
SIDE = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small untrained CLIP."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("models") / "tiny-clip"
    texts = ["A photo depicts", *CANDIDATES, *(text for texts in REFERENCES for text in texts)]
    words = sorted({word for text in texts for word in text.split()})
    ids = {word: n for n, word in enumerate(["<pad>", "<start>", "<unk>", *words, "<end>"])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>",
        special_tokens=[("<start>", ids["<start>"]), ("<end>", ids["<end>"])],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<end>"
    ).save_pretrained(path)
    torch.manual_seed(0)
    shared = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    shared |= {"num_attention_heads": 2}
    config = CLIPConfig(
        text_config={
            **shared,
            "vocab_size": len(ids),
            "max_position_embeddings": 12,
            "eos_token_id": ids["<end>"],
            "bos_token_id": ids["<start>"],
            "pad_token_id": ids["<pad>"],
        },
        vision_config={**shared, "image_size": SIDE, "patch_size": 8},
        projection_dim=8,
    )
    model = CLIPModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # loud enough to tell captions apart
    model.save_pretrained(path)
    (path / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]})
    )
    return path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    random = np.random.default_rng(0)
    shapes = ((SIDE, SIDE), (40, 24), (20, 50))
    return [Image.fromarray(random.integers(0, 255, (*s, 3), np.uint8)) for s in shapes]


def vectors(folder, pictures):
    """Each picture and each caption by itself, through the towers and projections of the model."""
    from transformers import AutoTokenizer, CLIPModel

    model = CLIPModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def of_text(text):
        ids = torch.tensor([tokenizer(f"A photo depicts {text}")["input_ids"]])
        with torch.no_grad():
            vector = model.text_projection(model.text_model(input_ids=ids).pooler_output)[0]
        return vector.numpy() / np.linalg.norm(vector.numpy())

    def of_picture(picture):
        width, height = picture.size
        factor = SIDE / min(width, height)
        small = picture.resize((round(width * factor), round(height * factor)), Image.BICUBIC)
        pixels = np.asarray(small, np.float64) / 255
        top, left = (pixels.shape[0] - SIDE) // 2, (pixels.shape[1] - SIDE) // 2
        pixels = pixels[top : top + SIDE, left : left + SIDE]
        pixels = (pixels - [0.4, 0.5, 0.6]) / [0.2, 0.3, 0.4]
        values = torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32)
        with torch.no_grad():
            seen = model.visual_projection(model.vision_model(pixel_values=values).pooler_output)
        return seen[0].numpy() / np.linalg.norm(seen[0].numpy())

    return of_text, [of_picture(picture) for picture in pictures]


@pytest.mark.parametrize(("name", "scale"), [("CLIPScore", 2.5), ("PAC-S", 2.0)])
def test_it_is_the_papers_arithmetic(folder, pictures, name, scale) -> None:
    plain, with_references = clipscore(CANDIDATES, REFERENCES, pictures, folder, name=name)
    of_text, seen = vectors(folder, pictures)
    signs = set()
    for n, (caption, references) in enumerate(zip(CANDIDATES, REFERENCES, strict=True)):
        cosine = float(of_text(caption) @ seen[n])
        signs.add(cosine > 0)
        fit = scale * max(cosine, 0)
        agree = max(max(float(of_text(caption) @ of_text(text)) for text in references), 0)
        assert plain.per_image[n] == pytest.approx(fit, abs=1e-5)
        both = 2 * fit * agree / (fit + agree) if fit + agree else 0
        assert with_references.per_image[n] == pytest.approx(both, abs=1e-5)
    assert True in signs
    assert plain.name == f"{name} (tiny-clip w={scale:g})"
    assert with_references.name == f"Ref{name} (tiny-clip w={scale:g})"
    assert plain.corpus == pytest.approx(plain.per_image.mean())


def test_without_references_there_is_one_score(folder, pictures) -> None:
    scores = clipscore(CANDIDATES, [[], [], []], pictures, folder)
    assert [each.name for each in scores] == ["CLIPScore (tiny-clip w=2.5)"]
    again = score(CANDIDATES, REFERENCES, ["pac-s"], pictures=pictures, clip=folder)
    assert list(again) == ["PAC-S (tiny-clip w=2)", "RefPAC-S (tiny-clip w=2)"]


def test_what_is_missing_is_one_line(folder, pictures, tmp_path) -> None:
    with pytest.raises(DataError, match="clipscore needs the pictures, and the folder"):
        score(CANDIDATES, REFERENCES, ["clipscore"])
    with pytest.raises(DataError, match="do not correspond"):
        clipscore(CANDIDATES, REFERENCES, pictures[:2], folder)
    with pytest.raises(DataError, match="nothing to score"):
        clipscore([], [], [], folder)
    with pytest.raises(WeightsError, match="not a model folder"):
        clipscore(CANDIDATES, REFERENCES, pictures, tmp_path)
    with pytest.raises(PictureError):
        clipscore(["a dog"], [[]], [tmp_path / "nothing.jpg"], folder)


def test_the_command_scores_with_and_without_references(folder, pictures, tmp_path) -> None:
    for n, picture in enumerate(pictures):
        picture.save(tmp_path / f"{n}.png")
    names = [f"{n}.png" for n in range(3)]
    with (tmp_path / "captions.csv").open("w", newline="") as file:
        rows = zip(names, CANDIDATES, strict=True)
        csv.writer(file).writerows([("image", "caption"), *rows])
    for file, texts in (("results", [[text] for text in CANDIDATES]), ("references", REFERENCES)):
        lines = [
            json.dumps({"image": name, "captions": of}) + "\n"
            for name, of in zip(names, texts, strict=True)
        ]
        (tmp_path / f"{file}.jsonl").write_text("".join(lines))
    options = ["--metrics", "clipscore", "--clip", folder, "--images", tmp_path, "--json"]

    def run(*arguments):
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    alone = run(tmp_path / "captions.csv", *options)
    assert alone.exit_code == 0, alone.output
    both = run(tmp_path / "results.jsonl", "--refs", tmp_path / "references.jsonl", *options)
    assert both.exit_code == 0, both.output
    plain, with_references = clipscore(CANDIDATES, REFERENCES, pictures, folder)
    scores = json.loads(both.stdout)["scores"]
    assert scores == pytest.approx(
        {plain.name: plain.corpus, with_references.name: with_references.corpus}
    )
    assert json.loads(alone.stdout)["scores"] == pytest.approx({plain.name: plain.corpus})
    refused = run(tmp_path / "captions.csv", "--metrics", "bleu")
    assert refused.exit_code == 2
    assert "--refs" in refused.output
    refused = run(tmp_path / "captions.csv", "--metrics", "clipscore")
    assert "--clip" in str(refused.exception)
