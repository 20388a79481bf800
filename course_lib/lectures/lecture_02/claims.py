"""What is claimed about BERT and its pre-training, and how each claim is settled."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import published
from course_lib.family.bert import bert
from course_lib.heads import PreTrainingOutput
from course_lib.kernels.masking import KEPT, MASKED, RANDOM
from course_lib.objectives.masked_lm import Masked, mask_sequences, masked_lm_loss
from course_lib.objectives.next_sentence import make_pairs, next_sentence_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.claims import NotHere, Settled, parameters, printed, result
from course_lib.teaching.results import in_words

from .experiments import outcome

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_522)

# ================================================================ how large BERT is


def size_settled(size: str) -> Settled:
    count = parameters(bert, size)
    return Settled(count, f"{count:,} with the pooler")


def multilingual() -> Settled:
    count, config = parameters(bert, "multilingual-cased"), published("bert", "multilingual-cased")
    part = config.vocab_size * config.hidden_size / count
    return Settled(count, f"{count:,}, of which {part:.0%} are the token embedding matrix")


# ================================================================ what masking does


@lru_cache(maxsize=1)
def _masked() -> tuple[int, Masked]:
    """2,000 sequences of 128 real tokens, [CLS] and two [SEP] among them, masked once; the number
    of positions, and the masks."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, SPECIAL.vocab_size, (2_000, 128), generator=generator)
    ids[:, 0], ids[:, 60], ids[:, 127] = SPECIAL.cls, SPECIAL.sep, SPECIAL.sep
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    return ids.numel(), mask_sequences(sequences, SPECIAL, seed=0)


def _fractions(actions: Tensor) -> tuple[float, ...]:
    """How often each of the three things was done."""
    return tuple(float((actions == action).float().mean()) for action in (MASKED, RANDOM, KEPT))


def masked_of_all() -> Settled:
    n, masked = _masked()
    hidden, replaced, kept = _fractions(masked.action)
    detail = (
        f"of {n:,} positions {hidden + replaced + kept:.1%} are selected: {hidden:.1%} become "
        f"[MASK], {replaced:.1%} another id, {kept:.1%} stay"
    )
    return Settled(hidden, detail, math.sqrt(0.12 * 0.88 / n))


def masked_of_selected() -> Settled:
    done = _masked()[1].done
    masked, random_id, kept = fractions = _fractions(done)
    detail = (
        f"of {len(done):,} selected: {masked:.1%} [MASK], {random_id:.1%} random, {kept:.1%} kept"
    )
    return Settled(fractions, detail, math.sqrt(0.8 * 0.2 / len(done)))


def products() -> Settled:
    paper = printed("bert")["pretraining"]
    percent = tuple(round(100 * paper["rate"] * part, 6) for part in paper["mix"])
    return Settled(percent, "15% × 80%, 10%, 10% = " + ", ".join(f"{p:g}%" for p in percent))


# ================================================================ what the pairs are


def _counted_pairs() -> PackedSequences:
    """Documents whose sentences are single, numbered words: what follows what can be read off."""
    documents = [[[100 + 50 * d + i] for i in range(50)] for d in range(100)]
    return make_pairs(documents, SPECIAL, length=16, seed=0)


def cls_and_labels() -> Settled:
    sequences = _counted_pairs()
    cls_in_a_sequence = int((sequences.input_ids == SPECIAL.cls).sum(1).max())
    label = sequences.next_sentence_label
    follows = torch.tensor([_follows(ids) for ids in sequences.input_ids])
    assert label is not None
    following = [float(follows[label == value].float().mean()) for value in (0, 1)]
    detail = (
        f"{len(sequences):,} sequences, {cls_in_a_sequence} [CLS] in each; b follows a in "
        f"{following[0]:.0%} of those labelled 0 and in {following[1]:.0%} of those labelled 1"
    )
    return Settled((cls_in_a_sequence, *following), detail)


def _follows(ids: Tensor) -> bool:
    first_sep = int((ids == SPECIAL.sep).nonzero()[0])
    return bool(ids[first_sep + 1] == ids[first_sep - 1] + 1)


def not_next() -> Settled:
    """Documents of 2 to 12 sentences of 5 to 40 words, packed to 128."""
    draw = random.Random(0)
    documents = [
        [[9] * draw.randint(5, 40) for _ in range(draw.randint(2, 12))] for _ in range(1_500)
    ]
    label = make_pairs(documents, SPECIAL, length=128, seed=0).next_sentence_label
    assert label is not None
    fraction, spread = float(label.float().mean()), 0.5 / math.sqrt(len(label))
    detail = f"{fraction:.1%} NotNext in {len(label):,} pairs from documents of 2 to 12 sentences"
    return Settled(fraction, f"{detail} (± {spread:.1%})", spread)


