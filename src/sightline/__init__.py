"""Image captions you can check: every word shows what it is based on.

captioner = sightline.load()  # or a training run: load("runs/flickr8k")
caption = captioner.caption("photo.jpg")
print(caption.text, caption.words[1].alternatives)
caption.plot("photo-attention.png")
captioner.explain("photo.jpg", caption, method="lrp")

scores = sightline.score(["a dog runs"], [["a dog is running", "the dog runs"]], ["cider-d"])
print(scores["CIDEr-D"].corpus)

dataset = sightline.read_dataset("my-pictures")
recipe = sightline.load_recipe("recipe.yaml", ["epochs=3"])
sightline.train(recipe, "runs/mine")
sightline.evaluate(sightline.load("runs/mine"), dataset.split("test"), ["cider-d"])
"""

import importlib
from typing import TYPE_CHECKING, Any

from sightline.version import __version__

# Name -> module, imported on first use, so that `import sightline` does not wait for torch.
_PUBLIC = {
    "Caption": "captions",
    "Captioner": "captioner",
    "EncodedPicture": "encoded_picture",
    "Explanation": "explanation",
    "Report": "report.report",
    "SightlineError": "errors",
    "caption_all": "bulk.caption_all",
    "evaluate": "evaluation.evaluate",
    "fit_support": "evaluation.support",
    "list_methods": "explain.methods",
    "list_models": "models.registry",
    "load_recipe": "recipe",
    "read_dataset": "data.readers",
    "render_page": "report.page",
    "score": "metrics.scoring",
    "train": "training.loop",
    "wrap": "captioner",
}
__all__ = [
    "Caption",
    "Captioner",
    "EncodedPicture",
    "Explanation",
    "Report",
    "SightlineError",
    "__version__",
    "caption_all",
    "evaluate",
    "fit_support",
    "list_methods",
    "list_models",
    "load",
    "load_recipe",
    "read_dataset",
    "render_page",
    "score",
    "train",
    "wrap",
]

if TYPE_CHECKING:
    from sightline.bulk.caption_all import caption_all
    from sightline.captioner import Captioner, wrap
    from sightline.captions import Caption
    from sightline.data.readers import read_dataset
    from sightline.encoded_picture import EncodedPicture
    from sightline.errors import SightlineError
    from sightline.evaluation.evaluate import evaluate
    from sightline.evaluation.support import fit_support
    from sightline.explain.methods import list_methods
    from sightline.explanation import Explanation
    from sightline.metrics.scoring import score
    from sightline.models.registry import list_models
    from sightline.recipe import load_recipe
    from sightline.report.page import render_page
    from sightline.report.report import Report
    from sightline.training.loop import train

    load = Captioner.load


def __getattr__(name: str) -> Any:
    if name == "load":
        return __getattr__("Captioner").load
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sightline' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sightline.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
