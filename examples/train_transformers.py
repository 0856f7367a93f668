"""Train a small captioner of transformers on drawn scenes: to see it explained, not to be good.

    sightline data scenes scenes --train 6000 --dev 100 --test 150
    python examples/train_transformers.py vit-gpt2 scenes captioners/vit-gpt2
    sightline experiment explanations hf:captioners/vit-gpt2 --data scenes -o table

The families are vit-gpt2, blip and llava. The loop is a plain one of transformers; what is written
is a folder in its layout, as somebody else would have trained it. Captioners that people use begin
with an image encoder that has learnt from millions of pictures. This one begins with nothing, so it
is taught beside the captions which words they have: captions alone teach it colours, but no shapes
in so short a time. No boxes are used.
"""

import argparse
import random
import time

import torch
from PIL import Image

from sightline.adapters.tiny import tiny_tokenizer
from sightline.data.readers import read_dataset
from sightline.text.vocabulary import Vocabulary

SIDE, PATCH, WIDTH, LAYERS, HEADS = 48, 8, 64, 2, 4
PROMPT = "USER: <image>\nDescribe the picture in one sentence. ASSISTANT:"
IGNORED = -100  # labels that no loss is taken of
BAG = 16.0  # weight of the loss of the bag: a mean over many words, most of them nowhere


def text_size(tokenizer):
    common = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return {
        **common,
        **special,
        "intermediate_size": 2 * WIDTH,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 128,
    }


def vision_size():
    common = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    common["initializer_range"] = 0.1  # (0.02 is for widths ten times as large)
    return {**common, "intermediate_size": 2 * WIDTH, "image_size": SIDE, "patch_size": PATCH}


def pixels():
    from transformers import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})


def vit_gpt2(tokenizer):
    from transformers import (
        GPT2Config,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
    )

    text = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=64,
        add_cross_attention=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ViTConfig(**vision_size()), text
    )
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return VisionEncoderDecoderModel(config), (pixels(), tokenizer), []


def blip(tokenizer):
    from transformers import BlipConfig, BlipForConditionalGeneration

    text = text_size(tokenizer) | {"encoder_hidden_size": WIDTH, "sep_token_id": 2}
    config = BlipConfig(text_config=text, vision_config=vision_size())
    return BlipForConditionalGeneration(config), (pixels(), tokenizer), [1]


def llava(tokenizer):
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    config = LlavaConfig(
        vision_config={**vision_size(), "model_type": "clip_vision_model"},
        text_config={**text_size(tokenizer), "model_type": "llama"},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    processor = LlavaProcessor(
        pixels(),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    gray = Image.new("RGB", (SIDE, SIDE))
    prompt = processor(images=gray, text=PROMPT, return_tensors="pt")["input_ids"][0].tolist()
    return LlavaForConditionalGeneration(config), (processor,), prompt


FAMILIES = {"vit-gpt2": vit_gpt2, "blip": blip, "llava": llava}
ENCODERS = {"vit-gpt2": "encoder", "blip": "vision_model", "llava": "model.vision_tower"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("data")
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    images = read_dataset(options.data).split("train")
    words = Vocabulary.build(text for image in images for text in image.captions).to_json()
    tokenizer = tiny_tokenizer([*words, *PROMPT.split()])  # (a prompt in letters would be long)
    model, parts, prompt = FAMILIES[options.family](tokenizer)
    image_processor = getattr(parts[0], "image_processor", parts[0])
    x = torch.cat(
        [
            image_processor(images=Image.open(image.picture).convert("RGB"), return_tensors="pt")[
                "pixel_values"
            ]
            for image in images
        ]
    )
    rows = [
        [tokenizer(text, add_special_tokens=False)["input_ids"] + [2] for text in image.captions]
        for image in images
    ]
    said = torch.tensor(
        [[float(n in of_picture[0]) for n in range(len(tokenizer))] for of_picture in rows]
    )
    bag = WordBag(model.get_submodule(ENCODERS[options.family]), len(tokenizer))
    parameters = [*model.parameters(), *bag.parameters()]
    steps = options.epochs * (len(images) // 50)
    optimizer = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps, pct_start=0.1)
    began = time.process_time()
    model.train()
    for step in range(steps):
        chosen = random.sample(range(len(images)), 50)
        loss = batch_loss(model, options.family, x[chosen], [rows[n] for n in chosen], prompt)
        of_bag = bag.loss(said[chosen])
        optimizer.zero_grad()
        (loss + BAG * of_bag).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            seconds = time.process_time() - began
            losses = f"loss {loss:.3f}  of the bag {of_bag:.4f}"
            print(f"step {step:4} of {steps}  {losses}  {seconds:.0f} s", flush=True)
    model.generation_config.eos_token_id = 2
    for part in (model, *parts):
        part.save_pretrained(options.folder)


class WordBag(torch.nn.Module):
    """Which words a caption has, from the image token that says each of them the loudest."""

    def __init__(self, encoder, words):
        super().__init__()
        self.output = torch.nn.Linear(WIDTH, words)
        torch.nn.init.constant_(self.output.bias, -5.0)  # most words are in no caption
        encoder.register_forward_hook(self._see)

    def _see(self, encoder, args, output):
        self.tokens = output.last_hidden_state[:, 1:]  # without that of the whole picture

    def loss(self, said):
        logits = self.output(self.tokens).amax(1)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, said)


def batch_loss(model, family, x, captions, prompt):
    """The loss of one caption of each picture, drawn at random."""
    said = [random.choice(of_picture) for of_picture in captions]
    longest = max(map(len, said))
    filled = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in said])
    labels = torch.tensor([[*ids, *[IGNORED] * (longest - len(ids))] for ids in said])
    if family == "vit-gpt2":
        return model(pixel_values=x, labels=labels).loss
    before = torch.tensor([prompt] * len(said))
    return model(
        pixel_values=x,
        input_ids=torch.cat([before, filled], 1),
        labels=torch.cat([torch.full_like(before, IGNORED), labels], 1),
    ).loss


if __name__ == "__main__":
    main()