# ================================================================ what the loss is


def gradient_on_not_next() -> Settled:
    """The gradient at the NotNext logit of an undecided model, on a NotNext pair."""
    right, wrong = torch.zeros(1, 2, requires_grad=True), torch.zeros(1, 2, requires_grad=True)
    outputs = PreTrainingOutput(torch.zeros(0, 1), right)
    next_sentence_loss(outputs, {"next_sentence_label": torch.tensor([1])})["total"].backward()
    (-F.log_softmax(wrong, -1)[0, 0]).backward()
    assert right.grad is not None and wrong.grad is not None
    of_right, of_wrong = float(right.grad[0, 1]), float(wrong.grad[0, 1])
    after = [float((-gradient[0]).softmax(-1)[1]) for gradient in (wrong.grad, right.grad)]
    detail = (
        f"gradient at the NotNext logit {of_right:+.1f}, with the printed loss {of_wrong:+.1f}: "
        f"one step of size 1 takes P(NotNext) from 50% to {after[1]:.0%}, with the printed loss to "
        f"{after[0]:.0%}"
    )
    return Settled(of_right, detail)


def twice_the_batch() -> Settled:
    """How the MLM loss grows when every sequence stands in the batch twice."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 50, generator=generator)
    labels = torch.randint(50, (8,), generator=generator)

    def loss(times: int) -> float:
        outputs = PreTrainingOutput(logits.repeat(times, 1), torch.zeros(1, 2))
        return float(masked_lm_loss(outputs, {"labels": labels.repeat(times)})["total"])

    ratio = loss(2) / loss(1)
    return Settled(ratio, f"every sequence twice: the loss is {ratio:.3f} times as large")


# ================================================================ what [CLS] holds

# A sentence; one that says nearly the same in other words; one that shares words, not matter.
_LINES = """\
The baker opened her shop before sunrise.
Early in the morning the woman started selling bread.
The baker's dog sleeps under the table.
Rain fell on the harbour all night.
It was wet by the sea until morning.
The harbour was built two hundred years ago.
The train to the coast was late again.
Once more we waited for our ride to the sea.
The train was painted green last year.
My brother repairs old bicycles.
He fixes used bikes for a living.
My brother dislikes cheese.
The museum is closed on Mondays.
You cannot visit the exhibition at the start of the week.
The museum bought a large painting.
She planted tulips along the fence.
There are flowers growing beside her garden wall.
She planted her feet and refused to move.
The bridge was too narrow for the lorry.
A truck could not pass over the river.
The bridge was shown on a postcard.
He forgot where he had put his glasses.
The man could not find his spectacles.
He filled the glasses with lemonade.
The team lost the final by one point.
They were beaten narrowly in the last match.
The team wears blue shirts.
Our neighbour plays the violin every evening.
Music comes from next door after dinner.
Our neighbour sold her car in March.
The soup was far too salty.
The cook put in more seasoning than anybody could eat.
The soup was served in a white bowl.
The lake freezes in January.
In winter there is ice on the water.
The lake is named after a general."""
TRIPLES = list(zip(*[iter(_LINES.splitlines())] * 3, strict=True))


def cls_against_mean() -> Settled:
    """In how many triples is the paraphrase nearer: by the mean of all vectors, and by [CLS]?"""
    vectors = [_sentence_vectors([triple[i] for triple in TRIPLES]) for i in range(3)]
    right = {}
    for name in ("[CLS]", "mean"):
        sentence, same, other = (vector[name] for vector in vectors)
        nearer = F.cosine_similarity(sentence, same) > F.cosine_similarity(sentence, other)
        right[name] = int(nearer.sum())
    detail = (
        f"MiniLM finds the paraphrase in {right['mean']} of {len(TRIPLES)} triples by the mean of "
        f"its token vectors, in {right['[CLS]']} by [CLS]. It was trained on the mean: what was "
        "trained is what is good"
    )
    return Settled(right["mean"] - right["[CLS]"], detail)


def _sentence_vectors(texts: list[str]) -> dict[str, Tensor]:
    """Two vectors (N, H) for each text: that of [CLS], and the mean over the real tokens."""
    encoder, tokenizer = _minilm()
    special = tokenizer.special
    ids = [[special.cls, *tokenizer.encode(text), special.sep] for text in texts]
    longest = max(map(len, ids))
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
    padded = torch.tensor([row + [special.pad] * (longest - len(row)) for row in ids])
    with torch.no_grad():
        hidden = encoder(padded, mask).last_hidden_state  # (N, T, H)
    real = mask[..., None]
    return {"[CLS]": hidden[:, 0], "mean": (hidden * real).sum(1) / real.sum(1)}


@lru_cache(maxsize=1)
def _minilm() -> tuple[Any, Any]:
    from course_lib.checkpoints import MissingCheckpoint, load_pretrained

    try:
        loaded = load_pretrained(
            "all-MiniLM-L6-v2", instead="the claim about [CLS] is left unsettled"
        )
    except MissingCheckpoint as error:
        raise NotHere("the weights of MiniLM are not installed") from error
    if loaded.tokenizer is None:
        raise NotHere("the vocabulary of MiniLM is not beside its weights")
    return loaded.encoder, loaded.tokenizer


# ================================================================ what the recipe says


def tokens_in_all(short: float | None = None) -> float:
    """Tokens in the paper's million steps; short: this fraction at the short length, not 0.9."""
    paper = printed("bert")["pretraining"]
    short = paper["short_share"] if short is None else short
    length = short * paper["short_length"] + (1 - short) * paper["long_length"]
    return float(paper["batch"] * paper["steps"] * length)


