"""How many pictures of other kinds a captioner calls unfamiliar.

    pip install scikit-image
    python benchmarks/unfamiliar.py [--model FOLDER] [--set NAME=FOLDER …]

The kinds are: sample pictures of scikit-image that are no ordinary photographs, sample data of
matplotlib drawn as pictures, matplotlib figures, synthetic scenes and noise. `--set` adds folders
of pictures, such as icons or scanned pages. Familiar pictures are `sightline fit-support --no-fit`.
"""

import argparse
import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import skimage
from matplotlib import colormaps
from PIL import Image

import sightline
from sightline.captioner import Captioner
from sightline.data.scenes import make_scenes
from sightline.errors import PictureError

# Of scikit-image's pictures: not cats, coffee, people, rockets, motorcycles and clocks.
SKIMAGE = (
    *("brick.png", "cell.png", "chessboard_GRAY.png", "chessboard_RGB.png", "coins.png"),
    *("color.png", "grass.png", "gravel.png", "horse.png", "hubble_deep_field.jpg", "ihc.png"),
    *("logo.png", "microaneurysms.png", "moon.png", "page.png", "phantom.png", "retina.jpg"),
    "text.png",
)
ELEVATIONS = {"topobathy.npz": "topo", "jacksboro_fault_dem.npz": "elevation"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="default: the bundled captioner")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    captioner = sightline.load(*[options.model] if options.model else [])
    if captioner.familiarity is None:
        raise SystemExit("the captioner cannot tell: run sightline fit-support on it first")
    sets: dict[str, Sequence[Path | Image.Image]] = {
        "scikit-image's samples": [Path(skimage.__file__).parent / "data" / n for n in SKIMAGE],
        "matplotlib's sample data": matplotlib_samples(),
        "matplotlib figures": matplotlib_figures(60),
        "synthetic scenes": [scene.picture for scene in make_scenes(60, seed=5)],
        "noise": noise(40),
    }
    for given in options.set:
        name, _, folder = given.partition("=")
        sets[name] = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    print("| pictures | number | called unfamiliar |\n| --- | --- | --- |")
    total = []
    for name, pictures in sets.items():
        called = unfamiliar(captioner, pictures)
        total += called
        print(f"| {name} | {len(called)} | {np.mean(called):.0%} |")
    print(f"| all | {len(total)} | {np.mean(total):.0%} |")


def unfamiliar(captioner: Captioner, pictures: Sequence[Path | Image.Image]) -> list[bool]:
    """What the captioner calls each of the pictures that can be read."""
    assert captioner.familiarity is not None
    called: list[bool] = []
    for picture in pictures:
        try:
            encoded = captioner.encode(picture)
        except PictureError as error:
            print(f"skipped: {error}")
            continue
        called += captioner.familiarity.unfamiliar(encoded.regions)
    return called


def matplotlib_samples() -> list[Image.Image]:
    """Logos, a scan of a head, and maps of elevation in three palettes."""
    folder = Path(matplotlib.get_data_path()) / "sample_data"
    pictures = [
        Image.open(folder / name) for name in ("logo2.png", "Minduka_Present_Blue_Pack.png")
    ]
    scan = np.frombuffer(gzip.decompress((folder / "s1045.ima.gz").read_bytes()), np.uint16)
    pictures.append(Image.fromarray((scan.reshape(256, 256) / scan.max() * 255).astype(np.uint8)))
    for name, field in ELEVATIONS.items():
        heights = np.load(folder / name)[field].astype(float)
        levels = (heights - heights.min()) / np.ptp(heights)
        for palette in ("viridis", "gray", "terrain"):
            colours = colormaps[palette](levels)[..., :3]
            pictures.append(Image.fromarray((255 * colours).astype(np.uint8)))
    return pictures


def matplotlib_figures(count: int) -> list[Image.Image]:
    """Contours, box plots, matrices, histograms, lines and stacks, in all of its styles."""
    random = np.random.default_rng(7)
    figures = []
    for number in range(count):
        with plt.style.context(random.choice(plt.style.available)):
            figure, axes = plt.subplots(figsize=(4, random.uniform(2.5, 4)))
            match number % 6:
                case 0:
                    axes.contourf(np.cumsum(random.normal(size=(20, 20)), 0))
                case 1:
                    axes.boxplot([random.normal(size=30) for _ in range(5)])
                case 2:
                    axes.imshow(random.normal(size=(8, 8)))
                case 3:
                    axes.hist(random.normal(size=500), bins=30)
                case 4:
                    axes.plot(np.cumsum(random.normal(size=(100, 3)), 0), label=["a", "b", "c"])
                    axes.legend()
                case _:
                    axes.stackplot(range(20), random.uniform(size=(4, 20)))
            content = io.BytesIO()
            figure.savefig(content, dpi=80)
            plt.close(figure)
        figures.append(Image.open(content))
    return figures


def noise(count: int) -> list[Image.Image]:
    """Every pixel by chance, in grey and in colour."""
    random = np.random.default_rng(3)
    shapes = ((256, 256), (256, 256, 3))
    return [
        Image.fromarray(random.integers(0, 256, shapes[number % 2], dtype=np.uint8))
        for number in range(count)
    ]


if __name__ == "__main__":
    main()
