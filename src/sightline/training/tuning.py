"""Hyper-parameter search: runs of a recipe with drawn settings, bad ones stopped early.

Paper 1 searched with Whetlab, a service that is no more; this is Optuna. A folder holds

study.jsonl    what was tried and what it scored, appended as it happens
trial-*/       a training run for each trial

A search that was interrupted goes on where it was. The trial that was under way is resumed, from
its last checkpoint.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.errors import ConfigError, TrainingError
from sightline.files import DATA_BYTES, atomic_write, one_writer, read_bytes
from sightline.parsing import parse_json, parse_yaml, read_json
from sightline.recipe import Recipe, load_recipe
from sightline.report.saving import save_figure
from sightline.report.search_figure import draw_search
from sightline.training.loop import train

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution

STUDY = "study.jsonl"
_RANGE = re.compile(r"^(?P<low>[^\s~]+)\s*\.\.\s*(?P<high>[^\s~]+?)(?P<log>\s+log)?$")


@dataclass(frozen=True)
class Range:
    """What values a setting may have: numbers between two bounds, or one of a list."""

    key: str  # of the recipe, as an override names it
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False  # drawn evenly in its logarithm
    whole: bool = False

    @classmethod
    def parse(cls, text: str) -> "Range":
        """From `key=low..high`, `key=low..high log` or `key=[a, b, c]`.

        >>> Range.parse("optimizer.learning_rate=1e-4..1e-2 log")  # doctest: +ELLIPSIS
        Range(key='optimizer.learning_rate', choices=(), low=0.0001, high=0.01, log=True, ...)
        >>> Range.parse("model.state_width=[128, 256]").choices
        (128, 256)
        """
        key, equals, values = text.partition("=")
        if not (key and equals):
            raise ConfigError(f"'{text}': a range must be KEY=LOW..HIGH or KEY=[A, B, C]")
        if match := _RANGE.match(values.strip()):
            try:
                low, high = float(match["low"]), float(match["high"])
            except ValueError:
                raise ConfigError(f"'{text}': the bounds of a range must be numbers") from None
            whole = all(re.fullmatch(r"[+-]?\d+", match[bound]) for bound in ("low", "high"))
            log = match["log"] is not None
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ConfigError(f"'{text}': the first bound must be below the second")
            if log and low <= 0:
                raise ConfigError(f"'{text}': the bounds of a logarithmic range must be above 0")
            return cls(key, (), low, high, log, whole)
        choices = parse_yaml(values, f"'{text}'")
        if not isinstance(choices, list) or not choices:
            raise ConfigError(f"'{text}': a range must be KEY=LOW..HIGH or KEY=[A, B, C]")
        return cls(key, tuple(choices))

    def distribution(self) -> "BaseDistribution":
        from optuna import distributions

        if self.choices:
            texts = tuple(json.dumps(choice) for choice in self.choices)
            return distributions.CategoricalDistribution(texts)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log)
        return distributions.FloatDistribution(self.low, self.high, log=self.log)

    def extremes(self) -> list[str]:
        """Values that a recipe must take, as overrides write them."""
        if self.choices:
            return [json.dumps(choice) for choice in self.choices]
        return [f"{int(bound) if self.whole else bound}" for bound in (self.low, self.high)]


@dataclass(frozen=True)
class Attempt:
    """A trial that has ended."""

    number: int
    settings: dict[str, Any]
    scores: tuple[tuple[int, float], ...]  # dev, by epoch
    best: float
    pruned: bool  # stopped early: others were better at its epoch


def tune(
    recipe: str,
    ranges: Sequence[Range],
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    trials: int = 20,
    seed: int = 0,
    startup: int = 5,
    show_progress: bool = False,
) -> list[Attempt]:
    """Search until `trials` have ended, in all; returns those of the whole search so far.

    Settings are drawn by Optuna's tree-structured Parzen estimator. A trial is pruned when its dev
    score is below the median of earlier trials at the same epoch, once `startup` have ended.

    >>> ranges = [Range.parse("optimizer.learning_rate=1e-4..1e-2 log")]
    >>> tune("scenes/soft_attention", ranges, Path("search"))  # doctest: +SKIP
    [Attempt(number=0, settings={'optimizer.learning_rate': 0.0023…
    """
    if not ranges:
        raise ConfigError("give at least one range, such as optimizer.learning_rate=1e-4..1e-2")
    for each in ranges:  # a wrong key or value shows before anything is trained
        for value in each.extremes():
            if load_recipe(recipe, [*overrides, f"{each.key}={value}"]).devices > 1:
                raise ConfigError("devices: a search trains in one process; set devices=1")
    folder.mkdir(parents=True, exist_ok=True)
    with one_writer(folder):
        _check_search(folder, recipe, ranges, overrides)
        study = _open_study(folder, recipe, startup)
        for trial in _trials(study, ranges, trials, seed):
            settings = [f"{key}={value}" for key, value in trial.params.items()]
            chosen = load_recipe(recipe, [*overrides, *settings])
            run = folder / f"trial-{trial.number:04d}"
            _run_trial(study, trial, chosen, run, show_progress)
        return attempts_of(study)


def _check_search(
    folder: Path, recipe: str, ranges: Sequence[Range], overrides: Sequence[str]
) -> None:
    """A folder belongs to one search; a search may be made longer."""
    path = folder / "search.json"
    about = {
        "recipe": recipe,
        "overrides": list(overrides),
        "ranges": [json.loads(json.dumps(vars(each))) for each in ranges],
    }
    if not path.exists():
        with atomic_write(path) as file:
            json.dump(about, file, indent=1)
    elif read_json(path) != about:
        raise ConfigError(
            f"{folder}: holds a search of another recipe or other ranges; choose another folder"
        )


def _open_study(folder: Path, recipe: str, startup: int) -> "Study":
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal = folder / STUDY
    whole = read_bytes(journal, DATA_BYTES).split(b"\n")[:-1] if journal.exists() else []
    for number, line in enumerate(whole, 1):  # (the last one may be half there)
        parse_json(line, f"{journal}, line {number}")
    try:
        study = optuna.create_study(
            study_name=recipe,
            storage=JournalStorage(JournalFileBackend(str(journal))),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=startup),
            direction="maximize",
            load_if_exists=True,
        )
        attempts_of(study)
    except Exception as error:  # Optuna replays the journal, and checks nothing of it
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{journal}: is damaged, or of another version ({reason})") from None
    return study


def _trials(study: "Study", ranges: Sequence[Range], trials: int, seed: int) -> Iterator["Trial"]:
    """What was under way when a search was killed, then new trials until there are enough."""
    from optuna.samplers import TPESampler
    from optuna.trial import Trial, TrialState

    for under_way in study.get_trials(states=(TrialState.RUNNING,)):
        yield Trial(study, under_way._trial_id)  # (Optuna has no public name for it.)
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    distributions = {each.key: each.distribution() for each in ranges}
    while len(study.get_trials(states=ended)) < trials:
        if len(study.get_trials(states=(TrialState.FAIL,))) > trials:
            raise TrainingError("more than half of the trials failed; narrow the ranges")
        # Each trial has a seed of its own: a search draws the same however often it is interrupted.
        drawn_with = np.random.SeedSequence([seed, len(study.trials)]).generate_state(1)
        study.sampler = TPESampler(seed=int(drawn_with[0]))
        yield study.ask(distributions)


def _run_trial(
    study: "Study", trial: "Trial", recipe: Recipe, run: Path, show_progress: bool
) -> None:
    """Train; report each dev score, and stop where the pruner says so."""
    from optuna.trial import TrialState

    def report(epoch: int, score: float) -> None:
        trial.report(score, epoch)
        if trial.should_prune():
            raise _Pruned

    try:
        train(recipe, run, show_progress=show_progress, on_evaluation=report)
    except _Pruned:
        study.tell(trial, state=TrialState.PRUNED)
    except TrainingError as error:  # such as a loss that is no number
        trial.set_user_attr("error", str(error))
        study.tell(trial, state=TrialState.FAIL)
    else:
        study.tell(trial, max(study.trials[trial.number].intermediate_values.values()))


class _Pruned(Exception):
    """A trial is not worth going on with."""


def attempts_of(study: "Study") -> list[Attempt]:
    """The trials that have ended, in their order."""
    from optuna.trial import TrialState

    attempts = []
    for trial in study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED)):
        scores = tuple(sorted(trial.intermediate_values.items()))
        settings = {key: _plain(value) for key, value in trial.params.items()}
        best = max((score for _, score in scores), default=math.nan)
        pruned = trial.state is TrialState.PRUNED
        attempts.append(Attempt(trial.number, settings, scores, best, pruned))
    return attempts


def _plain(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The best trial; of equal ones the first."""
    finished = [attempt for attempt in attempts if not math.isnan(attempt.best)]
    if not finished:
        raise TrainingError("no trial has been evaluated yet")
    return max(finished, key=lambda attempt: attempt.best)


def recipe_of(recipe: str, overrides: Sequence[str], attempt: Attempt) -> Recipe:
    """The recipe that a trial trained."""
    settings = [f"{key}={json.dumps(value)}" for key, value in attempt.settings.items()]
    return load_recipe(recipe, [*overrides, *settings])


def table(attempts: Sequence[Attempt], metric: str) -> str:
    """The trials, best first, as Markdown.

    >>> print(table([Attempt(0, {"epochs": 3}, ((3, 0.5),), 0.5, False)], "BLEU-4"), end="")
    | trial | dev BLEU-4 | epochs | ended |
    | --- | --- | --- | --- |
    | 0 | 50.0 | 3 | at epoch 3 |
    """
    keys = list(dict.fromkeys(key for attempt in attempts for key in attempt.settings))
    lines = [["trial", f"dev {metric}", *keys, "ended"], ["---"] * (len(keys) + 3)]
    for attempt in sorted(attempts, key=lambda attempt: -attempt.best):
        last = attempt.scores[-1][0] if attempt.scores else 0
        values = (attempt.settings[key] for key in keys)
        lines.append(
            [
                str(attempt.number),
                f"{100 * attempt.best:.1f}",
                *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in values),
                f"{'stopped ' * attempt.pruned}at epoch {last}",
            ]
        )
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def write_search(
    folder: Path, attempts: Sequence[Attempt], ranges: Sequence[Range], metric: str, best: str
) -> None:
    """`table.md`, `figure.png`, `figure.svg` and `best.yaml`."""
    for name, text in (("table.md", table(attempts, metric)), ("best.yaml", best)):
        with atomic_write(folder / name) as file:
            file.write(text)
    logarithmic = [each.key for each in ranges if each.log]
    figure = draw_search(attempts, metric, logarithmic)
    for suffix in ("png", "svg"):
        save_figure(figure, folder / f"figure.{suffix}")
