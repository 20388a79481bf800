# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Choosing a variant: nine tasks, one honest benchmark, and a guide
#
# **Lecture 13** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say what GLUE's nine tasks ask, what each is scored by, and what "the average" of them means;
# - compare models so that the comparison holds: same text, same FLOPs, seeds, intervals, controls;
# - time a model properly, and say what its size, its memory and its time have to do with each other;
# - exchange one member of the family for another in code, and know what changes;
# - choose a model for a task, give the reason, and say what would change your mind.
#
# You need fine-tuning from lecture 03. Each member's own page says how it works. Nothing is downloaded.
#
# {{parts}}

# %%
from course_lib import check, claims_table, quiz, show
from course_lib.lectures.lecture_13 import benchmark, interfaces
from course_lib.lectures.lecture_13.views import (
    averages_table, benchmark_view, card_table, costs_table, documentation_chart, documentation_table, equal_size_chart, flops_table,
    front, front_chart, glue_comparison, glue_table,
    guide_table, guide_view, index_view, interfaces_table, leaderboard_table, points_ahead, questions_index,
    rankings_table, reading_table, reasons_table, sentiment_table, tasks_chart, variants_table,
)  # fmt: skip
from course_lib.teaching import LiveLoss
from course_lib.text.glue import GLUE, glue_items

# %% [markdown]
# ## Predict first
#
# Somebody hands you a table: twelve models, one number each. "Take the highest." Three guesses before you do.
#
# 1. Seven of ten sentences are good English. A model calls *every* sentence good. What does GLUE give it, from −1 to 1?
# 2. One paper prints an average of 79.6 for BERT. The eight scores that another paper prints for DistilBERT average 79.6 too. Are the two as good as each other? Yes or no.
# 3. All members of the family read the same stories, for equally many FLOPs, and learn nine tasks. By how many points of the average does the best of the other members lead BERT?

# %%
my_guesses = {"calls all good": ..., "as good": ..., "points ahead": ...}

# %% [markdown]
# ## By hand
#
# ### A score that cannot be bribed
#
# Twenty sentences, fourteen of them good. A model calls sixteen good: thirteen rightly.
#
# | | called good | called bad |
# |---|---|---|
# | **good** | 13 | 1 |
# | **bad** | 3 | 3 |
#
# Accuracy: (13 + 3) / 20 = 80%. Calling everything good would have 70%. **Matthews' correlation** takes both into account:
#
# (13 · 3 − 3 · 1) / √(16 · 4 · 14 · 6) = 36 / 73.3 = **0.49**
#
# Call everything good, and a column of the table is empty: 0 / 0, which counts as 0. That is the first guess. GLUE scores one of its nine tasks, CoLA, this way.
#
# ### The same row, two averages
#
# A row of scores: MNLI 84 on known topics and 82 on new ones, CoLA 52, RTE 66.
#
# | recipe | sum | average |
# |---|---|---|
# | four numbers, MNLI twice | (84 + 82 + 52 + 66) / 4 | **71.0** |
# | three tasks, MNLI's two numbers averaged | (83 + 52 + 66) / 3 | **67.0** |
#
# Four points, and no model has changed. Papers use both, and four more.
#
# ### Is 82% more than 80%?
#
# A hundred test texts. Both models are right on 78, both wrong on 16. On **six** texts they differ: four times only the second is right, twice only the first. A coin that falls 4 to 2 surprises nobody. The difference of two points rests on six texts.
#
# ## Try it
#
# Six pieces to build, two here, the others where they belong. `hint("13.1")` helps a step at a time, `reveal("13.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:13.1}}


# %%
def my_matthews(counts):
    return ...


check("13.1", my_matthews)

# %% [markdown]
# {{exercise:13.2}}


# %%
def my_glue(row, recipe):
    return ...


check("13.2", my_glue)

# %% [markdown]
# ## The code
#
# ### Nine tasks, and a twin of each
#
# GLUE is nine tasks of understanding English. We cannot download them, so each has a **twin**: the same kind of question, with the same metric, in sentences of the micro-world. Its rules give the right answer.

# %%
glue_table()

