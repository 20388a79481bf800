"""How the claims of lecture 11 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import mean

from course_lib.teaching.claims import Settled, printed, result
from course_lib.teaching.results import in_words
from course_lib.teaching.verdicts import BETTER, OPEN, WORSE, by_rule, in_points

from .views.results import FINE_TUNED_AT, labelled

MEDICINE, SWITCHES = "11_medicine", "11_switches"
CALLED = {"score": "the task", "in domain": "words of diagnoses", "general": "general words"}
LECTURES_BASELINE = 12.24  # what one of the source lectures prints as BERT's score


def _words(domain: str) -> dict:  # type: ignore[type-arg]
    measured: dict = result("11_words")["domains"][domain]  # type: ignore[type-arg]
    return measured


# ================================================================ the papers


def baseline() -> Settled:
    """The gains of the abstract that the lecture's "score of BERT" equals."""
    gains = {k: v for k, v in printed("biobert")["abstract"].items() if k != "where"}
    same = tuple(name for name, gain in gains.items() if gain == LECTURES_BASELINE)
    return Settled(same, f"the abstract's gains: {gains}; {LECTURES_BASELINE} is {', '.join(same)}")


def read() -> Settled:
    """Billions of words: of v1.1 itself, what BERT had read, and PubMed with PMC."""
    words = printed("biobert")["words"]
    inherited = round(words["wikipedia"] + words["books"], 1)
    value = (words["pubmed"], inherited, words["pubmed"] + words["pmc"])
    return Settled(value, "v1.1 reads {}, on top of {}; PubMed and PMC are {}".format(*value))


def parts() -> Settled:
    words = printed("finbert")["yang"]
    total = round(words["filings"] + words["calls"] + words["analysts"], 1)
    return Settled(total, f"{words['filings']} + {words['calls']} + {words['analysts']} = {total}")


# ================================================================ words


def pieces() -> Settled:
    stored = result("11_words")["pieces"]
    cut = {word: stored[word]["bert-base"] for word in ("BRCA1", "metformin")}
    detail = "; ".join(f"{word}: {' '.join(parts)}" for word, parts in cut.items())
    return Settled(tuple(map(len, cut.values())), detail)


def mismatch() -> Settled:
    """Pieces a word, general text, medicine, law, finance: under bert-base's vocabulary, then under
    course-bert's."""
    names = ("general", "medicine", "law", "finance")
    value, lines = (), []
    for which in ("bert-base", "course"):
        fertilities = tuple(_words(name)["fertility"][which] for name in names)
        lines.append(f"{which}: " + ", ".join(map("{} {:.2f}".format, names, fertilities)))
        value += fertilities
    return Settled(value, f"pieces a word under {'; under '.join(lines)}")


def sentences() -> Settled:
    value = tuple(_words(name)["sentence"]["mean"] for name in ("law", "general"))
    return Settled(value, "words a sentence: licences {:.0f}, documentation {:.0f}".format(*value))


def splits() -> Settled:
    repeated = _words("law")["repeated"]
    value = (repeated["by family"], repeated["at random"])
    return Settled(value, "licences: by family {:.0%}, at random {:.0%}".format(*value))


# ================================================================ our own runs


def _of(file: str, measure: str, recipe: str) -> float:
    return mean(run[measure] for run in result(file)["runs"][recipe])


def _ruled(file: str, *comparisons: tuple[str, str, str]) -> Settled:
    """For each (measure, run, run it is compared with) the rule's word, with the points."""
    runs, verdicts, details = result(file)["runs"], [], []
    for measure, one, other in comparisons:
        values = [[run[measure] for run in runs[name]] for name in (one, other)]
        verdicts.append(by_rule(*values))
        means = " against ".join(
            f"{n} {in_words(v)}" for n, v in zip((one, other), values, strict=True)
        )
        details.append(f"{CALLED.get(measure, measure)}: {means}, in points {in_points(*values)}")
    return Settled(tuple(verdicts), "; ".join(details))


