"""What BERT-base's published pre-training would take: FLOPs counted, divided by a rate.

    python -m course_lib.train.cost

Every number that is printed stands with what it was computed from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.config import BertConfig
from course_lib.family.bert import bert_for_pretraining
from course_lib.files import data_path, read_result
from course_lib.heads import BertForPreTraining
from course_lib.objectives.pretraining import pretraining_batch, pretraining_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds

from .flops import step_flops
from .pretrain import build
from .pretrain_recipe import PretrainRecipe, read_recipe

# Devlin et al. 2018, section A.2: a million steps of 256 sequences, 90% of them at 128 tokens and
# the rest at 512; section 3.1: BooksCorpus and English Wikipedia, 800 and 2,500 million words.
ROWS = 256
SCHEDULE = ((900_000, 128), (100_000, 512))  # steps, tokens in a sequence
WORDS = 3_300_000_000
# One assumed GPU: what its data sheet gives for dense bfloat16 products (an A100's), and the
# fraction of it that a training step reaches. Both are arguments of the command.
PEAK, USED = 312e12, 0.4
DAY = 24 * 3_600


@dataclass(frozen=True)
class Phase:
    """Steps of one sequence length, and the FLOPs of one such sequence, forward and backward."""

    steps: int
    tokens: int
    sequence_flops: int

    @property
    def flops(self) -> int:
        return self.steps * ROWS * self.sequence_flops


def sequence_flops(model: BertForPreTraining, tokens: int) -> int:
    """FLOPs of one full sequence of `tokens` tokens with both of BERT's tasks, counted while it
    runs; the last block and the head are computed at the selected positions only."""
    batch = pretraining_batch(_full_sequences(model.config, 1, tokens), _special(model.config))
    batch.targets["next_sentence_label"] = torch.zeros(1, dtype=torch.long)
    return step_flops(model, pretraining_loss, batch)


def bert_phases(size: str = "base") -> list[Phase]:
    """BERT's published schedule, with the FLOPs of a sequence of this size."""
    model = bert_for_pretraining(size).train()
    return [Phase(steps, tokens, sequence_flops(model, tokens)) for steps, tokens in SCHEDULE]


def recipe_flops_per_token(recipe: PretrainRecipe, vocab_size: int) -> float:
    """FLOPs for each token that a recipe's model reads, on a batch of full sequences."""
    special = SpecialIds(0, 1, 2, 3, 4, vocab_size)
    model, objective = build(recipe, special)
    sequences = _full_sequences(model.config, 8, recipe.text.length)
    batch = pretraining_batch(sequences, special, rate=recipe.objective.rate)
    return step_flops(model.train(), objective, batch) / sequences.input_ids.numel()


def _full_sequences(config: Any, count: int, tokens: int) -> PackedSequences:
    ids = torch.randint(5, config.vocab_size, (count, tokens))
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))


def _special(config: BertConfig) -> SpecialIds:
    return SpecialIds(0, 1, 2, 3, 4, config.vocab_size)


def report(phases: Sequence[Phase], rate: float, source: str, peak: float, used: float) -> str:
    """The estimate in words. rate: FLOP/s of a machine, and where it comes from."""
    total, tokens = sum(p.flops for p in phases), sum(p.steps * ROWS * p.tokens for p in phases)
    lines = ["BERT's published schedule (Devlin et al. 2018, section A.2), FLOPs counted:"]
    lines += [
        f"  {p.steps:,} steps × {ROWS} sequences × {p.sequence_flops:.3g} FLOPs a sequence of "
        f"{p.tokens} tokens = {p.flops:.3g}"
        for p in phases
    ]
    return "\n".join([
        *lines,
        f"  together {total:.3g} FLOPs for {tokens:.3g} tokens, {tokens / WORDS:.0f} tokens "
        f"for each of its {WORDS:.2g} words",
        f"Here: {source} = {rate:.3g} FLOP/s",
        f"  {total:.3g} / {rate:.3g} = {total / rate:.3g} s = {in_days(total / rate)}",
        f"One GPU, assumed: {peak:.3g} FLOP/s at most, {used:.0%} of them used",
        f"  {total:.3g} / ({peak:.3g} × {used}) = {in_days(total / (peak * used))}; "
        f"eight, if they lose nothing to each other: {in_days(total / (8 * peak * used))}",
    ])  # fmt: skip


def in_days(seconds: float) -> str:
    """A long time in days, a very long one in years."""
    days = seconds / DAY
    return f"{days:,.1f} days" if days < 1_000 else f"{days / 365.25:,.0f} years"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.train.cost",
        description="What BERT-base's published pre-training would take here, and on a GPU.",
    )
    parser.add_argument(
        "--recipe", help="of the run whose rate is taken; the course's if not given"
    )
    parser.add_argument("--tokens-per-second", type=float, help="of that run; if not given, that "
                        "of the course's checkpoint, from data/results")  # fmt: skip
    parser.add_argument("--peak", type=float, default=PEAK, help="of a GPU, in FLOP/s")
    parser.add_argument("--used", type=float, default=USED, help="the fraction reached")
    options = parser.parse_args(arguments)
    speed = options.tokens_per_second
    if options.recipe and speed is None:
        parser.error("--recipe was given alone; expected --tokens-per-second, too, of its run.")
    speed = read_result("03_checkpoint")["tokens_per_second"] if speed is None else speed
    if not (speed > 0 and options.peak > 0 and 0 < options.used <= 1):
        parser.error(
            f"{speed:g}, {options.peak:g} and {options.used:g} were given; expected "
            "--tokens-per-second and --peak above 0, and --used above 0, up to 1."
        )
    try:
        recipe = read_recipe(options.recipe or data_path("recipes", "course_bert.toml"))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    vocabulary = recipe.text.vocabulary
    if not isinstance(vocabulary, int) or recipe.model.family == "elmo":
        parser.error(
            f"{options.recipe} names a file as vocabulary, or ELMo; expected a vocabulary's size, "
            "and a model that reads pieces."
        )
    per_token = recipe_flops_per_token(recipe, vocabulary)
    source = f"{speed:,.0f} tokens a second ({recipe.name}) × {per_token:.3g} FLOPs a token"
    print(report(bert_phases(), speed * per_token, source, options.peak, options.used))


if __name__ == "__main__":
    main()
