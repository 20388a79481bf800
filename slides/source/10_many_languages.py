"""What deck 10 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from drawing import body_of, code, for_a_hall, large, stacked_bars, svg, table, wordless

from course_lib import MicroWorld
from course_lib.family.xlm import TiedOutput, XlmStack
from course_lib.lectures.lecture_10.views import (
    centring,
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


def power(exponent: str) -> str:
    return f'p<span style="vertical-align:0.45em;font-size:0.75em">{exponent}</span>'


def three_models() -> str:
    rows = [
        ("is", "BERT", "BERT + language vectors", "RoBERTa"),
        ("languages", "104", "15, 17 or 100", "100"),
        ("text", "Wikipedias", "Wikipedias; translations", "2.5 TB of CommonCrawl"),
        ("vocabulary", "119,547", "95,000 or 200,000", "250,002"),
        ("trained by", "MLM, NSP", "CLM, MLM or MLM + <strong>TLM</strong>", "MLM"),
        ("told the language", "no, on purpose", "<strong>yes</strong> (15 languages)", "no"),
        ("sampling", power("0.7"), f"{power('α')} of sentences", f"{power('0.3')} of blocks"),
    ]
    rows = [(f"<strong>{row[0]}</strong>", *row[1:]) for row in rows]
    return table(("", "mBERT (2018)", "XLM (2019)", "XLM-R (2019)"), rows, numbers=False, size=22)


def sampling_bars(alpha: float) -> str:
    sizes_ = sampling.SIZES["ten languages, each half of the one before"]
    few = dict(list(sizes_.items())[:6])
    parts = sampling.sampling_parts(few, alpha, 27)[1:]  # the slide says what the bars are
    parts = [part.replace(", each text ×", ", ×") for part in parts]
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
                (size.embeddings / longest, f"{size.embedding_fraction:.0%}"),
                ((size.parameters - size.embeddings) / longest, ""),
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
    return large(wordless(parallel.parallel_picture(worlds, short, "its look")), 1.42)


def centring_picture(taken: float) -> str:
    parts = centring.centring_parts(centring.nearest_on_paper(taken))
    parts = [re.sub('font-size="1[56]"', 'font-size="21"', part) for part in parts]
    moved = f'<g transform="translate(36,0)">{"".join(parts)}</g>'
    return large(svg(centring.WIDTH + 66, centring.HEIGHT, moved, says="nearest neighbours"), 0.8)


def centring_before() -> str:
    return centring_picture(0.0)


def centring_after() -> str:
    return centring_picture(1.0)


def accuracy(figure: Any) -> Any:
    return figure.for_each_xaxis(lambda axis: axis.update(title_text="accuracy"))


def transfer() -> Any:
    return accuracy(for_a_hall(results.transfer_chart(), 1140, 470))


def four_languages_tuned() -> Any:
    return accuracy(for_a_hall(results.four_languages_chart(), 1140, 470))


def one_vocabulary() -> Any:
    figure = for_a_hall(real.vocabulary_chart(), 1140, 470)
    *others, last = figure.layout.yaxis.ticktext
    assert "twice" in last
    return figure.update_yaxes(ticktext=[*others, "unigram, α = 0.3,<br>twice the size"])


def spelling() -> Any:
    figure = for_a_hall(results.spelling_chart(), 1140, 470)
    figure.for_each_annotation(
        lambda a: a.update(text=a.text.replace("of a sentence", "of a sentence, mean-centred"))
    )
    return accuracy(figure)


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
