"""Two pictures with three captions: the smallest batch with padding of every kind."""

import torch

from sightline.decoding.words import with_start
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD
from sightline.training.batch import CaptionBatch


def make_batch(weight: float = 1.0) -> CaptionBatch:
    torch.manual_seed(1)
    targets = torch.tensor([[[5, 6, END], [7, END, PAD]], [[8, END, PAD], [PAD, PAD, PAD]]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    regions = Regions(torch.randn(2, 3, 5), mask, torch.zeros(2, 3, 4))
    return CaptionBatch(regions, with_start(targets), targets, weight)
