"""What the phases of a run see of its pictures, and the encoder that they may train."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from lightning_fabric import Fabric
from PIL.Image import Image

from sightline.checkpoint import load_config, load_weights
from sightline.data.dataset import CaptionedImage
from sightline.encoders.encode import cache_for, encode_all
from sightline.encoders.encoder import Encoder
from sightline.encoders.region_cache import Mirrored, RegionCache
from sightline.encoders.trainable_stages import TrainableStages
from sightline.recipe import Recipe
from sightline.training.recipe_check import trained_from
from sightline.training.recipe_data import encoder_of
from sightline.training.region_sources import CachedRegions, CutRegions, RegionSource


class RegionProvider:
    """The image encoder of a run, and a cache of what its phases read by it.

    All that is cached is encoded before the first phase begins, and once if phases read the same.
    """

    def __init__(
        self,
        fabric: Fabric,
        recipe: Recipe,
        train_images: Sequence[CaptionedImage],
        dev_images: Sequence[CaptionedImage],
        show_progress: bool,
    ) -> None:
        self.fabric, self.show_progress = fabric, show_progress
        self.train_pictures = [image.picture for image in train_images]
        self.dev_pictures = [image.picture for image in dev_images]
        self._encoder = encoder_of(recipe.encoder).to(fabric.device)
        start = trained_from(recipe)
        # Trained by some phase of the run, or by all.
        self.trainable = TrainableStages(self._encoder, start) if start else None
        self._untrained = deepcopy(self.trainable)
        readers = {_reads(phase): phase for phase in recipe.phases()}
        self.caches = {what: self._encode(phase) for what, phase in readers.items()}

    def encoder(self, phase: Recipe) -> Encoder:
        """The encoder for a phase's size of pictures; all phases train the same weights."""
        return self._encoder.at_size(phase.encoder.size or self._encoder.preprocessing.size)

    def trained_by(self, phase: Recipe) -> TrainableStages | None:
        """What a phase trains of the encoder."""
        return None if phase.encoder.train_from is None else self.trainable

    def cache(self, phase: Recipe) -> RegionCache:
        """The dev pictures as a phase reads them; the training pictures, too, unless it cuts."""
        return self.caches[_reads(phase)]

    def source(self, phase: Recipe) -> RegionSource:
        """Where a phase has the regions of its training pictures from."""
        if not _cuts(phase):
            return CachedRegions(self.train_pictures, self.cache(phase), phase.data.mirror)
        return CutRegions(
            self.train_pictures,
            deepcopy(self._reader(phase)),
            phase.encoder.random_cut,
            workers=phase.encoder.workers,
            seed=phase.seed,
        )

    def load(self, checkpoint: Path) -> None:
        """The weights of the encoder as they were at a checkpoint."""
        if self.trainable is None or self._untrained is None:
            return
        if "tuned" in load_config(checkpoint):
            load_weights(checkpoint, encoder=self.trainable)
        else:  # of a phase before
            self.trainable.load_state_dict(self._untrained.state_dict())

    def _reader(self, phase: Recipe) -> Encoder:
        """Makes what a phase reads: the encoder, or what of it is before the trained part."""
        encoder, trainable = self.encoder(phase), self.trained_by(phase)
        if trainable is None:
            return encoder
        return trainable.source(encoder).to(self.fabric.device)

    def _encode(self, phase: Recipe) -> RegionCache:
        """What a phase reads from a cache.

        The first process encodes what is not there yet. On another machine that does not share the
        cache's folder, the first process there does so once more.
        """
        encoder = self._reader(phase)
        pictures: list[Path | Image | Mirrored] = [*self.dev_pictures]
        if not _cuts(phase):
            pictures += self.train_pictures
            pictures += [Mirrored(picture) for picture in self.train_pictures if phase.data.mirror]
        root = None if phase.encoder.cache is None else Path(phase.encoder.cache)
        precision = phase.encoder.precision
        cache = cache_for(encoder, root, precision)
        local = self.fabric.local_rank == 0
        for is_encoding in (self.fabric.is_global_zero, local and not self.fabric.is_global_zero):
            if is_encoding:
                known = cache.keys()
                missing = [picture for picture in pictures if cache.key(picture) not in known]
                if missing:
                    encode_all(
                        missing,
                        encoder,
                        root,
                        precision=precision,
                        show_progress=self.show_progress,
                    )
            self.fabric.barrier()
            cache.reload()
        return cache


def _reads(phase: Recipe) -> tuple[str | None, int | None, bool]:
    """What tells the regions that phases of one run read from a cache apart."""
    return phase.encoder.train_from, phase.encoder.size, _cuts(phase)


def _cuts(phase: Recipe) -> bool:
    """Whether training pictures are cut and encoded at every step, and only dev is cached."""
    return phase.encoder.random_cut < 1
