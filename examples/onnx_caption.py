"""Caption a picture by onnxruntime, NumPy and Pillow alone: greedy search.

sightline export --onnx RUN -o FOLDER
python examples/onnx_caption.py FOLDER photo.jpg
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

folder = Path(sys.argv[1])
card = json.loads((folder / "captioner.json").read_text("utf-8"))
encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")
step = onnxruntime.InferenceSession(folder / "step.onnx")
inputs = {node.name for node in step.get_inputs()}

picture = ImageOps.exif_transpose(Image.open(sys.argv[2])).convert("RGB")
size, box = (card["size"], card["size"]), (0, 0, *picture.size)
if card["fit"] == "crop":  # the centre
    side = min(picture.size) * 224 / 256
    box = [(length + sign * side) / 2 for sign in (-1, 1) for length in picture.size]
pixels = np.asarray(picture.resize(size, Image.Resampling.BICUBIC, box=box, reducing_gap=3.0))
names = [node.name for node in encoder.get_outputs()]
values = dict(zip(names, encoder.run(None, {"pixels": pixels[None]}), strict=True))

words, last, n = [], card["start"], card["no_repeat_ngram"]
while len(words) < card["max_length"]:
    values["tokens"] = np.array([[last]])
    given = {name: value for name, value in values.items() if name in inputs}
    logits, _, *state = step.run(None, given)
    values |= zip(card["state"], state, strict=True)
    logits = logits[0, 0]
    logits[card["never"] + ([] if words else [card["end"]])] = -np.inf
    for i in range(len(words) - n + 1 if n else 0):  # no n words in a row may occur twice
        if words[i : i + n - 1] == words[len(words) - n + 1 :]:
            logits[words[i + n - 1]] = -np.inf
    last = int(logits.argmax())
    if last == card["end"]:
        break
    words.append(last)
print(" ".join(card["words"][word] for word in words))
