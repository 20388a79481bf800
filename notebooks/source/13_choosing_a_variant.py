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
# - say what GLUE's nine tasks ask, how each is scored, and what "the average" of them means;
# - compare models so that the comparison holds: same text, same FLOPs, seeds, intervals, controls;
# - time a model properly, and say how its size, its memory and its time are related;
# - exchange one member of the family for another in code, and know what changes;
# - choose a model for a task, give the reason, and say what would change your mind.
#
# You need fine-tuning from lecture 03. A table below says in one line what each member changes; its own page explains it. Nothing is downloaded.
#
# {{parts}}

# %%
from course_lib import check, claims_table, hint, quiz, reveal, show
from course_lib.lectures.lecture_13 import benchmark
from course_lib.lectures.lecture_13.views import (
    averages_table, benchmark_view, card_table, costs_table, documentation_chart, documentation_table, equal_size_chart, flops_table,
    front, front_chart, glue_comparison, glue_table,
    guide_table, guide_view, index_view, interfaces_table, leaderboard_table, points_ahead, questions_index,
    rankings_table, rates_table, reading_table, reasons_table, sentiment_table, tasks_chart, variants_table,
)  # fmt: skip
from course_lib.teaching import LiveLoss
from course_lib.text.glue import GLUE, glue_items

# %% [markdown]
# ## Predict first
#
# Somebody shows you a table with one number for each of twelve models and tells you to take the highest. Make three guesses first.
#
# 1. Seven of ten sentences are good English. A model calls *every* sentence good. What is its score on CoLA, from −1 to 1?
# 2. One paper prints an average of 79.6 for BERT. Eight of the nine scores that another paper prints for DistilBERT, all but WNLI, average 79.6 too. Are the two models equally good? Yes or no.
# 3. All members of the family are pre-trained on the same stories with equal FLOPs, then fine-tuned on nine tasks. By how many points of the average is the best of the others ahead of BERT, or behind it?

# %%
my_guesses = {"calls all good": ..., "as good": ..., "points ahead": ...}

# %% [markdown]
# ## By hand
#
# ### A score that cannot be bribed
#
# Of twenty sentences, fourteen are good. A model calls sixteen good, and thirteen of those are.
#
# | | called good | called bad |
# |---|---|---|
# | **good** | 13 | 1 |
# | **bad** | 3 | 3 |
#
# Its accuracy is (13 + 3) / 20 = 80%. Calling everything good would give 70%. **Matthews' correlation** weighs all four counts:
#
# (13 · 3 − 3 · 1) / √(16 · 4 · 14 · 6) = 36 / 73.3 = **0.49**
#
# If a model calls everything good, the second column is empty and the formula gives 0 / 0, which counts as 0. That answers the first guess. GLUE scores one of its nine tasks, CoLA, this way.
#
# ### The same row, two averages
#
# A model scores 84 on MNLI matched (the genres of its training texts) and 82 on MNLI mismatched (other genres), 52 on CoLA and 66 on RTE.
#
# | recipe | sum | average |
# |---|---|---|
# | four numbers, MNLI twice | (84 + 82 + 52 + 66) / 4 | **71.0** |
# | three tasks, MNLI's two numbers averaged | (83 + 52 + 66) / 3 | **67.0** |
#
# The averages differ by four points, for the same model. With all nine tasks the gap is smaller. Papers use both recipes, and four more.
#
# ### Is 82% more than 80%?
#
# Of a hundred test texts, both models classify 78 correctly and 16 incorrectly. On the other **six** only one of them is correct: the second on four, the first on two. So the difference of two points rests on six texts, and a fair coin gives a split at least this uneven in 69% of cases.
#
# ## Try it
#
# There are six exercises: two here, the others where they belong. `hint("13.1")` helps one step at a time, `reveal("13.1")` shows a solution. No later cell needs your answers.
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
# GLUE consists of nine tasks that test the understanding of English. So that the page works offline, each task has a **twin**: the same kind of question with the same metric, about sentences of the micro-world, the course's small artificial world, whose rules determine every label. A twin imitates the format of its task. Scores on twins are not GLUE scores, and we have not tested whether the two rank models alike.

