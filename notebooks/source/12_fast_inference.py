# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Fast inference: leave early, be thin, count in small numbers
#
# **Lecture 12** · {{duration}} · {{colab}}
#
# After this page you can
#
# - let a text leave a model as soon as its answer is sure, and say what that saves and when it loses (FastBERT);
# - build MobileBERT, thin and deep, and say why its norm costs next to nothing (MobileBERT);
# - round a model's weights to whole numbers, and export it to another program;
# - measure latency, throughput, memory and size, and say how they disagree with FLOPs and with each other;
# - choose a way to serve a model under a budget.
#
# You need the encoder of lecture 02 and fine-tuning from lecture 03; a **teacher** and its **student** are lecture 06's. Nothing is downloaded.
#
# {{parts}}

# %%
import torch

from course_lib import check, claims_table, compare, count_parameters, load_pretrained, mobilebert, published, quiz, show
from course_lib.bench import serving
from course_lib.lectures.lecture_12 import fast_runs, serving_runs
from course_lib.lectures.lecture_12.views import (
    blocks_drawing, budget_view, entropies_chart, exits_chart, exits_view, flops_and_time_chart, lost_table,
    readers_table, serving_table, strategies_chart, training_chart,
)  # fmt: skip
from course_lib.teaching import LiveLoss

# %% [markdown]
# ## Predict first
#
# A company answers messages with a fine-tuned BERT. Each answer takes too long, and the machine is too small. Nobody wants to train a new model from nothing. What can be done?
#
# - *Leave early*: most messages are easy. Let them out of the model after a few layers.
# - *Be thin*: a model with narrow layers, which learned from a wide one.
# - *Count in small numbers*: a weight needs no 32 bits.
#
# Three guesses before you go on.
#
# 1. MobileBERT has {{number:published('mobilebert', 'base').num_layers}} layers, BERT-base {{number:published('bert', 'base').num_layers}}. What fraction of BERT-base's FLOPs does MobileBERT need for a text?
# 2. After two of four layers a classifier says (0.6, 0.4, 0) of one text and (0.6, 0.2, 0.2) of another. Which of the two should rather leave?
# 3. All dense layers in whole numbers of 8 bits, instead of 32. How many times faster are BERT-base's layers on this machine, for one message?

# %%
my_guesses = {"fraction of the FLOPs": ..., "should leave": ..., "times faster in int8": ...}

# %% [markdown]
# ## By hand
#
# ### How unsure is an answer?
#
# The **entropy** of a distribution, −Σ p log p, is 0 where one class has all, and log N where N classes are alike. Divided by log N it lies between 0 and 1: FastBERT's *uncertainty*.
#
# | answer | largest probability | uncertainty |
# |---|---|---|
# | (0.6, 0.4, 0) | 0.6 | (0.31 + 0.37 + 0) / 1.10 = **0.61** |
# | (0.6, 0.2, 0.2) | 0.6 | (0.31 + 0.32 + 0.32) / 1.10 = **0.86** |
#
# The largest probability calls both alike. The entropy does not: the first has ruled a class out. That is the second guess. With *two* classes both rules are the same one, at another threshold.
#
# ### What leaving early saves
#
# Four layers, a hundred texts. 50 leave after the first layer, 20 after the second, 10 after the third; 20 stay to the end.
#
# (50 · 1 + 20 · 2 + 10 · 3 + 20 · 4) / 100 = **2.0 layers** a text: half of the work. Each exit on the way costs a little, so a little less than half is saved.
#
# ### A norm that costs nothing
#
# LayerNorm needs each vector's mean and variance. MobileBERT's **NoNorm** is γ·h + β alone. Behind a dense layer y = 3x + 1 with γ = 2 and β = 5 stands 2(3x + 1) + 5 = **6x + 7**: one dense layer again, and after training this norm is gone. (Behind a residual sum it stays: one multiplication and one addition a number.)
#
# ### A weight in eight bits
#
# A row of weights: (0.50, −1.27, 0.02). The largest, signs aside, is 1.27, so the **scale** is 1.27 / 127 = 0.01, and the row is (50, −127, 2), one byte a weight. The error is at most half a scale: 0.005.
#
# ## Try it
#
# Six pieces to build, two here and four in the next part, each before the page shows it. A wrong answer gets the name of its mistake; `hint("12.1")` helps a step at a time, `reveal("12.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:12.1}}


