"""What is claimed about mBERT, XLM and XLM-R: sizes, sampling, transfer, and its price."""

from __future__ import annotations

from functools import cache
from math import log
from statistics import mean

from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.translation_lm import mix_of, translation_sequences
from course_lib.teaching.claims import Settled, compared, gained, printed, result
from course_lib.text.language_sampling import MBERT, by_blocks, by_sentences, smoothed

from .pair_runs import RECIPES, RETRIEVED, prepare
from .pairs import dictionary_retrieval
from .views.sizes import size_of

# ================================================================ sizes


def vocabulary() -> Settled:
    """Rows and parameters of both released mBERTs, in millions."""
    sizes = [size_of(f"mBERT, {kind}") for kind in ("cased", "uncased")]
    value = tuple(x for size in sizes for x in (size.vocabulary, round(size.parameters / 1e6, 1)))
    detail = "; ".join(
        f"{size.vocabulary:,} rows × {size.width} = {size.embeddings:,} of {size.parameters:,} "
        "parameters" for size in sizes
    )  # fmt: skip
    return Settled(value, f"cased {detail.replace('; ', '; uncased ')}")


def rest_settled() -> Settled:
    """Millions of parameters besides the words, XLM-R base and BERT-base; the words' fraction."""
    ours, bert = size_of("XLM-R base"), size_of("BERT-base (uncased)")
    rest = tuple(round((size.parameters - size.embeddings) / 1e6, 2) for size in (ours, bert))
    detail = f"without the words {rest[0]}M and {rest[1]}M; words are {ours.embedding_fraction:.0%}"
    return Settled((*rest, round(ours.embedding_fraction, 3)), detail)


# ================================================================ reading


def smoothing() -> Settled:
    """How many times as often English is read as Icelandic."""
    data = printed("mbert")["data"]
    english, icelandic = smoothed([data["english_to_icelandic"], 1], MBERT)
    times = english / icelandic
    return Settled(times, f"{data['english_to_icelandic']:,}^{MBERT} = {times:.0f} to 1")


def definitions() -> Settled:
    """The probability of the first of two languages, 900 long and 300 short sentences: XLM's
    sentences, XLM's own default, XLM-R's blocks of 512 tokens."""
    sentences, tokens = (900, 300), (9_000, 9_000)
    probs = (by_sentences(sentences, 0.5)[0], by_sentences(sentences)[0], by_blocks(tokens)[0])
    detail = "by sentences {:.2f}, by XLM's default {:.2f}, by blocks {:.2f}".format(*probs)
    return Settled(tuple(round(x, 3) for x in probs), detail)


def pair() -> Settled:
    """Separators of a pair, its positions and languages, as our TLM builds it."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=2, mask=3, vocab_size=20)
    sequences = translation_sequences([[5, 6, 7]], [[8, 9]], special, length=9)
    assert sequences.position_ids is not None
    ids, positions = sequences.input_ids[0].tolist(), sequences.position_ids[0].tolist()
    value = ids.count(special.sep), tuple(positions), tuple(sequences.token_type_ids[0].tolist())
    return Settled(value, f"{value[0]} separators; positions {positions}; languages {value[2]}")


def mix() -> Settled:
    """What the setting says in a mix's order: masked, random, kept."""
    parts = mix_of(printed("xlm")["program"]["word_mask_keep_rand"].replace(".1,0.1", ".15,0.05"))
    detail = "“0.8,0.15,0.05” is masked {:.0%}, random {:.0%}, kept {:.0%}".format(*parts)
    return Settled(parts, detail)


# ================================================================ the papers' tables


def tlm() -> Settled:
    return gained("xlm", "xnli", "mlm_and_tlm", "mlm")


def exponent() -> Settled:
    """γ in "score goes as languages^γ", between 7 and 100; and what +0.1 would say of 71.8."""
    curse = printed("xlm_r")["curse"]
    few, many = curse["languages_7"], curse["languages_100"]
    gamma = log(many / few) / log(100 / 7)
    wrong = few * (100 / 7) ** 0.1
    return Settled(
        gamma, f"{few} to {many}: exponent {gamma:+.3f}; with +0.1 it would be {wrong:.0f}"
    )


def alone() -> Settled:
    """Points of one model of seven languages over seven of one: with English labels, with all."""
    scores = printed("xlm_r")["alone"]
    gained_ = tuple(
        round(scores[name] - scores["bert"], 1) for name in ("xlm_7", "xlm_7_translate_train_all")
    )
    detail = "{:+.1f} with English labels, {:+.1f} with those of all languages"
    return Settled(gained_, detail.format(*gained_))


def longer_settled() -> Settled:
    longer, xlm = printed("xlm_r")["longer"], printed("xlm")["xnli"]
    gains = (
        round(longer["trained_on"] - longer["stopped"], 1),
        round(xlm["mlm_and_tlm"][0] - longer["trained_on"], 1),
    )
    return Settled(gains, "{:+.1f} by training on; TLM is then {:+.1f} ahead".format(*gains))


def ranking() -> Settled:
    """XNLI averages, and the best one's lead over the next but its own size."""
    rows = {k: v for k, v in printed("xlm_r")["zero_shot"].items() if isinstance(v, float)}
    rows.pop("translate_train_all")
    rows["xlm_15_mlm"] = printed("xlm")["xnli"]["mlm"][0]
    order = tuple(sorted(rows, key=rows.__getitem__, reverse=True))
    return Settled(order, ", ".join(f"{name.replace('_', ' ')} {rows[name]}" for name in order))


# ================================================================ our own runs

LANGUAGES = ("norlish", "sumorian")
SLOTS = "slots other own centred"  # the kind of a word, learned in English
UNREAD = "slots unread own centred"


