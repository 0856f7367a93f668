import torch

from sightline.decoding.words import describe_words, with_start
from sightline.text.vocabulary import END, PAD, START


def test_a_captions_words_one_by_one(tiny):
    tiny = tiny(0, pictures=2)
    tokens = torch.tensor([[[4, 6, END], [5, END, PAD]], [[7, 7, END], [4, 5, END]]])
    details = describe_words(tiny.model, tiny.memory, tokens, alternatives=3)
    assert details.log_probs.shape == (2, 2, 3)
    assert details.attention.shape == (2, 2, 3, 5)
    assert details.signals["beta"].shape == (2, 2, 3)
    assert details.log_probs[0, 1, 2] == 0
    for picture in range(2):
        for row in range(2):
            words = tuple(word for word in tokens[picture, row].tolist() if word != PAD)
            for t in range(len(words)):
                expected = tiny.next_word(tiny.picture(picture), words[:t])
                here = (picture, row, t)
                torch.testing.assert_close(details.log_probs[here], expected[words[t]])
                best = expected.topk(3)
                assert torch.equal(details.alternatives[here], best.indices)
                torch.testing.assert_close(details.alternative_log_probs[here], best.values)


def test_there_are_no_more_alternatives_than_words(tiny):
    tiny = tiny()
    details = describe_words(tiny.model, tiny.memory, torch.tensor([[[4, END]]]), alternatives=99)
    assert sorted(details.alternatives[0, 0, 0].tolist()) == list(range(8))


def test_the_start_stands_before_and_the_last_word_is_not_given():
    assert with_start(torch.tensor([[4, 5, END]])).tolist() == [[START, 4, 5]]
