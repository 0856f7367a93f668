"""LRP of all words of a caption to the pixels: the original code of paper 4 beside ours.

FOLDER is a checkout of the code that Sun et al. published (LRP-imagecaptioning-pytorch). Nothing of
it is changed: its `explain_caption` is called, of the LRP explainer of either captioner. Three
things are put in its way, none of which makes it slower:

- torchvision, nltk and scikit-image are not needed: small stand-ins prepare the picture as they do,
  and have no stop words. The weights that it would download are random ones;
- it asks for a GPU by `.cuda()`: that gives back what it has, on the CPU;
- its beam search gives the caption that we explain, too; and it draws and writes nothing.

Both sides have VGG-16 up to conv5_3, with the same random weights, the same picture, the sizes that
their `config.py` and Flickr30k word map set, and one caption. A captioner's own weights are random
on either side; time does not depend on them. Timed is what follows the caption: to prepare the
picture (of theirs, from a file; of ours, from its pixels), to encode it, to run the captioner over
the caption and to explain every word by LRP down to the pixels; *contrastive* is contrastive LRP,
which pages open on. One thread, in time of this process, one after the other in every round.

    python benchmarks/sun.py --code FOLDER [--rounds 3] [--words 12] [--model grid_td]
"""

import argparse
import contextlib
import copy
import importlib
import io
import json
import statistics
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from explain import seconds
from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.vgg import VGG
from sightline.explain.lrp.contrastive import contrastive_lrp
from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.text.vocabulary import START

