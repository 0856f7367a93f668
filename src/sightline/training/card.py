"""The model card that goes with every checkpoint."""

from typing import Any

from sightline.recipe import Recipe


def model_card(config: dict[str, Any], recipe: Recipe) -> str:
    """What a user should know before relying on the model, in Markdown."""
    training, encoder = config["training"], config["encoder"]
    data = recipe.data.path or "synthetic scenes"
    metric, score = next(iter(training["dev"].items()))
    tuned = recipe.encoder.train_from
    frozen = "frozen" if tuned is None else f"trained from {tuned}"
    regions = "features of a detector"
    if "stage" in encoder:
        regions = f"`{encoder['stage']}`, {encoder['size']} px, {frozen}"
    dev = "not evaluated yet" if score is None else f"{metric} {score:.4f} (best so far)"
    return f"""# A Sightline captioner

| | |
| --- | --- |
| model | `{config["model"]["name"]}` |
| image encoder | `{encoder["name"]}`, {regions} |
| vocabulary | {len(config["vocabulary"]):,} words |
| trained on | the training split of {data} |
| training | {training["epoch"]} epochs, {training["step"]:,} steps, {training["seconds"]:,} s |
| dev split, beam {recipe.dev.beam} | {dev} |

The captioner says what was likely in its training captions: check its words before relying on
them. The licence of the training data may restrict the use of these weights.

Use: `sightline caption --model THIS_FOLDER photo.jpg`
"""