# %% [markdown]
# *What each twin asks, and its metric. Last: how many training texts GLUE's own task has (real), and how many its twin.*
#
# One text of each, and its label:

# %%
for name in GLUE:
    item = glue_items(name, "test", 3)[-1]
    print(f"{name:7}{item.label:16}", *([item.text] if hasattr(item, "text") else [item.premise, "|", item.hypothesis]))

# %% [markdown]
# With a network the same call reads the real ones. Write names into the list.

# %%
wanted = []  # such as "RTE", "CoLA"
for name in wanted:
    print(name, *glue_items(name, "validation", 2, real=True), sep="\n  ")

# %% [markdown]
# WNLI's twin is nasty on purpose: its validation texts are training texts with the *other* answer, as many of GLUE's are. Who learns them by heart is wrong. BERT's authors left WNLI out.
#
# ### From scores to one number

# %%
from course_lib.teaching.averages import AVERAGES, glue_average

show(glue_average)
for name, about in AVERAGES.items():
    print(f"{name:12}{about.split:24}{about.used_by}")

# %% [markdown]
# Six recipes go by the name of "average". An average without its recipe is not a number that one can compare.
#
# ### The same texts for both
#
# Is A better than B? Two kinds of chance stand behind the difference: which *texts* happened to be in the test set, and which *seed* trained the models.
#
# {{exercise:13.3}}


# %%
def my_interval(right_a, right_b, drawn):
    return ...


check("13.3", my_interval)

# %% [markdown]
# {{exercise:13.4}}


# %%
def my_verdict(a, b):
    return ...


check("13.4", my_verdict)

# %% [markdown]
# Your rule looks at the spread of the *differences*. The course's tables have a rule of their own: one sign in every seed, and a mean difference larger than the standard deviation of *either* model. Where both models go up and down together, ours is harder to pass; where one goes up as the other goes down, it is easier.

# %%
from course_lib.teaching.verdicts import by_rule

show(by_rule)

# %% [markdown]
# ### Equally many FLOPs
#
# A step of ELECTRA runs two networks, a step of DistilBERT its teacher too. So we count FLOPs, and give every member as many as BERT gets for {{number:BERT.flops:,}} steps.

# %%
from course_lib.lectures.lecture_13.pretraining_runs import steps_of

show(steps_of)
flops_table()

# %% [markdown]
# *Weights: of the encoder that is kept. Masked words: right answers on held-out stories; a dash where no head names words. Students begin from, or listen to, a teacher whose own pre-training is not in their FLOPs, as in their papers.*
#
# ALBERT has BERT's shape, and yet its step costs more: the pairs of sentence order are longer than those of NSP, and so are RoBERTa's whole stories. A layer of the same width costs the same in all of them.
#
# ## Is it right?
#
# The metrics beside scikit-learn's; the oracle, which knows the world's rules, on each twin; and averages that papers print, from the rows that they print.

# %% tags=["nbval-check-output"]
from sklearn.metrics import f1_score, matthews_corrcoef

from course_lib.teaching.glue import oracle_score
from course_lib.text.world import MicroWorld
from course_lib.train.task_metrics import f1, matthews

true, said = [1, 1, 0, 1, 0, 1, 1, 0], [1, 0, 0, 1, 1, 1, 1, 0]
print(f"Matthews {matthews(true, said):.6f} = {matthews_corrcoef(true, said):.6f}   F1 {f1(true, said):.6f} = {f1_score(true, said):.6f}")
world = MicroWorld.load()
print("oracle:", {name: min(oracle_score(name, glue_items(name, "test", 100), world).values()) for name in GLUE})

# %% tags=["nbval-check-output"]
from course_lib.teaching.claims import printed

for name in ("bert_base_test", "distilbert_dev", "bert_large_leaderboard"):
    row = printed("glue")[name]
    print(f"{row['model']:12} {row['recipe']:12} printed {row['printed']}, computed {glue_average(row['scores'], row['recipe']):.2f}")
distil = printed("glue")["distilbert_dev"]["scores"]
without_wnli = sum(score for task, score in distil.items() if task != "WNLI") / 8
print(f"DistilBERT without WNLI {without_wnli:.1f}; BERT-base, Table 1, {printed('glue')['bert_base_test']['printed']}")