def _labelled(*comparisons: tuple[str, str, str]) -> Settled:
    """The same of the starts of `11_labels`, each at the best rate that it was tried at."""
    verdicts, details = [], []
    for task, one, other in comparisons:
        values = [labelled(task)[name] for name in (one, other)]
        verdicts.append(by_rule(*values))
        means = [f"{n} {in_words(v)}" for n, v in zip((one, other), values, strict=True)]
        details.append(f"{task}: {' against '.join(means)}, in points {in_points(*values)}")
    return Settled(tuple(verdicts), "; ".join(details))


def continued() -> Settled:
    """Continued less as it is: the order of words, chapters, tags."""
    pair = ("continued", "as it is")
    new = _labelled(*((task, *pair) for task in ("word order, 500", "chapters")))
    tags = _ruled(MEDICINE, ("added words", *pair))
    return Settled((*new.value, *tags.value), f"{new.detail}; {tags.detail}")


def counting() -> Settled:
    """The chapter by the general model, fine-tuned at 3e-4 and at the best of three rates, less a
    bag of words: points, and the rule's word for the second."""
    bag = labelled("chapters")["bag of words"]
    low, best = (labelled("chapters", rates)["as it is"] for rates in ((3e-4,), FINE_TUNED_AT))
    value = (mean(low) - mean(bag), mean(best) - mean(bag), by_rule(best, bag))
    detail = f"3e-4 {in_words(low)}, best rate {in_words(best)}, bag of words {in_words(bag)}"
    return Settled(value, detail)


def afresh() -> Settled:
    """Afresh less continued, chapters at equal FLOPs and at three times as many."""
    pairs = [(f"own vocabulary, afresh{n}", f"continued{n}") for n in ("", ", longer")]
    return _ruled(MEDICINE, *(("chapters", *pair) for pair in pairs))


def means_settled() -> Settled:
    """Means less random rows: hidden words of the domain and of general text, chapters, tags."""
    measures = ("in domain", "general", "chapters", "added words")
    pair = "rows added, means", "rows added, random"
    ruled, runs = _ruled(MEDICINE, *((m, *pair) for m in measures)), result(MEDICINE)["runs"]
    begins = (mean(run["curve"][0]["general"] for run in runs[name]) for name in pair)
    return Settled(
        ruled.value,
        "general words at step 0: {:.0%} against {:.0%}; ".format(*begins) + ruled.detail,
    )


def added() -> Settled:
    """Words added less the old vocabulary: hidden words, chapters, tags."""
    measures = ("in domain", "chapters", "added words")
    return _ruled(MEDICINE, *((m, "rows added, means", "continued") for m in measures))


def forgotten() -> Settled:
    """General words: as it is, continued, a third of the way, with general text mixed in."""
    names = ("as it is", "continued", "continued, general text mixed in")
    before, after, mixed = (_of(MEDICINE, "general", name) for name in names)
    third = mean(run["curve"][2]["general"] for run in result(MEDICINE)["runs"]["continued"])
    detail = (
        f"before {before:.0%}, after {after:.0%}, a third of the way {third:.0%}, mixed {mixed:.0%}"
    )
    return Settled((before, after, third, mixed), detail)


def padding() -> Settled:
    names = [f"added words, loss over {n} positions" for n in (32, 128)]
    return _ruled(SWITCHES, *(("score", name, "added words") for name in names))


def rates() -> Settled:
    """Chapters with each guard, and with both; general words with both and with a third of the
    rate, each less plain fine-tuning; chapters, a third less both."""
    guards = ["chapters, layer-wise rates", "chapters, gradual unfreezing", "chapters, both"]
    third = "chapters, a third of the rate"
    ruled = _ruled(
        SWITCHES, *(("score", name, "chapters") for name in guards),
        *(("general", name, "chapters") for name in (guards[-1], third)),
        ("score", third, guards[-1]),
    )  # fmt: skip
    return Settled((*ruled.value, _of(SWITCHES, "general", "chapters")), ruled.detail)


def weights() -> Settled:
    return _ruled(SWITCHES, ("score", "natural chapters, weights", "natural chapters"))


def finance() -> Settled:
    """The best mean of the four starts, and the best of the two without pre-training."""
    runs = {n: _of(SWITCHES, "score", n) for n in result(SWITCHES)["runs"] if "finance" in n}
    random = max(value for name, value in runs.items() if "random" in name)
    detail = ", ".join(f"{name} {value:.0%}" for name, value in runs.items())
    return Settled((max(runs.values()), random), detail)
