"""What Sightline can show without any data of yours; run by `make demo`.

There is no captioner of photographs in the box yet. So this trains a small one on synthetic scenes
(two minutes on two cores; the next time it is there already), lets it caption scenes it has
never seen, and draws what every word looked at.
"""

import argparse
import sys
from pathlib import Path

import sightline
from sightline.data.scenes import make_scenes
from sightline.training.loop import train
from sightline.training.recipe import load_recipe

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE.parent / "demo")
    parser.add_argument("overrides", nargs="*", help="of the recipe, such as epochs=5")
    options = parser.parse_args()
    folder = options.folder
    recipe = load_recipe(
        HERE.parent / "recipes" / "scenes" / "soft_attention.yaml", tuple(options.overrides)
    )
    print("Training a captioner of synthetic scenes …", file=sys.stderr)
    train(recipe, folder / "run", show_progress=True)

    captioner = sightline.load(folder / "run")
    scenes = make_scenes(6, seed=2026)
    captions = captioner.caption([scene.picture for scene in scenes])
    print("\nScenes it has not seen:")
    for number, (scene, caption) in enumerate(zip(scenes, captions, strict=True)):
        right = "right" if caption.text in scene.captions else f"a person: {scene.captions[0]}"
        figure = folder / f"scene-{number}.png"
        caption.plot(figure)
        print(f"  {caption.text}   ({right})\n    what every word looked at: {figure}")
    print(
        "\nThis version has no captioner of photographs in the box. To train one on captioned\n"
        "photographs of yours: see docs/training.md"
    )


if __name__ == "__main__":
    main()
