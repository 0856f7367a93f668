"""Where a run's numbers go besides `history.jsonl`: `logger:` in a recipe names one of these.

Each is told of every line of the history, and shows captions of a few dev pictures where it can. A
run that was killed and resumed continues its log; what it wrote after its checkpoint is replaced,
or, where a service does not forget, written again with the same step.
"""

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from sightline import extras
from sightline.captioner import Captioner
from sightline.captions import Caption
from sightline.data.dataset import CaptionedImage
from sightline.files import atomic_write
from sightline.report.attention_figure import draw_attention

_SHOWN = 4  # dev pictures


class Logger(Protocol):
    """What the training loop tells of a run."""

    def scalars(self, record: dict[str, Any]) -> None:
        """A line of the history."""

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        """The captioner so far, and the dev pictures."""


def numbers(record: dict[str, Any]) -> dict[str, float]:
    """Every number of a history line, training terms and dev scores apart.

    >>> numbers({"step": 20, "epoch": 1, "loss": 2.5, "rate": 0.1})
    {'train/loss': 2.5, 'train/rate': 0.1}
    >>> numbers({"step": 20, "epoch": 1, "dev": {"CIDEr-D": 0.5}})
    {'dev/CIDEr-D': 0.5}
    >>> numbers({"step": 30, "epoch": 2, "back_to": 20})
    {}
    """
    places = ("step", "epoch", "back_to")
    group, values = ("dev", record["dev"]) if "dev" in record else ("train", record)
    return {f"{group}/{name}": v for name, v in values.items() if name not in places}


def _captions(captioner: Captioner, images: Sequence[CaptionedImage]) -> list[tuple[str, Caption]]:
    """Captions of the first few dev pictures. The model is left as it was, training or not."""
    was_training = captioner.model.training
    captions = [(image.name, captioner.caption(image.picture)) for image in images[:_SHOWN]]
    captioner.model.train(was_training)
    return captions


class TensorBoardLogger:
    """`tensorboard/` in the run: curves, and captions with the attention of their words."""

    def __init__(self, run: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(run / "tensorboard"), purge_step=step)

    def scalars(self, record: dict[str, Any]) -> None:
        for name, value in numbers(record).items():
            self.writer.add_scalar(name, value, record["step"])
        self.writer.flush()

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        for name, caption in _captions(captioner, images):
            self.writer.add_text(f"caption/{name}", caption.text, step)
            self.writer.add_figure(f"attention/{name}", draw_attention(caption), step)


class CsvLogger:
    """`log.csv` in the run, for a spreadsheet: a line per number, and one per caption."""

    COLUMNS = ("step", "name", "value")

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / "log.csv"
        rows: list[list[str]] = []
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                rows = [row for row in csv.reader(file) if row[0].isdecimal()]
        with atomic_write(self.path) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.COLUMNS)
            writer.writerows(row for row in rows if int(row[0]) <= step)

    def scalars(self, record: dict[str, Any]) -> None:
        self._add((record["step"], name, value) for name, value in numbers(record).items())

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        made = _captions(captioner, images)
        self._add((step, f"caption/{name}", caption.text) for name, caption in made)

    def _add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


class MlflowLogger:
    """MLflow: the server that `MLFLOW_TRACKING_URI` names, or else the folder `mlflow/` in the run.

    A run is named after its folder, in the experiment `sightline`.
    """

    def __init__(self, run: Path, step: int) -> None:
        from mlflow.tracking import MlflowClient

        where = os.environ.get("MLFLOW_TRACKING_URI")
        if where is None:  # MLflow wants to be asked for a plain folder
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            where = (run / "mlflow").resolve().as_uri()
        self.client: Any = MlflowClient(tracking_uri=where)
        kept = run / "mlflow-run.txt"  # the run's name at the server, to go on with it
        if kept.exists():
            self.run_id = kept.read_text(encoding="utf-8").strip()
            return
        experiment = self.client.get_experiment_by_name("sightline")
        number = (
            self.client.create_experiment("sightline")
            if experiment is None
            else experiment.experiment_id
        )
        self.run_id = self.client.create_run(number, run_name=run.name).info.run_id
        with atomic_write(kept) as file:
            file.write(self.run_id)

    def scalars(self, record: dict[str, Any]) -> None:
        for name, value in numbers(record).items():
            self.client.log_metric(self.run_id, name, value, step=record["step"])

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        for name, caption in _captions(captioner, images):
            stem = f"captions/{name}/{step:07d}"
            self.client.log_text(self.run_id, caption.text, f"{stem}.txt")
            self.client.log_figure(self.run_id, draw_attention(caption), f"{stem}.png")


class WandbLogger:
    """Weights & Biases, project `sightline`. With `WANDB_MODE=offline` it stays in the run."""

    def __init__(self, run: Path, step: int) -> None:
        import matplotlib.pyplot  # noqa: F401  (wandb takes it for imported)
        import wandb

        self.wandb: Any = wandb
        kept = run / "wandb-run.txt"
        name = kept.read_text(encoding="utf-8").strip() if kept.exists() else None
        self.run: Any = wandb.init(
            project="sightline", name=run.name, dir=str(run), id=name, resume="allow"
        )
        with atomic_write(kept) as file:
            file.write(self.run.id)

    def scalars(self, record: dict[str, Any]) -> None:
        self.run.log(numbers(record), step=record["step"])

    def captions(self, captioner: Captioner, images: Sequence[CaptionedImage], step: int) -> None:
        shown = {
            f"caption/{name}": self.wandb.Image(draw_attention(caption), caption=caption.text)
            for name, caption in _captions(captioner, images)
        }
        self.run.log(shown, step=step)


LOGGERS: dict[str, Callable[[Path, int], Logger]] = {
    "tensorboard": TensorBoardLogger,
    "csv": CsvLogger,
    "mlflow": MlflowLogger,
    "wandb": WandbLogger,
}


def require_logger(name: str) -> None:
    """Refuse a logger whose package is not installed, before training begins.

    >>> require_logger("csv")
    """
    if name in extras.EXTRAS:
        extras.require(name, f"logger: {name}")