# %%
def my_uncertainty(logits):
    return ...


check("12.1", my_uncertainty)

# %% [markdown]
# {{exercise:12.2}}


# %%
def my_exits(uncertainties, speed):
    return ...


check("12.2", my_exits)

# %% [markdown]
# ## The code
#
# ### FastBERT: an exit behind every layer
#
# FastBERT (Liu et al. 2020) puts the same small classifier behind each layer of a BERT. At inference a text runs through layer after layer and leaves at the first exit whose uncertainty is not above a number that you choose, the **speed**. A *higher* speed lets *more* texts out.

# %%
from course_lib import FastBert
from course_lib.family.fastbert import ExitHead

show(ExitHead)

# %% [markdown]
# `answer` goes through the layers one by one. A text that has left is taken out of the batch, so the later layers see fewer texts: else nothing but FLOPs on paper would be saved.

# %%
show(FastBert.answer)

# %% [markdown]
# ### How the exits learn
#
# Two steps, one after the other:
#
# 1. *With labels*: the encoder and the last exit, the **teacher**. The other exits, the **students**, are not touched.
# 2. *Without labels*: all of that is frozen. Each student learns to say what the teacher says of a text. That is **self-distillation**: teacher and students are one model.
#
# The loss is a Kullback–Leibler divergence (lecture 06) for each student, summed. The paper prints KL(student ‖ teacher), the authors' program computes KL(teacher ‖ student). You build the program's; the library has both, and its default is the paper's, by which the models below learned that are called FastBERT. Whether it matters is measured below.
#
# {{exercise:12.3}}


# %%
def my_students_loss(students, teacher):
    return ...


check("12.3", my_students_loss)

# %%
from course_lib.objectives.exits import joint_exits_loss, self_distillation_loss

show(self_distillation_loss)

# %% [markdown]
# ### MobileBERT: thin and deep
#
# MobileBERT (Sun et al. 2020) has as many layers as BERT-large. Between its blocks vectors are 512 wide, inside them 128.

# %%
blocks_drawing()

# %% [markdown]
# *Read from below: the wider a bar, the wider the vectors. A **bottleneck** leads into MobileBERT's block and another out of it. Its teacher has it the other way round, an **inverted bottleneck**: wide inside. Left out: a second bottleneck in, which query and key read.*
#
# Narrow attention next to *one* narrow feed-forward part would shift the balance: in BERT, two of three weights of a block are in its feed-forward part. So MobileBERT has **four** of them, one after the other.
#
# Its embedding matrix is only 128 wide. Each position is made of three of its rows: the next token's, its own, the previous one's.
#
# {{exercise:12.4}}


# %%
def my_trigram(x):
    return ...


check("12.4", my_trigram)

# %%
from course_lib.family.mobilebert import BottleneckAttention, MobileBlock, NoNorm, TrigramEmbeddings

show(TrigramEmbeddings, BottleneckAttention, MobileBlock)

# %% [markdown]
# Look at `attend`: query and key read a bottleneck (128), the *values* the wide states (512). That is in the authors' program; the drawing in the paper leaves room for both.
#
# And the norm is NoNorm, the activation ReLU. Why bother?
#
# {{exercise:12.5}}


# %%
def my_folded(weight, bias, gamma, beta):
    return ...


check("12.5", my_folded)

# %%
show(NoNorm)

