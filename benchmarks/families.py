"""Every family of adapted captioners: is its forward pass unchanged, and every logit accounted for?

    python benchmarks/families.py

One tiny captioner of random weights each, as the laws take them, in double precision, on one
thread. Seconds a word are those of LRP to the image tokens, for all words of a caption together,
and those of the forward pass alone, as a scale.
"""

import time

import torch

from sightline.adapters.families import FAMILIES
from sightline.adapters.tiny import TINY
from sightline.explain.lrp.method import lrp
from sightline.laws.adapters import AdapterCase, account, forward_difference, tiny_parts


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    print("| family | image tokens | forward difference | account | LRP, s a word | forward, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in TINY:
        case = AdapterCase.of(tiny_parts(name))
        difference, gap = forward_difference(case), account(case)
        explained = seconds(lambda case=case: lrp(case.targets)) / len(case.ids)
        forward = seconds(case.run)
        tokens = case.regions.vectors.shape[1]
        print(
            f"| {FAMILIES[name].name} | {tokens} | {difference:.0e} | {gap:.0e} | "
            f"{explained:.3f} | {forward:.3f} |",
            flush=True,
        )


def seconds(work) -> float:
    """Of this process, the best of three."""
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
