"""How the claims of lecture 11 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import mean

from course_lib.teaching.claims import (
    Check,
    Settled,
    all_near,
    compared,
    entries,
    is_,
    near,
    printed,
    result,
)

MEDICINE, SWITCHES = "11_medicine", "11_switches"
LECTURES_BASELINE = 12.24  # what source lecture 000 prints as BERT's score


def _words(domain: str) -> dict:  # type: ignore[type-arg]
    found: dict = result("11_words")["domains"][domain]  # type: ignore[type-arg]
    return found


# ================================================================ the papers


def _baseline() -> Settled:
    """The gains of the abstract that the lecture's "score of BERT" equals."""
    gains = {k: v for k, v in printed("biobert")["abstract"].items() if k != "where"}
    same = tuple(name for name, gain in gains.items() if gain == LECTURES_BASELINE)
    return Settled(same, f"the abstract's gains: {gains}; {LECTURES_BASELINE} is {', '.join(same)}")


def _read() -> Settled:
    """Billions of words: of v1.1 itself, what BERT had read, and PubMed with PMC."""
    words = printed("biobert")["words"]
    inherited = round(words["wikipedia"] + words["books"], 1)
    value = (words["pubmed"], inherited, words["pubmed"] + words["pmc"])
    return Settled(value, "v1.1 reads {}, on top of {}; PubMed and PMC are {}".format(*value))


def _parts() -> Settled:
    found = printed("finbert")["yang"]
    total = round(found["filings"] + found["calls"] + found["analysts"], 1)
    return Settled(total, f"{found['filings']} + {found['calls']} + {found['analysts']} = {total}")


# ================================================================ words


def _pieces() -> Settled:
    found = result("11_words")["pieces"]
    value = tuple(len(found[word]["bert-base"]) for word in ("BRCA1", "metformin"))
    said = "; ".join(f"{w}: {' '.join(found[w]['bert-base'])}" for w in ("BRCA1", "metformin"))
    return Settled(value, said)


def _mismatch() -> Settled:
    """Pieces a word under bert-base's vocabulary, by domain."""
    names = ("general", "medicine", "law", "finance")
    value = tuple(_words(name)["fertility"]["bert-base"] for name in names)
    said = ", ".join(f"{name} {x:.2f}" for name, x in zip(names, value, strict=True))
    return Settled(value, f"pieces a word: {said}")


def _sentences() -> Settled:
    value = tuple(_words(name)["sentence"]["mean"] for name in ("law", "general"))
    return Settled(value, "words a sentence: licences {:.0f}, documentation {:.0f}".format(*value))


def _splits() -> Settled:
    found = _words("law")["repeated"]
    value = (found["by family"], found["at random"])
    return Settled(value, "licences: by family {:.0%}, at random {:.0%}".format(*value))


# ================================================================ our own runs


def _of(file: str, measure: str, recipe: str) -> float:
    return mean(run[measure] for run in result(file)["runs"][recipe])


def _continued() -> Settled:
    """Chapters and tags, continued less as it is; the chapters' bag of words."""
    found = [
        compared(MEDICINE, measure, ["continued"], "as it is", measure)
        for measure in ("chapters", "added words")
    ]
    bag = mean(result(MEDICINE)["without_encoder"]["chapters"])
    said = "; ".join(one.detail for one in found)
    value = (found[0].value[0], found[1].value[0], bag)
    return Settled(value, f"{said}; chapters by a bag of words {bag:.0%}")


def _afresh() -> Settled:
    """Chapters: afresh at equal FLOPs and at three times, less continued."""
    names = ["own vocabulary, afresh", "own vocabulary, afresh, longer"]
    return compared(MEDICINE, "chapters", names, "continued", "chapters")


def _means() -> Settled:
    """Means less random rows: hidden words, chapters, tags."""
    found = [
        compared(MEDICINE, measure, ["rows added, means"], "rows added, random", measure)
        for measure in ("in domain", "chapters", "added words")
    ]
    return Settled(tuple(one.value[0] for one in found), "; ".join(one.detail for one in found))