# %% [markdown]
# ### How MobileBERT learns
#
# A thin, deep network learns badly by itself, says the paper. Its teacher is as deep, as wide *between* blocks, and wide inside. So layer can learn from layer, without a matrix between them (TinyBERT needed one, lecture 06).
#
# | what is compared, layer by layer | how | weight in the program |
# |---|---|---|
# | the states ("feature maps") | squared distance, after a LayerNorm | {{number:PROGRAM_WEIGHTS['feature_map']:,g}} |
# | their means | squared distance | {{number:PROGRAM_WEIGHTS['mean']:,g}} |
# | their variances | absolute distance | {{number:PROGRAM_WEIGHTS['variance']:,g}} |
# | attention weights of each head | cross-entropy (paper: KL, of the same gradient) | {{number:PROGRAM_WEIGHTS['attention']:,g}} |
#
# *When* is this done? Three strategies: **auxiliary**, together with predicting masked words, all the time; **joint**, first all layers, then masked words; **progressive**, first one layer at a time from the bottom, then masked words. MobileBERT is progressive.

# %%
from course_lib.train.knowledge_transfer import stages

show(stages)

# %% [markdown]
# **A slip of the program.** Means and variances are taken of the *list* of the teacher's states, so each student layer is pulled towards the mean of *all* teacher layers. `transfer_loss(all_teacher_layers=True)` does it too. Does it hurt? We measure it below. Two smaller differences: the program's means run over padding as well (`over_padding=True`), and it trains with LAMB, at three times the last stage's rate while layers learn from layers, where ours has AdamW and one rate throughout.
#
# ### Eight bits
#
# {{exercise:12.6}}


# %%
def my_int8(weight):
    return ...


check("12.6", my_int8)

# %% [markdown]
# torch does this for all dense layers of a model, with one scale for each matrix, and rounds what enters a layer as it comes (**dynamic quantisation**). Here is how the library asks for it, and for a model that leaves torch altogether: **ONNX**, a file format that other programs run. The two together, ONNX *with* int8, are what people ship; there the embedding matrix is rounded as well, so the file shrinks to about a quarter.

# %%
show(serving.in_int8, serving.in_onnx_runtime)

# %% [markdown]
# ## Is it right?
#
# Our MobileBERT with its masked-LM head beside transformers' own, small, both with the same random weights: as many parameters, the same outputs, the same gradients?

# %%
from course_lib import mobilebert_for_masked_lm

small = {"num_layers": 2, "hidden_size": 64, "embedding_size": 16, "bottleneck_size": 32, "intermediate_size": 32}
compare(mobilebert_for_masked_lm("base", vocab_size=2_000, **small))

# %%
from course_lib import bert, ib_bert

with torch.device("meta"):  # knows shapes only
    for name, model in (("MobileBERT", mobilebert("base")), ("BERT-base", bert("base")), ("IB-BERT, its teacher", ib_bert("large"))):
        print(f"{name:22}{count_parameters(model):13,}")

# %% [markdown]
# The paper prints 25.3 million for MobileBERT. (Its teacher has no class in transformers, which cannot build that shape; the tests compare ours with a second version, written plainly.)
#
# Early exit: a batch that shrinks must give the same answers as one in which every text runs through all layers.

# %% tags=["nbval-check-output"]
from course_lib.kernels.early_exit import early_exit, early_exit_reference, entropy_at_most

torch.manual_seed(0)
mix, say, x = torch.randn(4, 8, 8) / 3, 2 * torch.randn(4, 8, 3), torch.randn(6, 5, 8)
layers = [lambda x, mask, n=n: torch.tanh(x @ mix[n]) for n in range(4)]
exits = [lambda x, mask, n=n: x[:, 0] @ say[n] for n in range(4)]
slow, fast = (run(x, layers, exits, entropy_at_most(0.2)) for run in (early_exit_reference, early_exit))
print("left at layer", fast.layers_used.tolist(), "· same layers:", torch.equal(slow.layers_used, fast.layers_used))
print("same answers:", torch.allclose(slow.logits, fast.logits, atol=1e-5))

# %% [markdown]
# And the ways to serve: how far is each from the model as it is? (*bfloat16*: numbers of 16 bits instead of 32. *Padding removed*: of a batch only the real tokens are computed.)