# %%
glue_table()

# %% [markdown]
# *What GLUE asks, what the twin asks, the metric, and the number of training texts of both.*
#
# One text of each, with its label:

# %%
for name in GLUE:
    item = glue_items(name, "test", 3)[-1]
    print(f"{name:7}{item.label:16}", *([item.text] if hasattr(item, "text") else [item.premise, "|", item.hypothesis]))

# %% [markdown]
# With a network connection, the same call reads the real tasks. Write names into the list.

# %%
real_tasks = []  # such as "RTE", "CoLA"
for name in real_tasks:
    print(name, *glue_items(name, "validation", 2, real=True), sep="\n  ")

# %% [markdown]
# WNLI's validation texts mislead on purpose: they are training texts with the *other* label, as many of GLUE's are. A model that memorises the training texts gets them wrong, and a learning rate chosen on them is arbitrary. BERT's authors left WNLI out.
#
# ### From scores to one number
#
# `glue_average` computes one number from a row of scores. Each recipe below names its data split and the papers that use it.

# %%
from course_lib.teaching.averages import AVERAGES, glue_average

show(glue_average)
for name, about in AVERAGES.items():
    print(f"{name:12}{about.split:24}{about.used_by}")

# %% [markdown]
# Six recipes share the name "average". An average can be compared only if you know its recipe.
#
# ### The same texts for both
#
# Is A better than B? Two kinds of chance affect the difference: which *texts* happened to be in the test set, and which *seed* trained the models (below, one seed sets pre-training and fine-tuning together). A third influence, the choice of hyperparameters, is in no interval.
#
# {{exercise:13.3}}


# %%
def my_interval(correct_a, correct_b, resampled):
    return ...


check("13.3", my_interval)

# %% [markdown]
# {{exercise:13.4}}


# %%
def my_verdict(a, b):
    return ...


check("13.4", my_verdict)

# %% [markdown]
# Your rule uses the spread of the *differences*. The course's tables use another: the difference has one sign in every seed, and its mean is larger than the standard deviation of *either* model. If the two models' scores are strongly correlated over the seeds, our rule is stricter than yours; otherwise it is more lenient. And no rule is strict with three seeds: when two models are equally good, ours calls one of them better in {{number:false_alarms(3)}} of simulated comparisons (with two seeds in {{number:false_alarms(2)}}, with five in {{number:false_alarms(5)}}). Of a dozen verdicts, one or two may be chance.

# %%
from course_lib.teaching.verdicts import by_rule

show(by_rule)

# %% [markdown]
# ### The members
#
# This table says in one line what each member changes.

# %%
variants_table()

# %% [markdown]
# *Every member: what is new, what it gains, what it costs, what it is best for.*
#
# ### Equal FLOPs
#
# A step of ELECTRA runs two networks, and a step of DistilBERT also runs its teacher. So we count FLOPs, and give every member as many as BERT uses in {{number:BERT.flops:,}} steps.

# %%
from course_lib.lectures.lecture_13.pretraining_runs import steps_of

show(steps_of)
flops_table()

# %% [markdown]
# *Weights: those of the encoder that is kept. Masked words: accuracy on held-out stories, one story to a text; a dash where no head predicts words. BERT and ALBERT were pre-trained on pairs, so this format is new to them. Students are initialised from a teacher or learn from it; as in their papers, its pre-training is not counted in their FLOPs. ERNIE is Baidu's, which masks noun phrases as units (page 09).*
#
# ALBERT has BERT's shape, yet its step costs more, because its sentence-order pairs are longer than NSP's pairs. RoBERTa's whole stories are longer too. For texts of equal length, a layer of this width costs the same in all three.
#
# ## Is it right?
#
# We compare our metrics with scikit-learn's, test on each twin an oracle that knows the world's rules, and recompute published averages from published scores.

# %% tags=["nbval-check-output"]
from sklearn.metrics import f1_score, matthews_corrcoef

