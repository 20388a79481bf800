# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Kernels: why the fast versions are fast
#
# **Lecture 14** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say for a piece of code whether it is compute-bound or memory-bound, from two numbers you can count;
# - rebuild six fast kernels of this course, and a loss that overwrites its logits: each a puzzle with a check;
# - place every kernel on this machine's roofline, measured while you watch;
# - read a speed table: against whom, at which size, and how far from what is possible.
#
# You need the encoder of lecture 02. The kernels come from lectures 02 to 08 and 12; each is explained here again. Nothing is
# downloaded.
#
# {{parts}}

# %%
import torch
from IPython.display import display

from course_lib import check, claims_table, hint, quiz, reveal, show
from course_lib.bench.measuring import Contender, as_table, machine, measure, peak_bytes, where_measured
from course_lib.bench.roofline import memory_rate, placements
from course_lib.bench.traffic import by_kind, traffic
from course_lib.lectures.lecture_14.views import faults_chart, fresh_faults, roofline_chart, speed_chart, traffic_chart
from course_lib.teaching.source import show_lines

# %% [markdown]
# ## Predict first
#
# A **kernel** here is a piece of arithmetic worth making fast, written as a pure function of tensors. Most files in
# `course_lib/kernels` hold two versions: one to read, the *reference*, and a fast *twin* with the same arguments and the same answer.
#
# Three guesses. Write them down before you go on.
#
# 1. A processor reads a number from memory, and it multiplies and adds. How many multiply-adds can it do in the time that
#    one number takes to arrive: 1, 10, 100?
# 2. BERT selects 15% of a text's tokens for prediction. What fraction of the logits over the vocabulary, computed
#    the plain way, is computed for nothing?
# 3. Half of the tokens of a batch are padding. How much faster can a layer that treats each token by itself get, at most,
#    when the padding is left out?

# %%
my_guesses = {"multiply-adds a number": ..., "thrown away": ..., "faster by": ...}

# %% [markdown]
# ## By hand
#
# ### Two numbers
#
# A product of two n × n matrices needs 2n³ FLOPs (a multiply-add counts as two) and moves at least 3n² numbers:
# two matrices in, one out. A sum of the two needs n² FLOPs and moves the same. Four bytes a number:

# %% tags=["nbval-check-output"]
for n in (16, 256, 4_096):
    moved = 3 * n * n * 4
    print(f"n = {n:5}: product {2 * n**3 / moved:8.1f} FLOPs a byte, sum {n * n / moved:.2f}")

# %% [markdown]
# FLOPs a byte: the **arithmetic intensity**. A product's grows with n. A sum's is a twelfth, at any size. Softmax, LayerNorm,
# GELU, dropout and masking do a few FLOPs a number, so theirs is low as well; that of large products is high. That is the first
# guess at where time goes: too many FLOPs, or too many bytes. A third cause is latency: many small steps, each of which waits.
#
# ### This machine
#
# How fast are its products? How fast is its memory? Measured now, in billions of FLOPs (GFLOP/s) and of bytes (GB/s) a second;
# bfloat16 is a number of two bytes instead of four:

# %%
here = machine()
bandwidth = memory_rate()
peak = here["gflops_float32"]
print(f"matrix products, float32: {peak:,} GFLOP/s", end="")
print(f"; bfloat16: {here['gflops_bfloat16']:,} GFLOP/s" if here["gflops_bfloat16"] else "; no bfloat16 of its own")
print(f"memory, read and written: {bandwidth:.0f} GB/s")
print(
    f"ridge: {peak / bandwidth:.0f} FLOPs a byte keep both busy; {4 * peak / bandwidth / 2:.0f} multiply-adds a number"
)