# %%
classifier = serving.random_classifier(load_pretrained("course-bert").encoder)
ids = torch.randint(5, 8_000, (4, 24), generator=torch.Generator().manual_seed(0))
mask = (torch.arange(24) < torch.tensor([[24], [16], [9], [4]])).long()
with torch.no_grad():
    right = classifier(ids, mask).logits
    for name, make in serving.ways().items():
        if name != "torch.compile":  # the compiler takes a while
            served = make(classifier)
            gap = (served.answer(ids, mask) - right).abs().max() / right.abs().max()
            print(f"{name:18} largest difference {gap:8.1e} of the largest logit · {served.stored / 1e6:5.1f} MB")
for name, wants in serving.missing().items():
    print(f"{name}: not on this machine; it wants {wants}")

# %% [markdown]
# bfloat16 and both int8 ways round; the others differ by float32's own rounding. Whether rounding changes *answers* is a question for a task.
#
# ## See it
#
# ### Texts on their way through the layers
#
# A model of eight layers, from the result file: stories of the micro-world, and a statement about each. Does the story say so, the contrary, or nothing of it?

# %%
exits_view(fast_runs.shown_texts())

# %% [markdown]
# *When the cell is run, move the speed. At 0 all stay to the end; at 1 all leave at once; at 0.7 the hesitant ones leave at layer 2. Switch to the probability rule: is there a number that does the same?*
#
# ### Easy and hard texts

# %%
entropies_chart()

# %% [markdown]
# *Every line: the mean uncertainty of the test texts of one class, layer by layer; how many they are in brackets. Two lines lie on each other.*
#
# The *neutral* statements are the easy ones: from the second layer on the model is sure of them, and right. That is what early exit lives on. *Entailment* and *contradiction* stay close to {{number:log(2) / log(3):.2f}} up to the last layer. That is log 2 / log 3: one class ruled out, the two others equally likely. This model has not learned to tell these two apart. At the end it always says contradiction, by a hair, so the contradictions count as right.
#
# A text on which more layers do not help is not known as such: it pays for all of them.
#
# ### Train one, live
#
# The course's BERT on sentences of documentation: to which section of a docstring does a sentence belong? (Summary, Parameters, Returns, Raises, Attributes.) First encoder and teacher, on labels; then the students, on the teacher's answers. Two curves: the teacher's cross-entropy, then the sum of the students' divergences.

# %%
live = fast_runs.trained_live(lambda: LiveLoss(part="total"))
test = fast_runs.texts_of(fast_runs.SECTION).test[:300]
for speed in (0.0, 0.3, 0.6, 1.0):
    found = fast_runs.leaving_at(live, test, speed)
    print(f"speed {speed:.1f}: {found['accuracy']:.1%} right after {found['layers']:.2f} layers of 4")

# %% [markdown]
# One seed, half the steps of the runs below or fewer, 300 texts: a first look, in which one text is a third of a point.
#
# ## Measure it
#
# ### What leaving early costs
#
# From the result file: {{number:len(results.runs_of(MAIN))}} seeds. Every point is a speed, a threshold or a depth.

# %%
exits_chart("sections")

# %% [markdown]
# *course-bert, sections of docstrings, {{number:len(results.runs_of(MAIN))}} seeds (line: mean, band: all). Up: points of accuracy above the same seed's full depth, {{number:last(MAIN)}} on average. FastBERT over its speeds; the same exits by the largest probability; as many texts leaving each layer, but drawn at random; models of fixed depth, fine-tuned for themselves.*
#
# - **It works**: at speed 0.4 a text takes {{number:fewer_04}} times fewer FLOPs, and {{number:at_04}} are right; at full depth {{number:last(MAIN)}}. Drawn at random it would be {{number:at_speed(MAIN, 0.4, 'at_random'):.1%}}. That is {{number:known_whom(MAIN, 0.4)[0]:.1f}} to {{number:known_whom(MAIN, 0.4)[-1]:.1f}} points less, in every seed: the exits know *whom* to let go. (This speed was chosen on these very texts; its neighbours look alike.)
# - **And what a sceptic asks**: two layers, fine-tuned for themselves, have {{number:last('fixed depth 2')}}, at about the same price; their seeds lie far apart. That a text gets the depth *it* needs brings nothing here that three seeds show.
# - The largest probability does as well as the entropy: the two curves lie close together.
# - With a quarter of the labels (not drawn) the last exit has {{number:layer(FEW, -1)}}, the first {{number:layer(FEW, 1)}}. If the students also read the texts *without* labels, the first has {{number:layer('few labels, all texts', 1)}}, more in every seed. This is what self-distillation has for itself.

