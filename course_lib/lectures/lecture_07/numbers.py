"""The numbers that sentences of lecture 07 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import log
from statistics import mean
from typing import Any

import torch

from course_lib import MicroWorld, bert, count_parameters, electra
from course_lib.config import encoder_flops, published
from course_lib.family.electra import ElectraConfig
from course_lib.objectives.replaced_tokens import RELEASED_MIX
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import outcome, stored
from course_lib.train.watch import ALIKE

from .ablation_steps import ABLATION_STEPS
from .exercises.steps import published_step, training_step
from .experiments import FULL, GENERATOR_SEEDS, LONG, PAST_SEEDS, RATES, SEEDS, micro_electra
from .views.corruptor import Corruption, corrupt_and_detect

TOKENS = 128  # of the text whose FLOPs are counted

SAMPLED_RIGHT = 4  # of ten words that the generator samples, in the first guess


def guess_replaced() -> str:
    """What the first guess asks for: the fraction masked, less what was sampled right."""
    return f"{FULL.rate * (1 - SAMPLED_RIGHT / 10):.0%}"


def disc_weight() -> int:
    return int(printed("electra")["loss"]["disc_weight"])


def at_the_start() -> tuple[float, float]:
    """Both losses of networks that guess, in nats."""
    return log(ElectraConfig().vocab_size), log(2)


def disc_fraction(disc_weight: float, mlm_weight: float) -> float:
    """The discriminator's part of the loss of networks that guess."""
    mlm, disc = at_the_start()
    return disc_weight * disc / (disc_weight * disc + mlm_weight * mlm)


def adversarial(who: str) -> str:
    return f"{printed('electra')['adversarial'][who]}%"


@lru_cache(maxsize=1)
def bert_encoder() -> int:
    """BERT-base's encoder without its pooler."""
    with torch.device("meta"):
        model = bert("base")
        return count_parameters(model) - count_parameters(model.pooler)


def base_step_adds() -> str:
    """What a training step of ELECTRA-base costs more than BERT-base's: exercise 07.5."""
    one, both = training_step(*published_step("base", 512, FULL.rate))
    return f"{both / one - 1:.0%}"


@cache
def parameters(size: str) -> tuple[int, int, int]:
    """Of the kept encoder, of its head, and what the generator adds below its own head."""
    with torch.device("meta"):
        model = electra(size)
    kept = count_parameters(model.discriminator)
    adds = count_parameters(model) - kept - count_parameters(model.generator.mlm)
    head = count_parameters(model.discriminator.rtd)
    return count_parameters(model.discriminator.encoder), head, adds


STORY, MASKED, SEED = (4, 1), 0.2, 1  # seed and number of a held-out story; fraction masked; seed


@lru_cache(maxsize=1)
def world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def example_corruption() -> Corruption:
    seed, index = STORY
    story = world().stories(index + 1, seed=seed, split="heldout")[index]
    text = " ".join(story.sentences[:3])
    return corrupt_and_detect(micro_electra(), world().tokenizer, text, MASKED, SEED)


def story_counts() -> dict[str, int]:
    """Counts of the picture, for slide and notes."""
    corruption = example_corruption()
    pairs = list(zip(corruption.replaced, corruption.called, strict=True))
    masked, replaced = sum(corruption.selected), sum(corruption.replaced)
    return {
        "hidden": masked, "replaced": replaced, "right": masked - replaced,
        "found": pairs.count((True, True)), "alarms": pairs.count((False, True)),
    }  # fmt: skip


def curve_of(measure: str) -> list[tuple[float, float]]:
    """What the shipped ELECTRA reached, by step."""
    curve = stored("07_electra")["runs"]["ELECTRA"][0]["curve"]
    return [(look["step"], look[measure]) for look in curve]


def look_at(measure: str, which: int) -> str:
    return f"{curve_of(measure)[which][1]:.0%}"


def long_sampled_last() -> str:
    """Of the shipped generator's sampled words the fraction that is right: masked tokens that were
    not replaced."""
    return f"{1 - curve_of('replaced')[-1][1] / FULL.rate:.0%}"


def replaced_by_argmax() -> str:
    """What would be replaced if the shipped generator put in its most likely word."""
    return f"{FULL.rate * (1 - curve_of('words_by_generator')[-1][1]):.0%}"


def _steps() -> dict[str, Any]:
    return stored("07_stepping_stones")


def variants() -> dict[str, Any]:
    return stored("07_variants")


def cost(step: str) -> float:
    """FLOPs of a step, as a multiple of BERT's."""
    costs = _steps()["flops_a_step"]
    return float(costs[step] / costs["BERT"])