# %% [markdown]
# There is a second roof for memory. What fits into the processor's **cache**, a small memory close to the arithmetic, is read and written several times as fast as
# the main memory; the rate above is the main memory's, measured on tensors that fit into no cache. The small tensors of a small model may lie under the higher roof, so read
# "memory-bound" with the size in mind.
#
# The *ridge* is peak / bandwidth: the arithmetic intensity at which both are busy. (Four bytes a number and two FLOPs a
# multiply-add make twice as many multiply-adds a number, before rounding.) Left of the ridge a kernel is **memory-bound**, right
# of it **compute-bound**; where a processor multiplies bfloat16
# itself, that ridge lies further right. A kernel of arithmetic intensity I can reach at
# most min(peak, I · bandwidth). Drawn with both axes logarithmic this is a roof with a slope: the **roofline** (Williams,
# Waterman and Patterson 2009).
#
# There are three ways to be faster, and each kernel below uses one or two.
#
# 1. **Do less**: leave out what nobody needs.
# 2. **Move less**: keep a number where it is and use it again, instead of writing it and reading it back. Several operations in one pass over the numbers are called **fusion**.
# 3. **Wait less** (latency): few large steps in place of many small ones.
#
# ## Try it: the bound of a piece of code
#
# A wrong answer gets the name of its mistake; `hint("14.1")` helps a step at a time, `reveal("14.1")` shows a solution. No
# later cell needs your answers.
#
# {{exercise:14.1}}


# %%
def my_bound(flops, bytes_moved, peak, bandwidth):
    return ...


check("14.1", my_bound)

# %% [markdown]
# ## Puzzle: only the positions selected for prediction
#
# **Spec.** The masked-language-model loss. Hidden states (B, T, H), a head that gives V logits for each, labels (B, T) that
# are −100 at positions not selected for prediction. (B texts of T tokens, H numbers a token, V pieces in the vocabulary.)
#
# The reference computes all B·T rows of logits and lets the loss ignore most. What goes through memory, counted while it
# runs, forward and backward:

# %%
from course_lib.kernels.masked_loss import masked_loss, masked_loss_reference

torch.manual_seed(0)
hidden, embeddings = (torch.randn(8, 128, 128, requires_grad=True), torch.randn(4_096, 128, requires_grad=True))
labels = torch.where(torch.rand(8, 128) < 0.15, torch.randint(4_096, (8, 128)), -100)


def head(x):
    return x @ embeddings.T


def step_of(loss):
    return lambda: torch.autograd.grad(loss(hidden, head, labels), [hidden, embeddings])


steps = {"reference": step_of(masked_loss_reference), "fast": step_of(masked_loss)}
traffic_chart({name: by_kind(traffic(step)) for name, step in steps.items()}, title="Masked-language-model loss")

# %% [markdown]
# *Bytes that operations read and write, by kind. The lower pair of bars is the twin you are about to write. It keeps more than
# 15% of the bytes: some, such as the embedding matrix, are moved either way.*

# %% [markdown]
# {{exercise:14.2}}


# %%
def my_masked_loss(hidden, head, labels):
    return ...


check("14.2", my_masked_loss)

# %%
display(show(masked_loss_reference, masked_loss))
for name, step in steps.items():
    print(f"{name:10} at most {peak_bytes(step) / 1e6:6.1f} MB held at once")

# %% [markdown]
# The fast one does less *and* moves less: 85% of the rows are not multiplied with the embedding matrix. The trick is BERT's own: its program gathers the hidden states of the
# selected positions first (`gather_indexes` in `run_pretraining.py`); later programs dropped it. At BERT-base's size, with
# 30,522 tokens in the vocabulary, the head is a fifth of a step's FLOPs; at *tiny*, even with 8,192, it is most of them.
#
# ## Puzzle: a mask that is never stored
#
# **Spec.** Dynamic masking (lecture 04) draws a new mask in every epoch. Stored masks cost memory; masks drawn from
# one running generator depend on what was drawn before, so they cannot be made again or made in two processes. Wanted: random
# numbers that are a *function* of (seed, epoch, example, position), for a whole batch at once.
#
# {{exercise:14.3}}


# %%
def my_numbers(seed, epoch, examples, tokens):
    return ...


check("14.3", my_numbers)

# %%
from course_lib.kernels import masking

show(masking._mix, masking.random_bits, masking.as_uniform)

# %% [markdown]
# A hash in whole-number arithmetic on the whole batch: no state, no loop over rows. `_mix` moves every bit; each number is mixed
# in before the next one comes. `use` keeps apart the draws that one mask needs: which positions, which replacement.
#
# ## Puzzle: look up by shifting
#
# **Spec.** DeBERTa (lecture 08) needs for tokens i and j the product of i's query with the vector of their *distance* i − j.
# One product gives them for all distances: row i, a column a distance. Then each pair picks its column.
#
# The pick is a `gather`: it reads an index for every number. But look at what it picks, for three tokens; columns are
# distances from 2, on the left, down to −2:
#
#     row 0:  .  .  a  b  c
#     row 1:  .  d  e  f  .
#     row 2:  g  h  i  .  .
#
# {{exercise:14.4}}


