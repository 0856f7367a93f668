import pytest

from sightline.metrics.spice.spacy_parser import DEFAULT_PIPELINE, scene_graphs


@pytest.fixture(scope="session")
def read():
    graphs = scene_graphs(DEFAULT_PIPELINE)

    def graph(caption):
        graphs.read([caption])
        return graphs[caption]

    return graph


def test_the_example_of_the_spice_paper(read):
    graph = read("A young girl standing on top of a tennis court")
    assert graph.objects == {"girl", "court", "tennis"}
    assert graph.attributes == {("girl", "young"), ("girl", "stand"), ("court", "tennis")}
    assert graph.relations == {("girl", "on top of", "court")}


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("a dog", {"dog"}),
        ("dogs and cats", {"dog", "cat"}),
        ("two men and a woman", {"man", "woman"}),
        ("people", {"person"}),
        ("a group of people", {"person"}),
        ("a couple of dogs", {"dog"}),
        ("a tennis racket", {"tennis", "racket"}),
        ("a dog in front of a house", {"dog", "house"}),
        ("a man and his dog", {"man", "dog"}),
        ("there is a dog", {"dog"}),
        ("", set()),
        ("running quickly", set()),
    ],
)
def test_objects(read, caption, objects):
    assert read(caption).objects == objects


@pytest.mark.parametrize(
    ("caption", "attributes"),
    [
        ("a brown dog", {("dog", "brown")}),
        ("a black and white dog", {("dog", "black"), ("dog", "white")}),
        ("two dogs", {("dog", "two")}),
        ("the dog is brown", {("dog", "brown")}),
        ("the dogs are big and brown", {("dog", "big"), ("dog", "brown")}),
        ("a dog runs", {("dog", "run")}),
        ("a dog running", {("dog", "run")}),
        ("a running dog", {("dog", "run")}),
        ("a dog that is running", {("dog", "run")}),
        ("a dog is running and jumping", {("dog", "run"), ("dog", "jump")}),
        ("a man and a woman are walking", {("man", "walk"), ("woman", "walk")}),
        ("a group of three children", {("child", "three")}),
        ("the man is a player", {("man", "player")}),
        ("a parked car", {("car", "park")}),
        ("there is a brown dog", {("dog", "brown")}),
        ("a dog has a ball", set()),
    ],
)
def test_attributes(read, caption, attributes):
    assert read(caption).attributes == attributes


@pytest.mark.parametrize(
    ("caption", "relations"),
    [
        ("a man rides a horse", {("man", "ride", "horse")}),
        ("a man riding a horse", {("man", "ride", "horse")}),
        ("a horse ridden by a man", {("man", "ride", "horse")}),
        ("a horse is being ridden by a man", {("man", "ride", "horse")}),
        ("a dog on a couch", {("dog", "on", "couch")}),
        ("a dog is on a couch", {("dog", "on", "couch")}),
        ("there is a dog on a couch", {("dog", "on", "couch")}),
        ("a dog sleeps on a couch", {("dog", "on", "couch")}),
        ("there is a woman , wearing a green hat .", {("woman", "wear", "hat")}),
        ("a dog standing in front of a house", {("dog", "in front of", "house")}),
        ("a dog sits next to a cat", {("dog", "next to", "cat")}),
        ("a man wears a hat and a coat", {("man", "wear", "hat"), ("man", "wear", "coat")}),
        ("a man and a woman sit on a bench", {("man", "on", "bench"), ("woman", "on", "bench")}),
        ("a dog has a ball", {("dog", "have", "ball")}),
        ("a man's hat", {("man", "have", "hat")}),
        ("a dog wags its tail", {("dog", "wag", "tail"), ("dog", "have", "tail")}),
        ("a dog that chases a cat", {("dog", "chase", "cat")}),
        ("a man sits and eats a sandwich", {("man", "eat", "sandwich")}),
        ("a dog jumps to catch a ball", {("dog", "catch", "ball")}),
        ("a group of people on a beach", {("person", "on", "beach")}),
    ],
)
def test_relations(read, caption, relations):
    assert read(caption).relations == relations


@pytest.mark.parametrize(
    ("caption", "lemma"),
    [
        ("a man is riding", "ride"),
        ("a man is staring", "stare"),
        ("a man is running", "run"),
        ("a man is sitting", "sit"),
        ("a man is walking", "walk"),
        ("a wooded trail", "wooded"),
    ],
)
def test_lemmas_that_spacy_gets_wrong_are_repaired(read, caption, lemma):
    assert [attribute for _, attribute in read(caption).attributes] == [lemma]


def test_a_verb_read_as_a_plural_noun_is_a_verb_all_the_same(read):
    graph = read("a kid splashes in the ocean")
    assert graph.objects == {"kid", "ocean"}
    assert graph.attributes == {("kid", "splash")}
    assert graph.relations == {("kid", "in", "ocean")}


def test_case_and_spacing_do_not_matter(read):
    assert read("A Brown  DOG runs .") == read("a brown dog runs .")
