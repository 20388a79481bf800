"""The numbers that sentences of lecture 10 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from statistics import mean
from typing import Any

from course_lib.config import published
from course_lib.family.roberta import RobertaConfig
from course_lib.lectures.lecture_10.exercises import sizes
from course_lib.teaching.numbers import in_letters, millions, percent
from course_lib.teaching.results import outcome, stored
from course_lib.text.shared_words import shared_words, with_shared_words
from course_lib.text.world import MicroWorld

from .claims import dictionary
from .exercises.sizes import MODELS, sizes_of, weights
from .sharing_runs import LARGE, SMALL
from .views.results import AS_IT_IS, OTHER, by_pair, by_spelling, reached
from .views.sizes import size_of


def parameters(name: str) -> str:
    """In millions."""
    return millions(size_of(name).parameters)


def embedding_fraction(name: str) -> str:
    """The fraction of a model's parameters that is its embedding matrix."""
    return f"{size_of(name).embedding_fraction:.0%}"


def times_roberta() -> str:
    """How many times as large as RoBERTa-base XLM-R base is, poolers left out."""
    ours, roberta = MODELS["XLM-R base"], published("roberta", "base", RobertaConfig)
    return f"{weights(*sizes_of(ours))[0] / weights(*sizes_of(roberta))[0]:.1f}"


def pairs(measure: str, language: str, row: str) -> str:
    """What XLMs of English and a language reached, the mean over the seeds, in percent; below one
    percent with a decimal."""
    values = reached(measure, language)[row]
    return percent(values, digits=int(mean(values) < 0.01))


def by_dictionary() -> str:
    """Retrieval accuracy of a dictionary by counting, where it is lowest."""
    return f"{min(dictionary().value[2:4]):.0%}"


def both_in_sumorian() -> list[float]:
    """Translations found in Sumorian by MLM and TLM in turns, mean-centred, the best run last."""
    return sorted(reached("retrieval centred", "sumorian")["MLM + TLM, longer"])


def other_four() -> str:
    """The range of the other runs."""
    least, *_, most = both_in_sumorian()[:-1]
    return f"{least:.0%} to {most:.0%}"


def unread() -> list[float]:
    """Kinds of words right in a language that was not read, a mean a recipe, ascending."""
    runs = list(by_pair().items())
    return sorted(mean(run[UNREAD] for run in of) for name, of in runs if "random" not in name)


@cache
def little_words_shared(fraction: float | None) -> float:
    """Of Norlish words in stories that fill no slot, how many are English words; as it is, or with
    this fraction of all its words spelled as in English."""
    english, natural = MicroWorld.load(), MicroWorld.load(language="norlish")
    world = natural if fraction is None else with_shared_words("norlish", fraction)
    known, stories = set(english.vocab), english.stories(200, seed=0)
    traces = (t for story in stories for line in story.told_in(world).trace for t in line)
    return mean(t.word in known for t in traces if t.word.isalpha() and not t.slot)


def norlish_types() -> str:
    """How many of the word types of Norlish, as it is, are English words."""
    english, norlish = MicroWorld.load(), MicroWorld.load(language="norlish")
    return f"{shared_words(norlish, english, english.stories(1)).types:.0%}"


UNREAD = "slots unread own centred"


def spelled(measure: str, recipe: str) -> str:
    """The same by spelling, without translations."""
    return percent([run[measure] for run in by_spelling()[recipe]])


@cache
def running_words_shared() -> str:
    """Of the words in stories told with 30% of the word types spelled as in English, how many are
    English words: in the two languages of another order."""
    english = MicroWorld.load()
    stories = english.stories(200, seed=0)
    worlds = (with_shared_words(name, 0.3) for name in ("norlish", "sumorian"))
    fractions = sorted(shared_words(world, english, stories).tokens for world in worlds)
    return f"{fractions[0]:.0%} to {fractions[-1]:.0%}"


def spelled_at_random(measure: str, shared: Sequence[str] = ("30%",)) -> list[float]:
    """At random initialisation, with so many words spelled as in English: a value a run."""
    untrained = stored("10_spellings")["untrained"] | stored("10_order")["untrained"]
    names = [name for name in untrained if name.split()[-2] in shared]
    return [run[measure] for name in names for run in untrained[name]]


def range_at_random(measure: str = "retrieval", shared: Sequence[str] = ("30%",)) -> str:
    """The range of those; of translations, means left on."""
    values = spelled_at_random(measure, shared)
    return f"{min(values):.0%} to {max(values):.0%}"


def shared_model(name: str, measure: str, recipe: str) -> str:
    """Masked words right in a model that several languages share, in percent."""
    return percent(outcome(stored(name), measure)[recipe], digits=1)


def training_loss(recipe: str) -> float:
    """The last training losses of models of one language and more, the mean over the seeds."""
    return mean(outcome(stored("10_curse"), "mlm_loss")[CURSE[recipe]])


def four_languages(measure: str, language: str, recipe: str) -> str:
    """One model of four languages, or what it is compared with; fine-tuned in English."""
    return percent(outcome(stored("10_transfer"), f"{measure} {language}")[FOUR[recipe]])


