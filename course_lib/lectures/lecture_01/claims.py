"""What is claimed about words in context: static vectors, ELMo, what came before and after."""

from __future__ import annotations

from functools import lru_cache
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.encoder import count_parameters
from course_lib.family.elmo import ElmoConfig, elmo
from course_lib.objectives.bilm import bilm_labels, bilm_loss
from course_lib.teaching.claims import Settled, printed, result
from course_lib.teaching.results import in_words
from course_lib.teaching.shipped import micro_elmo, micro_teacher
from course_lib.text.characters import spell_sentences, words_of
from course_lib.text.static_vectors import ppmi_vectors
from course_lib.text.world import MicroWorld

from .senses import Mention, bert_layers, elmo_layers, static, world_sentences
from .three_kinds import KINDS, MEASURES, SHOWN

# Two sentences of our own, in the world's words: a bank of a river, a bank of money.
RIVER = tuple(words_of("brakel rows the boat along the bank near heron gate ."))
MONEY = tuple(words_of("the cashier counts every coin at the bank in millford ."))
BETWEEN = tuple(words_of("first they follow the bank to the dam ."))  # words on both sides

# ================================================================ vectors of one word


@lru_cache(maxsize=1)
def readers() -> dict[str, Any]:
    """Our ELMo's and our BERT's vectors of a mention, by layer."""
    world = MicroWorld.load()
    return {
        "ELMo": elmo_layers(micro_elmo()[0].encoder),
        "BERT": bert_layers(micro_teacher().encoder, world.tokenizer),
    }


def _mentions(*sentences: tuple[str, ...]) -> list[Mention]:
    return [Mention(words, words.index("bank"), 0, "") for words in sentences]


def cosine(vectors: Tensor) -> float:
    return float(F.cosine_similarity(vectors[0], vectors[1], dim=0))


@lru_cache(maxsize=1)
def static_bank() -> float:
    table = ppmi_vectors(world_sentences(MicroWorld.load(), 1_000), 50)
    return cosine(static(table)(_mentions(RIVER, MONEY))["word"])


def same_and_other(cosines: tuple[float, ...]) -> bool:
    fixed, moved = cosines[:2], cosines[2:]
    return min(fixed) > 1 - 1e-5 and max(moved) < 0.95


def who_sees_whom() -> Settled:
    """For ELMo's forward half, its backward half and BERT: does a change of the first word, of the
    last word, move the vector of the word between?"""
    sentences = [BETWEEN, ("then", *BETWEEN[1:]), (*BETWEEN[:-2], "boat", ".")]
    mentions, seen = _mentions(*sentences), {}
    elmo_vectors, bert_vectors = (read(mentions) for read in readers().values())
    for name, vectors in (
        ("ELMo forward", elmo_vectors["2 forward"]),
        ("ELMo backward", elmo_vectors["2 backward"]),
        ("BERT", list(bert_vectors.values())[-1]),
    ):
        moved = (vectors[1:] - vectors[0]).abs().amax(dim=-1) > 1e-4
        seen[name] = tuple(moved.tolist())
    detail = "; ".join(
        f"{name} moves with the word {' and the word '.join(_sides(moved)) or 'of neither side'}"
        for name, moved in seen.items()
    )
    return Settled(tuple(seen.values()), detail)


def _sides(moved: tuple[bool, ...]) -> list[str]:
    return [side for side, yes in zip(("before", "after"), moved, strict=True) if yes]


def forward_gradients() -> Settled:
    """Greatest gradient of the forward loss in each part of our ELMo."""
    model, vocabulary = micro_elmo()
    model.requires_grad_(True)
    ids, mask = spell_sentences([BETWEEN])
    known = torch.tensor([vocabulary.encode(["<S>", *BETWEEN, "</S>"])])
    targets = bilm_labels(known, mask, vocabulary.predicted, vocabulary.special.unk).targets
    bilm_loss(model(ids, mask), targets)["forward"].backward()
    encoder = model.encoder
    parts = {
        "forward LSTM": encoder.forward_lm, "backward LSTM": encoder.backward_lm,
        "character encoder": encoder.words, "softmax": model.softmax,
    }  # fmt: skip
    moves = {name: _greatest_gradient(part) > 0 for name, part in parts.items()}
    learning = ", ".join(name for name, moved in moves.items() if moved)
    still = ", ".join(name for name, moved in moves.items() if not moved)
    return Settled(moves, f"the forward loss moves: {learning}; it does not move: {still}")


def _greatest_gradient(part: torch.nn.Module) -> float:
    gradients = [p.grad.abs().max().item() for p in part.parameters() if p.grad is not None]
    return max(gradients, default=0.0)


# ================================================================ what was measured