# %%
exits_chart("pairs")

# %% [markdown]
# *Eight layers, the micro-world's pairs, one seed.*
#
# - The first exit has {{number:layer(PAIRS, 1)}} (always the same answer: {{number:stored('12_fastbert')['texts']['pairs']['majority']:.0%}}), the second all there is, {{number:layer(PAIRS, 2)}} (the last: {{number:last(PAIRS)}}). A jump, not a slope.
# - At speed 0.7: {{number:at_speed(PAIRS, 0.7):.1%}} for {{number:at_speed(PAIRS, 0.7, 'fewer'):.1f}} times fewer FLOPs. At 0.5 it is {{number:at_speed(PAIRS, 0.5, 'fewer'):.1f}} times, at 0.8 all leave too soon: {{number:at_speed(PAIRS, 0.8):.1%}}. **The speed must be chosen on texts of the task**; no number is good everywhere.
# - By the largest probability no threshold does the same. On a text of which it is not sure, the first exit's best class has a probability of {{number:hesitant(1)}}, the second's only {{number:hesitant(2)}}. But the second has ruled a class out, and the entropy sees that.
# - A model of two layers has {{number:last('pairs: fixed depth 2')}}. (None of them is done learning: with three times the steps lecture 03's model solves {{number:percent(outcome(stored('03_world'), 'score')['NLI, pre-trained'])}} of its pairs.)
#
# FastBERT's paper reports what these two tasks do not show: texts that differ in the depth they need. There, fixed depth loses ({{number:printed('fastbert')['ablation']['two_layers']}} against {{number:printed('fastbert')['ablation']['full']}} on reviews of books).
#
# ### How the exits learn, compared

# %%
training_chart()

# %% [markdown]
# *Sections. Left: right at the last exit. Right: where a text costs {{number:results.HALF:.0%}} of the FLOPs, on a straight line between two speeds. A dot is a seed. From above: self-distillation by the paper's divergence, by the program's, with a teacher without dropout; the students on labels; all exits and the encoder on labels.*
#
# - Self-distillation leaves the last exit as it was: it is frozen, and equal to the last digit in four of the five rows.
# - *Jointly* trained, the first exit has {{number:layer('joint', 1)}} (self-distilled {{number:layer(MAIN, 1)}}), the last {{number:last('joint')}} against {{number:last(MAIN)}}. About both the seeds disagree: that joint training hurts the last exit is not seen here.
# - On the pairs (one seed, not drawn) it helps the *first* exit: {{number:layer('pairs: joint', 1)}} instead of {{number:layer(PAIRS, 1)}}, as much as all layers have. There the encoder learns for the first exit as well; FastBERT's has learned for the last one alone.
# - The direction of the divergence, the teacher's dropout, labels instead of the teacher's answers: no difference that these seeds can show.
#
# ### On the clock
#
# FLOPs are not time. The model that you trained, on this machine, now: one text at a time, and in batches of 32.

# %%
for batch_size in (1, 32):
    print(f"\nbatches of {batch_size:<4}{'ms a text':>19}{'layers':>9}{'FLOPs':>9}   (full depth, one classifier = 1)")
    times = fast_runs.wall_times(live, test, speeds=(0.0, 0.3, 0.6, 1.0), batch_size=batch_size, rounds=2)
    whole = times[fast_runs.PLAIN]
    for name, row in times.items():
        print(f"{name:26}{row['milliseconds']:8.2f}{row['layers']:9.2f}{row['flops'] / whole['flops']:9.2f}   {row['milliseconds'] / whole['milliseconds']:.2f} of the time")

