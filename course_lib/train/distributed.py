"""Who takes part in a training run: one process, or several that train one model together.

Every process makes the same batch, since batches are a function of the step, and computes on
sequences of its own. What they find is added up, divided by the counts of the whole batch: several
processes do what one would do with that batch. torchrun starts them; Hugging Face Accelerate joins
them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import torch
from torch import Tensor, nn

from course_lib.encoder import count_parameters
from course_lib.kernels.choosing import choose_device
from course_lib.objectives.pretraining import counted_together, split_batch
from course_lib.objectives.sequences import Batch

PATIENCE = timedelta(hours=2)  # how long a process waits for one that measures or saves
SEEDS_APART = 1_000_000_007  # odd, so that no two processes share the 32 bits a CPU's seed has


class Distributed:
    """One process: it has every sequence, and nobody to wait for."""

    rank = 0  # this process's number
    world_size = 1  # how many there are
    sharded = False  # whether each keeps only a part of the weights

    def __init__(self, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)

    @property
    def is_main_process(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def prepare(self, model: nn.Module) -> nn.Module:
        """The model to be called in training: on the device, and tied to the other processes.

        Its parameters may be new ones: make the optimiser afterwards."""
        return model.to(self.device)

    def local_batches(self, batches: Sequence[Batch]) -> list[Batch]:
        """The sequences of a step's batches that are this process's, on its device."""
        return [_moved(part, self.device) for part in part_of(batches, self.rank, self.world_size)]

    def sync_gradients(self, model: nn.Module, last: bool) -> AbstractContextManager[object]:
        """Around forward and backward of a part; gradients are exchanged after the `last` alone."""
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        """Add this part's gradients."""
        loss.backward()

    def sum_over_processes(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """The sum of these numbers over all processes."""
        return dict(numbers)

    def seed(self, number: int) -> int:
        """The seed of a step's dropout: another on every process."""
        return number + self.rank * SEEDS_APART

    def check_same(self, what: str, value: object) -> None:
        """Raise ValueError unless all processes found the same."""

    def on_device(self, model: nn.Module) -> AbstractContextManager[object]:
        """Around the steps: afterwards the model is where it belongs."""
        return nullcontext()

    def on_cpu(self, model: nn.Module) -> AbstractContextManager[object]:
        """While others look at the model between two steps."""
        return nullcontext()

    def shut_down(self) -> None:
        """Wait for the others and part from them."""


ONE_PROCESS = Distributed()


class BorrowedDevice(Distributed):
    """One process that trains a model on another device than its own, where that pays.

    requested: as in `choose_device`; under "auto" a model that someone put on a GPU stays there."""

    def __init__(self, model: nn.Module, requested: str = "auto") -> None:
        self.home = next(model.parameters()).device
        stays = requested == "auto" and self.home.type != "cpu"
        super().__init__(self.home if stays else choose_device(requested, count_parameters(model)))

    @contextmanager
    def on_device(self, model: nn.Module) -> Iterator[None]:
        try:
            yield
        finally:
            model.to(self.home)

    @contextmanager
    def on_cpu(self, model: nn.Module) -> Iterator[None]:
        model.to(self.home)
        yield
        model.to(self.device)


class ManyProcesses(Distributed):
    """Several processes, started by torchrun. Each has the whole model and they exchange gradients
    (DDP); or each keeps a part of every weight and fetches the rest when it is needed (FSDP).

    Raises ValueError for a device that is not there."""

    def __init__(self, device: str = "auto", fsdp: bool = False) -> None:
        from accelerate import Accelerator, InitProcessGroupKwargs

        self._accelerator = Accelerator(
            cpu=choose_device(device) == "cpu",
            mixed_precision="no",  # the loop's own autocast does that
            kwargs_handlers=[InitProcessGroupKwargs(timeout=PATIENCE)],
        )
        super().__init__(self._accelerator.device)
        self.rank, self.world_size = (
            self._accelerator.process_index,
            self._accelerator.num_processes,
        )
        self.sharded = fsdp
        if fsdp:  # no code of ours adds in place to what a unit returns
            warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")

    def prepare(self, model: nn.Module) -> nn.Module:
        if self.sharded:
            return self._shard(model)
        return self._accelerator.prepare_model(model)

    def _shard(self, model: nn.Module) -> nn.Module:
        """Each block's two halves are units that are fetched together; the rest is another.

        torch's own function, not Accelerate's, which does not do it on CPUs, where it is tested."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.world_size,))
        for name, part in model.named_modules():
            if name.endswith((".attention", ".feed_forward")):
                fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model

    def sync_gradients(self, model: nn.Module, last: bool) -> AbstractContextManager[object]:
        # Sharded gradients are exchanged at every part: nobody has room for whole ones.
        return nullcontext() if last or self.sharded else model.no_sync()  # type: ignore[operator]

    def backward(self, loss: Tensor) -> None:
        # DDP and FSDP take the mean over processes. The losses are parts of one whole: their sum
        # is wanted.
        (loss * self.world_size).backward()

    def sum_over_processes(self, numbers: Mapping[str, float]) -> dict[str, float]:
        values = torch.tensor(list(numbers.values()), dtype=torch.float64, device=self.device)
        total = self._accelerator.reduce(values, reduction="sum")
        return dict(zip(numbers, total.tolist(), strict=True))

    def check_same(self, what: str, value: object) -> None:
        from accelerate.utils import gather_object

        result = gather_object([value])
        if any(other != result[0] for other in result):
            raise ValueError(
                f"{what} differs between the processes ({', '.join(map(str, result))}); expected "
                "the same on all. Give all machines the same packages and the same text, and an "
                "--out folder that all of them see."
            )

    def shut_down(self) -> None:
        self._accelerator.wait_for_everyone()
        torch.distributed.destroy_process_group()


def join(device: str = "auto", fsdp: bool = False) -> Distributed:
    """The processes that torchrun started this one in; without torchrun, this one alone.

    device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps". Raises ValueError for another
    word, for a GPU that is not there, and for fsdp with a single process."""
    chosen = choose_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:  # torchrun says so
        return ManyProcesses(device, fsdp)
    if fsdp:
        raise ValueError(
            "--fsdp was given to one process; expected several, to share the weights out to. Start "
            "them with torchrun --nproc_per_node 2 -m course_lib.train.pretrain …, or leave --fsdp "
            "out."
        )
    return Distributed(chosen)


def part_of(batches: Sequence[Batch], rank: int, size: int) -> list[Batch]:
    """Of each of a step's batches the sequences of process `rank` of `size`, and the counts of all
    batches together: every sequence is one process's.

    Raises ValueError for a batch with fewer sequences than there are processes."""
    parts = list(batches) if len(batches) == 1 else counted_together(batches)
    return parts if size == 1 else [split_batch(part, size)[rank] for part in parts]


def _moved(batch: Batch, device: torch.device) -> Batch:
    inputs, targets = ({name: value.to(device) for name, value in part.items()} for part in batch)
    return Batch(inputs, targets)
