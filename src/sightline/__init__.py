"""Image captions you can check: every word shows what it looked at.

captioner = sightline.load()  # or a training run: load("runs/flickr8k")
caption = captioner.caption("photo.jpg")
print(caption.text, caption.words[1].alternatives)
caption.plot("photo-attention.png")

scores = sightline.score(["a dog runs"], [["a dog is running", "the dog runs"]], ["cider-d"])
print(scores["CIDEr-D"].corpus)
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Caption", "Captioner", "__version__", "load", "score"]

if TYPE_CHECKING:
    from sightline.captioner import Captioner
    from sightline.captions import Caption
    from sightline.metrics.report import score

    load = Captioner.load


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `import sightline` does not wait for torch.
    if name in ("Captioner", "load"):
        from sightline.captioner import Captioner

        return Captioner if name == "Captioner" else Captioner.load
    if name == "Caption":
        from sightline.captions import Caption

        return Caption
    if name == "score":
        from sightline.metrics.report import score

        return score
    raise AttributeError(f"module 'sightline' has no attribute '{name}'")