# %% [markdown]
# The second guess: the two "79.6" have nothing to do with each other. One is a test average of nine numbers, the other a mean of eight development sets.
#
# ## See it
#
# ### A table that mixes everything
#
# A source lecture prints one number for each model, in one column.

# %%
glue_comparison()

# %% [markdown]
# *Left: what the lecture prints, and what that number really is. Right: the averages that published rows give, a recipe a column; a dash where no paper prints what is needed. Compare within a column only. Last: FLOPs of pre-training, BERT-base = 1, as the lecture prints them and as ELECTRA's Table 1 gives them.*
#
# ### The same names, another interface
#
# "All models have the same interface." The Auto classes of transformers, on a small random checkpoint of each kind, made here:

# %%
interfaces_table()

# %% [markdown]
# *Computed on this machine, with its version of transformers, by AutoTokenizer, AutoModel and AutoModelForSequenceClassification. Segment ids: what the tokenizer returns. Rows: of the model's segment embeddings. Ids 0 and 1: what the model does with them. Pooler "random": the class has one, the checkpoint has no weights for it. Last: layers of a classifier that are new. DeBERTa's row shows a habit of one version: transformers 4 writes one [SEP] between the texts, with ids 0 and 1; transformers 5 writes two, and only zeros. Compare with what a checkpoint was trained on.*
#
# The classes choose the right code by the configuration. They do not make the models alike: print the inputs and one prediction before you trust a score.

# %%
show(interfaces.write_checkpoint)

# %% [markdown]
# ## Measure it
#
# ### One task, live
#
# A BERT of the micro-world, and the same shape from random initialisation, on one twin, one seed each. A bag of words has {{number:bag_of_words('MNLI')}}; three classes, so chance level is a third.

# %%
from course_lib.teaching.shipped import micro_teacher
from course_lib.train.finetuning import finetune
from course_lib.train.glue import model_score

train, test = benchmark.twin("MNLI", "train"), benchmark.twin("MNLI", "test")
starts = {
    "pre-trained": micro_teacher().encoder.requires_grad_(True),
    benchmark.RANDOM: benchmark.start_of(benchmark.Tuning(benchmark.RANDOM), 0),
}
for name, encoder in starts.items():
    live = LiveLoss({"chance level": 1.0986}, part="total", title=name)  # ln 3 nats
    model = finetune(encoder, train, steps=300, learning_rate=1e-3, callbacks=[live])
    print(f"MNLI's twin: {model_score('MNLI', model, test)['accuracy']:.1%} right")

# %% [markdown]
# *The loss of each on its training texts, in nats.*
#
# ### All members, nine tasks
#
# That, for {{number:len(MEMBERS) + 1}} members, {{number:len(CONTROLS)}} plain models (explained below) and random initialisation, on nine twins, {{number:seeds_run()}} seeds: from the result file (`python -m course_lib.teaching.results 13`, about {{number:hours}} hours of one core, and resumable). The rate of each is the better of two on validation texts. Every encoder gets BERT's head (`plain_head=True`): a tanh layer on [CLS], then the classes. The members' own heads in transformers differ (ELECTRA and DeBERTa have a GELU there, DistilBERT a ReLU, ModernBERT a norm besides), and here it is the encoders that are compared.

# %%
benchmark_view()

# %% [markdown]
# *A dot a seed, the line is their mean. The grey bar: where 95% of a thousand resampled test sets have the average. ± sd: over the seeds. Last: beside BERT, by the course's rule (above, after exercise 13.4). Sort by a task, by size; show the family alone.*

