"""Paper 4, figure 3: the share of relevance above a threshold that is inside the boxes (eq. 9)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sightline.data.dataset import CaptionedImage
from sightline.evaluation.localisation import THRESHOLDS, correctness
from sightline.experiments.captioned import by_run, on_enough
from sightline.experiments.claims import Answer, Claim, decide_all, not_kept
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.grounded import ground, picture_tasks, require_words
from sightline.experiments.options import MethodOptions
from sightline.explain.methods import find_method

ATTENTION, GUIDED, LRP = "attention", "guided_grad_cam", "lrp"
NEGATIVE = "negative, Guided Grad-CAM above LRP"


def tasks(subjects: Sequence[Subject], options: MethodOptions) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        grounded = ground(captioner, image)
        words: list[Record] = [{"area": float(mask.mean())} for mask in grounded.masks.values()]
        for method in options.methods if words else ():
            explanations = captioner.explain(
                grounded.picture, grounded.caption, words=list(grounded.masks), method=method
            )
            for word, why, mask in zip(words, explanations, grounded.masks.values(), strict=True):
                assert why.heatmap is not None
                word[method] = {
                    "positive": correctness(why.heatmap, mask).tolist(),
                    "negative": correctness(-why.heatmap, mask).tolist(),
                    "opposes": bool((why.heatmap < 0).any()),
                }
        return {"words": words}

    return picture_tasks(subjects, measure)


def conclude(records: Sequence[Record], options: MethodOptions) -> Findings:
    require_words(records)
    rows, curves = [], dict[str, dict[str, Any]]()
    for run, of_run in by_run(records).items():
        words = [(record["picture"], word) for record in of_run for word in record["words"]]
        pictures = [picture for picture, _ in words]
        area = estimate([word["area"] for _, word in words], pictures)
        curves[run] = {"area": area.mean}
        for method in options.methods:
            positive, negative = (
                np.array([word[method][sign] for _, word in words])
                for sign in ("positive", "negative")
            )
            inside = estimate(positive[:, 0].tolist(), pictures)
            curves[run][method] = {
                "positive": positive.mean(0).tolist(),
                "negative": negative.mean(0).tolist(),
            }
            rows.append(
                [
                    run,
                    str(len(words)),
                    f"{100 * area.mean:.1f}",
                    method,
                    inside.show(100),
                    f"{100 * positive[:, 5].mean():.1f}",
                    f"{100 * negative[:, 0].mean():.1f}",
                ]
            )
    header = ["run", "words", "area", "method", "inside", "inside, above half", "negative inside"]
    data = {"thresholds": THRESHOLDS.tolist(), "curves": curves, "leads": leads_of(records)}
    return Findings(to_markdown(header, rows), _draw(curves, options), data)


def leads_of(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """For each run, how much more is inside by one method than by another, word by word (eq. 9).

    Of negative relevance there are the words that both methods find something against.
    """
    leads: dict[str, dict[str, Any]] = {}
    for run, of_run in by_run(records).items():
        words = [(record["picture"], word) for record in of_run for word in record["words"]]
        methods = [name for name in (words[0][1] if words else {}) if name != "area"]
        others = [name for name in methods if ATTENTION in methods and name != ATTENTION]
        leads[run] = {name: _lead(words, "positive", name, ATTENTION) for name in others}
        if GUIDED in methods and LRP in methods:
            opposed = [
                (picture, word)
                for picture, word in words
                if word[GUIDED]["opposes"] and word[LRP]["opposes"]
            ]
            leads[run][NEGATIVE] = _lead(opposed, "negative", GUIDED, LRP)
    return leads


def _lead(words: Sequence[tuple[str, Record]], sign: str, one: str, other: str) -> dict[str, Any]:
    values = [word[one][sign][0] - word[other][sign][0] for _, word in words]
    return estimate(values, [picture for picture, _ in words]).to_json()


def _draw(curves: dict[str, Any], options: MethodOptions) -> Any:
    """A panel for each run; what speaks against a word is dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(curves) + 1.6, 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for panel, (run, of_run) in zip(panels, curves.items(), strict=True):
        for number, method in enumerate(options.methods):
            percent = {sign: 100 * np.array(curve) for sign, curve in of_run[method].items()}
            label = find_method(method).label
            panel.plot(THRESHOLDS, percent["positive"], color=f"C{number}", label=label)
            if percent["negative"].any():
                panel.plot(THRESHOLDS, percent["negative"], "--", color=f"C{number}", linewidth=1)
        panel.axhline(100 * of_run["area"], color="grey", linewidth=1, label="area of the boxes")
        panel.set_title(run, fontsize=9)
        panel.set_xlabel("threshold, as a share of the largest")
    panels[0].set_ylabel("inside the boxes (%)")
    panels[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def all_above_attention(data: dict[str, Any]) -> Answer:
    if "leads" not in data:
        return not_kept("the difference of methods")
    parts = []
    for run, leads in data["leads"].items():
        for method, values in leads.items():
            if method != NEGATIVE:
                lead = Estimate.from_json(values)
                more = f"{run}, {method}: {lead.show(100, sign='+')} points inside"
                parts.append((lead, f"{more}, against attention"))
    return decide_all(parts, "No explanation was compared with attention.")


def signs_differ(data: dict[str, Any]) -> Answer:
    """What Guided Grad-CAM has against a word is more on the object than what LRP has."""
    if "leads" not in data:
        return not_kept("the difference of methods")
    parts = []
    for run, leads in data["leads"].items():
        if NEGATIVE in leads and leads[NEGATIVE]["count"]:
            lead = Estimate.from_json(leads[NEGATIVE])
            more = f"{run}: {lead.show(100, sign='+')} points inside by Guided Grad-CAM"
            parts.append((lead, f"{more}, against LRP ({lead.count} words)"))
    return decide_all(parts, "No word has negative relevance by both.")


EXPERIMENT = Experiment(
    "paper4-figure3",
    "How much relevance above a threshold lies on the object that a word names?",
    MethodOptions,
    tasks,
    conclude,
    (
        Claim(
            "figure 3",
            "All explanation methods are above attention in localisation.",
            on_enough(all_above_attention),
        ),
        Claim(
            "figure 3",
            "LRP's negative relevance lies little on the object, Guided Grad-CAM's much.",
            on_enough(signs_differ),
        ),
    ),
)