from course_lib.teaching.glue import oracle_score
from course_lib.text.world import MicroWorld
from course_lib.train.task_metrics import f1, matthews

labels, predictions = [1, 1, 0, 1, 0, 1, 1, 0], [1, 0, 0, 1, 1, 1, 1, 0]
print(f"Matthews {matthews(labels, predictions):.6f} = {matthews_corrcoef(labels, predictions):.6f}")
print(f"F1 {f1(labels, predictions):.6f} = {f1_score(labels, predictions):.6f}")
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
# This settles the second guess: the two "79.6" cannot be compared. One averages nine numbers of test sets, the other eight development sets.
#
# ## See it
#
# ### A table that mixes everything
#
# One of the lectures that this course checks prints one number for each model, all in one column.

# %%
glue_comparison()

# %% [markdown]
# *Left: what the lecture prints, and what that number really is. Middle: averages of published rows, one column for each recipe; a dash means that no paper prints the scores that a recipe needs. Compare only within a column. Right: FLOPs of pre-training, BERT-base = 1, as the lecture prints them and as ELECTRA's Table 1 gives them.*
#
# ### The same names, another interface
#
# "All models have the same interface." To test this, we load a small random checkpoint of each kind with the Auto classes of transformers:

# %%
interfaces_table()

# %% [markdown]
# *Computed with the installed version of transformers. Segment ids are what the tokenizer returns, "rows for them" is the size of the segment embedding matrix, and "ids 0 and 1" says what the model does with them. Pooler "random" means that the class has a pooler, but the checkpoint has no weights for it. The last column lists the classifier's new layers. DeBERTa's row depends on the version: transformers 4 writes one [SEP] between the texts, with ids 0 and 1; transformers 5 writes two, and only zeros. Check which form your checkpoint was trained on. And if a text can have several labels, set `problem_type="multi_label_classification"`: without it, DeBERTa's classifier in transformers 5.23.0 takes one softmax over all labels, where BERT's takes a sigmoid for each.*
#
# The classes select the right code from the configuration, but they do not make the models alike. Print the inputs and one prediction before you trust a score.

# %% [markdown]
# ## Measure it
#
# ### One task, live
#
# We fine-tune a BERT of the micro-world, and the same shape from random initialisation, on one twin with one seed each. A bag of words reaches {{number:bag_of_words('MNLI')}}; with three classes, chance level is a third.

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
    print(f"{name}: accuracy {model_score('MNLI', model, test)['accuracy']:.1%} on MNLI's twin")

# %% [markdown]
# *The loss of each on its training texts, in nats.*
#
# ### All members, nine tasks
#
# The result file holds the same experiment for {{number:len(MEMBERS) + 1}} members, {{number:len(CONTROLS)}} plain models (explained below) and random initialisation, on nine twins with {{number:seeds_run()}} seeds (`python -m course_lib.teaching.results 13 --only 13_benchmark`, about {{number:hours()}} hours of one core; it can be resumed). Every encoder but FastBERT's gets a tanh layer on [CLS] and a linear classifier (`plain_head=True`). BERT and ALBERT bring a tanh layer that their sentence pairs trained; the others begin with a random one. The members' own heads in transformers differ (ELECTRA and DeBERTa have a GELU there, DistilBERT a ReLU, ModernBERT also a norm), but here we compare encoders.

# %%
benchmark_view()

# %% [markdown]
# *Each dot is a seed, the red line their mean. The grey bar spans the middle 95% of the averages on a thousand resampled test sets. ± sd: over the seeds. Last: the verdict against BERT by the course's rule (after exercise 13.4). The line below says what is reached without training. Sort by task or size.*