# %% [markdown]
# - **Pre-training pays, for all but one**: random initialisation has {{number:mean_of('random initialisation')}}, all members but ALBERT {{number:percent([lowest()])}} or more.
# - **At the top of the family nothing is settled.** RoBERTa {{number:mean_of('RoBERTa')}}, BERT {{number:mean_of('BERT')}}, ModernBERT {{number:mean_of('ModernBERT')}}, FastBERT {{number:mean_of('FastBERT')}}, DistilBERT {{number:mean_of('DistilBERT')}}: BERT's two seeds lie further apart than these means. A table of one seed would have had a winner: BERT with the first, ModernBERT with the second.
# - **ALBERT is still on its plateau** ({{number:masked('ALBERT')}} of masked words): narrow embeddings start late, as on page 05. Its place says who starts sooner, not who is better.
# - **ELECTRA** had {{number:steps('ELECTRA')}} steps for BERT's {{number:BERT.flops:,}}: two networks cost. On page 07, with more steps, it is ahead of BERT where the test is like its task.
# - **ModernBERT**, six years younger, finds as many masked words as RoBERTa ({{number:masked('ModernBERT')}} and {{number:masked('RoBERTa')}}; BERT {{number:masked('BERT')}}), and is not settled beside BERT. Stories of 64 tokens ask for little of what it brings. Page 16 takes it apart.
# - **A plain model of two layers has the highest mean**, {{number:mean_of('plain, two layers')}}. By the course's rule it is ahead of every member but BERT and ModernBERT, whose seeds leave it open; two seeds pass such a rule by chance now and then. The next is plain too: four layers, 110 wide, {{number:mean_of('plain, 110 wide')}}.
#
# Why? The two layers are a RoBERTa cut in half. For the same FLOPs they read {{number:steps('plain, two layers')}} batches, RoBERTa {{number:steps('RoBERTa')}}. So more text was worth more than two more layers *at this budget*, by about a point. Nothing follows for large models and long training.
#
# The papers' own order (DeBERTa before ELECTRA before RoBERTa before BERT) comes out of none of these lines. Their models read more than ten thousand times as much, each with its own data and steps.
#
# ### What one number hides: tasks, seeds, recipes

# %%
tasks_chart()

# %% [markdown]
# *Every member on every twin, the mean over the seeds; where a task has two metrics, their mean. CoLA: Matthews' correlation times 100.*
#
# Compare two columns. CoLA (word order, agreement): DeBERTa leads with {{number:mean_of('DeBERTa', 'CoLA')}}, RoBERTa has {{number:mean_of('RoBERTa', 'CoLA')}}, BERT {{number:mean_of('BERT', 'CoLA')}}. WNLI (146 test texts): BERT {{number:mean_of('BERT', 'WNLI')}}, DeBERTa {{number:mean_of('DeBERTa', 'WNLI')}}. One number hides that.
#
# A mean hides more: BERT's {{number:mean_of('BERT', 'QNLI')}} on QNLI are one seed among the best and one no better than random initialisation. Sort the benchmark's chart, under *All members*, by QNLI to see both.
#
# The same scores under each recipe that the twins allow:

# %%
averages_table()

# %% [markdown]
# *Average of the family's members, means over the seeds, and place under each recipe.*
#
# DeBERTa is third where WNLI is left out (the columns test-9 and dev-8), and eighth where it counts; ModernBERT first or second, and third. The recipe moved them; no model has changed. But look how close they are: without WNLI, places 3 to 8 lie within a point of each other, less than BERT's seeds differ. Such places are no finding.
#
# ### Is it the idea, or the size?
#
# A member beside BERT: is it the idea that decides, or the size? So beside each member of another size stands a **plain** model, masked words alone, with about as many parameters and as many FLOPs of pre-training.

# %%
equal_size_chart()

