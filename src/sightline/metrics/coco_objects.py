"""The words by which captions name the 80 object categories of COCO.

How the list was made: for each category name, its WordNet synonyms and the words one step below it
were listed with how often COCO captions use them, and kept where the word, in captions, nearly
always names that category. That throws out most of WordNet's senses ("guy" under cat, "toy" under
dog, "bus" under car, "skirt" under bird, all of the verb "bear") and all rare words. Names captions
use and WordNet lacks ("stop sign", "stuffed animal", "wii remote") were added. A word that may name
any of several categories ("bike", "bag", "board") is listed under each of them.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from sightline.text.tokenizer import tokenize

# fmt: off
_PEOPLE = (
    "person", "man", "woman", "boy", "girl", "child", "kid", "baby", "toddler", "infant",
    "teenager", "teen", "adult", "lady", "guy", "gentleman", "male", "female", "player", "surfer",
    "skier",
    "skateboarder", "snowboarder", "skater", "batter", "catcher", "pitcher", "umpire", "hitter",
    "mother", "father", "mom", "dad", "son", "daughter", "parent", "grandfather", "grandmother",
    "friend", "rider", "passenger", "pedestrian", "spectator", "onlooker", "tourist", "traveler",
    "commuter", "bride", "groom", "chef", "cook", "worker", "driver", "officer", "policeman",
    "policewoman", "cop", "cowboy", "motorcyclist", "bicyclist", "cyclist", "biker", "jockey",
    "equestrian", "student", "photographer", "soldier", "farmer", "customer", "shopper", "vendor",
    "businessman", "fisherman", "runner", "athlete", "guest", "diner", "boarder", "clown",
    "somebody", "someone", "human",
)
_BIRDS = (
    "bird", "parrot", "pigeon", "seagull", "gull", "duck", "duckling", "goose", "swan", "owl",
    "eagle", "hawk", "falcon", "penguin", "rooster", "hen", "peacock", "ostrich", "pelican",
    "sparrow", "crow", "hummingbird", "flamingo", "heron", "dove", "parakeet", "cockatoo", "finch",
    "robin", "woodpecker", "stork", "egret", "vulture",
)
_DOGS = (
    "dog", "puppy", "pup", "doggy", "doggie", "poodle", "pug", "terrier", "dalmatian", "bulldog",
    "beagle", "collie", "retriever", "labrador", "dachshund", "chihuahua", "husky", "corgi",
    "rottweiler", "spaniel", "greyhound", "mutt", "german shepherd",
)
_ANIMALS = {
    "bird": _BIRDS,
    "cat": ("cat", "kitten", "kitty", "tabby"),
    "dog": _DOGS,
    "horse": ("horse", "pony", "foal", "colt", "mare", "stallion"),
    "sheep": ("sheep", "lamb", "ram", "ewe"),
    "cow": ("cow", "cattle", "bull", "calf", "ox", "heifer"),
    "elephant": ("elephant", "calf"),
    "bear": ("bear", "cub"),
    "zebra": ("zebra",),
    "giraffe": ("giraffe", "calf"),
}
WORDS: dict[str, tuple[str, ...]] = {
    "person": _PEOPLE,
    "bicycle": ("bicycle", "bike"),
    "car": ("car", "automobile", "taxi", "cab", "jeep", "suv", "sedan", "minivan", "convertible",
            "van", "station wagon"),
    "motorcycle": ("motorcycle", "motor cycle", "motorbike", "motor bike", "dirt bike", "moped",
                   "scooter", "bike"),
    "airplane": ("airplane", "plane", "aeroplane", "air plane", "aircraft", "jet", "jetliner",
                 "airliner", "biplane", "seaplane"),
    "bus": ("bus", "minibus", "double decker", "double decker bus", "motorcoach"),
    "train": ("train", "locomotive", "tram", "streetcar", "train car", "train engine", "caboose"),
    "truck": ("truck", "pickup", "lorry", "firetruck", "fire engine", "semi", "van"),
    "boat": ("boat", "ship", "sailboat", "canoe", "kayak", "ferry", "yacht", "rowboat", "motorboat",
             "speedboat", "gondola", "tugboat", "barge", "dinghy"),
    "traffic light": ("traffic light", "stoplight", "stop light", "traffic signal"),
    "fire hydrant": ("fire hydrant", "hydrant", "fireplug"),
    "stop sign": ("stop sign",),
    "parking meter": ("parking meter", "meter"),
    "bench": ("bench", "pew"),
    **_ANIMALS,
    "backpack": ("backpack", "back pack", "knapsack", "rucksack", "book bag", "bag"),
    "umbrella": ("umbrella", "parasol"),
    "handbag": ("handbag", "purse", "pocketbook", "bag"),
    "tie": ("tie", "necktie", "bow tie", "bowtie"),
    "suitcase": ("suitcase", "luggage", "baggage", "bag"),
    "frisbee": ("frisbee", "flying disc"),
    "skis": ("skis",),
    "snowboard": ("snowboard", "snow board", "board"),
    "sports ball": ("ball", "tennis ball", "soccer ball", "base ball"),
    "kite": ("kite",),
    "baseball bat": ("baseball bat", "bat"),
    "baseball glove": ("baseball glove", "baseball mitt", "mitt"),
    "skateboard": ("skateboard", "skate board", "longboard", "board"),
    "surfboard": ("surfboard", "surf board", "paddle board", "boogie board", "board"),
    "tennis racket": ("tennis racket", "tennis racquet", "racket", "racquet"),
    "bottle": ("bottle",),
    "wine glass": ("wine glass", "wineglass", "goblet", "glass of wine"),
    "cup": ("cup", "mug", "teacup"),
    "fork": ("fork",),
    "knife": ("knife",),
    "spoon": ("spoon",),
    "bowl": ("bowl",),
    "banana": ("banana",),
    "apple": ("apple",),
    "sandwich": ("sandwich", "burger", "hamburger", "cheeseburger", "hoagie", "panini"),
    "orange": ("orange",),
    "broccoli": ("broccoli",),
    "carrot": ("carrot",),
    "hot dog": ("hot dog", "hotdog", "wiener", "frankfurter"),
    "pizza": ("pizza",),
    "donut": ("donut", "doughnut"),
    "cake": ("cake", "cupcake", "cup cake", "cheesecake", "carrot cake"),
    "chair": ("chair", "armchair", "stool", "recliner"),
    "couch": ("couch", "sofa", "loveseat", "futon"),
    "potted plant": ("potted plant", "houseplant", "plant"),
    "bed": ("bed",),
    "dining table": ("dining table", "table"),
    "toilet": ("toilet", "commode", "toilet seat", "toilet bowl"),
    "tv": ("tv", "television", "monitor", "computer monitor", "computer screen", "computer"),
    "laptop": ("laptop", "laptop computer", "macbook", "netbook", "computer"),
    "mouse": ("mouse", "computer mouse"),
    "remote": ("remote", "remote control", "wii remote", "wiimote", "controller"),
    "keyboard": ("keyboard", "computer keyboard"),
    "cell phone": ("cell phone", "cellphone", "mobile phone", "smartphone", "smart phone", "phone",
                   "iphone", "flip phone", "cellular phone"),
    "microwave": ("microwave", "microwave oven"),
    "oven": ("oven", "stove", "toaster oven"),
    "toaster": ("toaster", "toaster oven"),
    "sink": ("sink", "washbasin"),
    "refrigerator": ("refrigerator", "fridge"),
    "book": ("book", "textbook"),
    "clock": ("clock",),
    "vase": ("vase",),
    "scissors": ("scissors", "shears"),
    "teddy bear": ("teddy bear", "teddy", "stuffed bear", "stuffed animal", "stuffed toy",
                   "toy bear", "stuffed teddy bear"),
    "hair drier": ("hair drier", "hair dryer", "hairdryer", "blow dryer"),
    "toothbrush": ("toothbrush", "tooth brush"),
}
CATEGORIES = tuple(WORDS)

# Here the words of a category name something else, or nothing that one sees.
_NOT_OBJECTS = (
    "train station", "train track", "train stop", "bus stop", "bus station", "car window",
    "car park", "boat house", "bike rack", "bike lane", "bike path", "jet ski", "toilet paper",
    "mouse pad", "mickey mouse", "orange juice", "apple juice", "apple pie", "banana bread",
    "ball game", "ball park", "ball field", "table tennis", "chair lift", "flower bed", "bed of",
    "at bat", "to bat", "cutting board", "white board", "bulletin board", "ironing board",
    "dog house", "bird feeder", "bird house", "bird cage", "to board", "to cook", "to train",
    "to book", "power plant", "to tie", "railroad tie", "sleeping bag", "bean bag",
)
# fmt: on
_IRREGULAR = {
    "person": "people",
    "child": "children",
    "goose": "geese",
    "mouse": "mice",
    "knife": "knives",
    "calf": "calves",
    "ox": "oxen",
    "sheep": "sheep",
}
# "a baby elephant" is nobody's baby, and "a passenger train" may have no passenger in sight.
_QUALIFIERS = {
    tuple(_ANIMALS): ("baby", "mother", "father", "adult", "male", "female", "mom"),
    ("airplane", "bus", "train", "boat"): ("passenger", "commuter"),
}
# After these, "orange" is a fruit only if nothing it could colour follows.
_AFTER_FRUIT = frozenset(
    ["on", "in", "with", "is", "sitting", "next", "that", "at", "sits", "from"]
)


@dataclass(frozen=True)
class Mention:
    """Words of a caption that name an object, and the categories they may stand for."""

    words: str
    categories: frozenset[str]


def mentions(caption: str) -> list[Mention]:
    """The objects a caption names, in order; the longest name counts, so a hot dog is no dog.

    >>> [mention.words for mention in mentions("Two dogs eat hot dogs by a baby elephant.")]
    ['dogs', 'hot dogs', 'baby elephant']
    """
    tokens = tokenize(caption)
    objects = []
    start = 0
    while start < len(tokens):
        for length in range(min(_LONGEST, len(tokens) - start), 0, -1):
            name = tuple(tokens[start : start + length])
            if name in _NAMES:
                if _NAMES[name] and (name != ("orange",) or _is_fruit(tokens, start)):
                    objects.append(Mention(" ".join(name), _NAMES[name]))
                start += length
                break
        else:
            start += 1
    return objects


def _is_fruit(tokens: list[str], at: int) -> bool:
    """Whether the word "orange" is more than a colour: "an orange", and no noun after it."""
    preceded = at > 0 and tokens[at - 1] in ("an", "one", "the", "peeled", "sliced", "whole")
    return preceded and (at + 1 == len(tokens) or tokens[at + 1] in _AFTER_FRUIT)


def _plural(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("man"):
        return word[:-3] + "men"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _forms(name: str) -> Iterator[tuple[str, ...]]:
    """A name as tokens, in the singular and the plural of its last word."""
    *before, last = name.split()
    yield (*before, last)
    yield (*before, _plural(last))


def _names() -> dict[tuple[str, ...], frozenset[str]]:
    """The categories of each name; none for phrases that only look like a name."""
    categories: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for category, names in WORDS.items():
        for name in names:
            for form in _forms(name):
                categories[form].add(category)
    for qualified, qualifiers in _QUALIFIERS.items():
        for category, qualifier in product(qualified, qualifiers):
            for name in WORDS[category]:
                for form in _forms(f"{qualifier} {name}"):
                    categories[form].add(category)
    for name in _NOT_OBJECTS:
        for form in _forms(name):
            categories[form] = set()
    return {name: frozenset(meanings) for name, meanings in categories.items()}


_NAMES = _names()
_LONGEST = max(map(len, _NAMES))
