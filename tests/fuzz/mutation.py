"""Damage: bytes that flip or are missing, and JSON whose values are of another kind."""

from __future__ import annotations

import json
import string
from typing import Any

import numpy as np

Rng = np.random.Generator
JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**12, 10**400, 2**63, 0.5, -0.5, 1e308, 1e-320, "", "x",
    "0.1", "../../etc/passwd", "/etc/passwd", "a\x00b", "\ud800", "1e-99999999", "<script>", [],
    [None], [[]], [1, 2, 3], ["a"], [0.5, 0.1], {}, {"x": 1}, {"point": 1, "function": 1},
)  # fmt: skip
WORDS = (b"nan", b"inf", b"-1", b"0", b"99999999999999999999", b"1e400", b"", b"\x00", b"\xff\xfe",
         b"true", b"/etc/passwd", b"../..", b"float128", b"|O", b"<U99999999")  # fmt: skip


def mutated(rng: Rng, content: bytes) -> bytes:
    """Some bytes changed, removed, repeated or put in; or words in place of words."""
    for _ in range(rng.integers(1, 4)):
        content = ONE[rng.integers(len(ONE))](rng, content)
    return content


def _flipped(rng: Rng, content: bytes) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(0, max(1, len(changed)), rng.integers(1, 9)):
        if place < len(changed):
            changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _head_flipped(rng: Rng, content: bytes) -> bytes:
    return _flipped(rng, content[:512]) + content[512:]


def _tail_flipped(rng: Rng, content: bytes) -> bytes:
    return content[:-256] + _flipped(rng, content[-256:])


def _set(rng: Rng, content: bytes) -> bytes:
    """A few bytes in a row become 0, 255 or 127, as in lengths and offsets."""
    place, length = int(rng.integers(0, max(1, len(content)))), int(rng.integers(1, 9))
    return content[:place] + bytes([rng.choice([0, 255, 127])]) * length + content[place + length :]


def _truncated(rng: Rng, content: bytes) -> bytes:
    return content[: rng.integers(0, len(content) + 1)]


def _without(rng: Rng, content: bytes) -> bytes:
    a, b = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    return content[:a] + content[min(b, a + 64) :]


def _twice(rng: Rng, content: bytes) -> bytes:
    a, b = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    return content[:b] + content[a:b] + content[b:]


def _with(rng: Rng, content: bytes) -> bytes:
    place = int(rng.integers(0, len(content) + 1))
    return content[:place] + rng.bytes(int(rng.integers(1, 40))) + content[place:]


def _word(rng: Rng, content: bytes) -> bytes:
    """A word of text or a number becomes another."""
    letters = set((string.ascii_letters + string.digits + "._-").encode())
    places = [i for i in rng.integers(0, max(1, len(content)), 40) if content[i : i + 1]]
    place = next((int(i) for i in places if content[i] in letters), None)
    if place is None:
        return content
    first, last = place, place
    while first > 0 and content[first - 1] in letters:
        first -= 1
    while last < len(content) and content[last] in letters:
        last += 1
    return content[:first] + WORDS[rng.integers(len(WORDS))] + content[last:]


ONE = (
    _flipped,
    _head_flipped,
    _tail_flipped,
    _set,
    _truncated,
    _without,
    _twice,
    _with,
    _word,
    _word,
)


def mutated_json(rng: Rng, content: bytes) -> bytes:
    """The same tree with values replaced, left out or added; now and then no JSON, or very deep."""
    chance = rng.random()
    if chance < 0.1:
        return mutated(rng, content)
    if chance < 0.13:
        return b"[" * 100_000 + b"]" * 100_000
    if chance < 0.16:
        return b'{"format": ' * 5_000 + b"1" + b"}" * 5_000
    tree = json.loads(content)
    for _ in range(rng.integers(1, 3)):
        tree = _changed(rng, tree)
    return json.dumps(tree).encode("utf8", "surrogatepass")


def _changed(rng: Rng, tree: Any) -> Any:
    if isinstance(tree, dict | list) and len(tree) and rng.random() < 0.85:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        key: Any = list(keys)[rng.integers(len(keys))]
        if rng.random() < 0.1:
            del tree[key]
        else:
            tree[key] = _changed(rng, tree[key])
        return tree
    if isinstance(tree, dict) and rng.random() < 0.3:
        return {**tree, "another": 1}
    return JSON_VALUES[rng.integers(len(JSON_VALUES))]
