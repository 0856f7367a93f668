"""Tampered files of every format that is read, each with the reader that commands read it by."""

import base64
import gzip
import io
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import torch

from attack.brought import brought_files
from attack.huggingface import huggingface_files
from attack.kept import kept_files
from attack.law import Case
from attack.mutation import damage, damage_json, damage_safetensors
from attack.target import Target
from sightline.checkpoint import (
    find_checkpoint,
    load_config,
    load_model,
    load_training,
    save_checkpoint,
)
from sightline.data.boxes import read_boxes
from sightline.data.readers import read_dataset
from sightline.decoding.beam import BeamOptions
from sightline.encoders.precomputed import TsvRegions, read_npz
from sightline.encoders.region_cache import RegionCache
from sightline.encoders.registry import encoder_entry
from sightline.encoders.state_dicts import read_weights
from sightline.encoders.weights import find_weights
from sightline.evaluation.results import results_of
from sightline.evaluation.scorable import read_scorable
from sightline.models.registry import create_model
from sightline.pictures import open_picture
from sightline.recipe import load_recipe
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier, load_classifier, save_classifier
from sightline.support.familiarity import Familiarity, load_familiarity, save_familiarity
from sightline.support.logistic import Logistic
from sightline.support.word_detector import WordDetector
from sightline.text.vocabulary import Vocabulary
from sightline.training.run import Position

SIZES = {"region_width": 4, "word_width": 4, "state_width": 4, "attention_width": 4}


def make_targets(folder: Path) -> dict[str, Target]:
    """Whole files of every format, by name."""
    return {**_captioning(folder), **brought_files(folder / "brought"),
            **kept_files(folder / "kept"), **huggingface_files(folder / "hf")}  # fmt: skip


def _captioning(folder: Path) -> dict[str, Target]:
    """Checkpoints, runs, datasets, caches, features, weights."""
    run = _run(folder)
    checkpoint = run / "step-0000004"
    captions, boxes = _captions(folder)
    cache = _cache(folder)
    features = _features(folder)
    recipe = run / "recipe.yaml"
    state = folder / "vgg11.pth"
    torch.save({"features.0.weight": torch.zeros(2, 2)}, state)
    targets = {
        "config.json": (checkpoint / "config.json", damage_json, partial(_load, checkpoint)),
        "checkpoints.json": (run / "checkpoints.json", damage_json, partial(_load, run)),
        "model": (checkpoint / "model.safetensors", damage, partial(_load, checkpoint)),
        "support": (checkpoint / "support.safetensors", damage_safetensors,
                    partial(load_classifier, checkpoint)),
        "familiarity": (checkpoint / "familiarity.safetensors", damage_safetensors,
                        partial(load_familiarity, checkpoint)),
        "training": (checkpoint / "training.safetensors", damage_safetensors,
                     partial(_resume, checkpoint)),
        "training.json": (checkpoint / "training.json", damage_json, partial(_resume, checkpoint)),
        "recipe": (recipe, damage, partial(load_recipe, recipe)),
        "recipe values": (folder / "recipe.json", damage_json,
                          partial(load_recipe, folder / "recipe.json")),
        "history": (run / "history.jsonl", damage_json, partial(_results, run)),
        "scores": (run / "evaluation-test" / "scores.json", damage_json, partial(_results, run)),
        "rows": (folder / "rows.json", damage_json, partial(results_of, folder / "rows.json")),
        "index": (cache / "index.bin", damage, partial(_regions, cache)),
        "vectors": (cache / "vectors.f16", damage, partial(_regions, cache)),
        "encoder.json": (cache / "encoder.json", damage_json, partial(_regions, cache)),
        "npz": (features / "a.npz", damage, partial(read_npz, features / "a.npz")),
        "tsv": (features / "all.tsv", damage, partial(_table, features / "all.tsv")),
        "weights": (state, damage, partial(_weights, state)),
        **captions,
        **boxes,
    }  # fmt: skip
    return {name: Target(*parts) for name, parts in targets.items()}


def tampering_case(targets: dict[str, Target], seed: int) -> Case:
    """The file of a seed, damaged, read, and put back."""
    name = sorted(targets)[seed % len(targets)]
    make = partial(tampered, targets, seed)
    return Case(f"file {seed} ({name})", partial(_read_instead, targets[name], make))