# %% [markdown]
# *Left: the member. Right: a plain model of that size, 58, 110 or 138 wide, with two layers, or with two of width 64. Where it is cheaper a step, it reads more text for the same FLOPs. A dot a seed.*
#
# **In none of the six pairs is the member ahead.** By the rule:
#
# - *behind*: ALBERT, on its plateau; DistilBERT, {{number:mean_of('DistilBERT')}} against {{number:mean_of('plain, two layers')}}; DeBERTa, {{number:mean_of('DeBERTa')}} against {{number:mean_of('plain, 138 wide')}}. A step with a teacher costs its forward pass too, and a step of DeBERTa its position products, so they read less;
# - *not settled*: MobileBERT, {{number:mean_of('MobileBERT')}} and {{number:mean_of('plain, 58 wide')}}; TinyBERT, {{number:mean_of('TinyBERT')}} and {{number:mean_of('plain, two layers, 64 wide')}}; ModernBERT, {{number:mean_of('ModernBERT')}} and {{number:mean_of('plain, 110 wide')}}.
#
# So no idea paid here beside a plain model of its size, on stories without end, with one recipe of each and two seeds. That is no verdict on the ideas: where text or labels are few, a teacher's answers may be worth more. It is a verdict on tables: one without a plain row of the same size cannot tell an idea from a size.
#
# ### Text that people wrote
#
# Twins are made by rules. So all members once more, on the documentation of Python and its libraries: pre-trained on it for equally many FLOPs, then fine-tuned on three tasks of lecture 03 (which section of a docstring a sentence is from, which kind of parameter it describes, which package a paragraph is from; some 1,500 labels each).
#
# At the size used on the stories, the members we tried did not leave the plateau on this text (BERT, {{number:BERT.flops:,}} steps: 8% of the masked pieces; who always says the commonest has 6%). So here all are twice as wide, read batches of 128 short sequences, and warm up for a quarter of their steps. Equal FLOPs: BERT's {{number:stored(written.FILE)['pretraining']['BERT']['flops']:,}} steps. {{number:len(stored(written.FILE)['runs']['BERT'])}} seeds. They were trained on a GPU ({{number:stored(written.FILE)['device']}}, bfloat16): `COURSE_LIB_DEVICE=cuda` before the command that makes the results.

# %%
documentation_chart()

# %% [markdown]
# *Right on test texts, from modules that nobody learned from. A bag of words had the same labels and no pre-training. Nobody marked noun phrases here, so ERNIE's row masks whole words.*

# %%
documentation_table()

# %% [markdown]
# *Masked pieces: found in held-out text, of 15%; a dash for a model without such a head. sd: over the seeds, in points. Beside BERT, in points, with the course's rule: settled if it has one sign in every seed and is larger than the larger of the two standard deviations. 95%: where a thousand resampled test sets have the difference of the means.*
#
# - **Five are ahead of BERT, by the rule and beyond what other test texts could change**: ModernBERT ({{number:beside_bert_there('modernbert')}}), the two plain layers ({{number:beside_bert_there('short')}}), DeBERTa ({{number:beside_bert_there('deberta')}}), ERNIE ({{number:beside_bert_there('ernie')}}), RoBERTa ({{number:beside_bert_there('roberta')}}). The plain model read most, here too; ModernBERT read half of that and is not settled beside it. On the nine twins it was nothing special; in masked words it was ahead of BERT, level with RoBERTa, and not ahead of the plain models. Page 16 has both sides of it.
# - **A guess why**: all five do without NSP and without a teacher. So do SpanBERT and ELECTRA, which are far behind; but these spend FLOPs on a second loss or a second network, the five on masked words alone. Each would have to be tried with NSP to know. They also find more masked pieces: BERT {{number:pieces('BERT')}}, RoBERTa {{number:pieces('RoBERTa')}}, DeBERTa {{number:pieces('DeBERTa')}}, two plain layers {{number:pieces('plain, two layers')}}, ModernBERT {{number:pieces('ModernBERT')}}. The order is not that of the tasks everywhere: MobileBERT finds {{number:pieces('MobileBERT')}}, more than RoBERTa, and is not ahead of BERT ({{number:beside_bert_there('mobilebert')}}).
# - **A student with half of BERT's layers** is not settled beside it (DistilBERT, {{number:beside_bert_there('distilbert')}}). But the plain two layers, as large and without a teacher, are ahead of both.
# - **A bag of words** has {{number:documented(written.BAG)}}, random initialisation {{number:documented('random initialisation')}}, BERT {{number:documented('BERT')}}: this pre-training is short. `course-bert` has read {{number:read_more}} times as much (page 03 has what that is worth).
# - **Who has hardly left the plateau has gained nothing.** ALBERT finds {{number:pieces('ALBERT')}} of the pieces and has {{number:documented('ALBERT')}} on the tasks, SpanBERT {{number:pieces('SpanBERT')}} and {{number:documented('SpanBERT')}}: random initialisation does as well. In an earlier run with two thirds of the steps and one seed both were *below* it (53.3% and 40.6%). Equal FLOPs for all is a rule, not justice: what more steps would make of them is another question.
# - **ALBERT's row here is older than a repair.** Its pairs were shortened before they were swapped, so their two lengths alone told the order of {{number:percent([stored('05_lengths')['guessed'][str(SHORT)][OLD_WAY]])}} (page 05): its second loss could fall without reading. The stories' pairs are never shortened, so the benchmark's row is not concerned. This one will be made again when a GPU is at hand; until then do not read it as a verdict on ALBERT.
# - **ELECTRA's runs have collapsed**, {{number:documented('ELECTRA')}}: its models say one package to all texts, so all seeds are right on the very same ones. That is no score of ELECTRA. Every member was pre-trained at one rate, {{number:BERT.learning_rate}}, and page 07 (*Why did my run die?*) shows that an ELECTRA stands less than a BERT.
# - **One rate for all is this table's weakness**, and that of the nine twins above. The code now tries each member's own rates of pre-training and of fine-tuning (`rates_tried`), repeats collapsed runs at a lower one and counts them. That takes some nine hours of one core for the twins, and has not been run to its end: until then, read small differences as those of one recipe.
# - **FastBERT** is BERT with exits at the speed of the stories' row ({{number:beside_bert_there('fast')}}). Here that speed costs more than it may: it has to be chosen for each task.
#
# ### Which of two, on one task
#
# A source lecture compares variants on sentiment: one run each, timed once, accuracy left out. Here SST-2's twin: the same texts for all, the better of two rates, and seeds. Text by text, from the result file: BERT against each of the others.

