"""Exercise 03.4: SQuAD's token F1."""

from __future__ import annotations

import re  # noqa: F401  (for the edits)
import string
from collections import Counter
from collections.abc import Callable
from functools import partial

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Number


def words_of(text: str) -> list[str]:
    """What is compared: lower case, without punctuation and articles."""
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    return [word for word in bare.split() if word not in ("a", "an", "the")]


def token_f1(predicted: str, gold: str) -> float:
    """F1 of the words of two answers, a word shared as often as both have it."""
    guess, true = words_of(predicted), words_of(gold)
    if not guess or not true:
        return float(guess == true)
    hits = (Counter(guess) & Counter(true)).total()
    P, R = hits / len(guess), hits / len(true)
    return 2 * P * R / (P + R) if hits else 0.0


# Plain words: no capitals, no punctuation, no letter sequence that is an article.
PLAIN = ["stone", "bridge", "river", "mill", "copper", "ten", "silk", "green", "winter", "port",
         "cedar", "hill"]  # fmt: skip


def overlap(draw: Draw, repeat: bool = False) -> list[list[str]]:
    """Two answers of different lengths that share some words, in another order at times."""
    words = draw.python.sample(PLAIN, 8)
    shared, rest = words[:3], words[4:]
    predicted = [*words[3 : 3 + draw.integer(0, 1)], *shared[: draw.integer(1, 3)]]
    gold = [*shared, *rest[: draw.integer(1, 3)]]
    if repeat:
        predicted += draw.python.choices(shared, k=2)
        gold += draw.python.choices(shared, k=draw.integer(1, 2))
    if draw.python.random() < 0.5:
        draw.python.shuffle(predicted)
    return draw.python.sample([predicted, gold], 2)


def word_pairs(*pairs: tuple[str, str]) -> Callable[[Draw], list[Case]]:
    """Two answers each, with drawn words for {a} to {d}, a capital where the letter is one."""

    def cases(draw: Draw) -> list[Case]:
        words = dict(zip("abcd", draw.python.sample(PLAIN, 4), strict=True))
        words |= {letter.upper(): word.title() for letter, word in words.items()}
        return [(predicted.format(**words), gold.format(**words)) for predicted, gold in pairs]

    return cases


def overlapping(draw: Draw, count: int = 5, repeat: bool = False) -> list[Case]:
    pairs = (overlap(draw, repeat) for _ in range(count))
    return [(" ".join(predicted), " ".join(gold)) for predicted, gold in pairs]


def repeated(draw: Draw) -> list[Case]:
    fixed = word_pairs(
        ("{a} {a} {b}", "{a} {b}"), ("{a} {b}", "{b} {a} {a} {c}"), ("{b} {b} {a}", "{b} {b}")
    )
    return [*fixed(draw), *overlapping(draw, 3, repeat=True)]


def dressed(draw: Draw, words: list[str]) -> str:
    """With capitals, articles and punctuation put in."""
    out = []
    for word in words:
        if draw.python.random() < 0.3:
            quote = draw.python.choice(["", '"'])
            out.append(quote + draw.python.choice(["a", "an", "the"]))
        word = word.capitalize() if draw.python.random() < 0.4 else word
        if draw.python.random() < 0.4:
            at = draw.integer(1, len(word))
            word = word[:at] + draw.python.choice(".,-'_") + word[at:]
        out.append(word)
    return " ".join(out)


def anything(draw: Draw) -> list[Case]:
    pairs = [overlap(draw, repeat=True) for _ in range(30)]
    return [(dressed(draw, predicted), dressed(draw, gold)) for predicted, gold in pairs]


ARTICLES = 'not in ("a", "an", "the")'
KEPT = f" if word {ARTICLES}"
WITHOUT = f'" ".join(word for word in {{}}{KEPT})'
HARMONIC = "F1 is their harmonic mean, 2PR / (P + R)"
IN_WORDS = "F1 is 2 · hits / (words of the one + words of the other)."
articles = partial(Edit, f"bare.split(){KEPT}")
marks = partial(Edit, 'text.lower().translate(str.maketrans("", "", string.punctuation))')
hits = partial(Edit, "(Counter(guess) & Counter(true)).total()")
score = partial(Edit, "2 * P * R / (P + R)")

