"""Runs of the tiny recipe in every regime: started as processes, compared byte by byte."""

import os
import subprocess
import sys
from pathlib import Path

from sightline.checkpoint import read_pointers

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(recipe: Path, run: Path, *overrides: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "sightline", "train", str(recipe), *overrides]
    return subprocess.Popen([*command, "--run", str(run)], env=ENVIRONMENT, stderr=subprocess.PIPE)


REGIMES = {
    "cross_entropy": (),
    "some captions": ("batch.captions=2", "batch.sort=true"),
    "reinforce": ("model.name=hard_attention", "objective={name: variational}"),
    "then self_critical": (
        "epochs=2",
        "then=[{objective: {name: self_critical, samples: 2, max_length: 8}, epochs: 2}]",
    ),
    "then lrp_inference": ("epochs=2", "then=[{objective: {name: lrp_inference}, steps: 12}]"),
    "aligned": (
        "model={name: aligned_transformer, width: 16, heads: 2, encoder_layers: 1, "
        "decoder_layers: 1, feed_forward: 16, alignment: {fusion: decay}}",
        "objective={name: aligned}",
    ),
    "then adversarial": (
        "model={name: hierarchical, region_width: 8, word_width: 8, worker_width: 8, "
        "manager_width: 8, attention_width: 8, discriminator_width: 8, dropout: 0.2}",
        "objective={name: discriminated}",
        "epochs=2",
        "then=[{objective: {name: adversarial, rollouts: 1}, epochs: 2}]",
    ),
    "then trained encoder, averaged": (
        "epochs=2",
        "optimizer.average=0.9",
        "then=[{objective: {name: cross_entropy}, epochs: 2, encoder: {train_from: stage4}}]",
    ),
    "then trained encoder, of cuts": (
        "epochs=2",
        "data.mirror=true",
        "then=[{objective: {name: cross_entropy}, epochs: 2, "
        "encoder: {train_from: stage4, random_cut: 0.5}}]",
    ),
}


def assert_same_run(run: Path, whole: Path) -> None:
    pointers = read_pointers(whole)
    assert read_pointers(run) == pointers
    for name in set(pointers.values()):
        files = sorted(path.name for path in (whole / name).glob("*.safetensors"))
        assert files[-2:] == ["model.safetensors", "training.safetensors"]
        for file in files:
            assert (run / name / file).read_bytes() == (whole / name / file).read_bytes()
    assert (run / "history.jsonl").read_bytes() == (whole / "history.jsonl").read_bytes()
    assert len((whole / "history.jsonl").read_text().splitlines()) == 24 // 3 + 2
