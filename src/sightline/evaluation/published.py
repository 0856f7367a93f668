"""Published scores on the test splits of Flickr8k, Flickr30k and COCO, for tables of results."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A row of somebody else's table, in percent as it is printed there.

    >>> PUBLISHED["coco"][0].scores["BLEU-4"]
    24.3
    """

    system: str
    scores: dict[str, float]
    protocol: str  # how it was measured, where that is not how we do it


def _paper_1(
    system: str, bleu: tuple[float, ...], meteor: float | None, protocol: str
) -> Published:
    scores = {f"BLEU-{n}": score for n, score in enumerate(bleu, 1)}
    if meteor is not None:
        scores["METEOR"] = meteor
    return Published(system, scores, protocol)


def _row(system: str, protocol: str, **scores: float) -> Published:
    names = {"meteor": "METEOR", "rouge_l": "ROUGE-L", "cider": "CIDEr-D"}
    names |= {f"bleu{n}": f"BLEU-{n}" for n in range(1, 5)}
    return Published(system, {names[name]: score for name, score in scores.items()}, protocol)


_PAPER_1 = "frozen VGGnet; BLEU without brevity penalty"
_NIC = "GoogLeNet, ensemble (reported by paper 1)"
_BILINEAR = "reported by paper 1"
_TUNED = "pycocoevalcap, beam 4, epoch chosen by dev BLEU-4"
_PAPER_4 = "VGG-16 at 224 px, beam 3, captions of COCO 2017; table 1"
_DETECTED = "bottom-up-attention features, beam search; Karpathy's 5,000 pictures"
_PAPER_4_FLICKR = "VGG-16 at 224 px, beam 3; table 1"

PUBLISHED = {
    "flickr8k": (
        _paper_1("Google NIC", (63, 41, 27), None, _NIC),
        _paper_1("Log-bilinear", (65.6, 42.4, 27.7, 17.7), 17.31, _BILINEAR),
        _paper_1("Show, Attend and Tell, soft (paper 1)", (67, 44.8, 29.9, 19.5), 18.93, _PAPER_1),
        _paper_1("Show, Attend and Tell, hard (paper 1)", (67, 45.7, 31.4, 21.3), 20.30, _PAPER_1),
        _row(
            "LSTM of 512 over a frozen ResNet-50 (aravindvarier)",
            _TUNED,
            bleu1=60.0,
            bleu2=42.3,
            bleu3=29.3,
            bleu4=20.1,
            meteor=20.8,
            cider=52.7,
        ),
        _row(
            "LSTM of 1,024 over a tuned ResNet-101 (aravindvarier)",
            _TUNED,
            bleu1=63.0,
            bleu2=45.4,
            bleu3=31.9,
            bleu4=22.0,
            meteor=21.9,
            cider=58.6,
        ),
        _row(
            "Transformer decoder over a tuned ResNet-101 (aravindvarier)",
            _TUNED,
            bleu1=61.6,
            bleu2=43.5,
            bleu3=29.6,
            bleu4=19.4,
            meteor=19.9,
            cider=50.5,
        ),
    ),
    "flickr30k": (
        _paper_1("Google NIC", (66.3, 42.3, 27.7, 18.3), None, _NIC),
        _paper_1("Log-bilinear", (60.0, 38, 25.4, 17.1), 16.88, _BILINEAR),
        _paper_1(
            "Show, Attend and Tell, soft (paper 1)", (66.7, 43.4, 28.8, 19.1), 18.49, _PAPER_1
        ),
        _paper_1(
            "Show, Attend and Tell, hard (paper 1)", (66.9, 43.9, 29.6, 19.9), 18.46, _PAPER_1
        ),
        _row(
            "adaptive attention (paper 4)",
            _PAPER_4_FLICKR,
            meteor=21.25,
            rouge_l=48.68,
            cider=42.28,
        ),
        _row("grid-TD (paper 4)", _PAPER_4_FLICKR, meteor=21.75, rouge_l=49.71, cider=44.95),
    ),
    "coco": (
        _paper_1(
            "Show, Attend and Tell, soft (paper 1)", (70.7, 49.2, 34.4, 24.3), 23.90, _PAPER_1
        ),
        _paper_1(
            "Show, Attend and Tell, hard (paper 1)", (71.8, 50.4, 35.7, 25.0), 23.04, _PAPER_1
        ),
        _paper_1("Google NIC", (66.6, 46.1, 32.9, 24.6), None, _NIC),
        _paper_1("Log-bilinear", (70.8, 48.9, 34.4, 24.3), 20.03, _BILINEAR),
        _row(
            "spatial self-attention (paper 3)",
            "VGG-11; the split is not named",
            bleu1=66.7,
            bleu2=46.4,
            bleu3=31.2,
            bleu4=22.6,
            meteor=21.8,
        ),
        _row("adaptive attention (paper 4)", _PAPER_4, meteor=26.61, rouge_l=55.79, cider=87.75),
        _row("grid-TD (paper 4)", _PAPER_4, meteor=27.04, rouge_l=56.41, cider=90.67),
        _row(
            "LSTM over a tuned ResNet-101 (sgrvinod)",
            "BLEU of NLTK, beam 5; Karpathy's 5,000 pictures",
            bleu4=33.29,
        ),
        _row(
            "LSTM over pooled ResNet-101, cross-entropy (ImageCaptioning.pytorch)",
            "Karpathy's 5,000 pictures",
            cider=95.3,
        ),
        _row(
            "the same, self-critical (ImageCaptioning.pytorch)",
            "Karpathy's 5,000 pictures",
            cider=105.3,
        ),
        _row(
            "Att2in, self-critical (Rennie et al. 2017)",
            "ResNet-101; Karpathy's 5,000 pictures",
            bleu4=33.3,
            meteor=26.3,
            cider=111.4,
        ),
        _row(
            "attention LSTM, cross-entropy (X-modaler)",
            _DETECTED,
            bleu1=76.4,
            bleu4=36.1,
            meteor=27.6,
            rouge_l=56.6,
            cider=113.0,
        ),
        _row(
            "A² Transformer, cross-entropy (paper 0)",
            _DETECTED,
            bleu1=78.6,
            bleu4=38.2,
            meteor=29.2,
            rouge_l=58.3,
            cider=125.0,
        ),
        _row(
            "A² Transformer, self-critical (paper 0)",
            _DETECTED,
            bleu1=81.5,
            bleu4=39.8,
            meteor=29.6,
            rouge_l=59.1,
            cider=133.9,
        ),
        _row(
            "BLIP base (Li et al. 2022)",
            "pretrained on 129 million pictures; as the LAVIS library reports it",
            bleu4=39.9,
            cider=133.5,
        ),
    ),
}