def spelling_alone(task: str) -> str:
    """The same task without an encoder, by how words are spelled: "topic norlish"."""
    return f"{stored('10_transfer')['words_alone'][task]:.0%}"


FOUR = {
    "only": "English only", "mlm": "four, MLM", "told": "four, MLM, language told",
    "tlm": "four, MLM + TLM", "random": "untrained",
}  # fmt: skip
VOCABULARY = {
    "1": "unigram, α = 1", "03": "unigram, α = 0.3", "twice": "unigram, α = 0.3, twice the size"
}  # fmt: skip


def vocabulary(measure: str, recipe: str) -> str:
    """Of a vocabulary of seven languages, the mean over the draws."""
    return f"{mean(outcome(stored('10_vocabulary'), measure)[VOCABULARY[recipe]]):.2f}"


REAL = {"real": "10_retrieval", "seven": "10_retrieval_seven", "tried": "10_retrieval_tried"}
WITH_ENGLISH, BETWEEN = "retrieval with English", "retrieval without English"


def real_retrieval(file: str, recipe: str, measure: str = WITH_ENGLISH) -> str:
    """Mean-centred retrieval accuracy of unseen messages, the mean over pairs of languages."""
    return percent(outcome(stored(REAL[file]), f"{measure} centred")[recipe])


def first_seed(recipe: str) -> float:
    """What the first seed of three languages found: what the one run of each try is beside."""
    return outcome(stored(REAL["real"]), f"{WITH_ENGLISH} centred")[recipe][0]


def real_embeddings(file: str, recipe: str) -> str:
    """The same by the mean of the embeddings, below all layers."""
    runs = stored(REAL[file])["runs"][recipe]
    return percent([run["layers with English centred"][0] for run in runs])


def without_network(file: str, by: str) -> str:
    """The same by spelling or by counts of pieces."""
    return percent([stored(REAL[file])[f"by_{by}"][WITH_ENGLISH]])


def read_of(file: str, what: str) -> int:
    """Messages that were looked up, or pairs that were read."""
    result: dict[str, Any] = stored(REAL[file])
    return int((result["read"] | result)[what])


LOW = {"1": "α = 1", "07": "α = 0.7", "03": "α = 0.3", "0": "α = 0", "alone": "Norlish alone"}
CURSE = {
    "one": "1 language, 32 wide", "two": "2 languages, 32 wide", "four": "4 languages, 32 wide",
    "quarter": "1 language, 32 wide, a quarter of the steps",
    "wide_one": "1 language, 96 wide", "wide_four": "4 languages, 96 wide",
    "wide_quarter": "1 language, 96 wide, a quarter of the steps",
}  # fmt: skip


PAIRS = {  # what a sentence says -> the measure, and of which languages and rows sentences speak
    "found": (
        "retrieval",
        "norlish_tlm norlish_mlm_longer norlish_tlm_longer sumorian_tlm sumorian_tlm_longer",
    ),
    "off": (
        "retrieval centred",
        "norlish_random norlish_tlm norlish_mlm_longer norlish_tlm_longer "
        "sumorian_tlm sumorian_mlm_longer sumorian_tlm_longer sumorian_both_longer",
    ),
    "slots": (
        OTHER,
        "norlish_mlm_longer norlish_tlm_longer norlish_both_longer "
        "sumorian_mlm_longer sumorian_tlm_longer sumorian_both_longer",
    ),
    "unread": (UNREAD, "norlish_tlm_longer"),
    "english": ("slots english", "norlish_mlm_longer"),
}
RECIPES = {
    "respelled": "english respelled, 0% shared",
    "respelled_30": "english respelled, 30% shared",
    "norlish_0": "norlish, 0% shared",
    "norlish_30": "norlish, 30% shared",
    "norlish_100": "norlish, 100% shared",
    "as_it_is": AS_IT_IS,
    "sumorian_0": "sumorian, 0% shared",
    "sumorian_30": "sumorian, 30% shared",
}
SPELLINGS = {
    "slots": (OTHER, "respelled norlish_0 norlish_30 as_it_is sumorian_0 sumorian_30"),
    "found": ("retrieval", "respelled respelled_30 norlish_0 norlish_30 sumorian_30"),
    "off": ("retrieval centred", "respelled respelled_30"),
    "all": ("slots other", "norlish_100"),
}

NUMBERS: dict[str, Callable[[], Any]] = {
    "pair_majority": lambda: f"{stored('10_pairs')['majority']:.0%}",
    "four_majority": lambda: f"{stored('10_transfer')['majority']['topic']:.0%}",
    "real_seeds": lambda: in_letters(len(stored("10_retrieval")["runs"]["MLM"])),
}

TYPED = {
    "10%": "an answer offered to a guess",
    "8,000": "pieces of the model of seven languages, a setting",
    "100": "languages of XLM and XLM-R; sentences of the worked example; mBERT's README",
    "30%": "of words shared, a setting",
    "15%": "selected tokens, and kept ones, in XLM's program",
    "80%": "selected tokens that are masked",
}
