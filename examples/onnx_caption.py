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
size = (card["size"], card["size"])
pixels = np.asarray(picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0))
names = [node.name for node in encoder.get_outputs()]
values = dict(zip(names, encoder.run(None, {"pixels": pixels[None]}), strict=True))

words = [card["start"]]
while len(words) <= card["max_length"]:
    values["tokens"] = np.array([[words[-1]]])
    given = {name: value for name, value in values.items() if name in inputs}
    logits, _, *state = step.run(None, given)
    values |= zip(card["state"], state, strict=True)
    logits = logits[0, 0]
    logits[card["never"] + ([card["end"]] if len(words) == 1 else [])] = -np.inf
    words.append(int(logits.argmax()))
    if words[-1] == card["end"]:
        break
print(" ".join(card["words"][word] for word in words[1:] if word != card["end"]))