# %%
sentiment_table()

# %% [markdown]
# *Two columns know seed 0 alone (differ, p), the others both seeds, so a row can look like a contradiction. Right, and BERT more (in points): means over the seeds. Differ: texts that only BERT has right, and only the other, of {{number:len(shown.runs_of('BERT')[0]['sentiment'])}} (seed 0). The interval: 95% of resampled test sets, seeds averaged. p: how often a fair coin would fall so unevenly (an exact McNemar test, seed 0).*
#
# Now some differences are beyond doubt *as to the texts*: ERNIE is many points behind, with p below any threshold. But p knows one seed. TinyBERT is even further behind, and its p is 1: sort the benchmark's chart by SST-2, and it has one seed (seed 0) with all texts right, and one at chance level. **Significance over texts says nothing about another run.** Both belong in the table.
#
# ### How to time a model
#
# The time of these models does not depend on what their weights are (with early exits it would). So random ones will do, at the published shapes, two layers of each for speed.
#
# {{exercise:13.5}}


# %%
def my_latency(seconds, warm_up, batch_size):
    return ...


check("13.5", my_latency)

# %%
import statistics
import time

import torch

from course_lib import albert, bert, count_parameters, deberta, distilbert

ids = torch.randint(1_000, 20_000, (1, 32), generator=torch.Generator().manual_seed(0))
shapes = {"BERT": bert, "ALBERT": albert, "DistilBERT": distilbert, "DeBERTa": deberta}
print(f"{'two layers of':14}{'weights':>12}{'first call':>12}{'median':>10}{'95th':>10}   ms, one text of 32 tokens")
for name, build in shapes.items():
    model, calls = build("base", num_layers=2).eval(), []
    with torch.inference_mode():
        for _ in range(25):
            began = time.perf_counter()
            model(ids)
            calls.append(1e3 * (time.perf_counter() - began))
    warm = sorted(calls[5:])
    middle = statistics.median(warm)
    print(f"{name:14}{count_parameters(model):12,}{calls[0]:12.1f}{middle:10.1f}{warm[18]:10.1f}")

# %% [markdown]
# Compare the first call with the 95th percentile. In a process that has long been at work it may be like any other; where something is built on first use, it may take twice the median. Who times once does not know which. And ALBERT has far fewer weights at about BERT's time: it saves the file, not the work.
#
# Two things this short loop does not do. It times one model after the other; for a table, let them take turns, or a busy minute hits one of them. And at two layers each it hides what DistilBERT is made for: half of BERT's layers.
#
# The same for the members of the benchmark, done so, and the memory beside it:

