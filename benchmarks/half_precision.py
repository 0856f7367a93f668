"""Whether the weights of a captioner may be rounded to half precision: does it say the same?

    python benchmarks/half_precision.py FLICKR8K_FOLDER [--model FOLDER] [--split test] [--draws 2]

The weights that a packed captioner was rounded from are not kept. So captioners in full precision
are drawn that would be rounded to just these weights, each number anywhere within half a unit of
its last place, and their captions are compared with its own.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from sightline.captioner import Captioner
from sightline.checkpoint import find_checkpoint
from sightline.data.readers import read_dataset
from sightline.memory import keep_freed_memory
from sightline.progress import progress

BATCH = 25  # pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    keep_freed_memory()
    pictures = [image.picture for image in read_dataset(options.dataset).split(options.split)]
    packed = find_checkpoint(options.model)
    rounded = captions(packed, pictures)
    for draw in range(1, options.draws + 1):
        with tempfile.TemporaryDirectory() as folder:
            unround(packed, Path(folder), draw)
            said = captions(Path(folder), pictures)
        same = sum(before == after for before, after in zip(rounded, said, strict=True))
        print(f"draw {draw}: the same for {same} of {len(pictures)}")


def captions(model: Path, pictures: list[Path]) -> list[str]:
    """What a captioner says of the pictures."""
    captioner, said = Captioner.load(model), []
    batches = range(0, len(pictures), BATCH)
    for first in progress(batches, "captioning", total=len(batches), unit="group"):
        said += [caption.text for caption in captioner.caption(pictures[first : first + BATCH])]
    return said


def unround(packed: Path, folder: Path, seed: int) -> None:
    """A copy of a captioner in full precision that would be rounded to it."""
    shutil.copytree(packed, folder, dirs_exist_ok=True)
    random = torch.Generator().manual_seed(seed)
    for path in folder.glob("*.safetensors"):
        if path.stem not in ("model", "encoder"):
            continue
        weights = load_file(path)
        for name, weight in weights.items():
            if weight.dtype == torch.float16:
                above = torch.nextafter(weight.abs(), torch.tensor(float("inf")).half())
                unit = above.float() - weight.abs().float()
                noise = torch.rand(weight.shape, generator=random) - 0.5
                weights[name] = weight.float() + 0.99 * noise * unit
        save_file(weights, path)


if __name__ == "__main__":
    main()
