"""The numbers that sentences of lecture 07 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from math import log
from statistics import mean
from typing import Any

import torch

from course_lib import MicroWorld, bert, count_parameters, electra
from course_lib.family.electra import ElectraConfig
from course_lib.objectives.replaced_tokens import RELEASED_MIX
from course_lib.teaching.claims import claims, printed, settled
from course_lib.teaching.numbers import cpu_hours, percent
from course_lib.teaching.results import outcome, stored

from .exercises.steps import published_step, training_step
from .experiments import (
    DEEP,
    DEEP_SEEDS,
    FULL,
    GENERATOR_SEEDS,
    LONG,
    PAST_SEEDS,
    SEEDS,
    micro_electra,
)
from .views.corruptor import Corruption, corrupt_and_detect

TOKENS = 128  # of the text whose FLOPs are counted

SAMPLED_RIGHT = 4  # of ten words that the generator samples, in the first guess


def _fraction_replaced() -> str:
    """What the first guess asks for: the fraction masked, less what was sampled right."""
    return f"{FULL.rate * (1 - SAMPLED_RIGHT / 10):.0%}"


def disc_weight() -> int:
    return int(printed("electra")["loss"]["disc_weight"])


def _at_the_start() -> tuple[float, float]:
    """Both losses of networks that guess, in nats."""
    return log(ElectraConfig().vocab_size), log(2)


def disc_fraction(disc_weight: float, mlm_weight: float) -> float:
    """The discriminator's part of the loss of networks that guess."""
    mlm, disc = _at_the_start()
    return disc_weight * disc / (disc_weight * disc + mlm_weight * mlm)


def _adversarial(who: str) -> str:
    return f"{printed('electra')['adversarial'][who]}%"


@lru_cache(maxsize=1)
def bert_encoder() -> int:
    """BERT-base's encoder without its pooler."""
    with torch.device("meta"):
        model = bert("base")
        return count_parameters(model) - count_parameters(model.pooler)


def _base_step_adds() -> str:
    """What a training step of ELECTRA-base costs more than BERT-base's: exercise 07.5."""
    one, both = training_step(*published_step("base", 512, FULL.rate))
    return f"{both / one - 1:.0%}"


@cache
def _parameters(size: str) -> tuple[int, int, int]:
    """Of the kept encoder, of its head, and what the generator adds below its own head."""
    with torch.device("meta"):
        model = electra(size)
    kept = count_parameters(model.discriminator)
    adds = count_parameters(model) - kept - count_parameters(model.generator.mlm)
    head = count_parameters(model.discriminator.rtd)
    return count_parameters(model.discriminator.encoder), head, adds


STORY, MASKED, SEED = (4, 1), 0.2, 1  # seed and number of a held-out story; fraction masked; seed


@lru_cache(maxsize=1)
def _world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def corruption_shown() -> Corruption:
    seed, number = STORY
    story = _world().stories(number + 1, seed=seed, split="heldout")[number]
    text = " ".join(story.sentences[:3])
    return corrupt_and_detect(micro_electra(), _world().tokenizer, text, MASKED, SEED)


def _story_counts() -> dict[str, int]:
    """Counts of the picture, for slide and notes."""
    shown = corruption_shown()
    pairs = list(zip(shown.replaced, shown.called, strict=True))
    masked, replaced = sum(shown.selected), sum(shown.replaced)
    return {
        "hidden": masked, "replaced": replaced, "right": masked - replaced,
        "found": pairs.count((True, True)), "alarms": pairs.count((False, True)),
    }  # fmt: skip


def looks_at(measure: str) -> list[tuple[float, float]]:
    """What the shipped ELECTRA reached, by step."""
    curve = stored("07_electra")["runs"]["ELECTRA"][0]["curve"]
    return [(look["step"], look[measure]) for look in curve]


def _look(measure: str, which: int) -> str:
    return f"{looks_at(measure)[which][1]:.0%}"


def _sampled_last() -> str:
    """Of the shipped generator's sampled words the fraction that is right: masked tokens that were
    not replaced."""
    return f"{1 - looks_at('replaced')[-1][1] / FULL.rate:.0%}"


def _replaced_by_argmax() -> str:
    """What would be replaced if the shipped generator put in its most likely word."""
    return f"{FULL.rate * (1 - looks_at('words_by_generator')[-1][1]):.0%}"