# %% [markdown]
# - **Pre-training pays for all**: random initialisation reaches {{number:mean_of('random initialisation')}}, ALBERT {{number:mean_of('ALBERT')}}, every other member {{number:percent([lowest()])}} or more.
# - **No member is better than BERT** ({{number:mean_of('BERT')}}), which also brings its trained tanh layer. For {{number:members('not settled')}} the seeds leave it open; {{number:members('worse')}} are worse by the rule. (The highest of many means is partly luck: expect a new seed to lower it.)
# - **ALBERT is still on its plateau**, the flat beginning of the loss curve (it recovers {{number:masked('ALBERT')}} of masked words): narrow embeddings start to learn late, as on page 05. Its rank shows which models start sooner, not which are better.
# - **ELECTRA** had {{number:steps('ELECTRA')}} steps to BERT's {{number:BERT.flops:,}}, because each step runs two networks. On page 07, with more steps, it is ahead of BERT where the test resembles its pre-training task.
# - **ModernBERT**, six years younger than BERT, recovers {{number:masked('ModernBERT')}} of masked words, RoBERTa {{number:masked('RoBERTa')}}. Why it is not ahead here, though page 16 sees gains on stories, we did not test.
# - **The papers' order** (DeBERTa before ELECTRA before RoBERTa before BERT) does not appear here. Their models read more than ten thousand times as much, each with its own data and steps.
# - **The plain models**, trained on masked words alone, are near the top: {{number:plain()}}. The best two have fewer weights than BERT. The two-layer model is a RoBERTa cut in half. For the same FLOPs it takes {{number:steps('plain, two layers')}} steps, RoBERTa {{number:steps('RoBERTa')}}. This says nothing about large models and long training.
#
# ### Every model at its own learning rates
#
# One rate for all would favour the models that it happens to suit. So each was pre-trained at several rates, a factor of two apart, until the lowest held-out loss of its own objective had a higher one on either side. Each task's fine-tuning rate was then chosen in the same way by its validation texts. Both choices used seed 0 alone.

# %%
rates_table()

# %% [markdown]
# *Pre-training: the best rate, and the held-out loss at half of it, at it and at twice it (compare within a row: each member has its own objective). Fine-tuning: the lowest and the highest rate of the nine tasks. Collapsed: how many fine-tuned models gave one answer to all texts; these were repeated at a lower rate.*
#
# The best rates differ by a factor of {{number:rates_apart()}}, and a wrong rate can cost much: at twice its best rate BERT's loss is {{number:loss_at_best('BERT', 2)}} instead of {{number:loss_at_best('BERT')}}. A comparison at one rate would have measured the rate.
#
# ### What one number hides: tasks, seeds, recipes

# %%
tasks_chart()

# %% [markdown]
# *Every member on every twin: the mean over the seeds and, where a task has two metrics, over both. CoLA: Matthews' correlation times 100.*
#
# Compare two columns. On QNLI BERT's seeds nearly agree: {{number:each_seed('BERT', 'QNLI')}}. On WNLI, with 146 test texts and a learning rate chosen on misleading ones, they reach {{number:each_seed('BERT', 'WNLI')}}; ELECTRA's reach {{number:each_seed('ELECTRA', 'WNLI')}}. So one task in nine can decide the ranks of an average, and the average hides that.
#
# The next table shows the same scores under each recipe that the twins allow.

# %%
averages_table()

# %% [markdown]
# *The family's averages (means over the seeds) and ranks under each recipe.*
#
# {{number:places_moved()}}; the model is the same. Where ranks lie within the spread of the seeds, they mean nothing.
#
# ### Is it the idea, or the size?
#
# When a member differs from BERT, the cause may be its idea or its size. So we compare each member whose size differs from BERT's with a **plain** model, pre-trained on masked words alone, with about as many parameters and the same FLOPs of pre-training. (For members of BERT's size, RoBERTa is this control.)

# %%
equal_size_chart()

