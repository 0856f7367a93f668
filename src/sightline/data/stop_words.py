"""Words that hold a sentence together and name nothing that could be seen."""

_GROUPS = {
    "articles and determiners": """
        a an the this that these those some any each every no another other others all both several
        many much more most few such""",
    "pronouns": """
        i me my mine you your yours he him his she her hers it its we us our ours they them their
        theirs myself yourself himself herself itself ourselves themselves one ones oneself
        who whom whose which what something someone anything anyone nothing everyone everything""",
    # Where a thing is, is said of the thing; left, right, top and bottom are nouns, and content.
    "prepositions and particles": """
        of in on at by for with without from to into onto off out over under above below beneath
        underneath between among amongst through throughout across along alongside around about
        against behind beside besides before after near next inside outside within up down upon
        toward towards during until past away together apart like via per""",
    "conjunctions and adverbs": """
        and or but nor so yet if as than then while when where how why because though although
        whether also too very just only not there here now again still ever never perhaps""",
    "auxiliary verbs": """
        is are was were be been being am has have having had do does doing did can could will would
        may might must should shall get gets getting""",
    "numerals": "two three four five six seven eight nine ten",  # a count has no place of its own
    "what the tokenizer cuts off": "'s n't 're 've 'll 'd 'm",
}

STOP_WORDS = frozenset(word for words in _GROUPS.values() for word in words.split())
"""In lower case, as the tokenizer gives them.

>>> "the" in STOP_WORDS, "is" in STOP_WORDS, "red" in STOP_WORDS, "left" in STOP_WORDS
(True, True, False, False)
"""
