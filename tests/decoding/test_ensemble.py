import pytest
import torch

from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.decoding.ensemble import Ensemble
from sightline.decoding.words import describe_words
from sightline.errors import ConfigError
from sightline.models.registry import create_model
from sightline.text.vocabulary import START


def test_a_captioner_with_itself_is_itself(tiny):
    tiny = tiny(0, pictures=4, end_bias=1.0)
    both = Ensemble([tiny.model, tiny.model])
    alone = beam_search(tiny.model, tiny.memory, BeamOptions(n_best=3))
    together = beam_search(both, both.encode(tiny.regions), BeamOptions(n_best=3))
    assert torch.equal(alone.tokens, together.tokens)
    torch.testing.assert_close(alone.log_probs, together.log_probs)
    words = describe_words(tiny.model, tiny.memory, alone.tokens)
    same = describe_words(both, both.encode(tiny.regions), alone.tokens)
    torch.testing.assert_close(words.attention, same.attention)
    torch.testing.assert_close(words.signals["beta"], same.signals["beta"])


def test_probabilities_attention_and_shared_signals_are_averaged(tiny):
    one = tiny(0, pictures=3)
    torch.manual_seed(5)
    hard = create_model("hard_attention", 8, 3, {"state_width": 6}).eval()
    both = Ensemble([one.model, hard])
    tokens = torch.tensor([[[START, 4, 5]]] * 3)
    with torch.no_grad():
        parts = [model(one.regions, tokens) for model in (one.model, hard)]
        joined = both(one.regions, tokens)
    mean = sum(unrolled.logits.softmax(-1) for unrolled in parts) / 2
    torch.testing.assert_close(joined.logits.exp(), mean)
    torch.testing.assert_close(joined.attention, (parts[0].attention + parts[1].attention) / 2)
    assert set(joined.signals) == {"beta"}


@pytest.mark.parametrize("seed", range(3))
def test_a_search_of_several_finds_their_common_best(tiny, captions_of, texts, seed):
    """Every member's state follows its own beams."""
    one, other = tiny(seed), tiny(seed + 50)
    both = Ensemble([one.model, other.model])
    memory = both.encode(one.regions)
    limits = Constraints(max_length=3)
    options = BeamOptions(84, n_best=5, length_power=0.0, constraints=limits)
    hypotheses = beam_search(both, memory, options)
    captions = captions_of(limits)
    padded = torch.tensor([[(*c, *[0] * (4 - len(c))) for c in captions]])
    log_probs = describe_words(both, memory, padded).log_probs.sum(-1)[0]
    best = [captions[i] for i in log_probs.topk(5).indices]
    assert texts(hypotheses.tokens[0]) == best


def test_an_ensemble_of_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"^ensemble: no captioner was given$"):
        Ensemble([])
