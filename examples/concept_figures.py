"""The figures of the pages on concepts (docs/concepts).

    python examples/concept_figures.py lrp
    python examples/concept_figures.py support
    sightline train scenes/aligned_transformer --run runs/aligned
    python examples/concept_figures.py alignment --run runs/aligned

Each writes docs/concepts/NAME.png. The first two are of the bundled captioner.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

import sightline
from sightline.data.scenes import make_scenes
from sightline.decoding.words import with_start
from sightline.files import atomic_write
from sightline.models.transformer import Transformer
from sightline.text.stop_words import is_content

HERE = Path(__file__).parent
FOLDER = HERE.parent / "docs" / "concepts"
COLOURS = {"picture": "#d95f02", "words before": "#1f78b4", "constants": "#999999", "ε": "#dddddd"}
VERDICTS = {"seen": "#1b7837", "doubtful": "#b8860b", "not supported": "#b2182b"}


def draw_lrp(options: argparse.Namespace) -> Figure:
    """Where the score of each word comes from, and the way of one word down to the pixels."""
    captioner = sightline.load()
    caption = captioner.caption(options.picture)
    account = captioner.explain(options.picture, caption, method="lrp")
    figure = Figure((11, 3.6), layout="constrained")
    bars, regions, pixels = figure.subplots(1, 3, width_ratios=[2.2, 1, 1])
    parts = {
        "picture": [why.image_relevance for why in account],
        "words before": [why.language_relevance for why in account],
        "constants": [why.bias for why in account],
        "ε": [why.epsilon for why in account],
    }
    places = np.arange(len(account))
    above, below = np.zeros(len(account)), np.zeros(len(account))
    for name, values in parts.items():
        heights = np.array(values)
        bars.bar(places, heights, bottom=np.where(heights > 0, above, below), color=COLOURS[name])
        above, below = above + heights.clip(min=0), below + heights.clip(max=0)
    bars.plot(places, [why.total for why in account], "k_", markersize=22, markeredgewidth=2)
    handles = [bars.bar(0, 0, color=colour) for colour in COLOURS.values()]
    bars.legend(handles, list(COLOURS), fontsize=8, frameon=False, ncols=4, loc="upper right")
    bars.set_ylim(top=1.15 * above.max())
    bars.set_xticks(places, [why.word for why in account], rotation=30)
    bars.set_title("The parts add up to the word's score (black)", fontsize=10)
    bars.spines[["top", "right"]].set_visible(False)
    place = max(
        (number for number in places if is_content(account[number].word)),
        key=lambda number: account[number].image_share,
    )
    (shown,) = captioner.explain(options.picture, caption, words=[int(place)], method="lrp")
    grid = shown.regions.reshape(captioner.encoder.grid)
    for panel, values, title in (
        (regions, grid, f"“{shown.word}”: relevance of the regions"),
        (pixels, shown.heatmap, "and of the pixels"),
    ):
        limit = np.percentile(np.abs(values), 99.5)
        panel.imshow(values, cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
        panel.set_title(title, fontsize=10)
        panel.set_axis_off()
    return figure


def draw_support(options: argparse.Namespace) -> Figure:
    """The support of every checked word in the captions of the example photographs."""
    captioner = sightline.load()
    pictures = [*sorted(HERE.glob("*.jpg")), *sorted((HERE / "others").glob("*.jpg"))]
    rows = []
    for path in pictures[:8]:
        picture = captioner.encode(captioner.open(path))
        caption = captioner.check(picture, captioner.caption(picture))
        rows.append((path.stem, [word for word in caption.words if word.support is not None]))
    figure = Figure((9, 0.75 * len(rows) + 0.8), layout="constrained")
    panel = figure.subplots()
    for row, (_, words) in enumerate(rows):
        for number, word in enumerate(sorted(words, key=lambda word: word.support.score)):
            colour = VERDICTS[word.support.verdict]
            height = row + (0.17, -0.17, 0.34)[number % 3]
            panel.plot(word.support.score, row, "o", color=colour)
            panel.annotate(
                word.text, (word.support.score, height), ha="center", va="center", color=colour
            )
    panel.set_yticks(range(len(rows)), [name for name, _ in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlim(0, 1.04)
    panel.set_xlabel("support: how often a word with such scores is right")
    for verdict, colour in VERDICTS.items():
        panel.plot([], [], "o", color=colour, label=verdict)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    return figure


def draw_alignment(options: argparse.Namespace) -> Figure:
    """For the shapes that a caption names: attention, mask and aligned attention."""
    captioner = sightline.load(options.run)
    model = captioner.model
    if not isinstance(model, Transformer):
        raise SystemExit(f"{options.run}: not a Transformer")
    scenes = make_scenes(40, seed=77)
    scene, caption, named = next(
        (scene, caption, places)
        for scene in scenes
        for caption in [captioner.caption(scene.picture)]
        for labels in [{grounding.label for grounding in scene.groundings}]
        for places in [[n for n, word in enumerate(caption.words) if word.text in labels]]
        if len(places) == 2 and caption.text in scene.captions
    )
    picture = captioner.encode(scene.picture)
    words = torch.tensor([[captioner.vocabulary.encode(caption.text)]])
    with torch.no_grad():
        maps = model.attention_maps(with_start(words), model.encode(picture.regions))
    if maps is None or maps.masks is None:
        raise SystemExit(f"{options.run}: its attention is not aligned")
    figure = Figure((9, 5), layout="constrained")
    panels = figure.subplots(2, 4)
    for row, place in zip(panels, named, strict=True):
        row[0].imshow(scene.picture)
        row[0].set_title(f"“{caption.words[place].text}”", fontsize=10)
        for panel, values, title in zip(
            row[1:],
            (maps.raw, maps.masks, maps.used),
            ("attention α", "mask m: dark matters", "aligned attention"),
            strict=True,
        ):
            of_word = values[0, 0, place].mean((0, 1)).view(captioner.encoder.grid)
            panel.imshow(of_word, cmap="gray", vmin=0)
            panel.set_title(title, fontsize=10)
        for panel in row:
            panel.set_axis_off()
    figure.suptitle(caption.text, fontsize=11)
    return figure


FIGURES = {"lrp": draw_lrp, "support": draw_support, "alignment": draw_alignment}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("picture", nargs="?", type=Path, default=HERE / "dog.jpg")
    parser.add_argument("--run", type=Path, help="a run of scenes/aligned_transformer")
    parser.add_argument("-o", "--output", type=Path, help="default: docs/concepts/FIGURE.png")
    options = parser.parse_args()
    if options.figure == "alignment" and options.run is None:
        parser.error("give a run of scenes/aligned_transformer with --run")
    output = options.output or FOLDER / f"{options.figure}.png"
    figure = FIGURES[options.figure](options)
    with atomic_write(output, "wb") as file:
        figure.savefig(file, format="png", dpi=110)
    print(output)


if __name__ == "__main__":
    main()