ANSWERS = Exercise(
    **written("03.4"),
    solution=token_f1,
    helpers=(words_of,),
    returns=Number("F1"),
    library=(
        "course_lib.train.span_metrics:normalise_answer",
        "course_lib.train.span_metrics:answer_f1",
        "course_lib.train.span_metrics:_words_f1",
    ),
    when_raised=(
        (r"division by zero", "No word is shared, or an answer has no words left. Handle these "
         "cases first: no shared word gives 0, two empty answers give 1."),
        (r"total",
         "Counter.total() exists from Python 3.10 on; sum(counter.values()) does the same."),
    ),
    stages=(
        Stage("right, wrong, and a part",
              word_pairs(("{a} {b}", "{a} {b}"), ("{a} {b}", "{c} {d}"), ("{a}", "{a} {b} {c}"),
                      ("{a} {b} {c} {d}", "{b} {c}"))),
        Stage("some words are shared", overlapping),
        Stage("words that come twice", repeated),
        Stage("capitals and articles",
              word_pairs(("{A} {B}", "{a} {b} {c}"), ("the {a} {b}", "{a} {b}"),
                      ("The {a} {b}", "{a} {b} a"), ("{a} an {b}", "A {B} {c}"),
                      ("the pint {a}", "{a} paint {b}"))),
        Stage("punctuation",
              word_pairs(("{a} {b}.", "{a} {b} {c}"), ("{a}-{b}", "{a} {b}"),
                      ('"the {a}" ({b})', "{a}, {b}"), ("{a} 3.5", "{a}'s 35 {b}"),
                      ("{a}_{b} {c}", "{a}{b}"), ("£5 {a}", "5 {a} {c}"))),
        Stage("empty answers",
              word_pairs(("", ""), ("", "{a} {b}"), ("{a} {b}", ""), ("the", "{a}"), ("The.", ""))),
        Stage("thirty drawn pairs", anything),
    ),
    mistakes=(
        Edit("guess, true = words_of(predicted), words_of(gold)",
             "guess, true = (sorted(set(words_of(text))) for text in (predicted, gold))",
             "Repeated words count once: sets forget how often. A word is shared as often as both "
             "answers have it, and both lengths count every word."),
        hits("len({*guess} & {*true})", "A word that both answers have twice is one hit: a set "
             "forgets how often. It is shared as often as both have it: Counter(a) & Counter(b)."),
        hits("sum(word in true for word in guess)", "Each word of the prediction that occurs in "
             "the gold answer is a hit, however often the gold answer has it. Then repeating a "
             "word pays. It is shared as often as *both* have it."),
        hits("sum(word in guess for word in true)",
             "Each word of the gold answer that occurs in the prediction is a hit, however often "
             "the prediction has it. It is shared as often as *both* have it."),
        hits("sum(a == b for a, b in zip(guess, true))",
             "Words are compared position by position. After one extra word at the start, nothing "
             "fits any more. F1 asks which words are shared, in any position."),
        Edit("P, R = hits / len(guess), hits / len(true)",
             "P = sum(w in true for w in guess) / len(guess)\n"
             "    R = sum(w in guess for w in true) / len(true)",
             "For precision you count predicted words that occur in the gold answer, for recall "
             "gold words that occur in the prediction. Then repeating a word costs nothing. Both "
             "have the same hits: each word as often as both answers have it."),
        Edit("text.lower()", "text", "Capital and small letters differ in your comparison; compare "
             "lower case.", more=((ARTICLES, 'not in ("a", "an", "the", "A", "An", "The")'),)),
        Edit("text.lower()", "text", "Capital and small letters differ in your comparison, *The* "
             "and *the* too; compare lower case."),
        articles("bare.split()",
                 "a, an and the are counted as words; leave them out of both answers."),
        articles('bare.split() if word != "the"',
                 "*the* is left out, but a and an are counted as words. All three are articles."),
        articles('bare.replace(" a ", " ").replace(" an ", " ").replace(" the ", " ").split()',
                 "Articles are removed only with a space on either side: the first and the last "
                 "word stay. Split first, then leave out words."),
        articles('re.sub("an|a|the", "", bare).split()', "a, an and the are removed inside of "
                 "words too (*paint* becomes *pint*). Only whole words are articles: split first, "
                 "or match whole words with r'\\b(a|an|the)\\b'."),
        articles('re.sub("a|an|the", "", bare).split()',
                 "a, an and the are removed inside of words too (*paint* becomes *pint*, and *an* "
                 "leaves an n). Only whole words are articles: split first."),
        articles("bare.split()",
                 "Articles are removed before the text is made lower case, so that *The* stays.",
                 more=(("text.lower()", WITHOUT.format("text.split()") + ".lower()"),)),
        articles("bare.split()", "Articles are removed before the punctuation, so that *the* in "
                 "quotation marks or brackets stays. Punctuation goes first.",
                 more=(("text.lower()", WITHOUT.format("text.lower().split()")),)),
        marks("text.lower()",
              "Punctuation stays with the words, so that *wall.* is not *wall*. Remove it."),
        marks('re.sub("[.,]", "", text.lower())', "Dots and commas go, other marks stay. Remove "
              "every character of string.punctuation."),
        marks('re.sub(r"[^\\w\\s]", "", text.lower())',
              "The underscore stays (\\w takes it for a letter), and you remove signs that are not "
              "in string.punctuation, such as £. Remove exactly string.punctuation."),
        marks('re.sub(r"[^\\w\\s]|_", "", text.lower())',
              "You also remove signs that are not in string.punctuation, such as £. They must "
              "stay."),
        marks('" ".join(word.strip(string.punctuation) for word in text.lower().split())',
              "Punctuation inside of words stays. Every mark goes: *3.5* becomes *35*."),
        marks('text.lower().translate(str.maketrans(dict.fromkeys(string.punctuation, " ")))',
              "Punctuation becomes a space, which splits words. It goes without a gap: "
              "*well-known* becomes *wellknown*. Odd, but both sides are treated alike."),
        marks('re.sub(r"\\W", " ", text.lower())',
              "What is no letter becomes a space, as with re.findall(r'\\w+'): that splits words. "
              "Punctuation goes without a gap: *well-known* becomes *wellknown*; £ stays."),
        Edit(", words_of(gold)", ", gold.split()",
             "Only the prediction is normalised; the gold answer must be, too."),
        Edit("= words_of(predicted)", "= predicted.split()",
             "Only the gold answer is normalised; the prediction must be, too."),
        score("P", "This is precision: the fraction of the predicted words that are right. F1 is "
              "the harmonic mean of precision and recall."),
        score("R", "This is recall: the fraction of the gold answer's words that were said. F1 is "
              "the harmonic mean of precision and recall."),
        score("(P + R) / 2", f"Precision and recall are added and halved. {HARMONIC}, which stays "
              "close to the lower one."),
        score("(P * R) ** 0.5", f"This is the square root of precision times recall. {HARMONIC}."),
        score("P * R", f"Precision and recall are multiplied. {HARMONIC}."),
        score("P * R / (P + R)", "This is half of F1: 2PR / (P + R) has a 2."),
        score("len({*guess} & {*true}) / len({*guess} | {*true})",
              "This is the fraction of all different words that both have (Jaccard). " + IN_WORDS),
        score("hits / (len(guess) + len(true) - hits)",
              "This is hits divided by the words of both, shared ones counted once (Jaccard). "
              + IN_WORDS),
        score("min(P, R)", f"The hits are divided by the longer answer's words. {IN_WORDS}"),
        score("max(P, R)", "The hits are divided by the shorter answer's words. Then saying the "
              f"whole passage would be perfect. {IN_WORDS}"),
        score("float(guess == true)",
              "This is exact match, all or nothing; F1 gives a fraction for a part."),
        score("float(hits)", "This is the number of shared words; expected F1, from 0 to 1."),
        Edit("float(guess == true)", "0.0", "Two empty answers give 0. Where the text has no "
             "answer and the model gives none, it is right: 1."),
        Edit("float(guess == true)", "1.0",
             "An empty answer beside one with words gives 1. Nothing is shared: 0."),
        Edit("float(guess == true)", "float(not predicted and not gold)",
             "You ask whether the texts are empty before they are normalised. *The.* has no words "
             "left either: ask afterwards."),
        Edit(f"[word for word in bare.split(){KEPT}]",
             f'[*" ".join(word for word in bare.split(){KEPT})]', "Characters are compared, not "
             "words: a text is a sequence of characters until you split() it."),
        Edit(f"[word for word in bare.split(){KEPT}]", "[*text]",
             "Characters of the texts as they are given are compared, not words: split() first."),
    ),
)  # fmt: skip
