"""The GPU twin of disentangled attention: its cases run on the GPU, or in Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_lib.kernels.positions import position_rows

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed; it has wheels for Linux only", allow_module_level=True)

import triton_cases as cases
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compile_kernel

from course_lib.kernels import disentangled_triton as kernel

ON_GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="no CUDA device here")

if ON_GPU:
    from triton_cases import *  # noqa: F403
else:

    def test_every_case_in_the_interpreter(root: Path) -> None:
        """In a process of its own: Triton reads the variable as it is imported, and torch and
        transformers import it too."""
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/library/triton_cases.py"]
        done = subprocess.run(
            [sys.executable, *command],
            cwd=root,
            env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        passed = r"^\d\d passed(, \d+ warnings?)? in"  # all of them
        assert re.search(passed, done.stdout, re.MULTILINE), done.stdout


def compiled(function, blocks, **fixed):
    """A kernel of bfloat16 vectors compiled for compute capability 9.0 (H100); needs no GPU."""
    own, met, warps, stages = blocks
    fixed = {"D": 64, "OWN": own, "MET": met, "DROPS": False} | fixed
    types = dict.fromkeys(function.arg_names, "*bf16")
    types |= dict.fromkeys(("T", "low", "W", "heads", "seed"), "i32") | {"visible": "*i8"}
    types |= dict.fromkeys(("scale", "dropout"), "fp32") | {"lengths": "*i32"}
    types["log_sum"] = "*fp32"
    types |= dict.fromkeys(fixed, "constexpr")
    signature = {name: types[name] for name in function.arg_names}
    places = {(function.arg_names.index(name),): value for name, value in fixed.items()}
    return compile_kernel(
        ASTSource(fn=function, signature=signature, constexprs=places),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": warps, "num_stages": stages},
    )


def test_the_kernels_compile_and_have_no_atomics(tmp_path, monkeypatch, own_blocks):
    """The interpreter takes more than the compiler does."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    forward, backward = kernel.BLOCKS[2, False]
    for made in (
        compiled(kernel._forward, forward),
        compiled(kernel._backward, backward, KEYS=False, to_value=None),
        compiled(kernel._backward, backward, KEYS=True),
        # Both at once: neither branch reads what the other decides.
        compiled(kernel._forward, forward, visible=None, lengths=None, DROPS=True),
        compiled(kernel._backward, backward, KEYS=True, visible=None, lengths=None, DROPS=True),
    ):
        lines = [line.strip() for line in made.asm["ptx"].splitlines()]
        assert any(line.startswith("wgmma.mma_async") for line in lines)  # tensor cores
        # An atomic instruction may stand behind a predicate: "@%p1 atom.global…".
        assert not [line for line in lines if re.match(r"(@!?%p\d+ )?(atom|red)\.", line)]
        assert made.metadata.shared <= 99 * 1024


# ---- on a GPU only: at the sizes that the blocks are made for ------------------------------------


@pytest.fixture
def own_blocks(monkeypatch):
    monkeypatch.undo()  # the cases' small blocks


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_two_thousand_tokens_with_the_buckets_of_version_2(own_blocks, dtype):
    inputs, upstream = cases.draw(1, 2, 2_048, 64, 512, dtype=dtype)
    mask = torch.ones(1, 2_048, dtype=torch.long)
    mask[:, 1_900:] = 0
    cases.compare(inputs, upstream, position_rows(2_048, 256, 512), mask)


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("size", kernel.HEAD_SIZES)
def test_every_head_size_with_its_own_blocks(own_blocks, size, dtype):
    inputs, upstream = cases.draw(2, 3, 333, size, 64, dtype=dtype)
    cases.compare(inputs, upstream, position_rows(333, 32, 100))


@needs_gpu
def test_the_same_bits_on_many_processors(own_blocks):
    inputs, upstream = cases.draw(4, 12, 1_024, 64, 512, dtype=torch.bfloat16)
    cases.check_same_bits(inputs, upstream, position_rows(1_024, 256, 512), times=3)
