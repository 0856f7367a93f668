"""The memory that a whole command takes for the largest pictures that are opened."""

import resource
import subprocess
import sys
from pathlib import Path

from PIL import Image

from sightline.pictures import DECODING_BYTES

# Bytes that a pixel of each kind takes while it is decoded; see `sightline.pictures`.
LARGEST = {"palette.png": ("P", 5), "transparent.png": ("RGBA", 8), "float.tif": ("F", 12)}


def make_largest(folder: Path, each: int) -> None:
    """The largest pictures of each kind that are opened, so many of each: small files."""
    folder.mkdir()
    for name, (mode, cost) in LARGEST.items():
        side = int((DECODING_BYTES / cost) ** 0.5) - 1
        options = {"compression": "tiff_deflate"} if name.endswith("tif") else {"compress_level": 1}
        Image.new(mode, (side, side)).save(folder / name, **options)
        for number in range(1, each):
            (folder / f"{number}-{name}").write_bytes((folder / name).read_bytes())


def peak_memory(*arguments: str) -> tuple[int, int]:
    """The exit code of a command, and the most bytes that it held at once."""
    program = "import sys; from sightline.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    process.wait()
    return process.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
