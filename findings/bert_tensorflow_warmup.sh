#!/usr/bin/env bash
# Package: bert-tensorflow 1.0.4 (Google's own BERT), bert.optimization.create_optimizer, run on
# tensorflow-cpu 2.21.0 through its v1 interface.
# One would guess: "linear warm-up, then linear decay", the rate climbs to learning_rate in the
# first num_warmup_steps and falls from there to zero, as the paper (A.2) and transformers have it.
# What happens: step 0 has rate 0, and the decay counts from step 0. Where a warm-up of a tenth of the
# steps ends (100 of 1,000 below), the rate drops from 0.99 to 0.9 of learning_rate in one step and
# stays below it; with a warm-up of half of the steps it drops to one half.
# Who is hurt: whoever repeats BERT's runs with another library at the same learning rate and a warm-up
# of a tenth (every later step is 11% larger there), or carries learning rates from one to the other.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tensorflow-cpu==2.21.0 bert-tensorflow==1.0.4
cd "$tmp"
TF_CPP_MIN_LOG_LEVEL=3 "$tmp/venv/bin/python" - <<'PYTHON'
import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
sys.modules["tensorflow"] = tf  # the package was written for TensorFlow 1
from bert import optimization


def rates(steps, warmup):
    """The learning rate of each step, read from the optimiser that create_optimizer builds."""
    tf.reset_default_graph()
    weight, built = tf.get_variable("weight", initializer=[0.0]), []
    begin = optimization.AdamWeightDecayOptimizer.__init__

    def spy(self, learning_rate, **settings):
        built.append(learning_rate)
        begin(self, learning_rate, **settings)

    optimization.AdamWeightDecayOptimizer.__init__ = spy
    step = optimization.create_optimizer(tf.reduce_sum(weight), 1.0, steps, warmup, False)
    optimization.AdamWeightDecayOptimizer.__init__ = begin
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [float((session.run(built[0]), session.run(step))[0]) for _ in range(steps)]


found, half = rates(1_000, 100), rates(1_000, 500)
shown = {n: round(found[n], 3) for n in (0, 1, 99, 100, 101)}
print("1,000 steps, warm-up 100; the rate at these steps:", shown)
print(f"warm-up 500: {half[499]:.3f} at step 499, {half[500]:.3f} at step 500")
expected = [n / 100 if n < 100 else 1 - n / 1_000 for n in range(1_000)]
if max(abs(a - b) for a, b in zip(found, expected)) > 1e-5 or abs(half[500] - 0.5) > 1e-5:
    sys.exit("the schedule is no longer the one described: the finding does not hold any more")
PYTHON
