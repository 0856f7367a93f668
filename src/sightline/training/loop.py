"""The training loop: one for every model, objective, machine and number of processes."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import nn

from sightline.captioner import Captioner
from sightline.checkpoint import load_config, load_weights
from sightline.config import to_dict
from sightline.data.dataset import build_vocabulary
from sightline.decoding.beam import BeamOptions
from sightline.devices import random_states
from sightline.errors import CheckpointError, ConfigError, TrainingError
from sightline.evaluation.captioning import METRICS, caption_cached, score_captions
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.progress import progress
from sightline.recipe import Recipe
from sightline.text.vocabulary import Vocabulary
from sightline.training.averaging import AveragedWeights
from sightline.training.batch import CaptionBatch, TrainingBatches
from sightline.training.card import model_card
from sightline.training.loggers import LOGGERS, Logger
from sightline.training.objectives.objective import Objective, Term
from sightline.training.objectives.registry import create_objective
from sightline.training.processes import is_first_process, launch, make_fabric
from sightline.training.recipe_check import check, start_of
from sightline.training.recipe_data import dataset_of, require_data
from sightline.training.region_provider import RegionProvider
from sightline.training.run import (
    History,
    Position,
    claim_run,
    pack_tensors,
    unpack_tensors,
)
from sightline.training.schedule import create_optimizer, learning_rate_factor
from sightline.training.store import CheckpointStore
from sightline.version import __version__


def train(
    recipe: Recipe,
    run: Path,
    *,
    show_progress: bool = False,
    on_evaluation: Callable[[int, float], None] | None = None,
) -> None:
    """Train by a recipe, from the last checkpoint of `run` if there is one.

    `on_evaluation` is told the epoch and the dev score of every evaluation; it may raise, to stop.
    """
    check(recipe)
    if not (run / "checkpoints.json").exists():
        require_data(recipe.data)
    fabric = make_fabric(recipe)
    # Of several machines' processes, the first one holds the folder for all.
    with claim_run(run, recipe) if is_first_process() else contextlib.nullcontext():
        # (Its arguments bound, since Fabric would take a dataclass apart to move it to a device.)
        work = partial(
            _train,
            recipe=recipe,
            run=run,
            show_progress=show_progress,
            on_evaluation=on_evaluation,
        )
        launch(fabric, work)


def _train(
    fabric: Fabric,
    recipe: Recipe,
    run: Path,
    show_progress: bool,
    on_evaluation: Callable[[int, float], None] | None,
) -> None:
    trainer = Trainer(fabric, recipe, run, show_progress and fabric.is_global_zero)
    trainer.on_evaluation = on_evaluation
    trainer.resume()
    trainer.train()


class Trainer:
    """A run in memory. `train` is the loop; everything else is one step of it."""

    def __init__(self, fabric: Fabric, recipe: Recipe, run: Path, show_progress: bool) -> None:
        self.fabric, self.run, self.show_progress = fabric, run, show_progress
        self.on_evaluation: Callable[[int, float], None] | None = None
        self.store = CheckpointStore(run)
        self.phases = recipe.phases()
        self.recipe = self.phases[0]
        dataset = dataset_of(recipe.data)
        self.train_images = dataset.split("train")
        self.dev_images = dataset.split("dev")[: recipe.dev.pictures]
        self.regions = RegionProvider(
            fabric, recipe, self.train_images, self.dev_images, show_progress
        )
        self.vocabulary = self._words()
        torch.manual_seed(recipe.seed)  # the same first weights on every process
        region_dim = self.regions.encoder(recipe).dim
        self.captioner: CaptionModel = create_model(
            recipe.model["name"], len(self.vocabulary), region_dim, recipe.model_options
        )
        self.model: nn.Module = fabric.setup_module(self.captioner)
        stages = self.regions.trainable
        self.encode_trainable = fabric.setup_module(stages) if stages else None
        self.position = Position()
        self.begin_phase(0)
        torch.manual_seed(recipe.seed + 1 + fabric.global_rank)  # each its own dropout
        if recipe.dev.metric not in self._score([""] * len(self.dev_images)):
            raise ConfigError(f"dev.metric: no score is called '{recipe.dev.metric}'")

    def _words(self) -> Vocabulary:
        if start := start_of(self.recipe):
            return Vocabulary.from_json(load_config(start)["vocabulary"])
        data = self.recipe.data
        return build_vocabulary(
            self.train_images, min_count=data.min_count, size=data.vocabulary_size
        )

    def begin_phase(self, number: int) -> None:
        """Everything that a phase has of its own, as it is before its first step."""
        self.recipe = recipe = self.phases[number]
        self.trainable = self.regions.trained_by(recipe)
        self.encoder = self.regions.encoder(recipe)
        self.cache = self.regions.cache(recipe)
        self.batches = TrainingBatches(
            self.train_images,
            self.regions.source(recipe),
            self.vocabulary,
            recipe.batch,
            max_length=recipe.data.max_length,
            mirror=recipe.data.mirror,
            seed=recipe.seed,
            rank=self.fabric.global_rank,
            world_size=self.fabric.world_size,
        )
        rate = recipe.encoder.learning_rate
        optimizer = create_optimizer(self.captioner, recipe.optimizer, self.trainable, rate)
        self.optimizer: Any = self.fabric.setup_optimizers(optimizer)
        trained = filter(None, (self.captioner, self.trainable))
        self.averages = AveragedWeights(trained, recipe.optimizer.average)
        self.objective: Objective = create_objective(recipe.objective)
        self.objective.autocast = self.fabric.autocast
        self.objective.prepare(self.train_images, self.vocabulary)

    # --- the loop -------------------------------------------------------------------------------

    def train(self) -> None:
        at = self.position
        bar = progress(
            None,
            "training",
            total=sum(self._captions(phase) for phase in self.phases),
            unit="caption",
            done=at.captions,
            show=self.show_progress,
        )
        with bar:
            self.train_phase(bar)
            while at.phase + 1 < len(self.phases):
                self._next_phase()
                self.train_phase(bar)

    def _captions(self, phase: Recipe) -> int:
        """How many captions a phase has; about how many, if it counts steps."""
        counts = [len(image.captions) for image in self.train_images]
        epoch = sum(min(count, phase.batch.captions or count) for count in counts)
        if phase.steps is None:
            return phase.epochs * epoch
        items = len(counts) if phase.batch.by == "image" else epoch
        return round(phase.steps * phase.batch.size * epoch / items)

    def _steps(self) -> int:
        """How many steps this phase has, unless it ends early."""
        return self.recipe.steps or self.recipe.epochs * len(self.batches)

    def train_phase(self, bar: Any) -> None:
        """Until its last step, or until dev does not get better; then name what it ended with."""
        recipe, at = self.recipe, self.position
        last = at.phase_step + self._steps()
        while not at.finished:
            self.model.train()
            began, busy = time.perf_counter(), time.process_time()
            for batch in self.batches.epoch(at.epoch, at.batch):
                values, captions = self.step(batch.to(self.fabric.device))
                at.step, at.batch, at.captions = (
                    at.step + 1,
                    at.batch + 1,
                    at.captions + captions,
                )
                self._log(values)
                at.seconds += time.perf_counter() - began
                at.processor_seconds += time.process_time() - busy
                parts = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
                bar.set_postfix_str(f"epoch {at.epoch + 1}, step {at.step}, {parts}", False)
                bar.update(captions)
                if at.step == last:  # perhaps in the middle of an epoch
                    break
                if at.step % recipe.checkpoint_every == 0 and at.batch < len(self.batches):
                    self.save()
                began, busy = time.perf_counter(), time.process_time()
            at.epoch, at.batch = at.epoch + 1, 0
            if at.epoch % recipe.dev.every == 0 or at.step == last:
                self.evaluate()
            at.finished = at.finished or at.step == last
            self.save(best=at.best_step == at.step)
        if self.fabric.is_global_zero:  # kept, to be compared with the other phases
            self.store.end_phase(at.phase + 1, improved=at.best_step > at.phase_step)

    def _next_phase(self) -> None:
        """Go on from the best checkpoint. A run killed here does the same again."""
        at = self.position
        self.fabric.barrier()
        self._roll_back()
        at.phase, at.phase_step, at.phase_epoch = at.phase + 1, at.step, at.epoch
        at.since_best = at.since_cut = 0
        at.plateau_share, at.finished = 1.0, False
        at.sums, at.summed = {}, 0  # of terms that this phase need not have
        self.begin_phase(at.phase)

    def step(self, batch: CaptionBatch) -> tuple[dict[str, float], int]:
        """One step of the optimiser; returns the loss terms and captions of all processes."""
        recipe, at = self.recipe, self.position
        share = learning_rate_factor(recipe.schedule, at.step - at.phase_step, self._steps())
        for group in self.optimizer.param_groups:
            group["lr"] = group["full_rate"] * share * at.plateau_share
        values, captions = self.backward(batch)
        norm = self.fabric.clip_gradients(  # of all that the optimiser trains
            self.model,
            self.optimizer,
            max_norm=recipe.optimizer.clip or math.inf,
            error_if_nonfinite=False,
        )
        self._require_finite("the norm of the gradient", float(norm))  # type: ignore[arg-type]
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.averages.update(at.step + 1)
        self.objective.observe(values)
        return values, captions

    def backward(self, batch: CaptionBatch) -> tuple[dict[str, float], int]:
        """Gradients of the loss of a batch, of which this process has a part."""
        if self.trainable is not None and self.encode_trainable is not None:
            batch = replace(batch, regions=self.encode_trainable(batch.regions))
        terms = self.objective.terms(
            self.model, batch, self.position.epoch - self.position.phase_epoch
        )
        values, words, captions = self._reduce(terms, batch)
        for name, value in values.items():
            self._require_finite(f"the term '{name}'", value)
        loss = sum(
            (term.weight * term.total for term in terms.values() if term.weight),
            torch.zeros((), device=self.fabric.device),
        )
        # The loss is a sum over all processes, but their gradients are averaged: hence the factor.
        self.fabric.backward(loss * (self.fabric.world_size / words))
        return values, captions

    def _reduce(
        self, terms: dict[str, Term], batch: CaptionBatch
    ) -> tuple[dict[str, float], float, int]:
        """Each term per word or caption, and how many of these, over all processes."""
        sums = torch.stack(
            [batch.tokens.float(), batch.captions.float()]
            + [term.total.detach().float() for term in terms.values()]
        )
        words, captions, *totals = self.fabric.all_reduce(sums, reduce_op="sum").tolist()  # type: ignore[union-attr]
        counts = {"word": words, "caption": captions}
        values = {
            name: total / counts[term.per]
            for (name, term), total in zip(terms.items(), totals, strict=True)
        }
        return values, words, round(captions)

    def _require_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            last = self.store.last
            good = f"the last good checkpoint is {last}" if last else "none was saved"
            raise TrainingError(
                f"step {self.position.step}: {what} is {value}; {good}. "
                "Lower optimizer.learning_rate or optimizer.clip"
            )

    def _log(self, values: dict[str, float]) -> None:
        at = self.position
        at.sums = {name: at.sums.get(name, 0.0) + value for name, value in values.items()}
        at.summed += 1
        if at.step % self.recipe.log_every == 0:
            means = {name: total / at.summed for name, total in at.sums.items()}
            rate = self.optimizer.param_groups[0]["lr"]
            self._record({"step": at.step, "epoch": at.epoch, "rate": rate, **means})
            at.sums, at.summed = {}, 0

    def _record(self, record: dict[str, Any]) -> None:
        if self.fabric.is_global_zero:
            self.position.history_bytes = self.history.add(record)
            self.logger.scalars(record)

    # --- dev ------------------------------------------------------------------------------------

    def evaluate(self) -> None:
        """Caption the dev pictures; note the best score, cut the rate or stop where it stalls."""
        recipe, at = self.recipe, self.position
        scores: dict[str, float] = {}
        if self.fabric.is_global_zero:
            with self.averages.shown():
                captions = caption_cached(
                    self.captioner,
                    self.vocabulary,
                    self.dev_images,
                    self.cache,
                    BeamOptions(beam=recipe.dev.beam),
                    trainable=self.trainable,
                )
                self.logger.captions(self._captioner(), self.dev_images, at.step)
            scores = self._score(captions)
            self._record({"step": at.step, "epoch": at.epoch, "dev": scores})
        scores = self.fabric.broadcast(scores)
        score = scores[recipe.dev.metric]
        if at.best_score is None or score > at.best_score:
            at.best_score, at.best_step, at.since_best, at.since_cut = score, at.step, 0, 0
        else:
            at.since_best, at.since_cut = at.since_best + 1, at.since_cut + 1
        if recipe.schedule.name == "plateau" and at.since_cut > recipe.schedule.patience:
            at.plateau_share, at.since_cut = at.plateau_share * recipe.schedule.factor, 0
        at.finished = bool(recipe.dev.patience) and at.since_best >= recipe.dev.patience
        if recipe.dev.tolerance is not None and score < at.best_score - recipe.dev.tolerance:
            self._roll_back()
            at.finished = True
            self._record({"step": at.step, "epoch": at.epoch, "back_to": at.best_step})
        if self.on_evaluation is not None and self.fabric.is_global_zero:
            self.on_evaluation(at.epoch, score)

    def _roll_back(self) -> None:
        """Back to the weights of the best checkpoint."""
        self._load(self.store.best)

    def _load(self, checkpoint: Path) -> None:
        load_weights(checkpoint, model=self.captioner)
        self.regions.load(checkpoint)
        self.averages.restart()

    def _captioner(self) -> Captioner:
        return Captioner(self.encoder, self.captioner, self.vocabulary)

    def _score(self, captions: list[str]) -> dict[str, float]:
        metrics = (*METRICS, "meteor") if self.recipe.dev.metric == "METEOR" else METRICS
        return score_captions(captions, self.dev_images, metrics)

    # --- checkpoints ----------------------------------------------------------------------------

    def save(self, best: bool = False) -> None:
        """Write a checkpoint and name it the last (and the best); older ones are deleted."""
        random = self._random_states()
        if not self.fabric.is_global_zero:
            return
        self.position.objective = self.objective.state()
        tensors = pack_tensors(self.optimizer, random) | self.averages.pack()
        with self.averages.shown():
            self.store.save(
                self.position.step,
                self.captioner,
                self.config(),
                model_card(self.config(), self.recipe),
                best=best,
                trainable=self.trainable,
                tensors=tensors,
                training=self.position.to_json(),
            )

    def _random_states(self) -> list[dict[str, torch.Tensor]]:
        """The states of the generators of every process, by kind of device."""
        processes: list[dict[str, torch.Tensor]] = [{} for _ in range(self.fabric.world_size)]
        for device, state in random_states(self.fabric.device).items():
            gathered = self.fabric.all_gather(state).view(len(processes), -1).cpu()  # type: ignore[union-attr]
            for states, process_state in zip(processes, gathered, strict=True):
                states[device] = process_state.clone()
        return processes

    def config(self) -> dict[str, Any]:
        """What a checkpoint says of itself."""
        return {
            "sightline": __version__,
            "model": {"name": self.recipe.model["name"], **to_dict(self.captioner.config)},
            "region_dim": self.encoder.dim,
            "encoder": self.encoder.spec,
            "decoding": {"beam": 5, "length_power": BeamOptions().length_power},
            "training": {
                "step": self.position.step,
                "epoch": self.position.epoch,
                "seconds": round(self.position.seconds),
                "dev": {self.recipe.dev.metric: self.position.best_score},
            },
            "vocabulary": self.vocabulary.to_json(),
        }

    def resume(self) -> None:
        """Go back to the last checkpoint, or to what the run began with, if there is one."""
        if saved := self.store.load_last():
            last, tensors, training = saved
            self.position = Position.from_json(training, str(last / "training.json"))
            if self.position.phase >= len(self.phases):
                raise CheckpointError(f"{last}: is of a phase that the recipe does not have")
            if self.position.phase:
                self.begin_phase(self.position.phase)
            self._load(last)
            self._unpack(last, tensors)
        elif start := start_of(self.recipe):
            self._load(start)
        if self.fabric.is_global_zero:
            self.history = History(self.run / "history.jsonl", self.position.history_bytes)
            make_logger = LOGGERS[self.recipe.logger]
            self.logger: Logger = make_logger(self.run, self.position.step)

    def _unpack(self, checkpoint: Path, tensors: dict[str, torch.Tensor]) -> None:
        """What the optimiser, the averages and the generators were, which must be of their kind."""
        try:
            self.averages.unpack(tensors)
            unpack_tensors(self.optimizer, tensors, self.fabric.global_rank, self.fabric.device)
            self.objective.load_state(self.position.objective)
        except (LookupError, ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"{checkpoint / 'training.safetensors'}: training cannot resume from it ({reason})"
            ) from None