# %% [markdown]
# Compare the last two columns. One text at a time, an exit's small products take a good part of a layer's time, though hardly any FLOPs. So *speed 0* shows where early exit **loses**: a hard text pays for every exit and leaves at none. In batches time comes closer to the FLOPs, as texts that have left are not computed. (These are means: the last answer of a batch comes as late as its hardest text.)
#
# ### MobileBERT in miniature
#
# A teacher with inverted bottlenecks, four layers, which gets {{number:stored(MOBILE)['teacher']['masked_accuracy']:.0%}} of the masked words right. Students of the same depth, narrow inside, equally many steps. Beside masked words lecture 06's unstated-fact probe: what is the hero's job, in stories that do not say it?

# %%
strategies_chart()

# %% [markdown]
# *Left: masked-token accuracy on new stories; right: the unstated-fact probe after fine-tuning. A dot is a seed. LN, GELU: LayerNorm and GELU for NoNorm and ReLU. Embeddings: copied from the teacher, without and with its answers. The last five rows: transfer, layer by layer.*
#
# {{number:len(stored(MOBILE)['runs']['labels'])}} seeds:
#
# - *Alone* a thin student has {{number:student('labels')}}. With the **teacher's embeddings** it has {{number:student("labels, the teacher's embeddings")}}, without any teaching: {{number:start}} of what joint transfer seems to give is a better start. This control is easy to forget.
# - The teacher's *answers* on top: {{number:student('no transfer')}}. Layer by layer: auxiliary {{number:student('auxiliary')}}, joint {{number:student('joint')}}, progressive {{number:student('progressive')}}. So transfer pays, at equally many steps. That progressive is the best strategy does not come out at four layers; the paper has 24.
# - The program's *slip* costs nothing that one sees: {{number:student('progressive, the slip')}}.
# - *NoNorm and ReLU are paid for*: alone {{number:student('labels')}} against {{number:student('labels, LayerNorm and GELU')}} with LayerNorm and GELU (the seeds overlap), taught {{number:student('progressive')}} against {{number:student('progressive, LayerNorm and GELU')}}. The paper says so, too: they were chosen for a phone's clock. The probe turns it round, {{number:student('progressive', 'job_accuracy')}} against {{number:student('progressive, LayerNorm and GELU', 'job_accuracy')}}; we do not know why.
# - After fine-tuning: {{number:student('labels', 'job_accuracy')}} alone, {{number:student("labels, the teacher's embeddings", 'job_accuracy')}} from the teacher's embeddings. Joint transfer is better than that in every seed, {{number:student('joint', 'job_accuracy')}}; auxiliary ({{number:student('auxiliary', 'job_accuracy')}}) and progressive ({{number:student('progressive', 'job_accuracy')}}) are not.
#
# (A step with a teacher costs about three times the FLOPs of one without. Equal steps, then, not equal FLOPs.)
#
# ### What users do today
#
# One task, one set of texts, every way. Accuracy is the mean of {{number:len(results.runs_of(MAIN))}} seeds; times were measured once, on a machine that did nothing else ({{number:where_measured(stored('12_serving_times')['machine'])}}).

# %%
serving_table()

# %% [markdown]
# *Latency: one text at a time, the median and what 19 of 20 texts do not exceed. Throughput: batches of 32. MB: the file of weights; then weights and activations while a batch is answered.*
#
# - **Another program**: ONNX Runtime answers one text {{number:times('ONNX Runtime', 'float32')}} times as fast, with the same numbers; torch.compile {{number:times('torch.compile', 'float32')}} times.
# - **int8** needs no training either: {{number:int8_times}} times as fast for one text, {{number:times('int8', 'float32', 'texts_a_second')}} times the throughput, the file {{number:time_of('int8', 'stored') / time_of('float32', 'stored'):.0%}} as large. Accuracy changes by {{number:int8_cost}} points.
# - *Half the layers*, distilled on documentation: {{number:results.served_accuracy('half the layers'):.1%}} ({{number:results.served_accuracy('float32'):.1%}} for all of them), {{number:times(serving_runs.HALF, 'float32')}} times as fast. For this task two layers are enough.
# - *MobileBERT's shape*, from random initialisation and with the same little distilling: {{number:results.served_accuracy("MobileBERT's shape"):.1%}}. That says little about the shape: the model of half the layers began with its teacher's weights. Ours had a thousand steps, the real one half a million, of 2,048 sequences each.
# - *Early exit* at speed {{number:serving_runs.SPEED:g}}: {{number:results.served_accuracy('early exit'):.1%}}. Do not hold that against float32: it is another fine-tuning (dropout, another head, more steps), which has {{number:last(MAIN)}} at full depth. Its median is good; look at its 95th percentile.
# - *Padding removed* costs a little for one text, which has none, and gives {{number:times('padding removed', 'float32', 'texts_a_second')}} times the throughput in batches.