def _added() -> Settled:
    """Words added less the old vocabulary: hidden words, chapters."""
    found = [
        compared(MEDICINE, measure, ["rows added, means"], "continued", measure)
        for measure in ("in domain", "chapters")
    ]
    return Settled(tuple(one.value[0] for one in found), "; ".join(one.detail for one in found))


def _forgotten() -> Settled:
    """General words: as it is, continued, with general text mixed in."""
    names = ("as it is", "continued", "continued, general text mixed in")
    value = tuple(_of(MEDICINE, "general", name) for name in names)
    return Settled(value, "before {:.0%}, after {:.0%}, with one in four {:.0%}".format(*value))


def _padding() -> Settled:
    names = [f"added words, loss over {n} positions" for n in (32, 128)]
    return compared(SWITCHES, "score", names, "added words", "F1")


def _rates() -> Settled:
    """Chapters and general words: both guards less none; general words without any."""
    names = ["chapters, layer-wise rates", "chapters, gradual unfreezing", "chapters, both"]
    task = compared(SWITCHES, "score", names, "chapters", "chapters")
    kept = compared(SWITCHES, "general", names, "chapters", "general words")
    value = (max(task.value), max(kept.value), _of(SWITCHES, "general", "chapters"))
    return Settled(value, f"{task.detail}; {kept.detail}")


def _weights() -> Settled:
    return compared(
        SWITCHES, "score", ["natural chapters, weights"], "natural chapters", "accuracy"
    )


def _finance() -> Settled:
    """The best mean of the four starts, and the best of the two without pre-training."""
    runs = {n: _of(SWITCHES, "score", n) for n in result(SWITCHES)["runs"] if "finance" in n}
    drawn = max(value for name, value in runs.items() if "random" in name)
    said = ", ".join(f"{name} {value:.0%}" for name, value in runs.items())
    return Settled((max(runs.values()), drawn), said)


CLAIMS = entries(
    "11",
    {
        "E19": Check(_baseline, is_(("qa_mrr",)), ()),
        "E20": Check(_read, all_near((4.5, 3.3, 18.0), 0.05), (18.0, 3.3, 18.0)),
        "4.9B": Check(_parts, near(4.9, 0.01), 4.8),
        "gene names": Check(_pieces, lambda value: min(value) > 1, (1, 1)),  # whole words
        # all alike
        "own words": Check(
            _mismatch,
            lambda v: v[1] > 1.2 * v[0] and max(v[2:]) < 1.1 * v[0],
            (1.14, 1.50, 1.45, 1.50),
        ),
        "E22": Check(_sentences, lambda v: v[1] < v[0] < 40, (42.0, 17.0)),
        "split": Check(_splits, lambda v: v[0] + 0.05 < v[1], (0.27, 0.28)),
        # a gain in both, beyond counting words
        "continue": Check(
            _continued, lambda v: v[0] > 0.04 and v[1] < 0.04 and v[2] > 0.4, (0.09, 0.08, 0.3)
        ),
        "afresh": Check(_afresh, lambda v: v[0] < -0.1 and v[1] > 0.0, (0.02, 0.05)),
        "rows": Check(_means, lambda v: max(map(abs, v)) < 0.04, (0.1, 0.1, 0.1)),
        "added": Check(_added, lambda v: v[0] > 0.05 and abs(v[1]) < 0.03, (0.0, 0.05)),
        "forgets": Check(
            _forgotten, lambda v: v[1] < 0.5 * v[0] and v[2] > 0.8 * v[0], (0.43, 0.42, 0.43)
        ),
        "padding": Check(_padding, lambda v: max(v) < -0.03, (0.0, 0.01)),
        # guards that cost nothing
        "rates": Check(
            _rates, lambda v: v[0] < -0.03 and v[1] < 0.04 and v[2] > 0.35, (0.01, 0.2, 0.2)
        ),
        "weights": Check(_weights, lambda v: v[0] > 0.01, (-0.02,)),
        "finance": Check(_finance, lambda v: v[0] < 0.55 and v[1] < 0.45, (0.8, 0.35)),
    },
)