def all_tokens_cost() -> str:
    """FLOPs of a step with all tokens predicted, as a multiple of those with the masked ones."""
    return f"{cost('All-tokens MLM') / cost('Replace MLM'):.1f}"


def paper_score(step: str) -> float:
    return float(printed("electra")["stones"][step])


def at_rate(step: str, rate: float, measure: str = "kinds") -> list[float]:
    """What each seed of an ablation step reached at this learning rate of pre-training."""
    return outcome(_steps(), measure)[f"{step}, {rate:g}"]


def collapsed(step: str, rate: float) -> int:
    """How many seeds' last vectors are alike whatever the text (ALIKE)."""
    return sum(alike >= ALIKE for alike in at_rate(step, rate, "likeness"))


def counted_at(rate: float, by_neighbours: int) -> str:
    """The ROC-AUC that counting reaches against ELECTRA's generator: by the word alone (0), or by
    its neighbours (1)."""
    return f"{_steps()['counted'][str(rate)][by_neighbours]:.0%}"


def best_rate(step: str, measure: str = "kinds") -> float:
    """The one of RATES with the highest mean, by default of the slot-category probe, among those at
    which no seed collapsed."""
    alive = [rate for rate in RATES if not collapsed(step, rate)]
    return max(alive, key=lambda rate: mean(at_rate(step, rate, measure)))


def slot_categories(step: str) -> list[float]:
    """The slot-category probe of each seed, at the step's best rate."""
    return at_rate(step, best_rate(step))


def slots(step: str) -> str:
    return percent(slot_categories(step))


def slots_at(step: str, rate: float) -> str:
    return percent(at_rate(step, rate))


def tuned_at_best(step: str) -> str:
    """After fine-tuning, at the rate of pre-training that is best for that."""
    return percent(at_rate(step, best_rate(step, "tuned"), "tuned"))


def electra_behind(rate: float = 0.0) -> str:
    """Points on the slot-category probe from ELECTRA to BERT, at a rate, or at each one's best."""
    bert, other = (
        mean(at_rate(step, rate or best_rate(step))) for step in ("BERT", "ELECTRA")
    )  # fmt: skip
    assert bert > other  # as the page says
    return f"{100 * (bert - other):.0f}"


def untrained(measure: str) -> float:
    """At random initialisation."""
    return mean(one[measure] for one in _steps()["untrained"])


def slot_percent(step: str) -> float:
    """In percent, as printed, so that differences are those of the printed numbers."""
    return round(100 * mean(slot_categories(step)), 1)


def less(better: str, worse: str) -> str:
    """Points by which one ablation step is ahead of another here."""
    ahead = slot_percent(better) - slot_percent(worse)
    assert ahead > 0, (better, worse)
    return f"{ahead:.1f}"


def facts() -> list[float]:
    """What each ablation step reached on the unstated-fact probe, in the mean over its seeds, where
    the slot-category probe is best."""
    means = [mean(at_rate(step, best_rate(step), "jobs")) for step in ABLATION_STEPS]
    assert max(means) < untrained("jobs")  # as the notes say
    return means


def variant(name: str, measure: str = "kinds") -> float:
    return mean(outcome(variants(), measure)[name])


def wrong_term(measure: str) -> str:
    """With λ on the wrong term: ROC-AUC falls, the slot-category probe rises, as the slide says."""
    wrong, right = (variant(name, measure) for name in ("λ on the generator", "generator 1/4"))
    assert (wrong > right) == (measure == "kinds")
    return f"{wrong:.0%}"


def untied_slots() -> str:
    assert variant("untied") < variant("generator 1/4")
    return f"{variant('untied'):.0%}"


def price(row: str) -> tuple[float, float]:
    """FLOPs of pre-training and GLUE mean of a row of Tables 1 and 2."""
    paper = printed("electra")
    entry = paper["small"].get(row) or paper["large"][row]
    unit = paper["large"]["electra_400k"]["flops"]  # where only the multiple of it is printed
    return float(entry.get("flops") or entry["times"] * unit), float(entry["glue"])


def quotient(above: str, below: str) -> float:
    return price(above)[0] / price(below)[0]


def shortest_flops() -> str:
    """Its fraction of ELECTRA-small's FLOPs; Table 1's row is named by the fraction."""
    flops = printed("electra")["shortest"]["fraction"] * price("electra_small")[0]
    return f"{flops:.1e}".replace("e+", "e")


def shortest_behind() -> str:
    behind = price("bert_small")[1] - printed("electra")["shortest"]["glue"]
    assert behind > 0  # as the page says
    return {1.0: "one"}[round(behind, 1)]


# ---------------------------------------------------------------- past the plateau