# %%
def my_skew(by_distance):
    return ...


check("14.4", my_skew)

# %%
from course_lib.kernels import disentangled

show(disentangled._skew)

# %%
from course_lib.kernels.positions import position_rows

torch.manual_seed(0)
q, k, v = (torch.randn(8, 12, 128, 64) for _ in range(3))
position_key, position_query = torch.randn(12, 512, 64), torch.randn(12, 512, 64)
# of 128 tokens: the furthest distance 256, 512 rows
given = q, k, v, position_key, position_query, position_rows(128, 256, 512)
twins = {
    "reference": lambda: disentangled.disentangled_attention_reference(*given),
    "fast": lambda: disentangled.disentangled_attention(*given),
}
traffic_chart({name: by_kind(traffic(step)) for name, step in twins.items()}, title="Disentangled attention, 8×128")

# %% [markdown]
# *Bytes by kind of operation. The gathers nearly vanish. The products save still more: rows of the position embeddings that no
# two of 128 tokens can reach are no longer computed.*

# %% [markdown]
# ## Puzzle: a softmax that sees its row in pieces
#
# **Spec.** Attention over T keys needs a softmax over T attention scores, and a softmax needs the largest score and the sum of
# all exponentials. On a GPU, memory near the arithmetic holds a tile of scores, say of 64 queries and 64 keys, not whole rows
# of many queries. Can the output, the weighted mean of the values, be had while the scores arrive a chunk at a time, each
# forgotten after use?
#
# {{exercise:14.5}}


# %%
def my_online_softmax(scores, values, chunk):
    return ...


check("14.5", my_online_softmax)

# %% [markdown]
# This is the **online softmax** (Milakov and Gimelshein 2018, arXiv 1805.02867). *FlashAttention* (Dao et al. 2022, arXiv 2205.14135) puts it to work with two more ideas: *tiling*, so that
# a tile of scores stays near the arithmetic, and *recomputation*, so that the backward pass makes the scores anew instead of reading them. No T × T matrix is ever written. The course's GPU
# kernel for disentangled attention, in Triton, does it with both position terms read inside the loop. Many copies of the kernel
# run side by side; a copy is called a *program*. In its loop `own` are the queries it works for, `met` the keys of the chunk that
# has arrived; `s` are the scores of this tile, `p` its weights; `c2p` and `p2c` hold the position scores by distance, `shown` is the
# padding mask. Skip `zone` and `DROPS` at first.

# %%
show_lines("course_lib.kernels.disentangled_triton", "for begin in range(start", "top = higher")

# %% [markdown]
# Look for your own lines in it:
#
# | you kept | the kernel keeps | for |
# |---|---|---|
# | the largest score so far | `top`, one a query | weights that never overflow |
# | the sum of exponentials | `total`, one a query | the division at the end |
# | the weighted sum of values | `sums`, D numbers a query | the output |
# | the factor when the largest grows | `shrink` | what was added up too large |
#
# What it has and yours has not: powers of 2 instead of e, because the hardware computes these directly; and *zones*. Far from a
# query all distances share a row of the position embeddings (a bucket, lecture 08), so there a tile's position scores are one
# number a query and one a key.

# %% [markdown]
# On a CPU the same idea is inside PyTorch's fused attention, `F.scaled_dot_product_attention`. It does not always win.
# The rules by which this course chooses, and why:

# %%
from course_lib.kernels import choosing

show(choosing)

# %% [markdown]
# One argument overrules them: `bert("base", kernels="reference")`.
#
# ## Puzzle: leave the padding out
#
# **Spec.** A layer that treats each token by itself (dense, norm, GELU) is given a padded batch (B, T, H) and its mask.
#
# {{exercise:14.6}}


# %%
def my_real_only(layer, x, mask):
    return ...


check("14.6", my_real_only)

# %%
from course_lib import bert

torch.manual_seed(0)
model = bert("mini", vocab_size=1_000).eval()
lengths = torch.randint(16, 129, (32,))
mask = (torch.arange(128) < lengths[:, None]).long()
ids = torch.randint(5, 1_000, (32, 128)) * mask