# %%
flops_and_time_chart()

# %% [markdown]
# *Each dot is a way to serve. If FLOPs were time, dots above one another would be one dot, and all would lie on one rising line. (The axes do not begin at 0.) Colours and shapes only tell the dots apart.*
#
# Six of them have the same FLOPs, and the slowest takes {{number:times('ONNX Runtime', 'padding removed')}} times as long as the quickest. The other way round: MobileBERT's shape has {{number:flops(serving_runs.MOBILE)}} of the FLOPs, and takes {{number:mobile_ms}} ms; half the layers have {{number:flops(serving_runs.HALF)}}, and take {{number:half_ms}}. Eight thin layers are many small products, and each must be started. In batches of 32 the products are larger, and the same thin shape gives {{number:times(serving_runs.MOBILE, 'float32', 'texts_a_second')}} times float32's throughput. FLOPs count work; time also counts how often one starts, and what waits for memory (lecture 14).
#
# ### Who reads what we save
#
# A model is served by whichever program its users have. `save_folder(model, folder, tokenizer)` writes what transformers writes; `export_onnx(model, "model.onnx")` writes the computation itself, with all inputs, and compares it with torch before the file is there. The course's two checkpoints and a small model of each member, random weights, were written so and opened by other programs. Which of them give our numbers?

# %%
readers_table()

# %% [markdown]
# *The largest difference from our model, as a fraction of its largest value. "Wrong": the program reads the file without a word and computes another model. A dash: the program reads something else, such as texts where a ViT has pictures.*
#
# - **Only transformers and the ONNX file keep the head.** The others read the encoder; what they lose stands below.
# - **Reading is not understanding.** {{number:readers_wrong}} times a program said nothing and gave other numbers: a vector was left out, positions were off by one, a language was not passed on. No message would have told you; a comparison with ten texts does, and takes a minute. Make it a test.
# - llama.cpp looks GELU up in a table of 16-bit numbers: {{number:readers.largest(readers.stored()['GGUF']['rows']):.3f}} is its rounding, not another model.

# %%
lost_table()

# %% [markdown]
# *How many of the models a program reads rightly, and what is lost on the way. `python -m course_lib.bench.readers --others all` makes both tables again; the scripts in `findings/` show the surprises one by one.*
#
# ### On your machine
#
# Four layers of BERT-base's width, a small vocabulary, random weights, one message of 32 tokens. The time does not depend on what the weights are.

# %%
from course_lib.bench import as_table, measure

shown = ("float32", "bfloat16", "int8", "ONNX Runtime", "ONNX Runtime, int8")
rows = measure([row for row in serving.contenders(1, 32, num_layers=4, vocab_size=2_000) if row.name in shown], rounds=3, seconds=0.3)
print(as_table(rows, "float32"))
int8_gain = next(r.median for r in rows if r.name == "int8") / next(r.median for r in rows if r.name == "float32")

# %% [markdown]
# The ratio of torch's int8 is the third guess; the last row is the same idea in the program that people ship it with. It depends on the processor: those with instructions for bytes (VNNI, AMX, Arm's dot products) gain much, others little; so it is with bfloat16. It depends on the width, too: in the table above int8 gave {{number:int8_times}} times, as course-bert's products are small, and more of the time goes to other things.
#
# ### Which one? A budget decides

# %%
budget_view(serving_runs.offers())

