"""What training sees of the data: checked, split, ordered, shared between processes.

Every choice is a pure function of the seed and of where the run stands, so a run that is
stopped and resumed needs no random state to go on exactly as it would have.
"""

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from uqno.data.checks import check_finite
from uqno.types import Sample, Samples

Augment = Callable[[Sample, torch.Generator], Sample]


def derived_seed(*key: int | str) -> int:
    """A seed of 63 bits that is a hash of the key, so that no two uses share their draws.

    Args:
        key: whole numbers and words, such as the seed of a run and what is drawn with it.
    """
    plain = [part if isinstance(part, str) else int(part) for part in key]
    digest = hashlib.blake2b(repr(plain).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*key: int | str) -> torch.Generator:
    """A generator on the CPU, seeded by `derived_seed` of the key."""
    return torch.Generator().manual_seed(derived_seed(*key))


def check_data(data: Samples) -> None:
    """Refuse what would ruin a training run late: one pass over all samples.

    Args:
        data: samples with the truth `u`, every field a finite tensor.

    Raises:
        ValueError: there are no samples, one has no truth, or a field has NaN, infinity or
            weights that are no measure; it names the sample and the field.
    """
    if len(data) == 0:
        raise ValueError("the data are empty: give at least 2 samples")
    for i in range(len(data)):
        sample = data[i]
        if "u" not in sample:
            raise ValueError(f"sample {i} has fields {sorted(sample)} and no truth 'u': add it")
        for name, field in sample.items():
            _check_field(i, name, field)


def _check_field(index: int, name: str, field: object) -> None:
    where = f"field {name!r} of sample {index}"
    if not isinstance(field, Tensor):
        raise ValueError(f"{where} is a {type(field).__name__}: convert it to a torch.Tensor")
    check_finite(f"field {name!r}", f"sample {index}", field)
    if name == "weights" and (bool((field < 0).any()) or not bool((field > 0).any())):
        raise ValueError(
            f"{where} must be at least 0 with a positive sum (they are areas), smallest "
            f"{float(field.min())}, sum {float(field.sum())}: drop the sample or the field"
        )


def split(samples: int, validation: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices to train on and to validate on, a random partition that depends on the seed.

    Args:
        samples: how many there are.
        validation: the share of them to validate on, at least one sample unless it is 0.
        seed: decides the partition.

    Returns:
        The indices to train on and those to validate on, each in increasing order.

    Raises:
        ValueError: nothing would be left to train on.
    """
    held_out = max(1, round(validation * samples)) if validation > 0 else 0
    if held_out >= samples:
        raise ValueError(
            f"validation={validation} of {samples} samples leaves none to train on: "
            "give more data, or validation=0"
        )
    order = torch.randperm(samples, generator=generator(seed, "split")).tolist()
    return sorted(order[held_out:]), sorted(order[:held_out])


def index_batches(indices: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive groups of `size` indices; the last one may be smaller."""
    return [list(indices[i : i + size]) for i in range(0, len(indices), size)]


def epoch_batches(indices: Sequence[int], size: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch: a permutation that depends on the seed and the epoch alone.

    Args:
        indices: of the samples to train on.
        size: of a batch; the last one may be smaller.
        seed: the one of the run.
        epoch: how many epochs are complete before this one.

    Returns:
        The indices in each batch.
    """
    order = torch.randperm(len(indices), generator=generator(seed, "order", epoch)).tolist()
    return index_batches([indices[i] for i in order], size)


def batches_per_epoch(samples: int, size: int) -> int:
    """The number of batches that `epoch_batches` returns for so many samples."""
    return math.ceil(samples / size)


def share(batch: Sequence[int], rank: int, processes: int) -> tuple[list[int], int]:
    """The part of a batch this process works on, and how many of its samples count.

    A process without a part works on one sample that counts for nothing: all processes must
    take part in every step of a distributed run.

    Args:
        batch: the indices in the whole batch, at least one.
        rank: the number of this process, from 0.
        processes: how many there are.

    Returns:
        The indices of this process, at least one, and how many of them count.
    """
    mine = list(batch[rank::processes])
    return (mine, len(mine)) if mine else ([batch[0]], 0)