def epochs(short: float | None = None) -> float:
    """How often these go through the words that the paper counts."""
    paper = printed("bert")["pretraining"]
    return tokens_in_all(short) / (paper["words_books"] + paper["words_wikipedia"])


def first_step() -> Settled:
    """The first step of Adam, without bias correction over with it."""
    paper = printed("bert")["pretraining"]
    ratio = (1 - paper["beta1"]) / math.sqrt(1 - paper["beta2"])
    late = (1 - paper["beta1"] ** 10_000) / math.sqrt(1 - paper["beta2"] ** 10_000)
    detail = f"the first step is {ratio:.2f} times as large without, the 10,000th {late:.4f} times"
    return Settled(ratio, detail)


# ================================================================ what this page measured


def gap(run: str) -> Settled:
    """The least fraction of the gap from counting to knowing that a seed closed."""
    closed = outcome(result("02_pretraining"), run)["gap_closed"]
    return Settled(min(closed), f"{in_words(closed)}, least {min(closed):.1%}")


def bag_of_words() -> Settled:
    runs = result("02_pretraining")
    bag, model = runs["levels"]["bag_of_words_pairs"], outcome(runs, "live")["pair_accuracy"]
    detail = f"stories: bag of shared words {bag:.1%}, the live model {in_words(model)}"
    for length, row in result("02_controls")["documentation"].items():
        detail += f"; documentation, {length} tokens: bag {row['bag']:.1%}, majority class "
        detail += f"{row['majority']:.1%}"
    return Settled(bag, detail)


# ================================================================ what the paper's ablations say


def exceptions_to_larger_is_better() -> Settled:
    """Steps down Table 6 at which a column does not improve: perplexity falls, the rest rises."""
    rows = printed("bert")["ablation_size"]["rows"]
    exceptions = 0
    for small, large in pairwise(rows):
        exceptions += large[3] >= small[3]
        exceptions += sum(b <= a for a, b in zip(small[4:], large[4:], strict=True))
    gain, steps = rows[-1][5] - rows[0][5], len(rows) - 1
    detail = f"{exceptions} exceptions in {steps} steps of 4 columns; MRPC gains {gain:.1f} points"
    return Settled(exceptions, detail)


def features_against_fine_tuning() -> Settled:
    table = printed("bert")["features"]
    best = round(table["fine_tuned"] - table["concatenated_last_four"], 2)
    last = round(table["fine_tuned"] - table["last"], 2)
    detail = (
        f"{best} points behind with the last four layers concatenated, {last} with the last alone"
    )
    return Settled(best, detail)


def always_masked() -> Settled:
    """Always [MASK] against 80/10/10: MNLI fine-tuned, named entities fine-tuned and frozen."""
    usual, always = printed("bert")["masking"]["rows"][:2]
    mnli, tuned, frozen = (round(always[i] - usual[i], 1) for i in (3, 4, 5))
    detail = (
        f"always [MASK] against 80/10/10: MNLI {mnli:+.1f}, named entities {tuned:+.1f}, "
        f"named entities from frozen features {frozen:+.1f}"
    )
    return Settled((mnli, tuned, frozen), detail)