# %% [markdown]
# *Move the two budgets. The frame marks the most accurate way that fits both; the sentence says what the next better one would need. A few tenths of a point are less than the seeds differ by: among such ways take the quicker one.*
#
# Two questions of the kind that interviews ask:
#
# - *Early exit for a service with easy and hard texts, how would you set it up?* Exits by self-distillation, or joint where labels are many: try both; the speed chosen on development texts from a curve like the one above, for this task; the latency that is promised is that of the *hard* text, which early exit makes longer; batches by length and, where it pays, by layer.
# - *A model for a phone, where do you begin?* With a measurement on that phone. Then the cheapest change first: another program and int8 (no training), fewer layers (some distilling), another shape (much pre-training). Size of the file, memory while it runs, heat and the tokenizer belong to the budget as FLOPs do.
#
# ### A queue
#
# A service does not get batches, it makes them. Texts arrive at random; the model really answers; only the waiting is simulated.

# %%
from course_lib.lectures.lecture_12.queueing import Policy, arrivals, serve

tokens = [row[: int(n)].tolist() for row, n in zip(test.sequences.input_ids, test.sequences.attention_mask.sum(1))]
model = serving.in_float32(classifier)
policies = {
    "one by one": Policy(), "up to 16, as they come": Policy(most=16),
    "up to 16, wait 20 ms": Policy(most=16, wait=0.02), "up to 16, of like length": Policy(most=16, spread=4),
}  # fmt: skip
alone = serve(arrivals(tokens[:50], a_second=1.0), model.answer, Policy()).median
for load in (0.5, 1.5):  # of what the model can do, one by one
    for name, policy in policies.items():
        with torch.inference_mode():
            run = serve(arrivals(tokens, a_second=load / alone), model.answer, policy)
        print(f"load {load}: {name:26} median {1e3 * run.median:8.1f} ms   95th {1e3 * run.p95:8.1f} ms   padding {run.padding:.0%}")

# %% [markdown]
# Below what one by one can do, batches change little. Above it, one by one falls further behind with every text, while batches keep up: a batch of 16 takes less time than 16 single texts, above all where lengths are alike and little padding is computed. Waiting 20 ms for company costs latency at either load, and is not needed: where texts come fast, company is there.

# %%
show(serve)

# %%
answers = {
    "fraction of the FLOPs": serving_runs.mobile_fraction(),
    "should leave": "the first: 0.61 against 0.86",
    "times faster in int8": f"{int8_gain:.1f}, here",
}
print(f"{'':24}{'you said':>14}   answer")
for name, value in answers.items():
    print(f"{name:24}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("12")

# %% [markdown]
# ## More exercises
#
# All six stand above, each before the code that answers it. To go on: put `FastBert` on an encoder of your own, plot its curve on your texts, and find the speed at which you would serve it.

# %% [markdown]
# ## Quiz

# %%
quiz("12")

# %% [markdown]
# ## Questions for review
#
# {{review:12}}

# %% [markdown]
# ## Read on
#
# - Liu et al. (2020), *FastBERT: a Self-distilling BERT with Adaptive Inference Time*, arXiv 2004.02178: section 3, and Table 2.
# - Sun et al. (2020), *MobileBERT: a Compact Task-Agnostic BERT for Resource-Limited Devices*, arXiv 2004.02984: section 3.
# - Xin et al. (2020), *DeeBERT: Dynamic Early Exiting for Accelerating BERT Inference*, arXiv 2004.12993: exits trained on labels with the backbone frozen, and entropy as here.
# - Zhou et al. (2020), *BERT Loses Patience: Fast and Robust Inference with Early Exit* (PABEE), arXiv 2006.04152: a text leaves when several exits in a row give the same answer.
# - Sanh, Wolf and Rush (2020), *Movement Pruning: Adaptive Sparsity by Fine-Tuning*, arXiv 2005.07683: weights that fine-tuning moves towards zero are taken out. Michel et al. (2019), *Are Sixteen Heads Really Better than One?*, arXiv 1905.10650: whole heads.
# - Zafrir et al. (2019), *Q8BERT: Quantized 8Bit BERT*, arXiv 1910.06188: quantisation-aware training, where rounding takes part in fine-tuning, so that the weights learn to live with it.
# - Jacob et al. (2018), *Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference*, arXiv 1712.05877: what eight bits need.
