"""What the API answers, as the OpenAPI document describes it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from sightline.captions import Caption, Word


class Alternative(BaseModel):
    """A word that could have been said instead."""

    text: str
    log_probability: float


class SupportAnswer(BaseModel):
    """How far the picture supports a word."""

    score: float = Field(description="The probability that the word is right.")
    verdict: Literal["seen", "doubtful", "not supported"]
    evidence: dict[str, float] = Field(description="The scores that the verdict is based on.")


class WordAnswer(BaseModel):
    """One word of a caption."""

    text: str
    log_probability: float | None = Field(description="Null: a server elsewhere gives none.")
    alternatives: list[Alternative]
    support: SupportAnswer | None = Field(description="Null: not checked, or nothing to see.")
    attention: list[float] | None = Field(None, description="A weight for each of the boxes.")


class CaptionAnswer(BaseModel):
    """A caption, word by word."""

    text: str
    log_probability: float | None
    score: float | None = Field(description="Ranks the captions of a picture.")
    unfamiliar: bool | None = Field(
        description="Whether the picture is unlike those that the captioner knows."
    )
    words: list[WordAnswer]
    boxes: list[tuple[float, float, float, float]] | None = Field(
        None, description="Of the regions, as fractions of the picture: left, top, right, bottom."
    )

    @classmethod
    def of(cls, caption: Caption, attention: bool = False) -> "CaptionAnswer":
        content = caption.to_json()
        if not attention:
            content["boxes"] = None
            for word in content["words"]:
                word["attention"] = None
        return cls.model_validate(content)


class Captions(BaseModel):
    """The captions of a picture, best first."""

    model: str
    captions: list[CaptionAnswer]


class UnknownWordAnswer(BaseModel):
    """A word that the captioner does not know, and the nearest that it knows."""

    text: str
    nearest: str | None
    nearest_by: str | None


class Check(BaseModel):
    """A caption of your own, with the support of its words."""

    model: str
    caption: CaptionAnswer
    unknown: list[UnknownWordAnswer] = Field(description="Words that the captioner does not know.")


class Relevance(BaseModel):
    """What a previous word speaks for the word (or, below 0, against it)."""

    text: str
    relevance: float


class MapAnswer(BaseModel):
    """Relevance over the picture."""

    scale: float = Field(description="What 1 stands for: the relevance of an even picture.")
    png: str | None = Field(
        None, description="A grey PNG, base64: 128 is nothing, 255 for the word, 1 against it."
    )
    values: list[list[float]] | None = Field(None, description="Rows of numbers from -1 to 1.")


class ExplanationAnswer(BaseModel):
    """Why a word is said, or is not, by one method."""

    method: str
    word: str
    place: int = Field(description="In the caption, from 0.")
    total: float
    image: float = Field(description="The relevance of the whole picture.")
    language: float = Field(description="The relevance of the previous words.")
    image_share: float
    bias: float
    epsilon: float
    encoder: float
    remainder: float
    previous: list[Relevance]
    map: MapAnswer | None = None


class UnsaidAnswer(BaseModel):
    """A word that the caption does not say, at the position that was asked about."""

    text: str
    place: int
    log_probability: float
    everywhere: list[float] = Field(description="Its log-probability at each position.")


class Explanations(BaseModel):
    """Why a caption has its words, and does not have others."""

    model: str
    caption: CaptionAnswer
    explanations: list[ExplanationAnswer]
    unsaid: list[UnsaidAnswer]
    unknown: list[UnknownWordAnswer]
    skipped: dict[str, str] = Field(description="Methods that cannot explain this captioner.")


class Model(BaseModel):
    """A captioner that can be asked for by its name."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "sightline"


class Models(BaseModel):
    """The captioners, the default first; and the explanation methods."""

    object: Literal["list"] = "list"
    data: list[Model]
    methods: list[str]


def unsaid_answer(word: Word, place: int, everywhere: tuple[float, ...]) -> dict[str, Any]:
    return {
        "text": word.text,
        "place": place,
        "log_probability": word.log_probability,
        "everywhere": list(everywhere),
    }
