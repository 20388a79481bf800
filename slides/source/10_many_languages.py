"""What deck 10 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, large, stacked_bars, svg, table

from course_lib import MicroWorld
from course_lib.family.xlm import TiedOutput, XlmStack
from course_lib.lectures.lecture_10.views import (
    centring,
    objectives,
    parallel,
    real,
    results,
    sampling,
    sequence,
    sizes,
)
from course_lib.teaching.claims import printed
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.text.language_sampling import by_blocks, by_sentences, smoothed
from course_lib.text.world import Story

LANGUAGES = ("norlish", "sumorian", "chinese")


@lru_cache(maxsize=8)
def world(language: str = "english") -> MicroWorld:
    return MicroWorld.load(language=language)


@lru_cache(maxsize=1)
def story() -> Story:
    """The notebook's first."""
    return world().stories(12, seed=16, split="heldout")[0]


def three_models() -> str:
    rows = [
        ("is", "BERT", "BERT + a vector a language", "RoBERTa"),
        ("languages", "104", "15, 17 or 100", "100"),
        ("text", "Wikipedias", "Wikipedias; translations", "2.5 TB of CommonCrawl"),
        ("vocabulary", "119,547", "95,000 or 200,000", "250,002"),
        ("trained by", "MLM, NSP", "CLM, MLM or MLM + <strong>TLM</strong>", "MLM"),
        ("told the language", "no, on purpose", "<strong>yes</strong> (15 languages)", "no"),
        ("reads with", "p^0.7", "p^α of sentences", "p^0.3 of blocks"),
    ]
    rows = [(f"<strong>{row[0]}</strong>", *row[1:]) for row in rows]
    return table(("", "mBERT (2018)", "XLM (2019)", "XLM-R (2019)"), rows, numbers=False, size=22)


def sampling_bars(alpha: float) -> str:
    sizes_ = sampling.SIZES["ten languages, each half of the one before"]
    few = dict(list(sizes_.items())[:6])
    parts = sampling.sampling_parts(few, alpha, 17)
    drawn = svg(760, 270, *parts, says=sampling.sampling_in_words(few, alpha))
    return large(drawn, 0.72)


def sampling_steep() -> str:
    return sampling_bars(1.0)


def sampling_smooth() -> str:
    return sampling_bars(0.3)


def definitions() -> str:
    sentences, tokens = (900, 300), (9_000, 9_000)
    rows = [
        ("mBERT", "size of the text", "0.7", smoothed(tokens, 0.7)),
        ("XLM", "sentences", "0.7, to compare", by_sentences(sentences, 0.7)),
        ("XLM, its default", "nothing", "all alike", by_sentences(sentences)),
        ("XLM-R", "blocks of tokens", "0.3", by_blocks(tokens, alpha=0.3)),
    ]
    cells = [(*said, " : ".join(f"{p:.2f}" for p in q)) for *said, q in rows]
    return table(("", "p counts", "α", "read"), cells, numbers=False, size=24)


def objectives_picture() -> str:
    return svg(
        objectives.WIDE, objectives.HIGH, *objectives.objectives_parts(), says=objectives.SAYS
    )


def pair() -> str:
    """The notebook's first sentence and its translation."""
    shown = sequence.pair_picture(
        world(), world("norlish"), story(), rate=sequence.RATE, seed=sequence.SEED
    )
    return large(shown.html, 1.45)


def code_xlm() -> str:
    stack, output = body_of(XlmStack.forward, "seen ="), body_of(TiedOutput.forward)
    return code(f"# states: causal or not, zero at padding\n{stack}\n\n# words\n{output}")


def parameters() -> str:
    """Each model as a bar: the words, and all else."""
    found = {name: sizes.size_of(name) for name in sizes.MODELS if name != "XLM, English"}
    longest = max(size.parameters for size in found.values())
    rows = [
        (
            name.replace(" (uncased)", ""),
            (
                (size.words / longest, f"{size.of_words:.0%}"),
                ((size.parameters - size.words) / longest, ""),
            ),
            f"{size.parameters / 1e6:.0f}M",
        )
        for name, size in found.items()
    ]
    return stacked_bars(rows, ((ORANGE, INK), (BLUE, "#fff")), left=230, right=90)


def four_languages() -> str:
    worlds = {name: world(name) for name in LANGUAGES}
    short = story().__class__(
        story().sentences[:3], story().topic, story().frames[:3], story().rows, story().world
    )
    return large(parallel.parallel_picture(worlds, short, "its look").html, 1.3)


def centring_picture(taken: float) -> str:
    parts = centring.centring_parts(centring.nearest_on_paper(taken))
    return large(svg(centring.WIDE, centring.HIGH, *parts, says="nearest neighbours"), 0.85)


def centring_before() -> str:
    return centring_picture(0.0)


def centring_after() -> str:
    return centring_picture(1.0)


def aligned() -> Any:
    return for_a_hall(results.aligned_chart(), 1140, 470)


def transfer() -> Any:
    return for_a_hall(results.transfer_chart(), 1140, 470)


def four_languages_tuned() -> Any:
    return for_a_hall(results.four_languages_chart(), 1140, 470)


def one_vocabulary() -> Any:
    return for_a_hall(real.vocabulary_chart(), 1140, 470)


def real_retrieval() -> Any:
    return for_a_hall(real.retrieval_chart(), 1140, 430)


def low_resource() -> Any:
    return for_a_hall(results.low_resource_chart(), 1140, 420)


def spelling() -> Any:
    return for_a_hall(results.spelling_chart(), 1140, 470)


def ranking() -> str:
    """XNLI averages as printed, beside what differs."""
    xlm, xlm_r = printed("xlm")["xnli"], printed("xlm_r")["zero_shot"]
    rows = [
        ("mBERT", "104", "mBERT, cased", xlm_r["mbert"], "no"),
        ("XLM", "100", "XLM, 17 or 100 languages", xlm_r["xlm_100"], "no"),
        ("XLM", "15", "XLM, 15 languages", xlm["mlm"][0], "no"),
        ("XLM, with TLM", "15", "XLM, 15 languages", xlm["mlm_and_tlm"][0], "<strong>yes</strong>"),
        ("XLM-R base", "100", "XLM-R base", xlm_r["base"], "no"),
        ("XLM-R large", "100", "XLM-R large", xlm_r["large"], "no"),
    ]
    cells = [
        (name, languages, f"{sizes.size_of(size).parameters / 1e6:.0f}M", f"{score}", given)
        for name, languages, size, score, given in rows
    ]
    return table(("", "languages", "size", "XNLI", "TLM"), cells, size=21)


SHOWN = ("E23", "E26", "E28", "stopped too early")


def claims_rows() -> str:
    return drawing.claims_rows("10", SHOWN, size=18)


def exercises() -> str:
    return drawing.exercise_list("10")
