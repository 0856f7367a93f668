"""What a key-value cache saves: captions by beam search with it, and by whole passes.

    python benchmarks/key_value_cache.py

Two captioners of random weights, of a middling size (256 numbers a token, 6 layers, 64 image
tokens), captions of 24 words, beam 3, on one thread. Seconds are of this process, the best of two;
what counts is their ratio.
"""

import time
from unittest import mock

import torch
from transformers import (
    GPT2Config,
    LlavaConfig,
    LlavaForConditionalGeneration,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTImageProcessorPil,
)

from sightline.adapters.tiny import TinyProcessor, tiny_tokenizer
from sightline.adapters.wrap import adapt
from sightline.decoding.beam import BeamOptions, beam_search

SIZES = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 1024}
SIDE, PATCH, WORDS, PICTURES = 128, 16, 24, 2
SEARCH = BeamOptions().changed({"beam": 3, "max_length": WORDS})


def vit_gpt2(tokenizer, pixels):
    text = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=256,
        n_layer=6,
        n_head=4,
        add_cross_attention=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    vision = ViTConfig(**SIZES, image_size=SIDE, patch_size=PATCH)
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(vision, text)
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return VisionEncoderDecoderModel(config), (pixels, tokenizer)


def llava(tokenizer, pixels):
    place = tokenizer.convert_tokens_to_ids("<image>")
    config = LlavaConfig(
        vision_config={
            **SIZES,
            "model_type": "clip_vision_model",
            "image_size": SIDE,
            "patch_size": PATCH,
        },
        text_config={**SIZES, "model_type": "llama", "vocab_size": len(tokenizer)},
        image_token_index=place,
        vision_feature_layer=-1,
    )
    model = LlavaForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model, TinyProcessor(tokenizer, pixels, (SIDE // PATCH) ** 2)


def seconds(model, memory) -> tuple[float, torch.Tensor]:
    times = []
    for _ in range(2):
        began = time.process_time()
        captions = beam_search(model, memory, SEARCH)
        times.append(time.process_time() - began)
    return min(times), captions.tokens


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    print("| captioner | whole passes, s | cached, s | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for name, make in (("ViT-GPT2", vit_gpt2), ("LLaVA", llava)):
        torch.manual_seed(0)
        tokenizer = tiny_tokenizer()
        pixels = ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})
        encoder, model, _ = adapt(*make(tokenizer, pixels))
        image = encoder.vectors(torch.rand(PICTURES, 3, SIDE, SIDE))
        memory = {"image": image, "mask": torch.ones_like(image[..., 0], dtype=torch.bool)}
        cached, captions = seconds(model, memory)
        with mock.patch("sightline.adapters.model.cache_of", return_value=None):
            whole, same = seconds(model, memory)
        assert captions.equal(same), "the cache changes captions"
        print(f"| {name} | {whole:.2f} | {cached:.2f} | {whole / cached:.1f} |", flush=True)


if __name__ == "__main__":
    main()
