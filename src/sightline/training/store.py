"""The checkpoints of a run: which is the last, which the best, and what each phase ended with."""

from pathlib import Path
from typing import Any

from torch import Tensor

from sightline.checkpoint import (
    load_training,
    read_pointers,
    save_checkpoint,
    write_pointers,
)
from sightline.encoders.trainable_stages import TrainableStages
from sightline.models.interface import CaptionModel


class CheckpointStore:
    """The `step-*` folders of a run. Those that nothing names are deleted."""

    def __init__(self, run: Path) -> None:
        self.run = run

    @property
    def last(self) -> Path | None:
        """The newest checkpoint, if there is one."""
        return self._named("last")

    @property
    def best(self) -> Path:
        """The checkpoint with the best dev score; before any evaluation, the newest."""
        path = self._named("best") or self.last
        assert path is not None, "a run is asked for its best checkpoint after the first"
        return path

    def _named(self, pointer: str) -> Path | None:
        name = read_pointers(self.run).get(pointer)
        return None if name is None else self.run / name

    def save(
        self,
        step: int,
        model: CaptionModel,
        config: dict[str, Any],
        card: str,
        *,
        best: bool,
        trainable: TrainableStages | None,
        tensors: dict[str, Tensor],
        training: dict[str, Any],
    ) -> None:
        """Write a checkpoint and name it the last, and the best if it is."""
        name = f"step-{step:07d}"
        save_checkpoint(
            self.run / name,
            model,
            config,
            card,
            trainable=trainable,
            tensors=tensors,
            training=training,
        )
        pointers = read_pointers(self.run) | {"last": name} | ({"best": name} if best else {})
        write_pointers(self.run, pointers)

    def end_phase(self, number: int, *, improved: bool) -> None:
        """Keep what a phase (from 1) ended with: its best if it improved the run, or its last."""
        pointers = read_pointers(self.run)
        ended = pointers["best" if improved else "last"]
        write_pointers(self.run, pointers | {f"stage-{number}": ended})

    def load_last(self) -> tuple[Path, dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint with what it keeps for training to go on."""
        if (last := self.last) is None:
            return None
        return last, *load_training(last)
