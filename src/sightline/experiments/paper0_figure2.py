"""Paper 0, figures 2 and 5: does attention agree with gradient importance, and do masks?

For each word of a caption, Kendall's τ over the regions between ‖∇h p(y)‖ and the attention of a
layer, before alignment and after it, and 1 - m of its masks; heads are averaged, as in the paper.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sightline.evaluation.distributions import kendall_tau
from sightline.experiments.captioned import by_run, on_enough
from sightline.experiments.claims import Answer, Claim, judge, untested
from sightline.experiments.estimate import Estimate, error_bars, estimate, rows_to_json, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.masks import mean_masks, outside
from sightline.experiments.options import NoOptions
from sightline.experiments.transformer_words import (
    CaptionAttention,
    transformer_tasks,
)

WEIGHTS = {"attention": "attention α", "aligned": "aligned attention", "masks": "1 - mask"}


def tasks(subjects: Sequence[Subject], options: NoOptions) -> Iterator[Task]:
    return transformer_tasks(subjects, measure)


def measure(seen: CaptionAttention, subject: Subject) -> Record:
    """τ `[layer][word]` of each kind of weights."""
    kinds = {"attention": seen.attention}
    if seen.masks is not None:
        kinds |= {"aligned": seen.aligned, "masks": 1 - seen.masks}
    taus: Record = {
        kind: [
            [
                kendall_tau(weights[word, layer], seen.importance[word])
                for word in range(len(seen.importance))
            ]
            for layer in range(weights.shape[1])
        ]
        for kind, weights in kinds.items()
    }
    return {**taus, "mask": None if seen.masks is None else float(seen.masks.mean())}


def conclude(records: Sequence[Record], options: NoOptions) -> Findings:
    rows: list[dict[str, Any]] = []
    for run, of_run in by_run(records).items():
        for kind in WEIGHTS:
            layers = len(of_run[0].get(kind, ()))
            for layer in range(layers):
                rows.append(
                    {
                        "run": run,
                        "weights": kind,
                        "layer": layer + 1,
                        "tau": _estimate(of_run, lambda r, k=kind, n=layer: r[k][n]),  # type: ignore[misc]
                    }
                )
        for layer in range(len(of_run[0].get("masks", ()))):
            rows.append(
                {
                    "run": run,
                    "weights": "masks above attention",
                    "layer": layer + 1,
                    "tau": _estimate(
                        of_run,
                        lambda r, n=layer: [  # type: ignore[misc]
                            m - a for m, a in zip(r["masks"][n], r["attention"][n], strict=True)
                        ],
                    ),
                }
            )
    table = to_markdown(
        ["captioner", "weights", "layer", "Kendall-τ with ‖∇h p(y)‖", "words"],
        [
            [
                row["run"],
                WEIGHTS.get(row["weights"], "1 - mask, above attention"),
                str(row["layer"]),
                row["tau"].show(digits=3),
                str(row["tau"].count),
            ]
            for row in rows
        ],
    )
    return Findings(table, _draw(rows), {"rows": rows_to_json(rows), "masks": mean_masks(records)})


def _estimate(records: Sequence[Record], values: Callable[[Record], list[float]]) -> Estimate:
    pairs = [(value, record["picture"]) for record in records for value in values(record)]
    return estimate([value for value, _ in pairs], [picture for _, picture in pairs])


def _draw(rows: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    runs = list(dict.fromkeys(row["run"] for row in rows))
    figure = Figure(figsize=(3.6 * len(runs) + 1.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0]
    for panel, run in zip(panels, runs, strict=True):
        for kind, label in WEIGHTS.items():
            of_kind = [row for row in rows if (row["run"], row["weights"]) == (run, kind)]
            if of_kind:
                taus = [row["tau"] for row in of_kind]
                means = [tau.mean for tau in taus]
                x = [row["layer"] for row in of_kind]
                panel.errorbar(x, means, error_bars(taus), marker="o", capsize=3, label=label)
                panel.set_xticks(x)
        panel.axhline(0, color="grey", linewidth=0.8)
        panel.axhline(0.2, color="grey", linewidth=0.8, linestyle=":")
        panel.set_title(run, fontsize=9)
        panel.set_xlabel("decoder layer")
    panels[0].set_ylabel("Kendall-τ with ‖∇h p(y)‖")
    # (A captioner without alignment has attention alone, wherever it stands.)
    pairs = [panel.get_legend_handles_labels() for panel in panels]
    handles = {label: h for both in pairs for h, label in zip(*both, strict=True)}
    panels[-1].legend(
        handles.values(), handles.keys(), fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    return figure


def _of_kind(data: dict[str, Any], kind: str) -> list[tuple[str, int, Estimate]]:
    return [
        (row["run"], row["layer"], Estimate.from_json(row["tau"]))
        for row in data["rows"]
        if row["weights"] == kind
    ]


def _list(layers: Sequence[tuple[str, int, Estimate]]) -> str:
    return "; ".join(f"{run}, layer {n}: {tau.show(digits=2)}" for run, n, tau in layers)


def attention_is_weak(data: dict[str, Any]) -> Answer:
    """Whether τ of α is below .2 in every layer of every captioner."""
    layers = _of_kind(data, "attention")
    below = [(-tau).shifted(0.2) for _, _, tau in layers]
    return judge(below, f"Kendall-τ of attention: {_list(layers)}.")


def masks_agree_more(data: dict[str, Any]) -> Answer:
    """Whether 1 - m agrees more with the gradient than α does, in every layer."""
    layers = _of_kind(data, "masks above attention")
    if not layers:
        return untested("None of the captioners has masks.")
    if reason := outside(data["masks"]):
        return untested(reason)
    return judge(
        [tau for _, _, tau in layers],
        f"Kendall-τ of 1 - mask minus that of attention: {_list(layers)}.",
    )


EXPERIMENT = Experiment(
    "paper0-figure2",
    "Do attention, aligned attention and masks agree with gradient importance?",
    NoOptions,
    tasks,
    conclude,
    (
        Claim(
            "figure 2",
            "Kendall-τ of attention with gradient importance is below 0.2 in all layers.",
            on_enough(attention_is_weak),
        ),
        Claim(
            "figure 5",
            "Masks agree more with gradient importance than attention does.",
            on_enough(masks_agree_more),
        ),
    ),
)