# %%
costs_table()

# %% [markdown]
# *Measured side by side, in turns, random weights, one thread, texts of 32 tokens ({{number:where_measured(stored('13_costs')['machine'])}}). Fine-tuning step: the most that its tensors hold at once, sixteen texts, weights aside. ELECTRA, SpanBERT and ERNIE are BERT's shape when they are used, so their rows are BERT's but for chance. FastBERT's time depends on its texts: page 12.*
#
# Memory while it learns follows width and layers, not weights: ALBERT has a quarter of BERT's weights and all of its memory. MobileBERT has fewer FLOPs than any member but TinyBERT, and one text takes it nearly as long as BERT: many small products. Sixteen at once, and it is more than twice as fast.
#
# ### What is left to choose from
#
# {{exercise:13.6}}


# %%
def my_front(scores, costs):
    return ...


check("13.6", my_front)

# %%
front_chart()

# %% [markdown]
# *Average of the nine twins (mean of the seeds) against the FLOPs of one text, on a logarithmic axis. FastBERT's FLOPs are what its texts used on average. ALBERT, on its plateau far below, is left out.*

# %%
print("beaten by nobody in both:", " · ".join(front()))

# %% [markdown]
# Three points, and all are plain models: at this budget no member is a bargain, not even the smallest. By means of {{number:seeds_run()}} seeds, though; a front has no error bars, and another seed may put others on it. With real machines, draw milliseconds instead: page 12 shows how the two disagree.
#
# ### The guide
#
# No table chooses for you. These questions, in this order, narrow it down.

# %%
guide_view()

# %% [markdown]
# *Eight questions; below them the choice, why, its numbers with their sources, where it is taught, and which single other answer would change it. Every combination of answers ends in a choice: the tests walk them all.*
#
# Three questions that readers ask most, asked of it. Whatever they do not say is as usual: English of no special field, classes, a
# server, thousands of labels.

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_13.guide import decide

usual = {"language": "english", "domain": "general", "task": "classify", "latency": "server", "memory": "free",
         "labels": "thousands", "leave": "no", "pretrain": "no"}  # fmt: skip
for question, answers in {
    "Which for search?": {"task": "retrieve"},
    "Which for forty languages?": {"language": "many"},
    "I have 200 labels.": {"labels": "hundreds"},
}.items():
    choice = decide(usual | answers)
    print(f"{question}\n  {choice.name}.\n  {choice.why}\n")

# %% [markdown]
# The same to print:

# %%
guide_table()

# %%
variants_table()

# %% [markdown]
# *Every member: what is new, what it gains, what it costs, what it is best for.*

# %%
rankings_table()

# %% [markdown]
# *Rankings, each by one number and one source: understanding, languages, domains, efficiency. Read ">" as "before": where fewest is best, the smaller number stands first.*
#
# ### Reading a model card, and a leaderboard

# %%
card_table()

# %%
leaderboard_table()

# %% [markdown]
# ### Five reasons to know the family

# %%
reasons_table()

# %%
answers = {
    "calls all good": "0",
    "as good": "no: test against development, nine numbers against eight",
    "points ahead": points_ahead(),
}
print(f"{'':18}{'you said':>14}   answer")
for name, value in answers.items():
    print(f"{name:18}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("13")

# %% [markdown]
# **All claims of the course**, of all pages, with their verdicts: filter by who makes them.

# %%
index_view()

# %%
questions_index()

# %% [markdown]
# *Where each of the questions for review stands, page by page.*
#
# ## More exercises
#
# All six stand above, each before the code that answers it. To go on: take two members of the benchmark, your own task, three seeds; write the interval and the verdict below your table.

# %% [markdown]
# ## Quiz

# %%
quiz("13")

# %% [markdown]
# ## Questions for review
#
# {{review:13}}

# %% [markdown]
# ## Read on
#
# ★ marks the five essential papers.

# %%
reading_table()
