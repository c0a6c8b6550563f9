"""Which functions are in which group.

groups = ["van", "estate", "van", …]                 one label for each function; None for none
groups = {"van": [True, False, …], "long": […]}      classes that may overlap
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from uqno.conformal import checks, told
from uqno.types import Integers

Names: TypeAlias = tuple[str, ...]
"""The groups of one function."""


def names_of(label: Any) -> Names:
    """The groups of one function, sorted.

    Args:
        label: a text or whole number; several in a set, tuple or list; None for no group.

    >>> names_of("van"), names_of({"van", 7}), names_of(None)
    (('van',), ('7', 'van'), ())
    """
    if label is None:
        return ()
    if isinstance(label, set | frozenset | tuple | list):
        return tuple(sorted({told.group(one) for one in label}))
    return (told.group(label),)


def memberships(groups: Any, functions: int | None = None) -> list[Names]:
    """The groups of each function.

    Args:
        groups: (n,) labels as `names_of` takes them; or a mapping from names to (n,) booleans.
        functions: n, where it is known.

    Raises:
        ValueError: there are more or fewer labels than functions, or one is no label.
    """
    if isinstance(groups, Mapping):
        inside = {told.group(name): told.marks(name, x) for name, x in groups.items()}
        checks.same_number(**{f"marks of group {name!r}": x.size for name, x in inside.items()})
        number = len(next(iter(inside.values()), ()))
        named = [tuple(sorted(g for g, x in inside.items() if x[i])) for i in range(number)]
    else:
        listed = groups.tolist() if hasattr(groups, "tolist") else groups
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise ValueError(
                f"groups = {groups!r} must hold one label for each function, or be a mapping from "
                "names of groups to one boolean for each function"
            )
        known: dict[Any, Names] = {}
        named = []
        for label in listed:
            try:
                named.append(known[label])
            except KeyError:
                named.append(known.setdefault(label, names_of(label)))
            except TypeError:  # a set or list
                named.append(names_of(label))
    if functions is not None:
        one_each(named, functions)
    return named


def one_each(members: Sequence[Names], functions: int) -> None:
    """Refuse labels of more or fewer functions than there are."""
    if len(members) != functions:
        raise ValueError(
            f"groups tell of {len(members)} functions, and there are {functions}: expected one "
            "label for each function, in their order"
        )


def by_group(values: Any, groups: Any) -> dict[str, Any]:
    """The values of the functions of each group, such as their coverage.

    Args:
        values: (n, …), one for each function; groups: as in `memberships`.

    >>> by_group(np.array([0.9, 0.7, 0.8]), ["van", "estate", "van"])
    {'estate': array([0.7]), 'van': array([0.9, 0.8])}
    """
    array = np.asarray(values)
    rows = rows_of(memberships(groups, len(array)))
    return {name: array[index] for name, index in sorted(rows.items())}


def rows_of(members: Sequence[Names]) -> dict[str, Integers]:
    """The indices of the functions of each group."""
    alike: dict[Names, list[int]] = {}
    for i, names in enumerate(members):
        alike.setdefault(names, []).append(i)
    parts: dict[str, list[list[int]]] = {}
    for names, index in alike.items():
        for name in names:
            parts.setdefault(name, []).append(index)
    return {name: np.sort(np.concatenate(some)) for name, some in parts.items()}
