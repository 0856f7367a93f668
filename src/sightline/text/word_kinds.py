"""What a content word of a caption names: an object, a place, a colour, a number, an action …

Captions use few verbs, colours and places again and again, so that lists tell kinds apart without a
tagger: colours, numbers and places are listed, verbs by their stems, and what is on no list is
taken for a thing, as most words of captions are.
"""

import functools

from sightline.text.stemmer import stem

KINDS = ("object", "place", "action", "colour", "number", "quality")

# fmt: off
_NUMBERS = frozenset([
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "dozen", "dozens", "hundred", "hundreds", "couple", "pair", "single", "lone", "double",
    "triple", "half", "first", "second", "third", "multiple", "numerous",
])
_COLOURS = frozenset([
    "white", "black", "red", "blue", "green", "brown", "yellow", "orange", "pink", "gray", "grey",
    "purple", "silver", "gold", "golden", "tan", "beige", "blonde", "blond", "violet", "maroon",
    "turquoise", "teal", "navy", "dark-colored", "colorful", "multicolored", "multi-colored",
    "colored", "colourful", "cream",
])
_PLACES = frozenset([
    "street", "field", "room", "bathroom", "kitchen", "building", "beach", "road", "city", "area",
    "park", "court", "ocean", "sidewalk", "hill", "station", "slope", "airport", "house", "river",
    "bedroom", "home", "restaurant", "runway", "intersection", "bridge", "store", "forest", "zoo",
    "lake", "office", "market", "yard", "shore", "woods", "tarmac", "shop", "school", "country",
    "town", "pasture", "hillside", "dock", "church", "pool", "trail", "garden", "lawn", "highway",
    "restroom", "subway", "desert", "island", "harbor", "pier", "farm", "sea", "apartment", "barn",
    "pond", "walkway", "museum", "stadium", "bakery", "meadow", "hospital", "hallway", "downtown",
    "marina", "countryside", "beachside", "playground", "gym", "library", "garage", "patio",
    "porch", "backyard", "parking", "mountain", "mountains", "mountainside", "cliff", "canyon",
    "valley", "alley", "driveway", "plaza", "mall", "cafe", "cafeteria", "classroom", "hotel",
    "lobby", "cave", "village", "track", "racetrack", "swamp", "stream", "creek", "waterfall",
    "jungle", "pub", "fields", "streets", "rooms", "buildings", "roads", "hills", "rivers",
    "houses", "forests", "bridges", "lakes", "beaches", "tunnel", "campsite", "rink", "arena",
    "theater", "courtyard", "vineyard", "orchard", "bay", "lot", "terminal",
])
_ACTIONS = [
    "sit", "stand", "hold", "ride", "walk", "play", "park", "look", "fly", "lay", "wear", "eat",
    "graze", "take", "ski", "skate", "hang", "smile", "watch", "swing", "travel", "jump", "pose",
    "use", "cut", "hit", "talk", "carry", "wait", "lie", "surf", "run", "prepare", "sleep", "pull",
    "show", "cross", "throw", "lean", "make", "drink", "rest", "move", "work", "try", "pass",
    "read", "cook", "perform", "enjoy", "gather", "brush", "feed", "stare", "reach", "float",
    "point", "serve", "board", "swim", "face", "kneel", "race", "land", "pet", "turn", "write",
    "touch", "sell", "sail", "grow", "lead", "approach", "load", "kick", "practice", "push", "bend",
    "fall", "pour", "roll", "climb", "slide", "leave", "type", "blow", "check", "hug", "laugh",
    "chew", "dive", "dance", "sing", "shake", "lick", "bite", "chase", "fetch", "leap", "crawl",
    "splash", "dig", "bark", "wrestle", "paddle", "row", "skateboard", "snowboard", "cycle",
    "drive", "catch", "cheer", "clap", "wave", "kiss", "fish", "shop", "relax", "go", "come",
    "give", "put", "bring", "sniff", "perch", "wade", "hike", "juggle", "squat", "crouch", "tackle",
    "dribble", "spray", "lift", "toss", "grab", "attempt", "celebrate", "march", "stretch", "yawn",
    "jog", "sprint", "trot", "gallop", "wander", "stroll", "ascend", "descend", "balance", "fight",
    "punch", "box", "bat", "pitch", "bowl", "bicycle",
]
_QUALITIES = frozenset([
    "large", "small", "young", "wooden", "open", "old", "little", "big", "different", "tall",
    "grassy", "full", "stuffed", "ready", "long", "hot", "snowy", "empty", "various", "busy",
    "high", "dark", "older", "half", "cloudy", "outdoor", "lush", "public", "sunny", "plastic",
    "clear", "clean", "nice", "beautiful", "bright", "wet", "modern", "pretty", "fresh", "dirty",
    "cute", "huge", "alone", "dry", "vintage", "crowded", "flat", "square", "giant", "professional",
    "wild", "round", "stainless", "asian", "commercial", "low", "french", "assorted", "new",
    "blurry", "wide", "plain", "closed", "fancy", "narrow", "short", "urban", "messy", "broken",
    "antique", "happy", "elderly", "ornate", "tiny", "smart", "deep", "great", "visible", "shallow",
    "fake", "mixed", "steep", "good", "mini", "miniature", "muddy", "industrial", "metallic",
    "individual", "abandoned", "bare", "natural", "rusty", "nearby", "asleep", "ripe", "rural",
    "residential", "shirtless", "furry", "fluffy", "fat", "thin", "wooded", "rocky", "sandy",
    "cluttered", "steel", "metal", "brick", "concrete", "leather", "stone", "glass", "tiled",
    "striped", "plaid", "checkered", "covered", "filled", "topped", "decorated", "displayed",
    "surrounded", "lined", "lit", "painted", "attached", "mounted", "fenced", "sliced", "stacked",
    "cooked", "baked", "arranged", "prepared", "wrapped", "fried", "grilled", "glazed", "chocolate",
    "seated", "dressed", "shaped", "sized", "adult", "male", "female", "military", "electric",
    "electronic", "indoor", "downhill", "aerial", "cold", "warm", "soft",
])
_THINGS_IN_ING = frozenset([
    "building", "ceiling", "clothing", "wing", "ring", "king", "string", "thing", "spring",
    "painting", "wedding", "railing", "awning", "frosting", "icing", "crossing", "lighting",
    "landing", "topping", "dressing", "stuffing", "flooring", "covering", "swing", "evening",
    "morning", "setting", "living", "dining", "parking", "bowling", "wings", "rings", "toppings",
    "fencing", "seating", "siding", "opening", "bedding", "dwelling", "pudding", "earring",
    "lodging",
])
_ACTION_STEMS = frozenset(map(stem, _ACTIONS))
# Things, although captions also have verbs of their stem.
_THINGS = frozenset([
        "cook",
        "cooks",
        "box",
        "boxes",
        "bowl",
        "bowls",
        "bat",
        "bats",
        "pet",
        "pets",
        "fish",
        "board",
        "boards",
        "face",
        "faces",
        "drink",
        "drinks",
        "row",
        "rows",
        "wave",
        "waves",
        "park",
        "parks",
        "land",
        "field",
        "watch",
        "watches",
        "brush",
        "brushes",
        "trick",
        "tricks",
        "skate",
        "skates",
        "ski",
        "skis",
        "lift",
        "float",
        "floats",
        "cut",
        "sign",
        "signs",
        "ride",
        "glasses",
        "bite",
        "turn",
        "tow",
        "type",
        "types",
        "pitch",
        "mound",
        "show",
        "shop",
        "fishing",
        "bicycle",
        "bicycles",
        "surf",
    ])
# fmt: on


@functools.cache
def kind(word: str) -> str:
    """One of `KINDS`, for a content word as `stop_words.is_content` tells them.

    >>> [kind(word) for word in "two brown dogs running beach large".split()]
    ['number', 'colour', 'object', 'action', 'place', 'quality']
    """
    if word in _NUMBERS or word.isdigit():
        return "number"
    if word in _COLOURS:
        return "colour"
    if word in _PLACES:
        return "place"
    if word in _QUALITIES or word.endswith("ly"):
        return "quality"
    if word in _THINGS or word in _THINGS_IN_ING:
        return "object"
    if stem(word) in _ACTION_STEMS or (word.endswith("ing") and len(word) > 5):
        return "action"
    return "object"