RUNS = ("One run", "Two runs", "Three runs", "Four runs", "Five runs")
MEASURES = {  # of the results file -> in sentences
    "kinds": "slot-category probe",
    "jobs": "unstated-fact probe",
    "repeated": "swapped-word probe, repeated words",
    "facts": "swapped-word probe, facts",
    "tuned_[CLS]": "fine-tuned, [CLS]",
    "tuned_mean": "fine-tuned, mean pooling",
}


def past() -> dict[str, Any]:
    return stored("07_past_plateau")


def past_runs(measure: str) -> dict[str, list[float]]:
    """What each seed reached past the plateau, and at random initialisation."""
    random = [one[measure] for one in past()["untrained"]]
    return outcome(past(), measure) | {"random initialisation": random}


def learnt_seeds(measure: str, learnt: bool = True) -> list[float]:
    """What ELECTRA's seeds reached whose probe on repeated words is well above chance level (or,
    with `learnt` False, the others)."""
    return [run[measure] for run in past()["runs"]["ELECTRA"] if (run["repeated"] > 0.75) == learnt]


def learnt_range(measure: str, learnt: bool) -> str:
    values = sorted({f"{value:.0%}" for value in learnt_seeds(measure, learnt)})
    return " and ".join(values)


def past_score(name: str, measure: str) -> str:
    return percent(past_runs(measure)[name])


def gap(name: str, kind: str) -> str:
    """Masked-token accuracy at words of this kind; of ELECTRA, its generator's."""
    return percent([run["gaps"][kind]["argmax"] for run in past()["runs"][name]])


GENERATOR_MEASURES = {  # of the results file -> in tables and charts
    "copies": "generator: repeated words named",
    "kinds": "slot-category probe",
    "jobs": "unstated-fact probe",
    "repeated": "swapped-word probe, repeated words",
    "facts": "swapped-word probe, facts",
    "tuned_mean": "fine-tuned, mean pooling",
}


def generators() -> dict[str, Any]:
    return stored("07_generators")


def generator_runs(measure: str) -> dict[str, list[float]]:
    """What ELECTRA reached with a generator of each width; "copies": what the generator did."""
    if measure == "copies":
        runs = generators()["runs"].items()
        return {name: [run["gaps"]["repeated"]["argmax"] for run in of] for name, of in runs}
    return outcome(generators(), measure)


def generator_costs() -> dict[str, float]:
    """FLOPs of a step, the narrowest generator's = 1."""
    costs = generators()["flops_a_step"]
    return {name: cost / costs["generator 1/4"] for name, cost in costs.items()}


def of_width(name: str, measure: str) -> str:
    return percent(generator_runs(measure)[name])


LEARNED = 0.8  # of the swapped repeated words: a run above it has learned to compare


def learned_swaps(name: str) -> int:
    """How many runs past the plateau tell a swapped repeated word from an original one."""
    return sum(score > LEARNED for score in past_runs("repeated")[name])


def times_whole_short() -> str:
    """What ELECTRA's authors count for BERT over what it spent, most steps being at length 128."""
    base, paper = published("bert", "base"), printed("bert")["pretraining"]
    long, brief = (encoder_flops(base, paper[f"{kind}_length"]) for kind in ("long", "short"))
    return f"{long / (paper['short_share'] * brief + (1 - paper['short_share']) * long):.1f}"


NUMBERS: dict[str, Callable[[], Any]] = {
    "past_random_mean": lambda: past_score("random initialisation", "tuned_mean"),
    # of 9 draws with replacement among the 62 words of 64 tokens
    "distinct_draws": lambda: f"{62 * (1 - (61 / 62) ** 9):.1f}",
    "no_mask_gain": lambda: f"{paper_score('Replace MLM') - paper_score('BERT'):.1f}",
    "disc_part_lecture": lambda: f"{disc_fraction(1, disc_weight()):.2%}",
    "disc_part_paper": lambda: f"{disc_fraction(disc_weight(), 1):.0%}",
}

TYPED = {
    "15%": "the name ELECTRA 15%; the paper's and the released code's own rates",
    "58%": "the paper's masked-token accuracy, section 3.2",
    "65%": "the paper's masked-token accuracy, section 3.2",
    "74.1": "printed in Table 1",
    "75.1": "printed in Table 1",
    "82.2": "printed in Table 5",
    "83.6": "printed in section 3.2",
    "84.3": "printed in section 3.2 and in Table 5",
    "84.4": "printed in section 3.2",
    "85.1": "printed in Table 1",
    "88.9": "printed in Table 2",
    "200": "the steps of the page's live run",
    "500": "the name RoBERTa-500K, and RoBERTa's 500,000 steps",
}
