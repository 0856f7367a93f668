"""TensorBoard logs of a run: curves, and dev captions with the attention of their words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.report.attention_figure import draw_attention

_SHOWN = 4  # dev pictures


class Board:
    """Writes `tensorboard/`; what a killed run wrote after its checkpoint is overwritten."""

    def __init__(self, folder: Path, step: int) -> None:
        self.writer = SummaryWriter(str(folder), purge_step=step)

    def scalars(self, record: dict[str, Any]) -> None:
        """Every number of a history line, training terms and dev scores apart."""
        step = record["step"]
        groups = {"dev": record["dev"]} if "dev" in record else {"train": record}
        for group, values in groups.items():
            for name, value in values.items():
                if name not in ("step", "epoch"):
                    self.writer.add_scalar(f"{group}/{name}", value, step)
        self.writer.flush()

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        """Captions of the first few dev pictures, word by word over the picture."""
        was_training = captioner.model.training
        for image in images[:_SHOWN]:
            caption = captioner.caption(image.picture)
            self.writer.add_text(f"caption/{image.name}", caption.text, step)
            self.writer.add_figure(f"attention/{image.name}", draw_attention(caption), step)
        captioner.model.train(was_training)