def saved_case(targets: dict[str, Target], file: Path) -> Case:
    """A file that once broke the law: `NAME--NUMBER`, where NAME is its target's, or `picture`."""
    name = file.name.partition("--")[0]
    if name == "picture":
        return Case(f"saved {file.name}", partial(open_picture, file.read_bytes()))
    target = targets[name]
    return Case(f"saved {file.name}", partial(_read_instead, target, file.read_bytes))


def tampered(targets: dict[str, Target], seed: int) -> bytes:
    """What a seed makes of a file."""
    name = sorted(targets)[seed % len(targets)]
    target = targets[name]
    return target.damage(target.file.read_bytes(), Random(f"{name} {seed}"))


def _read_instead(target: Target, make: Callable[[], bytes]) -> None:
    content, whole = make(), target.file.read_bytes()
    status = target.file.stat()
    try:
        target.file.write_bytes(content)
        target.read()
    finally:
        target.file.write_bytes(whole)
        os.utime(target.file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _load(path: Path) -> None:
    folder = find_checkpoint(path)
    config = load_config(folder)
    load_model(folder, config)
    BeamOptions().changed(config.get("decoding", {}), "decoding")


def _resume(checkpoint: Path) -> None:
    position = Position.from_json(load_training(checkpoint)[1])
    assert position.step >= 0


def _results(run: Path) -> None:
    results_of(run)


def _regions(folder: Path) -> None:
    cache = RegionCache(folder)
    regions = cache.regions(np.arange(len(cache)))
    assert bool(regions.vectors.isfinite().all())


def _table(path: Path) -> None:
    table = TsvRegions(path)
    for name in table:
        assert bool(table[name].vectors.isfinite().all())


def _weights(path: Path) -> None:
    read_weights(find_weights(encoder_entry("vgg11"), path))


def _run(folder: Path) -> Path:
    run = folder / "run"
    words = Vocabulary(["a", "dog", "runs"])
    model = create_model("soft_attention", len(words), 6, SIZES)
    config = {
        "model": {"name": "soft_attention", **SIZES},
        "region_dim": 6,
        "encoder": {"name": "efficientnet_lite0", "stage": "stage4", "size": 64, "fit": "squash"},
        "decoding": {"beam": 4, "length_power": 0.5},
        "training": {"step": 4, "epoch": 1, "seconds": 9, "dev": {"BLEU-4": 0.5}},
        "vocabulary": words.to_json(),
    }
    checkpoint = run / "step-0000004"
    position = Position(step=4, epoch=1).to_json()
    save_checkpoint(checkpoint, model, config, "# card\n", training=position)
    one = Logistic(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    reference = Regions(torch.rand(2, 3, 6), torch.ones(2, 3) > 0, torch.rand(2, 3, 4))
    parts = (torch.zeros(1), torch.zeros(2, 12), torch.zeros(2), torch.zeros(1, 2), torch.zeros(1))
    detector = WordDetector(("dog",), *parts)
    classifier = SupportClassifier(("blank",), one, 0.8, 0.3, reference, detector)
    save_classifier(checkpoint, classifier)
    save_familiarity(checkpoint, Familiarity(torch.zeros(6), 0.5))
    (run / "checkpoints.json").write_text('{"last": "step-0000004", "best": "step-0000004"}')
    recipe = {"data": {"path": "x"}, "optimizer": {"betas": [0.9, 0.99]}, "epochs": 3,
              "model": {"name": "soft_attention", "word_width": 8}, "seed": 1,
              "then": [{"objective": {"name": "self_critical"}, "epochs": 1}]}  # fmt: skip
    for path in (run / "recipe.yaml", folder / "recipe.json"):
        path.write_text(json.dumps(recipe))
    (run / "history.jsonl").write_text(
        '{"step": 2, "nll": 3.5}\n{"step": 4, "dev": {"BLEU-4": 0.5}}\n'
    )
    (run / "evaluation-test").mkdir()
    (run / "evaluation-test" / "scores.json").write_text('{"scores": {"BLEU-4": 0.5}}')
    row = {"run": "r", "model": "m", "objective": "o", "encoder": "e", "parameters": 8, "epochs": 3,
           "seconds": 6, "dev": {}, "test": {"BLEU-4": 0.2}}  # fmt: skip
    (folder / "rows.json").write_text(json.dumps([row]))
    return run


def _captions(folder: Path) -> tuple[dict[str, tuple], dict[str, tuple]]:
    """Caption files and box files."""
    files = {
        "captions.jsonl": [
            {"image": f"{n}.jpg", "captions": ["a dog runs"], "split": "train", "id": n,
             "boxes": [{"label": "dog", "boxes": [[0, 0, 0.5, 0.5]], "caption": 0, "span": [1, 2]}]}
            for n in range(2)
        ],
        "dataset_x.json": {"images": [{"filename": "1.jpg", "split": "val", "cocoid": 1,
                                       "sentences": [{"raw": "a dog runs"}]}]},
        "captions_train.json": {"images": [{"id": 1, "file_name": "1.jpg"}],
                                "annotations": [{"image_id": 1, "caption": "a dog runs"}]},
        "instances.json": {"images": [{"id": 1, "file_name": "1.jpg", "width": 9, "height": 9}],
                           "categories": [{"id": 3, "name": "dog"}],
                           "annotations": [
                               {"image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4]}]},
        "entities.json": {"format": 1, "images": {"1.jpg": {
            "width": 9, "height": 9, "boxes": {"7": [[1, 1, 5, 5]]},
            "sentences": [
                {"text": "a dog runs", "phrases": [{"id": "7", "start": 0, "end": 2}]}]}}},
        "results.json": [{"image_id": 1, "caption": "a dog"}],
    }  # fmt: skip
    paths = {}
    for name, content in files.items():
        paths[name] = folder / name
        is_lines = name.endswith("jsonl")
        lines = [json.dumps(line) for line in content] if is_lines else [json.dumps(content)]
        paths[name].write_text("\n".join(lines))
    token = folder / "Flickr8k.token.txt"
    token.write_text("1.jpg#0\ta dog runs\n1.jpg#1\ta dog\n")
    compact = folder / "entities.json.gz"
    compact.write_bytes(gzip.compress(paths["entities.json"].read_bytes(), mtime=0))
    dataset = read_dataset(paths["captions_train.json"])
    read = {name: (paths[name], damage_json, partial(read_dataset, paths[name]))
            for name in ("captions.jsonl", "dataset_x.json", "captions_train.json")}  # fmt: skip
    read["token.txt"] = (token, damage, partial(read_dataset, token))
    scorable = partial(read_scorable, paths["results.json"], [paths["captions_train.json"]])
    read["results.json"] = (paths["results.json"], damage_json, scorable)
    boxes = {name: (paths[name], damage_json, partial(read_boxes, paths[name], dataset))
             for name in ("instances.json", "entities.json")}  # fmt: skip
    boxes["entities.json.gz"] = (compact, damage, partial(read_boxes, compact, dataset))
    return read, boxes


def _cache(folder: Path) -> Path:
    cache = folder / "cache" / "net"
    cache.mkdir(parents=True)
    (cache / "encoder.json").write_text('{"encoder": {"name": "x"}, "grid": [2, 2], "dim": 3}')
    maker = RegionCache(cache)
    with maker.appending() as append:
        windows = np.array([[0, 0, 1, 1]] * 2, np.float32)
        regions = Regions(torch.rand(2, 4, 3), torch.ones(2, 4) > 0, torch.rand(2, 4, 4))
        append([b"a" * 16, b"b" * 16], regions, windows)
    return cache


def _features(folder: Path) -> Path:
    features = folder / "features"
    features.mkdir()
    vectors, boxes = np.ones((2, 3), np.float32), np.array([[0, 0, 4, 4]] * 2, np.float32)
    stream = io.BytesIO()
    np.savez_compressed(stream, features=vectors, boxes=boxes, image_w=9, image_h=9)
    (features / "a.npz").write_bytes(stream.getvalue())
    coded = [base64.b64encode(array.tobytes()).decode() for array in (boxes, vectors)]
    (features / "all.tsv").write_text("\t".join(["1", "9", "9", "2", *coded]) + "\n")
    return features
