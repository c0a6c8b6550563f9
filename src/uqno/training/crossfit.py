"""`crossfit`: predictions of the training data by operators that have not seen them.

The residual u − Ĝ(a) of an operator on its own training data is too small, so an uncertainty
trained on it is too. Splitting the data in two wastes half of it on each. Instead K
operators are each trained on all folds but one and predict that one: all the data give
honest residuals, and the final operator, trained on everything, is better than any of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset

from uqno.operators.padding import unpadded
from uqno.training.devices import preserved_random_state, seed_global
from uqno.training.fit import fit
from uqno.training.record import Fit
from uqno.training.samples import check_data, derived_seed, generator, index_batches
from uqno.types import Samples


@dataclass(frozen=True)
class CrossFit:
    """A final operator, and K others of which `assignment[i]` has not seen sample i.

    Args:
        operator: trained on all the data.
        fold_operators: K operators, each trained on the data without one fold.
        assignment: the fold of every sample, n numbers in 0..K−1.
        fit: how the training of `operator` went.
        fold_fits: how the training of each of `fold_operators` went; the indices in it are
            positions in the data without that fold, in order.
    """

    operator: Any
    fold_operators: tuple[Any, ...]
    assignment: tuple[int, ...]
    fit: Fit
    fold_fits: tuple[Fit, ...]

    def prediction(self, data: Samples, index: int) -> Tensor:
        """Ĝ₋ₖ(aᵢ), by the operator that has not seen sample i.

        Args:
            data: the data that this was trained on, in the same order.
            index: i.

        Returns:
            (channel, *points).

        Raises:
            ValueError: there are more or fewer samples than were trained on.
        """
        return next(self._predict(data, [index]))

    def predictions(self, data: Samples, batch_size: int = 16) -> Iterator[Tensor]:
        """Ĝ₋ₖ(aᵢ) for i = 0, 1, ..., holding a batch at a time.

        Args:
            data: the data that this was trained on, in the same order.
            batch_size: how many samples are predicted together.

        Yields:
            (channel, *points) for each sample.

        Raises:
            ValueError: there are more or fewer samples than were trained on.
        """
        self._check(data)
        for indices in index_batches(range(len(data)), batch_size):
            yield from self._predict(data, indices)

    @torch.no_grad()
    def _predict(self, data: Samples, indices: list[int]) -> Iterator[Tensor]:
        self._check(data)
        answers: dict[int, Tensor] = {}
        for fold in sorted({self.assignment[i] for i in indices}):
            members = [i for i in indices if self.assignment[i] == fold]
            operator = self.fold_operators[fold].eval()
            batch = operator.batch([data[i] for i in members])
            answers |= zip(members, unpadded(operator(batch), batch), strict=True)
        return iter([answers[i] for i in indices])

    def _check(self, data: Samples) -> None:
        if len(data) != len(self.assignment):
            raise ValueError(
                f"got {len(data)} samples but the folds were made of {len(self.assignment)}: "
                "out-of-fold predictions are of the training data, in the same order"
            )


def crossfit(
    make_operator: Callable[[], Any],
    data: Samples,
    *,
    folds: int = 4,
    seed: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    **options: Any,
) -> CrossFit:
    """Train K operators, each on all folds but one, and a final one on all the data.

    Args:
        make_operator: () -> a new operator; its initial weights follow from `seed` too.
        data: a sized sequence of samples, as for `fit`.
        folds: K, from 2 to the number of samples.
        seed: decides the folds, the initial weights and the seed of every fit.
        folder: each fit has its own in it: fold-0, ..., final; None writes nothing.
        resume: with a folder, finished fits are read, the one that was stopped goes on, the
            others begin.
        options: further arguments of `fit`, the same for all: loss, epochs, batch_size, ...

    Returns:
        The operators, the folds, and how each fit went.

    Raises:
        ValueError: `folds` is out of its bounds, or `fit` refuses its arguments or the data.
    """
    assignment = assign_folds(len(data), folds, seed)
    if options.pop("check_data", True):
        check_data(data)

    def train(name: str, indices: list[int]) -> tuple[Any, Fit]:
        with preserved_random_state(torch.device("cpu")):
            seed_global(derived_seed(seed, "initial", name), torch.device("cpu"))
            operator = make_operator()
        return operator, fit(
            operator,
            Subset(data, indices),  # type: ignore[arg-type]
            seed=derived_seed(seed, "fit", name),
            folder=Path(folder) / name if folder is not None else None,
            resume=resume,
            check_data=False,
            **options,
        )

    others = [[i for i, k in enumerate(assignment) if k != fold] for fold in range(folds)]
    trained = [train(f"fold-{fold}", indices) for fold, indices in enumerate(others)]
    operator, final = train("final", list(range(len(data))))
    operators, fits = zip(*trained, strict=True)
    return CrossFit(operator, operators, assignment, final, fits)


def assign_folds(samples: int, folds: int, seed: int) -> tuple[int, ...]:
    """The fold of every sample: random, and sizes that differ by at most one.

    Args:
        samples: how many there are.
        folds: K, from 2 to the number of samples.
        seed: decides the folds.

    Returns:
        A number in 0..K−1 for every sample.

    Raises:
        ValueError: `folds` is out of its bounds.
    """
    if not 2 <= folds <= samples:
        raise ValueError(
            f"folds={folds} must be from 2 to the number of samples, {samples}: each operator is "
            "trained on all folds but one, so try 4"
        )
    order = torch.randperm(samples, generator=generator(seed, "folds")).tolist()
    return tuple(place % folds for place in order)
