"""Stop words: words that name nothing visible in a picture."""

# fmt: off
STOP_WORDS = frozenset([
    # Articles, pronouns and the like.
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "he", "she", "they", "them",
    "him", "her", "his", "hers", "their", "theirs", "we", "us", "our", "you", "your", "i", "me",
    "my", "who", "whom", "whose", "which", "what", "where", "when", "while", "one", "ones", "each",
    "other", "another", "others", "both", "some", "any", "all", "every", "several", "many", "much",
    "more", "most", "few", "such", "same", "own", "something", "anything", "nothing", "everything",
    "itself", "himself", "herself", "themselves", "there", "here",
    # Verbs that only help others.
    "is", "are", "was", "were", "be", "been", "being", "am", "has", "have", "had", "having", "do",
    "does", "did", "doing", "can", "could", "will", "would", "may", "might", "shall", "should",
    "must", "appears", "appear", "appearing", "seems", "seem", "seen", "see", "get", "gets",
    "getting", "goes", "going",
    # Conjunctions, adverbs and particles.
    "and", "or", "but", "nor", "not", "no", "if", "as", "so", "than", "then", "too", "very", "just",
    "only", "also", "how", "why", "because", "although", "though", "until", "yet", "still", "again",
    "once", "even", "together", "away", "'s", "n't", "like",
    # Prepositions and words of place: they relate things, and name none.
    "of", "in", "on", "at", "by", "to", "from", "with", "without", "into", "onto", "for", "over",
    "under", "above", "below", "beneath", "underneath", "beside", "besides", "between", "behind",
    "before", "after", "near", "next", "off", "out", "up", "down", "through", "across", "along",
    "around", "about", "against", "among", "amongst", "within", "inside", "outside", "during",
    "towards", "toward", "past", "atop", "upon", "via", "left", "right", "top", "bottom", "front",
    "back", "side", "middle", "center", "background", "foreground", "close",
    # The picture itself.
    "picture", "photo", "photograph", "image", "view",
])
# fmt: on
"""English words that name no thing, kind, colour, number or action. Of the caption tokenizer."""


def is_content(word: str) -> bool:
    """Whether a word of a caption can be right or wrong about a picture.

    Names, colours, numbers and actions can; words that only relate them, or that captions begin
    with, cannot. Neither can punctuation or a special word such as `<unknown>`.

    >>> [word for word in "there is a red bus to the left of two dogs".split() if is_content(word)]
    ['red', 'bus', 'two', 'dogs']
    """
    return word not in STOP_WORDS and any(c.isalnum() for c in word) and not word.startswith("<")