@torch.no_grad()
def padded():
    model(ids, mask)


@torch.no_grad()
def unpadded():
    model(ids, mask, remove_padding=True)


rows = [Contender(name, lambda f=f: f, int(mask.sum())) for name, f in (("padded", padded), ("unpadded", unpadded))]
print(
    f"padding: {1 - mask.float().mean():.0%} of all positions; limit of all but attention {1 / mask.float().mean():.2f}×"
)
print(as_table(measure(rows, rounds=5, seconds=0.3), "padded"))

# %% [markdown]
# The *linear part*, which is all but attention, could gain as much as the limit says, and attention more: it too sees real tokens alone, the texts of one
# length together. In FLOPs, that is. But the lengths here are nearly all different, so attention runs as some two dozen small
# products, and tokens are taken out and put back: a likely reason why the clock shows less.
#
# ## Puzzle: early exit, who is done may leave
#
# **Spec.** An early-exit model (lecture 12 builds one) has a small classifier after every layer. A sequence whose classifier
# is confident leaves. "Twice as fast" is usually counted in FLOPs; on a clock it shows only if the batch really shrinks.
#
# {{exercise:14.7}}


# %%
def my_early_exit(x, layers, exits, confident):
    return ...


check("14.7", my_early_exit)

# %%
from course_lib.kernels.early_exit import early_exit, early_exit_reference

show(early_exit_reference, early_exit)

# %% [markdown]
# `left` holds the numbers of the texts that are still under way; it shrinks together with `x`.

# %% [markdown]
# ## Puzzle: a loss that overwrites its logits
#
# **Spec.** The largest tensor of a small model's step is the table of logits, K selected positions by V words. Autograd makes
# tables of that size on the way: logarithms of probabilities, a gradient, and another. But the gradient of cross-entropy can be written down, *softmax − 1 at
# the right word*, and once it is, nobody needs the logits any more.
#
# {{exercise:14.8}}


# %%
def my_loss_in_place(logits, labels):
    return ...


check("14.8", my_loss_in_place)

# %% [markdown]
# Does it pay? In time, with and without a second table; in memory, what is held beside the logits:

# %%
import torch.nn.functional as F

from course_lib.lectures.lecture_14.exercises.in_place import loss_in_place

K, V = 614, 8_192  # positions of a step, words
labels = torch.randint(0, V, (K,))


def by_autograd(logits):
    F.cross_entropy(logits.detach().requires_grad_(), labels).backward()


losses = {"autograd": by_autograd, "in place": lambda logits: loss_in_place(logits, labels)}
drawn, logits = torch.randn(K, V), torch.empty(K, V)
rows = [Contender(name, lambda loss=loss: lambda: loss(logits.copy_(drawn)), K) for name, loss in losses.items()]
print(as_table(measure(rows, rounds=5, seconds=0.3), "autograd"))
for name, loss in losses.items():
    made = peak_bytes(lambda loss=loss, logits=logits: loss(logits))
    print(f"{name}: {made / 1e6:.1f} MB beside the {logits.nbytes / 1e6:.1f} MB of the logits")

# %% [markdown]
# (Both rows copy the logits first.) In memory always. In time it depends on the machine: autograd's two passes are fused loops in C++,
# ours are seven passes of torch's operations; but ours asks for no new memory, and new memory costs time, too ("Where a step's time
# goes", below, shows how much). On a GPU a kernel that does all in one pass is worth having, for vocabularies of a hundred thousand words and more.
#
# ## Two more, to read
#
# **The distillation loss** (lecture 06) compares a student's and a teacher's logits over the whole vocabulary. In chunks of
# positions, no full matrix of logits is held; the gradient is made at once, while the chunk is there.

# %%
from course_lib.kernels.distillation import distillation_loss, distillation_loss_reference

torch.manual_seed(0)
sides = [torch.randn(2_048, 128), torch.randn(8_192, 128) / 8, torch.zeros(8_192)]
student = [x.clone().requires_grad_() for x in sides]
for name, loss in (("reference", distillation_loss_reference), ("fast", distillation_loss)):
    held = peak_bytes(lambda loss=loss: torch.autograd.grad(loss(*student, *sides, 2.0), student))
    print(f"{name:10} at most {held / 1e6:6.1f} MB held at once")