def _steps() -> dict[str, Any]:
    return stored("07_stepping_stones")


def variants() -> dict[str, Any]:
    return stored("07_variants")


def cost(step: str) -> float:
    """FLOPs of a step, as a multiple of BERT's."""
    costs = _steps()["flops_a_step"]
    return float(costs[step] / costs["BERT"])


def _all_tokens_cost() -> str:
    """FLOPs of a step with all tokens predicted, as a multiple of those with the masked ones."""
    return f"{cost('All-tokens MLM') / cost('Replace MLM'):.1f}"


def _constant_loss() -> str:
    """The loss, in nats, of answering always with the fraction replaced at the first look."""
    p = looks_at("replaced")[0][1]
    return f"{-p * log(p) - (1 - p) * log(1 - p):.2f}"


def paper_score(step: str) -> float:
    return float(printed("electra")["stones"][step])


def slot_categories(step: str, setting: str = "equal steps") -> list[float]:
    """The slot-category probe of each seed."""
    return outcome(_steps(), "kinds")[f"{setting}: {step}"]


def _slots(step: str, setting: str = "equal steps") -> str:
    return percent(slot_categories(step, setting))


def bert_steps() -> int:
    """As many of BERT's steps as cost what ELECTRA's steps cost."""
    return int(_steps()["recipes"]["equal arithmetic: BERT"]["steps"])


def untrained(measure: str) -> float:
    """At random initialisation."""
    return mean(one[measure] for one in _steps()["untrained"])


def slot_percent(step: str) -> float:
    """In percent, as printed, so that differences are those of the printed numbers."""
    return round(100 * mean(slot_categories(step)), 1)


def _less(better: str, worse: str) -> str:
    """Points by which one ablation step is ahead of another here."""
    ahead = slot_percent(better) - slot_percent(worse)
    assert ahead > 0, (better, worse)
    return f"{ahead:.1f}"


def _bert_facts(setting: str) -> str:
    """BERT on the unstated-fact probe."""
    return percent(outcome(_steps(), "jobs")[f"{setting}: BERT"])


def _facts() -> list[float]:
    """What each trained recipe reached on the unstated-fact probe, in the mean over its seeds."""
    found = [mean(of) for of in outcome(_steps(), "jobs").values()]
    assert max(found) < untrained("jobs")  # as the notes say
    return found


def _variant(name: str, measure: str = "kinds") -> float:
    return mean(outcome(variants(), measure)[name])


def _wrong_term(measure: str) -> str:
    """With λ on the wrong term: ROC-AUC falls, the slot-category probe rises, as the slide says."""
    wrong, right = (_variant(name, measure) for name in ("λ on the generator", "generator 1/4"))
    assert (wrong > right) == (measure == "kinds")
    return f"{wrong:.0%}"


def _untied() -> str:
    assert _variant("untied") < _variant("generator 1/4")
    return f"{_variant('untied'):.0%}"


def price(row: str) -> tuple[float, float]:
    """FLOPs of pre-training and GLUE mean of a row of Tables 1 and 2."""
    paper = printed("electra")
    found = paper["small"].get(row) or paper["large"][row]
    unit = paper["large"]["electra_400k"]["flops"]  # where only the multiple of it is printed
    return float(found.get("flops") or found["times"] * unit), float(found["glue"])


def _quotient(above: str, below: str) -> float:
    return price(above)[0] / price(below)[0]


def _shortest_flops() -> str:
    """Its fraction of ELECTRA-small's FLOPs; Table 1's row is named by the fraction."""
    flops = printed("electra")["shortest"]["fraction"] * price("electra_small")[0]
    return f"{flops:.1e}".replace("e+", "e")


def _shortest_behind() -> str:
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


def _learnt(measure: str, learnt: bool = True) -> list[float]:
    """What ELECTRA's seeds reached whose probe on repeated words is well above chance level (or,
    with `learnt` False, the others)."""
    return [run[measure] for run in past()["runs"]["ELECTRA"] if (run["repeated"] > 0.75) == learnt]


def _learnt_range(measure: str, learnt: bool) -> str:
    values = sorted({f"{value:.0%}" for value in _learnt(measure, learnt)})
    return " and ".join(values)


