"""Paper 0, figure 6: how much alignment changes attention, by layer (eq. 13)."""

from collections.abc import Iterator, Sequence
from typing import Any

from sightline.evaluation.distributions import jensen_shannon
from sightline.experiments.captioned import by_run, on_enough
from sightline.experiments.claims import Answer, Claim, judge, untested
from sightline.experiments.estimate import Estimate, error_bars, estimate, rows_to_json, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.masks import mean_masks, outside
from sightline.experiments.options import NoOptions
from sightline.experiments.transformer_words import (
    CaptionAttention,
    require_masks,
    transformer_tasks,
)


def tasks(subjects: Sequence[Subject], options: NoOptions) -> Iterator[Task]:
    return transformer_tasks(subjects, measure)


def measure(seen: CaptionAttention, subject: Subject) -> Record:
    """The divergence `[word][layer]`; aligned weights sum to more than one, so normalised."""
    masks = require_masks(seen, subject)
    aligned = seen.aligned / seen.aligned.sum(-1, keepdims=True)
    return {
        "divergence": jensen_shannon(seen.attention, aligned).tolist(),
        "mask": float(masks.mean()),
    }


def conclude(records: Sequence[Record], options: NoOptions) -> Findings:
    rows: list[dict[str, Any]] = []
    rises: dict[str, Any] = {}
    for run, of_run in by_run(records).items():
        words = [(word, record["picture"]) for record in of_run for word in record["divergence"]]
        pictures = [picture for _, picture in words]
        mask = estimate([r["mask"] for r in of_run], [r["picture"] for r in of_run])
        layers = len(words[0][0])
        for layer in range(layers):
            divergence = estimate([word[layer] for word, _ in words], pictures)
            rows.append({"run": run, "layer": layer + 1, "divergence": divergence, "mask": mask})
        if layers > 1:
            higher = estimate([word[-1] - word[0] for word, _ in words], pictures)
            rises[run] = higher.to_json()
    table = to_markdown(
        ["captioner", "layer", "Jensen-Shannon divergence, in thousandths of a nat", "mean mask"],
        [
            [
                row["run"],
                str(row["layer"]),
                row["divergence"].show(1000, 2),
                f"{row['mask'].mean:.2f}",
            ]
            for row in rows
        ],
    )
    return Findings(
        table,
        _draw(rows),
        {"rows": rows_to_json(rows), "last_above_first": rises, "masks": mean_masks(records)},
    )


def _draw(rows: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), layout="constrained")
    panel = figure.subplots()
    for run in dict.fromkeys(row["run"] for row in rows):
        of_run = [row for row in rows if row["run"] == run]
        of_layers = [row["divergence"] for row in of_run]
        means = [each.mean for each in of_layers]
        x = [row["layer"] for row in of_run]
        panel.errorbar(x, means, error_bars(of_layers), marker="o", capsize=3, label=run)
        panel.set_xticks(x)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("decoder layer")
    panel.set_ylabel("Jensen-Shannon divergence (nats)")
    panel.legend(fontsize=8)
    return figure


def higher_layers_change_more(data: dict[str, Any]) -> Answer:
    """Whether the last layer's attention changes more than the first's."""
    if not data["last_above_first"]:
        return untested("The captioners have one layer.")
    if reason := outside(data["masks"]):
        return untested(reason)
    more = {run: Estimate.from_json(e) for run, e in data["last_above_first"].items()}
    words = "; ".join(f"{run}: {e.show(1000, 2, '+')} thousandths" for run, e in more.items())
    return judge(
        [*more.values()],
        f"Divergence in the last layer minus that in the first: {words}.",
    )


EXPERIMENT = Experiment(
    "paper0-figure6",
    "In which layers does alignment change attention?",
    NoOptions,
    tasks,
    conclude,
    (
        Claim(
            "figure 6",
            "Alignment changes attention little in low layers and much in high ones.",
            on_enough(higher_layers_change_more),
        ),
    ),
)
