"""Words of a caption, as METEOR 1.5's `-norm` option makes them."""

import pytest

from sightline.metrics.meteor.normalizer import normalize

# Of METEOR's abbreviations: those that keep their period, and those that do so before a number.
PREFIXES = {"Mr": False, "St": False, "vs": False, "A": False, "No": True, "pp": True}


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("", ""),
        ("a dog runs", "a dog runs"),
        ("  A Dog\truns ", "a dog runs"),
        # marks stand apart and stay
        ("a dog (brown), a cat!", "a dog ( brown ) , a cat !"),
        ("50% of $5 & #1", "50 % of $ 5 & # 1"),
        ("-lrb- brown -rrb-", "-lrb- brown -rrb-"),
        ("a/b c;d", "a / b c ; d"),
        # commas, except inside a number
        ("1,000 dogs, 3,cats", "1,000 dogs , 3 , cats"),
        ("a,b,c,d", "a , b,c , d"),  # what METEOR really does
        # quotes
        ("“stop” ‘go’", "\" stop \" ' go '"),
        ("``stop'' `go'", "\" stop \" ' go '"),
        # hyphens and dashes
        ("a well-known t-shirt", "a well known t shirt"),
        ("up - down -- left – right", "up - down - left - right"),
        ("x-y-z", "x y-z"),
        # apostrophes
        ("it's the dogs' isn't", "it 's the dogs ' isn 't"),
        ("does n't", "does n 't"),
        ("the 1990's '90s", "the 1990 's ' 90s"),
        # periods
        ("the end.", "the end ."),
        ("the end. of it", "the end. of it"),
        ("Mr. Smith vs. St. Mary", "mr. smith vs. st. mary"),
        ("No. 5 and No. Five", "no. 5 and no . five"),
        ("pp. 7 pp.", "pp. 7 pp ."),
        ("5 p.m. in the U.S.", "5 pm in the us"),
        ("3.5 meters at 3.5.", "3.5 meters at 3.5 ."),
        ("wait ... what..", "wait ... what .."),
        ("wait...Dog ..", "wait ... dog .."),
        (".", "."),
        # other letters and spaces
        ("Café, ÉCOLE и Дом", "café , école и дом"),
        ("dog\u00a0house\u3000roof", "dog house roof"),
        ("犬 dog", "犬 dog"),
    ],
)
def test_normalize(caption, words):
    assert normalize(caption, PREFIXES) == words.split()