def _past(name: str, measure: str) -> str:
    return percent(past_runs(measure)[name])


def _gap(name: str, kind: str) -> str:
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


def _of_width(name: str, measure: str) -> str:
    return percent(generator_runs(measure)[name])


def deep() -> dict[str, Any]:
    return stored("07_deep")


def by_depth(measure: str) -> dict[str, list[float]]:
    """What two and four layers reached, each at equal FLOPs; "copies": of the words that a story
    repeats, those named by BERT and by ELECTRA's generator."""
    found = {}
    for layers, result in (("two", past()), ("four", deep())):
        for name, runs in result["runs"].items():
            reached = [
                r["gaps"]["repeated"]["argmax"] if measure == "copies" else r[measure] for r in runs
            ]
            found[f"{name}, {layers} layers"] = reached
    return found


def _deep(name: str, measure: str) -> str:
    return percent(by_depth(measure)[f"{name}, four layers"])


NUMBERS: dict[str, Callable[[], Any]] = {
    "gen_function": lambda: _gap("ELECTRA", "function"),
    "gen_repeated": lambda: _gap("ELECTRA", "repeated"),
    "wide_copies": lambda: _of_width("generator 1", "copies"),
    "wide_cost": lambda: f"{generator_costs()['generator 1']:.1f}",
    "wide_facts": lambda: _of_width("generator 1", "facts"),
    "narrow_facts": lambda: _of_width("generator 1/4", "facts"),
    "wide_repeated": lambda: _of_width("generator 1", "repeated"),
    "narrow_repeated": lambda: _of_width("generator 1/4", "repeated"),
    "wide_jobs": lambda: _of_width("generator 1", "jobs"),
    "narrow_jobs": lambda: _of_width("generator 1/4", "jobs"),
    "wide_slots": lambda: _of_width("generator 1", "kinds"),
    "narrow_slots": lambda: _of_width("generator 1/4", "kinds"),
    "wide_tuned": lambda: _of_width("generator 1", "tuned_mean"),
    "narrow_tuned": lambda: _of_width("generator 1/4", "tuned_mean"),
    "wide_cls": lambda: _of_width("generator 1", "tuned_[CLS]"),
    "narrow_cls": lambda: _of_width("generator 1/4", "tuned_[CLS]"),
    "half_copies": lambda: _of_width("generator 1/2", "copies"),
    "half_repeated": lambda: _of_width("generator 1/2", "repeated"),
    "half_facts": lambda: _of_width("generator 1/2", "facts"),
    "half_jobs": lambda: _of_width("generator 1/2", "jobs"),
    "half_tuned": lambda: _of_width("generator 1/2", "tuned_mean"),
    "half_cls": lambda: _of_width("generator 1/2", "tuned_[CLS]"),
    "deep_bert_cls": lambda: _deep("BERT", "tuned_[CLS]"),
    "deep_electra_cls": lambda: _deep("ELECTRA", "tuned_[CLS]"),
    "deep_bert_mean": lambda: _deep("BERT", "tuned_mean"),
    "deep_bert_repeated": lambda: _deep("BERT", "repeated"),
    "deep_bert_slots": lambda: _deep("BERT", "kinds"),
    "deep_bert_steps": lambda: deep()["recipes"]["BERT"]["steps"],
    "deep_copies": lambda: _deep("ELECTRA", "copies"),
    "deep_count": lambda: RUNS[len(DEEP_SEEDS) - 1],
    "deep_electra_facts": lambda: _deep("ELECTRA", "facts"),
    "deep_electra_jobs": lambda: _deep("ELECTRA", "jobs"),
    "deep_electra_mean": lambda: _deep("ELECTRA", "tuned_mean"),
    "deep_electra_repeated": lambda: _deep("ELECTRA", "repeated"),
    "deep_electra_slots": lambda: _deep("ELECTRA", "kinds"),
    "deep_steps": lambda: DEEP.steps,
    "past_bert_cls": lambda: _past("BERT", "tuned_[CLS]"),
    "past_bert_facts": lambda: _past("BERT", "facts"),
    "past_bert_jobs": lambda: _past("BERT", "jobs"),
    "past_bert_mean": lambda: _past("BERT", "tuned_mean"),
    "past_bert_repeated": lambda: _past("BERT", "repeated"),
    "past_bert_slots": lambda: _past("BERT", "kinds"),
    "past_electra_facts": lambda: _past("ELECTRA", "facts"),
    "past_electra_mean": lambda: _past("ELECTRA", "tuned_mean"),
    "past_electra_repeated": lambda: _past("ELECTRA", "repeated"),
    "past_electra_slots": lambda: _past("ELECTRA", "kinds"),
    "past_random_mean": lambda: _past("random initialisation", "tuned_mean"),
    "past_bert_steps": lambda: past()["recipes"]["BERT"]["steps"],
    "past_learnt": lambda: ("one", "two", "three", "four")[len(_learnt("auc")) - 1],
    **{
        f"past_{'learnt' if learnt else 'stayed'}_{measure}": partial(
            _learnt_range, measure, learnt
        )
        for learnt in (True, False)
        for measure in ("auc", "repeated")
    },
    "past_count": lambda: RUNS[len(PAST_SEEDS) - 1],
    "generators_count": lambda: RUNS[len(GENERATOR_SEEDS) - 1],
    "past_hours": lambda: cpu_hours("07_past_plateau"),
    "generators_hours": lambda: cpu_hours("07_generators"),
    "deep_hours": lambda: cpu_hours("07_deep"),
    "tuned_steps": lambda: past()["tuned_steps"],
    "first_bert": lambda: f"{past()['by_strength']['BERT'][0]:.0%}",
    "first_electra": lambda: f"{past()['by_strength']['ELECTRA'][0]:.0%}",
    "weak_bert": lambda: f"{past()['by_strength']['BERT'][-1]:.0%}",
    "weak_electra": lambda: f"{past()['by_strength']['ELECTRA'][-1]:.0%}",
    "adversarial": lambda: _adversarial("adversarial"),
    "all_tokens_cost": _all_tokens_cost,
    "all_tokens_part": lambda: f"{settled('07', 'all tokens').value:.0%}",
    "all_words_slots": lambda: _slots("All-tokens MLM"),
    "all_words_lose": lambda: _less("Replace MLM", "All-tokens MLM"),
    "all_yes_no_lose": lambda: _less("ELECTRA 15%", "ELECTRA"),
    "base_gain": lambda: f"{price('electra_base')[1] - price('bert_base')[1]:.1f}",
    "base_percent_of_large": lambda: f"{_quotient('electra_base', 'bert_large'):.0%}",
    "base_step_adds": _base_step_adds,
    "base_of_large": lambda: f"{_quotient('electra_base', 'bert_large'):.2f}",
    "bert_facts": lambda: _bert_facts("equal steps"),
    "bert_facts_flops": lambda: _bert_facts("equal arithmetic"),
    "bert_slots": lambda: _slots("BERT"),
    "bert_slots_flops": lambda: _slots("BERT", "equal arithmetic"),
    "bert_small": lambda: price("bert_small")[1],
    "bert_steps": bert_steps,
    "bert_copies": lambda: _gap("BERT", "repeated"),
    "best_from": lambda: f"{printed('electra')['generator']['best'][0]:g}",
    "best_to": lambda: f"{printed('electra')['generator']['best'][1]:g}",
    "by_mlm": lambda: _adversarial("mlm"),
    "claims_in_all": lambda: len(claims("07")),
    "constant_loss": _constant_loss,
    "cost_electra": lambda: f"{cost('ELECTRA'):.2f}",
    "electra_generator": lambda: f"{_variant('generator 1/4', 'words_by_generator'):.0%}",
    "electra_slots": lambda: _slots("ELECTRA"),
    "encoder_small": lambda: _parameters("small")[0],
    "encoder_large": lambda: _parameters("large")[0],
    "encoder_base": bert_encoder,
    "random_facts": lambda: f"{untrained('jobs'):.0%}",
    "random_slots": lambda: f"{untrained('kinds'):.0%}",
    "generator_adds": lambda: f"{_parameters('base')[2] / 1e6:.2f}",
    "head_base": lambda: _parameters("base")[1],
    "glue_400k": lambda: price("electra_400k")[1],
    "glue_base": lambda: price("electra_base")[1],
    "glue_bert_large": lambda: price("bert_large")[1],
    "glue_roberta": lambda: price("roberta_500k")[1],
    "half_slots": lambda: f"{_variant('generator 1/2'):.0%}",
    "inference": lambda: f"{printed('electra')['inference']['electra_base'] / 1e9:.0f}",
    "facts_least": lambda: f"{min(_facts()):.0%}",
    "facts_most": lambda: f"{max(_facts()):.0%}",
    "disc_weight": disc_weight,
    # of 9 draws with replacement among the 62 words of 64 tokens
    "distinct_draws": lambda: f"{62 * (1 - (61 / 62) ** 9):.1f}",
    "large_gain": lambda: f"{price('electra_400k')[1] - price('own_bert')[1]:.1f}",
    "last_gain": lambda: f"{paper_score('ELECTRA') - paper_score('All-tokens MLM'):.1f}",
    "left_alone": lambda: f"{RELEASED_MIX[2]:.0%}",
    "long_auc_first": lambda: _look("auc", 0),
    "long_auc_last": lambda: _look("auc", -1),
    "long_first_step": lambda: looks_at("auc")[0][0],
    "long_gen_last": lambda: _look("words_by_generator", -1),
    "long_sampled_last": _sampled_last,
    "long_slots_first": lambda: _look("kinds", 0),
    "long_slots_last": lambda: _look("kinds", -1),
    "long_replaced_first": lambda: _look("replaced", 0),
    "long_replaced_last": lambda: _look("replaced", -1),
    "long_steps": lambda: LONG.steps,
    "micro_vocab": lambda: _world().tokenizer.vocab_size,
    "no_mask_gain": lambda: f"{paper_score('Replace MLM') - paper_score('BERT'):.1f}",
    "no_mask_loses": lambda: _less("BERT", "Replace MLM"),
    "of_large": lambda: f"{_quotient('electra_400k', 'bert_large'):.1f}",
    "of_roberta": lambda: f"{_quotient('electra_400k', 'roberta_500k'):.2f}",
    "rate": lambda: f"{FULL.rate:.0%}",
    "replace_slots": lambda: _slots("Replace MLM"),
    "guess_replaced": _fraction_replaced,
    "right_of_ten": lambda: SAMPLED_RIGHT,
    "replaced_by_argmax": _replaced_by_argmax,
    "seeds": lambda: len(SEEDS),
    "disc_part_lecture": lambda: f"{disc_fraction(1, disc_weight()):.2%}",
    "disc_part_paper": lambda: f"{disc_fraction(disc_weight(), 1):.0%}",
    "shortest": lambda: printed("electra")["shortest"]["glue"],
    "shortest_behind": _shortest_behind,
    "shortest_flops": _shortest_flops,
    "small_gain": lambda: f"{price('electra_small')[1] - price('bert_small')[1]:.1f}",
    "start_disc": lambda: f"{_at_the_start()[1]:.3f}",
    "start_mlm": lambda: f"{_at_the_start()[0]:.2f}",
    "step_adds": lambda: f"{settled('07', 'E31').value[1] - 1:.0%}",
    "steps": lambda: FULL.steps,
    "story_rate": lambda: f"{MASKED:.0%}",
    "tied_all": lambda: printed("electra")["tying"]["all"],
    "tied_none": lambda: printed("electra")["tying"]["none"],
    "tied_tokens": lambda: printed("electra")["tying"]["tokens"],
    "auc": lambda: f"{_variant('generator 1/4', 'auc'):.0%}",
    "untied_slots": _untied,
    "vocab": lambda: ElectraConfig().vocab_size,
    "whole_gain": lambda: f"{paper_score('ELECTRA') - paper_score('BERT'):.1f}",
    "words_at_all": lambda: _less("All-tokens MLM", "ELECTRA"),
    "words_at_masked": lambda: _less("Replace MLM", "ELECTRA 15%"),
    "wrong_auc": lambda: _wrong_term("auc"),
    "wrong_slots": lambda: _wrong_term("kinds"),
    "story_alarms": lambda: _story_counts()["alarms"],
    "story_found": lambda: _story_counts()["found"],
    "story_masked": lambda: _story_counts()["hidden"],
    "story_replaced": lambda: _story_counts()["replaced"],
    "story_right": lambda: _story_counts()["right"],
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
