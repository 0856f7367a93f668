"""A command takes less than 1.5 GB, whatever the pictures."""

import json

import pytest

from attack.law import BYTES
from attack.memory import LARGEST, make_largest, peak_memory


@pytest.mark.process
@pytest.mark.xdist_group("attack")
def test_the_largest_pictures_fit(tmp_path):
    make_largest(tmp_path / "pictures", each=2)
    output = tmp_path / "captions.jsonl"
    code, peak = peak_memory("caption", str(tmp_path / "pictures"), "-o", str(output))
    assert code == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(rows) == 2 * len(LARGEST), "all of them were opened"
    print(f"peak {peak / 1e9:.2f} GB")
    assert peak < BYTES