def _of(file: str, measure: str, recipe: str) -> float:
    return mean(run[measure] for run in result(file)["runs"][recipe])


def unread() -> Settled:
    """A probe of English words, asked in the language read and in one unread; the majority."""
    accuracies = [_of("10_pairs", m, "norlish, MLM, longer") for m in (SLOTS, UNREAD)]
    value = (*accuracies, result("10_pairs")["majority"])
    detail = "Norlish, read beside English, {:.0%}; Sumorian, unread, {:.0%}; majority class {:.0%}"
    return Settled(value, detail.format(*value))


def alike() -> Settled:
    """Translations found: Norlish by TLM, raw and mean-centred; Sumorian by MLM."""
    value = (
        _of("10_pairs", "retrieval", "norlish, TLM"),
        _of("10_pairs", "retrieval centred", "norlish, TLM"),
        _of("10_pairs", "retrieval centred", "sumorian, MLM, longer"),
    )
    detail = "Norlish, TLM: {:.0%}, mean-centred {:.0%}; Sumorian, MLM: {:.1%}"
    return Settled(value, detail.format(*value))


@cache
def dictionary() -> Settled:
    """Mean-centred retrieval accuracy by long TLM, Norlish and Sumorian; a dictionary learned by
    counting in the same pairs, in both; the ceiling, as some sentences come twice."""
    tlm = [_of("10_pairs", "retrieval centred", f"{n}, TLM, longer") for n in LANGUAGES]
    materials = [prepare(RECIPES[f"{name}, TLM"]) for name in LANGUAGES]
    looked_up = [one.pairs("other", one.learn[:RETRIEVED]) for one in materials]
    counted = [
        dictionary_retrieval(one.pairs("other", one.train), test)
        for one, test in zip(materials, looked_up, strict=True)
    ]
    ceiling = len(set(map(tuple, looked_up[0].first))) / len(looked_up[0].first)
    detail = "TLM {:.0%} and {:.0%}; a dictionary {:.0%} and {:.0%}; {:.0%} of them are different"
    return Settled((*tlm, *counted, ceiling), detail.format(*tlm, *counted, ceiling))


def anchors() -> Settled:
    """English respelled: the slot and the translation with no word in common; the latter at 30%,
    trained and at random initialisation."""
    none, some = (f"english respelled, {percent} shared" for percent in ("0%", "30%"))
    value = (
        _of("10_spellings", SLOTS, none),
        _of("10_spellings", "retrieval", none),
        _of("10_spellings", "retrieval", some),
        mean(run["retrieval"] for run in result("10_spellings")["untrained"][some]),
    )
    detail = (
        "kind of the word {:.0%}, translation {:.0%}; with 30% shared words {:.0%}, "
        "{:.0%} at random initialisation"
    )
    return Settled(value, detail.format(*value))


def over_mlm(measure: str, called: str) -> Settled:
    """TLM less MLM after as many steps, Sumorian and Norlish."""
    gains = [
        compared("10_pairs", measure, [f"{name}, TLM, longer"], f"{name}, MLM, longer", called)
        for name in ("sumorian", "norlish")
    ]
    return Settled(tuple(one.value[0] for one in gains), "; ".join(one.detail for one in gains))


def by_order() -> Settled:
    """The slot of a word by spelling and order."""
    names = ("english respelled, 0% shared", "norlish, 0% shared", "norlish, 30% shared")
    value = tuple(_of("10_spellings", SLOTS, name) for name in names)
    detail = "same order, no word shared {:.0%}; other order {:.0%}, with 30% of words {:.0%}"
    return Settled(value, detail.format(*value))


def real_retrieval() -> Settled:
    """Real messages whose nearest vector is their translation: with TLM, without, at random
    initialisation, and by spelling."""
    names = ("MLM + TLM", "MLM", "random initialisation")
    accuracies = [_of("10_retrieval", "retrieval with English centred", name) for name in names]
    value = (*accuracies, result("10_retrieval")["by_spelling"]["retrieval with English"])
    detail = "with TLM {:.0%}, without {:.0%}, random initialisation {:.0%}; by spelling {:.0%}"
    return Settled(value, detail.format(*value))


def four_languages() -> Settled:
    """Topics of Sumorian texts after fine-tuning in English: with translations, without; the
    commonest class."""
    scores = [
        _of("10_transfer", "topic sumorian", f"four, {name}") for name in ("MLM + TLM", "MLM")
    ]
    value = (*scores, result("10_transfer")["majority"]["topic"])
    detail = "topics of Sumorian texts: with TLM {:.0%}, without {:.0%}; majority class {:.0%}"
    return Settled(value, detail.format(*value))


def curse_here() -> Settled:
    """Masked English words at 32 wide: alone; one of four; alone with as much reading as that."""
    names = ("1 language", "4 languages", "1 language")
    steps = ("", "", ", a quarter of the steps")
    value = tuple(
        _of("10_curse", "masked 0", f"{name}, 32 wide{suffix}")
        for name, suffix in zip(names, steps, strict=True)
    )
    detail = "alone {:.0%}, one of four languages {:.0%}, alone with a quarter of the steps {:.0%}"
    return Settled(value, detail.format(*value))


def alpha_here() -> Settled:
    """Masked words of the small language: alone, and beside the large one, α = 1 and 0.3."""
    value = tuple(
        _of("10_low_resource", "masked 1", name) for name in ("Norlish alone", "α = 1", "α = 0.3")
    )
    detail = "alone {:.1%}; beside English with α = 1 {:.1%}, with 0.3 {:.1%}"
    return Settled(value, detail.format(*value))