# %% [markdown]
# *Left: the member. Right: a plain model of that size: of width 58, 110 or 138, with two layers, or with two of width 64. Where its step is cheaper, it takes more steps for the same FLOPs. Each dot is a seed.*
#
# **By the rule, the member is better in none of the six pairs.** Worse are {{number:pairs('worse')}}; not settled are {{number:pairs('not settled')}}. ALBERT is still on its plateau. A step of DistilBERT, TinyBERT or MobileBERT includes the teacher's forward pass, a step of DeBERTa the matrix products for relative positions, so these take fewer steps.
#
# So no idea beat a plain model of its size here, where all repeat the same {{number:STORIES:,}} stories, each at its own learning rates. This is no verdict on the ideas: where text or labels are scarce, a teacher's answers may be worth more. But it shows that a table without a plain model of the same size cannot tell an idea's effect from that of size.
#
# ### Text that people wrote
#
# The twins are made by rules. So we also pre-train all {{number:len(MEMBERS)}} members and a plain model on the documentation of Python and its libraries, with equal FLOPs, and fine-tune them on three tasks of lecture 03: which section of a docstring a sentence is from, which kind of parameter it describes, and which package a paragraph is from (some 1,500 labels each).
#
# Width, depth and batches are those of the stories (with four heads instead of two, and sequences of 32 pieces), and each model again has the best of its own rates. But the optimizer differs: here **Muon** (page 16) trains the matrices in the blocks. With it BERT recovers {{number:pieces('BERT')}} of the masked pieces after {{number:BERT.flops:,}} steps; always predicting the most frequent piece gives 6%. (In a first try with AdamW, whose runs we did not store, the members had hardly left the plateau after as many steps.) (One core with bfloat16 needs about eight hours for everything.)

# %%
documentation_chart()

# %% [markdown]
# *Accuracy on test texts, from modules not used in training. The bag of words and the commonest answer had the same labels and no pre-training. `course-bert` is twice as wide and has read {{number:read_more}} times as many tokens as BERT here.*

# %%
documentation_table()

# %% [markdown]
# *Masked pieces: accuracy on the masked 15% of held-out text, not in pairs (a format new to BERT and ALBERT); a dash for a model without such a head. Rate: of pre-training, the best of those tried. sd: over the seeds, in points. Beside BERT: the mean difference in points, with the verdict of the course's rule. 95%: the interval of that difference over a thousand resampled test sets.*
#
# - **ModernBERT is better than BERT by the rule** ({{number:beside_bert_there('modernbert')}}), and with {{number:documented('ModernBERT')}} it comes near `course-bert` ({{number:documented('course-bert')}}), which is twice as wide and has read {{number:read_more}} times as many tokens as BERT here. It is also ahead of RoBERTa, which is larger ({{number:in_points(written.means('ModernBERT'), written.means('RoBERTa'))}}), and of the smaller two-layer model ({{number:in_points(written.means('ModernBERT'), written.means('plain, two layers'))}}). On the nine twins ModernBERT did not stand out; page 16 shows both sides.
# - **Masked words alone**: the plain two-layer model ({{number:beside_bert_there('short')}}) and RoBERTa ({{number:beside_bert_there('roberta')}}) do without NSP, and recover more masked pieces: RoBERTa {{number:pieces('RoBERTa')}}, two plain layers {{number:pieces('plain, two layers')}}, ModernBERT {{number:pieces('ModernBERT')}}, BERT {{number:pieces('BERT')}}. That NSP holds BERT back is a guess: BERT also reads pairs, and takes fewer steps for the same FLOPs.
# - **More masked pieces need not mean better tasks**: DeBERTa, with its decoder, recovers {{number:pieces('DeBERTa')}} of the pieces, more than RoBERTa, but reaches only {{number:documented('DeBERTa')}} on the tasks (beside RoBERTa: {{number:in_points(written.means('DeBERTa'), written.means('RoBERTa'))}}). SpanBERT, trained on masked spans, recovers only {{number:pieces('SpanBERT')}} and still reaches {{number:documented('SpanBERT')}}. ERNIE, trained on words and noun phrases masked as a whole, reaches {{number:documented('ERNIE')}} ({{number:beside_bert_there('ernie')}}; beside RoBERTa: {{number:in_points(written.means('ERNIE'), written.means('RoBERTa'))}}).
# - **A student passes its teacher**: DistilBERT has half of BERT's layers ({{number:beside_bert_there('distilbert')}}). It begins with BERT's weights, whose training is not counted, and trains on; so it has read more than BERT. The plain two-layer model, as large and without a teacher, does no worse. TinyBERT, half as wide, starts from random weights, learns to imitate BERT's layers, and does not pass BERT: {{number:documented('TinyBERT')}} ({{number:beside_bert_there('tinybert')}}).
# - **MobileBERT**, with about a fifth of BERT's weights, recovers {{number:pieces('MobileBERT')}} of the pieces, more than BERT does, and yet reaches only {{number:documented('MobileBERT')}} ({{number:beside_bert_there('mobilebert')}}; beside random initialisation: {{number:in_points(written.means('MobileBERT'), written.means('random initialisation'))}}). We do not know why: no plain model of its size was run here.
# - **A bag of words** reaches {{number:documented(written.BAG)}}, random initialisation {{number:documented('random initialisation')}}, BERT {{number:documented('BERT')}}: this pre-training is short.
# - **ALBERT has barely left the plateau**: it recovers {{number:pieces('ALBERT')}} of the pieces and reaches {{number:documented('ALBERT')}} on the tasks (beside random initialisation: {{number:in_points(written.means('ALBERT'), written.means('random initialisation'))}}). More steps might change that; we did not try.
# - **ELECTRA does not collapse here**: {{number:documented('ELECTRA')}} ({{number:beside_bert_there('electra')}}; beside random initialisation: {{number:in_points(written.means('ELECTRA'), written.means('random initialisation'))}}). Its best rate here is {{number:rate_there('ELECTRA')}}, the others' {{number:rate_there('BERT')}} or more. In an earlier table, with one rate for all but also another optimizer, width and batch size, all of ELECTRA's runs were dead. Page 07 (*Why did my run die?*) shows how to notice that.
# - **FastBERT** is BERT with early exits, here with the speed setting used on the stories ({{number:beside_bert_there('fast')}}). That setting loses too much accuracy here: choose it on each task's validation texts.
#
# ### Comparing two models on one task
#
# A source lecture compares variants on sentiment: one run each, timed once, without accuracy. We use SST-2's twin with the same texts and seeds for all, and learning rates chosen on validation texts, and compare BERT with each of the others text by text.