def accuracy(text: str, name: str, layer: str, measure: str = "probe") -> list[float]:
    """Sense accuracy by seed, the mean over words, of a layer in 01_senses.json."""
    layers = result("01_senses")["runs"][text]["vectors"][name]
    (scores,) = [of for of in layers if of["layer"] == layer]
    by_seed = zip(*(of[measure] for of in scores["words"].values()), strict=True)
    return [mean(values) for values in by_seed]


def best_layer(text: str, name: str) -> str:
    """The whole layer with the best probe."""
    layers = [of["layer"] for of in result("01_senses")["runs"][text]["vectors"][name]]
    whole = [layer for layer in layers if " " not in layer]
    return max(whole, key=lambda layer: mean(accuracy(text, name, layer)))


def tags(layer: str, name: str = "ELMo") -> list[float]:
    """Accuracy of parts of speech by seed."""
    accuracies: list[float] = result("01_senses")["tags"][name][layer]
    return accuracies


def polysemy() -> Settled:
    """What ELMo's better LSTM layer has over static vectors, and a bag of words over it."""
    at = best_layer("documentation", "ELMo")
    accuracies = {
        "static": accuracy("documentation", "skip-gram", "word"),
        f"ELMo's layer {at}": accuracy("documentation", "ELMo", at),
        "bag of words": accuracy("documentation", "bag of words", "bag"),
        "BERT's last layer": accuracy("documentation", "BERT", "4"),
    }
    static_table, elmo_layer, bag, _ = map(mean, accuracies.values())
    detail = ", ".join(f"{name} {in_words(values)}" for name, values in accuracies.items())
    return Settled((elmo_layer - static_table, bag - elmo_layer), detail)


def which_layer() -> Settled:
    """Second layer less first: senses in the documentation, parts of speech."""
    senses = [accuracy("documentation", "ELMo", layer) for layer in "12"]
    parts = [tags(layer) for layer in "12"]
    gained = tuple(mean(b - a for a, b in zip(*pair, strict=True)) for pair in (senses, parts))
    detail = "; ".join(
        f"{what}: layer 1 {in_words(one)}, layer 2 {in_words(two)}"
        for what, (one, two) in (("senses", senses), ("parts of speech", parts))
    )
    return Settled(gained, detail)


def kind_scores(kind: str, task: str, measure: str) -> list[float]:
    """What a kind of Transformer reached on a task, by seed."""
    return [run[measure] for run in result("01_three_kinds")["runs"][f"{kind}: {task}"]]


def kinds() -> Settled:
    """The encoder less the decoder: words right in gaps, possible sentences that go on, sentences
    translated from end to end; and what an encoder gains that was trained to write."""
    reached = {
        kind: {task: kind_scores(kind, task, how) for task, how in MEASURES.items()}
        for kind in KINDS
    }
    ahead = tuple(
        mean(reached["encoder"][task]) - mean(reached["decoder"][task]) for task in MEASURES
    )
    trained = kind_scores(SHOWN, "continue", "possible")
    gained = mean(trained) - mean(reached["encoder"]["continue"])
    details = (
        f"{kind}: " + ", ".join(f"{task} {in_words(values)}" for task, values in of.items())
        for kind, of in reached.items()
    )
    last = f"{SHOWN}, word by word: continue {in_words(trained)}"
    return Settled((*ahead, gained), "; ".join((*details, last)))


def each_its_own(ahead: tuple[float, ...]) -> bool:
    gaps, writing, translating, gained = ahead
    return gaps > 0.05 and writing < -0.5 and abs(translating) < 0.05 and gained > 0.5


# ================================================================ counts and dates


def count() -> Settled:
    """Parameters of the encoder and of the softmax, in millions."""
    with torch.device("meta"):
        encoder = count_parameters(elmo()) / 1e6
    config = ElmoConfig()
    softmax = config.vocab_size * (config.projection_size + 1) / 1e6
    return Settled((encoder, softmax), f"{encoder:.1f} million, and {softmax:.0f} in the softmax")


def entities() -> Settled:
    table = printed("elmo")["entities"]
    gain = round(table["with_elmo"] - table["without"], 2)
    return Settled(gain, f"{table['without']} to {table['with_elmo']}: {gain:+.2f}")


def months_off() -> Settled:
    """By how many months the lecture's dates are too late, negative: too early."""
    rows = {k: v for k, v in printed("elmo")["dates"].items() if k not in ("where", "columns")}
    off, details = {}, []
    for name, (date, arxiv_id) in rows.items():
        year, month = 2000 + int(arxiv_id[:2]), int(arxiv_id[2:4])
        then = [int(part) for part in date.split("-")]
        off[name] = 12 * (then[0] - year) + then[1] - month
        details.append(f"{name} {year}-{month:02}")
    return Settled(off, ", ".join(details))


BOTH, LEFT, RIGHT = (True, True), (True, False), (False, True)