# %% [markdown]
# One full matrix of logits, a row a position, is 67.1 MB. The reference holds seven of that size. The fast one holds the logits
# of one chunk, here half of the positions, of both networks, and the gradients of the student's vectors and table.
#
# **The sampling of ELECTRA's generator** (lecture 07) draws a token from a distribution in two steps: which block of the
# vocabulary, then which token of the block. So a random number is compared with the sums of blocks, and then with the tokens of
# one block, not with those of the whole vocabulary.
#
# ## Is it right?
#
# A twin that is fast and wrong is worthless. Each is compared with its reference on outputs and gradients, in three number
# formats, at odd sizes, by the tests of this course. Two of them here, on fresh numbers:

# %%
q, k, v = (torch.randn(2, 3, 17, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
pk, pq = (torch.randn(3, 12, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
given = q, k, v, pk, pq, position_rows(17, 6)
wanted, _, _ = disentangled.disentangled_attention_reference(*given)
got = disentangled.disentangled_attention(*given)
weight = torch.randn_like(got)
grads = [torch.autograd.grad((out * weight).sum(), given[:5]) for out in (wanted, got)]
print(f"disentangled attention: output {(wanted - got).abs().max():.0e}, "
      f"gradients {max((a - b).abs().max() for a, b in zip(*grads)):.0e}")  # fmt: skip
out, packed = (model(ids, mask).last_hidden_state, model(ids, mask, remove_padding=True).last_hidden_state)
print(f"padding removed: output {((out - packed) * mask[..., None]).abs().max():.0e} (float32)")

# %% [markdown]
# ## See it: the roofline of this machine
#
# Every kernel at one size, reference and twin, timed now.

# %%
points = placements()
roof = {"float32": peak, "bfloat16": here["gflops_bfloat16"], "memory": bandwidth}
roofline_chart(roof, points)

# %% [markdown]
# *Across: arithmetic intensity, FLOPs for each byte that must move. Up: FLOPs a second. Hollow: the version to read; filled:
# its fast twin. Under the slope kernels are memory-bound, under the flat line compute-bound. A twin that does less stands
# further left, and may be quicker at a smaller fraction of the roof: the number with × says how many times less time it takes. Across, inputs and outputs are counted once each, and nothing in between. So a
# twin that only moves less of what lies in between goes straight up, as the distillation loss does. In the table below, rows with 0.0 do no products; theirs is the fraction of memory's rate.*

# %%
print(f"{'':50}{'FLOPs/byte':>10}{'GFLOP/s':>9}{'of the roof':>13}")
for point in points:
    name = " ".join(filter(None, (f"{point.name}, {point.twin}", point.how)))
    print(f"{name:52}{point.intensity:8.1f}{point.gflops:9.1f}{point.share(roof):13.0%}")

# %% [markdown]
# ## Measure it: against the peers
#
# What you saw so far was small and quick. The course's speed figures come from one command, `python -m course_lib.bench`: ours
# and the peer take turns in one run, at every size, also where we tie or lose. The stored run:

# %%
from course_lib.bench.summary import in_todays_words
from course_lib.teaching.results import read_result

stored = in_todays_words(read_result("14_speed"))
speed_chart(stored)

# %% [markdown]
# *Dots are medians, bars the middle half of the rounds. Choose a table above the figure.*
#
# Each goal was set in advance, for one machine. So read it together with the machine that was measured. (*At BERT's own time*: the factor if ours took no longer than transformers' BERT.)

# %%
from textwrap import fill, indent

there = stored["machine"]
print(f"{where_measured(there)}; products {there['gflops_float32']} GFLOP/s, in bfloat16 {there['gflops_bfloat16']}\n")
for title, remark in stored["remarks"].items():
    told = [line for line in remark.splitlines() if any(w in line for w in ("goal", "its best", "in chunks /"))]
    said = "\n".join(fill(line, 100) for line in told)
    print(f"{title}\n{indent(said, '    ')}\n" if told else "", end="")

# %% [markdown]
# Most remarks name a goal, and a limit counted in FLOPs. Three patterns.
#
# - *Doing less wins, as a rule.* Logits only at selected positions, no padding, early exit: in float32 close to what the FLOPs
#   allow, and at or above the goals. (*Tiny* even beats its limit: bytes shrink with the logits, and the limit counts
#   FLOPs only.) In bfloat16 products take so little time that copying and latency show: with three quarters padding
#   {{number:padding_worst}} of the limit is reached; ELECTRA's sampling and the deeper early exit miss their goals.
# - *Disentangled attention* does all that BERT does and more; each remark names transformers' BERT of that width as a second
#   peer (not a limit: it is another program). Three of its nine goals are met. For one text of 64 tokens in float32 ours is
#   within a tenth of that BERT's time. At 8×512 in bfloat16 we fall far short of the goal and of that BERT: its fused attention
#   never writes its attention scores, ours does, a block at a time, and two position products come on top.
# - *The pre-training step* meets one of its four goals (8 and 12 times transformers as shipped, for mini and tiny; 2 and 4 times its best
#   setting), and uses a small fraction of the processor's rate of matrix products; 75% had been hoped for. Why?
#
# ### Without bfloat16
#
# That processor multiplies bfloat16 itself. Most laptops do not, nor does Colab's. How much of the 8 to 10 times is left there? Say a
# number, then run. This is a later run on such a processor, a slower one, at fewer sizes: with peers that the first run lacks, and
# freed memory kept for every contender (what that is, you will see below).

# %%
speed_chart(read_result("14_speed_float32"))

# %% [markdown]
# *As above. {{number:where_measured(float32_run()['machine'])}}; other programs ran on that machine, so the bars are wide.*
#
# As shipped, transformers takes {{number:in_float32('Pre-training step', 'mini', False)}} (mini) and {{number:in_float32('Pre-training step', 'tiny', False)}} (tiny) times as long as ours. Now tune and compile it, and give it our largest trick, logits at the selected
# positions only: {{number:in_float32('Pre-training step', 'mini', True)}} and {{number:in_float32('Pre-training step', 'tiny', True)}} times are left. So what were the ten times? The first run has float32, too: there
# ours is {{number:ladder('tiny')}} (tiny) and {{number:ladder('mini')}} (mini) times as fast as shipped, and bfloat16 adds {{number:ladder('tiny', BY_RULES, 'ours in float32')}} and {{number:ladder('mini', BY_RULES, 'ours in float32')}} times: mostly doing less, then the number format. (As shipped, transformers also trains
# with a dropout of 0.1; ours has none.) In float32 a step is
# compute-bound: {{number:share_in_float32('mini')}}% and {{number:share_in_float32('tiny')}}% of the rate of matrix products, so even a perfect kernel could save only the rest. DeBERTa at 8×512 is {{number:in_float32('Disentangled attention', 'inference, 4×768, 8×512')}} times as fast as
# transformers': most of its time is in dense layers, which both have.
#
# ### Where a step's time goes
#
# A profile of the course's own step, by kind of operation:

# %%
import os

from torch.profiler import ProfilerActivity, profile

from course_lib.bench.pretraining import our_step
from course_lib.train.precision import choose_precision

os.environ["KINETO_LOG_LEVEL"] = "9"  # the profiler's own log lines are of no use here
step = our_step("mini", choose_precision())
step()
with profile(activities=[ProfilerActivity.CPU]) as seen:
    for _ in range(3):
        step()
times = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
kinds = {
    "matrix products": ("mm", "addmm", "bmm"), "copies between number formats": ("copy_",),
    "the optimizer": ("_fused_adamw_",), "GELU": ("gelu", "gelu_backward"),
    "LayerNorm": ("native_layer_norm", "native_layer_norm_backward"),
    "softmax": ("_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data"),
}  # fmt: skip
shares = {kind: sum(times.get(f"aten::{one}", 0) for one in names) / sum(times.values()) for kind, names in kinds.items()}
print(f"mini, 32×128 tokens, {choose_precision()}")
for kind, share in [*shares.items(), ("sums, masks and all else", 1 - sum(shares.values()))]:
    print(f"{kind:32}{share:6.1%}")

# %% [markdown]
# On a processor without bfloat16 of its own, matrix products take most of the step: it is compute-bound, and only the other lines of the table can still be won. On one that has it they take about half. The other lines do few FLOPs a number that they read and write, so the roofline
# above says: memory-bound. No better product helps there. To move less would.
#
# One cost hides inside these lines. Each large tensor is a block of memory that is requested from the system and given back
# after use. A new block is empty: the first touch of each of its pages (4 KB, as a rule) stops the program until the
# system has filled that page with zeros. That is a **page fault**. Let us count them, in a process that has just begun, and then tell
# its allocator, the part of it that requests memory, to keep what a step frees:

# %%
import statistics

before, after = fresh_faults("mini", steps=5)
if before:
    display(faults_chart(before, after))

# %% [markdown]
# *A bar a step. In the steps with hatched bars freed memory is kept: the first such steps still fetch some blocks, the next ones find them.
# Hover for megabytes and milliseconds. Only glibc's allocator can be told (most of Linux).*
#
# By hand: 10,000 page faults are 10,000 · 4 KB = 40 MB that the system fills with zeros, only for the step to write over them.

# %%
for name, steps in (("as it is", before), ("kept", after[1:])):
    if steps:
        faults, ms = (statistics.median(x) for x in zip(*((s.faults, 1e3 * s.seconds) for s in steps)))
        print(f"{name:10}{faults:9,.0f} page faults a step, {ms:6,.0f} ms")

# %% [markdown]
# A step needs the same blocks again and again. `keep_freed_memory` tells the allocator so, where that is glibc's (most of Linux).
# `fit` calls it before its first step. It holds for the whole process and takes no more memory at the peak, but what was freed
# stays with Python. `COURSE_LIB_ALLOCATOR=system` in the environment switches it off, and glibc's own `MALLOC_…` variables go
# first. Whoever sets it for one contender of a speed table must set it for all: `python -m course_lib.bench` does. (Of the stored speed
# figures above, the first are from before: there no contender has it.)
#
# Why in a process that has just begun? In an old one, such as this notebook's kernel, some block that stays may lie at the end of the
# heap, the allocator's stretch of memory. What is freed below it cannot be given back, and is kept by luck.
#
# ### On a GPU

# %%
speed_chart(read_result("14_gpu"), "Disentangled attention on a GPU, forward and backward, 1×8,192, A=12, D=64, bfloat16")

# %% [markdown]
# *Tokens a second of one attention module of DeBERTa-v3's shape (A heads of D numbers); choose a length. {{number:where_measured(gpu_run()['machine'])}}; only three rounds, so look at the bars where there are any.*
#
# At 8,192 tokens the kernel is {{number:on_gpu('8,192', False):.1f}} times as fast as transformers' attention forward and {{number:on_gpu('8,192', True):.1f}} with the backward pass, in {{number:gpu_memory('ours, in Triton')}} MB instead of {{number:gpu_memory('transformers')}}. The package disentangled-flash 1.1.1 does the same work in a layer of its own; ours is {{number:on_gpu('8,192', False, 'disentangled_flash'):.1f}} and {{number:on_gpu('8,192', True, 'disentangled_flash'):.1f}} times as fast as that layer, which holds less memory.
#
# At 256 tokens there is little to win: {{number:on_gpu('256', False):.1f}} times forward, {{number:on_gpu('256', True):.1f}} with the backward pass. With so little to do the GPU waits for the next launch. At 1,024 it is {{number:on_gpu('1,024', False):.1f}} and {{number:on_gpu('1,024', True):.1f}}; there, with the backward pass, our *readable* reference reaches {{number:on_gpu('1,024', True, ours='ours, the readable'):.1f}}. One text at a time; larger batches were not measured.

# %%
print(f"{'':24}{'you said':>14}   answer")
answers = {
    "multiply-adds a number": f"{2 * peak / bandwidth:.0f} here",
    "thrown away": "85%",
    "faster by": "2 times: 1/(1 − p); attention, which compares pairs, gains more",
}
for name, value in answers.items():
    print(f"{name:24}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("14")

# %% [markdown]
# ## Quiz

# %%
quiz("14")

# %% [markdown]
# ## Questions for review
#
# {{review:14}}

# %% [markdown]
# ## Read on
#
# - Williams, Waterman and Patterson (2009), *Roofline: an insightful visual performance model*, Communications of the ACM 52(4).
# - Dao, Fu, Ermon, Rudra and Ré (2022), *FlashAttention*, arXiv 2205.14135.
# - Horace He (2022), *Making deep learning go brrrr from first principles*: the three ways, told for GPUs.