# %%
sentiment_table()

# %% [markdown]
# *Accuracy, and BERT's lead in points, are means over the seeds. The interval: the lead on 95% of resampled test sets, seeds averaged. Differ and p use seed 0 alone, so they can seem to contradict the rest. Differ: of {{number:len(shown.runs_of('BERT')[0]['sentiment'])}} texts, how many only BERT gets right, and how many only the other model. p: the probability that a fair coin gives a split at least this uneven (an exact McNemar test).*
#
# RoBERTa seems to be behind beyond doubt: with seed 0 only BERT is right on {{number:shown.mcnemar('RoBERTa')[0]}} texts, and only RoBERTa on {{number:shown.mcnemar('RoBERTa')[1]}}; p is {{number:shown.mcnemar('RoBERTa')[2]:.0g}}. But this is one run: RoBERTa's seeds reach {{number:each_seed('RoBERTa', 'SST-2')}}. SpanBERT shows the reverse: its p is {{number:shown.mcnemar('SpanBERT')[2]:.0g}}, and its seeds reach {{number:each_seed('SpanBERT', 'SST-2')}}.
# **A significance test over texts says nothing about another training run.**
#
# ### How to time a model
#
# The time of these models does not depend on the values of their weights (with early exits it would). So we use random weights and the published shapes, with two layers each for speed. Fix the number of threads; on a GPU, call `torch.cuda.synchronize()` before each reading of the clock, or you time only the launch.
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
            start = time.perf_counter()
            model(ids)
            calls.append(1e3 * (time.perf_counter() - start))
    warm = sorted(calls[5:])
    median = statistics.median(warm)
    print(f"{name:14}{count_parameters(model):12,}{calls[0]:12.1f}{median:10.1f}{warm[18]:10.1f}")

# %% [markdown]
# Compare the first call with the 95th percentile. The first call may take as long as any other, or several times the median if something is built on first use. Timing once cannot tell you which. ALBERT has far fewer weights but takes about BERT's time: it saves storage, not work.
#
# This short loop has two weaknesses. It times one model after the other; for a table, let them take turns, or a busy minute hits only one of them. And with two layers each it hides DistilBERT's purpose: half of BERT's layers. The next table avoids both for the benchmark's members, and adds memory:

# %%
costs_table()

# %% [markdown]
# *Measured in turns, with random weights, one thread and texts of 32 tokens ({{number:where_measured(stored('13_costs')['machine'])}}). Fine-tuning step: peak memory of its tensors for sixteen texts, without the weights and the optimiser's state. In use, ELECTRA, SpanBERT and ERNIE have BERT's shape, so their rows differ from BERT's only by chance. FastBERT's time depends on its texts: page 12.*
#
# The activations of training follow width and layers, not weights: ALBERT stores about as many as BERT. Weights, gradients and Adam's two moments follow the number of weights, and there ALBERT saves three quarters. MobileBERT has fewer FLOPs than any member except TinyBERT, yet one text takes nearly as long as with BERT, probably because it computes many small products. With sixteen texts at once it is more than twice as fast.
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
# *Average of the nine twins (mean of the seeds) against the FLOPs of one text, on a logarithmic axis. FastBERT's FLOPs are what its texts used on average, exits included (on STS-B, a regression, it has no exits). ALBERT, on its plateau far below, is left out.*

# %%
print("not dominated:", " · ".join(front()))

# %% [markdown]
# No other model is at least as good as one of these at the same or a lower cost. This front is drawn without error bars, and another seed may put other models on it. On a real machine, draw milliseconds instead: page 12 shows how FLOPs and time disagree.
#
# ### The guide
#
# No table chooses for you. These questions, in this order, narrow the choice.

# %%
guide_view()

# %% [markdown]
# *Below the eight questions: the choice, the reason, its numbers with their sources, where it is taught, and which single other answer would change it.*
#
# Here are its answers to three common questions. What a question does not mention gets the usual answer: everyday English, classification, a
# server, thousands of labels.

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_13.guide import decide

usual = {"language": "english", "domain": "general", "task": "classify", "latency": "server", "memory": "free",
         "labels": "thousands", "leave": "no", "pretrain": "no"}  # fmt: skip
for question, answers in {
    "Which model for search?": {"task": "retrieve"},
    "Which model for forty languages?": {"language": "many"},
    "I have 200 labels.": {"labels": "hundreds"},
}.items():
    choice = decide(usual | answers)
    print(f"{question}\n  {choice.name}.\n  {choice.why}\n")

# %% [markdown]
# These are the guide's rules, for printing.

# %%
guide_table()

# %% [markdown]
# Published numbers rank the members like this:

# %%
rankings_table()

# %% [markdown]
# *Rankings in understanding, languages, domains and efficiency, each by one metric. The first takes its numbers from four papers with recipes of their own, so differences of less than a point mean little there. Read ">" as "before": where fewest is best, the smaller number comes first.*
#
# ### Reading a model card, and a leaderboard
#
# A model card says how a checkpoint was made. Look for these things, and ask these questions.

# %%
card_table()

# %% [markdown]
# Two rows of a leaderboard can be compared only if these points agree.

# %%
leaderboard_table()

# %% [markdown]
# ### Five reasons to know the family
#
# A lecture gives these reasons for variants of BERT; the last column says what this course found.

# %%
reasons_table()

# %%
answers = {
    "calls all good": "0",
    "as good": "no: test against development, nine numbers against eight",
    "points ahead": points_ahead(),
}
print(f"{'':18}{'your guess':>14}   answer")
for name, value in answers.items():
    print(f"{name:18}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was checked by code that ran just now, by a result file or, where neither is possible, by a source.

# %%
claims_table("13")

# %% [markdown]
# This table lists all claims of the course; you can filter it by who makes them.

# %%
index_view()

# %%
questions_index()

# %% [markdown]
# *Where to find the questions for review, page by page.*
#
# ## More exercises
#
# All six are above, each before the code that answers it. To go on, compare two members of the benchmark on your own task with three seeds, and write the interval and the verdict below your table.

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