# Of each captioner: its module, the explainer, the model and the parser of its sizes.
THEIRS = {
    "grid_td": (
        "models.gridTDmodel",
        "ExplainGridTDAttention",
        "GridTDModel",
        "imgcap_gridTD_argument_parser",
    ),
    "adaptive_attention": (
        "models.adaptiveattention",
        "ExplainAdaptiveAttention",
        "AdaptiveAttentionCaptioningModel",
        "imgcap_adaptive_argument_parser",
    ),
}
ATTENTION_WIDTH = 196  # which theirs has from its grid of 14 x 14
WORD_MAP = "dataset/wordmap_flickr30k.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", type=Path, required=True, help="a checkout of their code")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", type=int, default=12)
    parser.add_argument("--model", choices=THEIRS, action="append", help="default: both")
    arguments = parser.parse_args()
    needed = ["config.py", "LRPtools/lrp_wrapper.py", "models/gridTDmodel.py", WORD_MAP]
    for name in needed:
        if not (arguments.code / name).is_file():
            parser.error(f"{arguments.code / name} is not a file: give a checkout of their code")
    if arguments.rounds < 1 or arguments.words < 2:
        parser.error("at least one round, and two words")
    warnings.filterwarnings("ignore", message=".*non-full backward hook")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = random_network()
    import_from(arguments.code, network.state_dict())
    word_map = json.loads((arguments.code / WORD_MAP).read_text(encoding="utf-8"))
    print(f"VGG-16, {arguments.words} words, threads: {torch.get_num_threads()}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.model or THEIRS:
            measure(name, network, word_map, arguments.words, arguments.rounds, Path(folder))


def measure(
    name: str,
    network: VGG,
    word_map: dict[str, int],
    words: int,
    rounds: int,
    folder: Path,
) -> None:
    explainer = Theirs(name, word_map, folder)
    size, args = explainer.args.height, explainer.args
    encoder = encoder_of(network, size, folder / "vgg16.pth")
    pixels = torch.randint(256, (1, size, size, 3), dtype=torch.uint8)
    Image.fromarray(pixels[0].numpy()).save(folder / "picture.png")
    widths = {"word_width": args.embed_dim, "state_width": args.hidden_dim}
    options = {**widths, "attention_width": ATTENTION_WIDTH}
    model = create_model(name, len(word_map), encoder.dim, options).eval()
    caption = torch.randint(4, len(word_map) - 4, (words,))
    ours = {"lrp": lrp, "contrastive": contrastive_lrp}
    explainer.explain(folder / "picture.png", caption[:1].tolist())  # (what is slow the first time)
    for method in ours.values():
        method(given(encoder, model, pixels, caption))
    ratios: dict[str, list[float]] = {label: [] for label in ours}
    for _ in range(rounds):
        theirs = explainer.explain(folder / "picture.png", caption.tolist())
        line = f"{name}: theirs {theirs:.2f} s"
        for label, method in ours.items():
            own = seconds(explaining(method, encoder, model, pixels, caption))
            ratios[label].append(theirs / own)
            line += f", {label} {own:.2f} s"
        print(line, flush=True)
    for label, found in ratios.items():
        middle, least, most = statistics.median(found), min(found), max(found)
        print(f"  theirs / {label:11} {middle:6.1f}  ({least:.1f} to {most:.1f})", flush=True)


def explaining(
    method: Callable[[Targets], object],
    encoder: Encoder,
    model: CaptionModel,
    pixels: Tensor,
    caption: Tensor,
) -> Callable[[], object]:
    return lambda: method(given(encoder, model, pixels, caption))


def given(encoder: Encoder, model: CaptionModel, pixels: Tensor, caption: Tensor) -> Targets:
    """All words of a caption, of a picture that is encoded here."""
    with torch.no_grad():
        regions = encoder(pixels, torch.tensor([[0.0, 0.0, 1.0, 1.0]]))
    tokens = torch.cat([torch.tensor([START]), caption[:-1]])
    places = torch.arange(len(caption))[None]
    x = encoder.normalise(pixels)
    return Targets(model, regions, tokens[None, None], places, caption[None], encoder, x)


def random_network() -> VGG:
    """VGG-16 whose random weights keep a signal's size; its biases are as small as theirs."""
    network = VGG(16)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network.eval()


def encoder_of(network: VGG, size: int, path: Path) -> Encoder:
    features = {k: v for k, v in network.state_dict().items() if k.startswith("features.")}
    torch.save(features, path)
    return create_encoder("vgg16", stage="stage4", size=size, weights=path)


class Theirs:
    """Their explainer of a captioner, with random weights."""

    def __init__(self, name: str, word_map: dict[str, int], folder: Path) -> None:
        module, explainer, model, options = THEIRS[name]
        self.args = getattr(importlib.import_module("config"), options)().parse_args([])
        self.args.save_path, self.args.dataset = str(folder), "flickr30k"
        self._word_map = word_map
        self._explainer = getattr(importlib.import_module(module), explainer)
        with silence():
            self._model = getattr(importlib.import_module(module), model)(
                self.args.embed_dim, self.args.hidden_dim, len(word_map), self.args.encoder
            )

    def explain(self, picture: Path, caption: list[int]) -> float:
        """Seconds for all words of a caption, by a copy: every call adds its hooks once more."""
        model = copy.deepcopy(self._model)
        explainer = self._explainer(self.args, self._word_map, model)
        words = {number: word for word, number in self._word_map.items()}
        said = " ".join(words[number] for number in caption)
        model.beam_search = lambda *_, **__: ([said], list(caption))
        explainer.visualize_explanations = lambda *_, **__: None
        explainer.save_linguistic_explanation = lambda *_, **__: None
        with silence():
            return seconds(lambda: explainer.explain_caption(str(picture)))


def silence() -> contextlib.redirect_stdout[io.StringIO]:
    return contextlib.redirect_stdout(io.StringIO())


def import_from(code: Path, weights: dict[str, Tensor]) -> None:
    """Makes their modules importable, without what they import and do not need for LRP."""
    stopwords = types.SimpleNamespace(words=lambda language: [])
    stand_in("nltk", corpus=stand_in("nltk.corpus", stopwords=stopwords))
    stand_in("skimage", transform=stand_in("skimage.transform"))
    models = stand_in("torchvision.models")
    models.utils = stand_in(
        "torchvision.models.utils", load_state_dict_from_url=lambda *_, **__: weights
    )
    transforms = stand_in(
        "torchvision.transforms",
        Compose=lambda steps: lambda picture: apply_all(steps, picture),
        Resize=lambda size: lambda picture: picture.resize(size[::-1], Image.Resampling.BILINEAR),
        ToTensor=lambda: lambda picture: torch.tensor(np.array(picture)).permute(2, 0, 1) / 255,
        Normalize=lambda mean, std: lambda x: (x - column(mean)) / column(std),
    )
    stand_in("torchvision", models=models, transforms=transforms)
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    nn.Module.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    sys.path[0] = str(code.resolve())  # in place of this folder, which has a `models`, too


def stand_in(name: str, **members: Any) -> Any:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def apply_all(steps: list[Callable[[Any], Any]], picture: Any) -> Any:
    for step in steps:
        picture = step(picture)
    return picture


def column(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers)[:, None, None]


if __name__ == "__main__":
    main()
