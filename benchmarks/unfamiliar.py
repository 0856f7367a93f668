"""How many pictures of other kinds a captioner calls unfamiliar.

    pip install scikit-image
    python benchmarks/unfamiliar.py [--model FOLDER] [--set NAME=FOLDER …]

The kinds are: sample pictures of scikit-image that are no ordinary photographs, sample data of
matplotlib drawn as pictures, matplotlib figures, synthetic scenes, noise, the icons of matplotlib's
toolbar, and pages of text: chapters of Python's own help, in fonts and layouts that no fit has
seen. `--set` adds folders of pictures, such as scanned pages. What is counted is what a user is
told (`Caption.unfamiliar`). Familiar pictures are `sightline fit-support --no-fit`.
"""

import argparse
import gzip
import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import skimage
from matplotlib import colormaps
from PIL import Image, ImageDraw, ImageFont

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
FACES = (  # of matplotlib's fonts: those of a page, and of its heading
    ("DejaVuSerif", "DejaVuSans-Bold"),
    ("STIXGeneral", "STIXGeneralBol"),
    ("DejaVuSansMono", "DejaVuSerif-Bold"),
    ("cmr10", "cmb10"),
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
        "icons": sorted((Path(matplotlib.get_data_path()) / "images").glob("*.png")),
        "pages of text": pages(60),
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
    """Of each of the pictures that can be read whether its caption comes with a warning."""
    called: list[bool] = []
    for picture in pictures:
        try:
            called.append(bool(captioner.caption(picture).unfamiliar))
        except PictureError as error:
            print(f"skipped: {error}")
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


def pages(count: int) -> list[Image.Image]:
    """Portrait pages at about 70 dpi: a heading, then chapters of Python's help in columns."""
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    random = np.random.default_rng(11)
    chapters = [topics[name] for name in sorted(topics) if len(topics[name]) > 5000]
    pictures = []
    for number in range(count):
        body, heading = FACES[number % len(FACES)]
        size, columns = int(random.integers(8, 13)), 1 + number % 2
        font = ImageFont.truetype(fonts / f"{body}.ttf", size)
        picture = Image.new("RGB", (580, 820), tuple(random.integers(235, 256, 3).tolist()))
        draw = ImageDraw.Draw(picture)
        title, _, text = chapters[number % len(chapters)].partition("\n")
        large = ImageFont.truetype(fonts / f"{heading}.ttf", 2 * size)
        draw.text((45, 35), title, "black", large)
        width = (500 - 20 * (columns - 1)) // columns
        letters = int(width / font.getlength("n"))
        lines = [
            line
            for paragraph in text.split("\n\n")[1:]
            for line in (*textwrap.wrap(paragraph, letters), "")
        ]
        fitting = int(680 / (1.3 * size))
        for column in range(columns):
            for row, line in enumerate(lines[column * fitting : (column + 1) * fitting]):
                at = (45 + column * (width + 20), 90 + 1.3 * size * row)
                draw.text(at, line, "black", font)
        draw.text((285, 790), str(number + 1), "black", font)
        pictures.append(picture)
    return pictures


if __name__ == "__main__":
    main()
