"""The parsers that are fuzzed: whole inputs are read, damaged ones keep the law.

`python -m attack fuzz` lets atheris choose the inputs by what code they reach.
"""

from random import Random

import pytest

from attack.fuzzing import keep_the_law, parsers
from attack.mutation import damage


@pytest.mark.parametrize("name", parsers())
def test_parsers_keep_the_law(name, tmp_path):
    parser = parsers()[name]
    parse = parser.make(tmp_path)
    for whole in filter(None, parser.seeds):
        parse(whole)
    for seed in range(150):
        random = Random(seed)
        content = random.choice(parser.seeds)
        for _ in range(random.randrange(1, 4)):
            content = damage(content, random)
        keep_the_law(parse, content)


def test_a_broken_parser_is_seen():
    def parse(data: bytes) -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        keep_the_law(parse, b"")
