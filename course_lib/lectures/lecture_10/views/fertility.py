"""What α does to a shared vocabulary: pieces a word of each language, live."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import BLUE
from course_lib.teaching.svg import bar, picture
from course_lib.text.language_sampling import shared_out, smoothed
from course_lib.text.wordpiece import WordPiece, train_wordpiece
from course_lib.text.world import MicroWorld

STORIES = {"english": 1_000, "norlish": 100, "sumorian": 30}  # what there is of each language
SAMPLED, SIZES, UNSEEN = 6_000, (400, 600, 800, 1_200), 100
WIDTH, LEFT, STEP = 760, 110, 46  # pixels


class Fertility(NamedTuple):
    """Of one α and one size: pieces a word by language, and a word of each as it is cut."""

    pieces: dict[str, float]
    cut: dict[str, tuple[str, ...]]


@lru_cache(maxsize=1)
def sentences() -> dict[str, tuple[list[str], list[str]]]:
    """Sentences of each language: to learn the vocabulary from, and unseen ones."""
    result = {}
    for name, count in STORIES.items():
        world = MicroWorld.load(language=name)
        both = world.stories(count, seed=0), world.stories(UNSEEN, seed=9, split="heldout")
        result[name] = tuple([line for story in some for line in story.sentences] for some in both)
    return result  # type: ignore[return-value]


@lru_cache(maxsize=64)
def vocabulary(alpha: float, size: int) -> WordPiece:
    """A WordPiece vocabulary of `size`, learned from SAMPLED sentences that p^α draws."""
    learn = [of[0] for of in sentences().values()]
    counts = shared_out(SAMPLED, smoothed([len(lines) for lines in learn], alpha))
    sampled = [
        line
        for lines, count in zip(learn, counts, strict=True)
        for line in (lines * (count // len(lines) + 1))[:count]
    ]
    return train_wordpiece(sampled, size)


def fertility(alpha: float, size: int) -> Fertility:
    """Pieces a word of running, unseen text; and of each language the longest word of its first
    unseen story, in pieces."""
    tokenizer = vocabulary(alpha, size)
    pieces, cut = {}, {}
    for name, (_, unseen) in sentences().items():
        running = [word for line in unseen for word in line.split()]
        pieces[name] = sum(len(tokenizer.pieces(word)) for word in running) / len(running)
        cut[name] = tuple(tokenizer.pieces(max(unseen[0].split(), key=len)))
    return Fertility(pieces, cut)


def fertility_view(alpha: float = 0.7, size: int = 600) -> Live:
    """Pieces a word of three languages. Controls: alpha, size (of the vocabulary)."""
    controls = {
        "alpha": slider("α", alpha, 0, 1, 0.1),
        "size": choice("vocabulary", size, SIZES),
    }
    return playground(fertility_picture, controls)


def fertility_picture(alpha: float, size: int) -> Html:
    """A bar a language, its fertility at the end, and a word as it is cut."""
    measured = fertility(alpha, size)
    text = f"α = {alpha:.1f}, {size:,} pieces: " + ", ".join(
        f"{name} {pieces:.2f} pieces a word" for name, pieces in measured.pieces.items()
    )
    height, parts = STEP * len(measured.pieces) + 10, fertility_parts(measured)
    return picture("fertility", WIDTH, height, parts, f"{text}.", label=text, card_width=800)


def fertility_parts(measured: Fertility) -> list[str]:
    """What the drawing consists of, for the deck too."""
    return [
        bar(LEFT, 8 + STEP * i, 100 * pieces, 28, name,
            f"{pieces:.2f}   {' '.join(measured.cut[name])}", size=15, fill="#b9d8ea", ink=BLUE)
        for i, (name, pieces) in enumerate(measured.pieces.items())
    ]  # fmt: skip
