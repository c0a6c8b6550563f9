"""`Monitor`: whether the functions that come in are still like those of the calibration.

Three tests, each with its own wealth and its own bound, which holds over all time:

    errors    scores of functions with a truth, among the calibration scores and all seen since
    inputs    the novelty of inputs, with a truth or without, among those of calibration alike
    failures  functions outside their band, against δ; for a calibration with `confidence`
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.band import Band
from uqno.conformal import Calibration, checks
from uqno.monitor.martingale import (
    LARGE_P,
    SMALL_P,
    Seen,
    Wealth,
    factors_of,
    failure_factors,
    smoothing,
)
from uqno.monitor.scoring import fingerprint, identity, score_of
from uqno.monitor.state import State, read_state, write_state
from uqno.monitor.verdict import ERRORS, FAILURES, INPUTS, Finding, Verdict

if TYPE_CHECKING:
    from uqno.model import UQNO


class _Game:
    """The wealth of one test, and where it has been."""

    def __init__(self, bets: int, threshold: float) -> None:
        self.wealth, self.threshold = Wealth(bets), threshold
        self.history: list[float] = []
        self.since: int | None = None

    def bet(self, factors: Any) -> None:
        self.wealth.bet(factors)
        self.history.append(float(self.wealth.log))
        if self.since is None and self.history[-1] >= log(self.threshold):
            self.since = len(self.history)


class Monitor:
    """Watches whether the promise of a calibration still stands.

    Args:
        model: a calibrated `UQNO`, or a `Calibration` with its scores. Of a model the inputs are
            watched too.
        false_alarm: η: with probability at least 1 − η `alarm` is never given as long as the
            functions that come in are exchangeable with those of the calibration.
        state: a file that keeps what was seen; it is read if it is there, and written by every
            `observe`. None keeps nothing.
        seed: of the random numbers that break ties.
        alpha, delta: which of several calibrations of a model; the first by default.

    Raises:
        ValueError: the calibration has no scores, or the state is of another calibration, of
            another version or damaged.

    >>> error = np.random.default_rng(0).normal(size=(200, 50))
    >>> from uqno import calibrate
    >>> cal = calibrate(error, np.ones((200, 50)), alpha=0.1, delta=0.1)
    >>> band = Band(np.zeros((1, 50)), np.ones(50), cal, (np.arange(50.0),))
    >>> Monitor(cal).observe(band, 0.1 * np.ones(50), id="tuesday").alarm
    False
    """

    def __init__(
        self,
        model: UQNO | Calibration,
        false_alarm: float = 0.01,
        state: str | Path | None = None,
        *,
        seed: int = 0,
        alpha: float | None = None,
        delta: float | None = None,
    ) -> None:
        self.false_alarm = float(checks.share("false_alarm", false_alarm))
        self.calibration = _calibration_of(model, alpha, delta)
        self._inputs = _inputs_of(model)
        checks.count("seed", seed, least=0)
        self.path = None if state is None else Path(state)
        self._mark = fingerprint(self.calibration, self._inputs)
        self.state = State(self._mark, self.false_alarm, int(seed))
        self._begin()
        self._written: tuple[int, ...] | None = None
        if self.path is not None and self.path.exists():
            self._resume(read_state(self.path))

    # --- what came in -----------------------------------------------------------------------------

    def observe(self, band: Band, truth: Any = None, *, id: Any = None) -> Verdict:
        """Take note of one function, or of those of a batch in their order.

        Args:
            band: from this model, or with this calibration.
            truth: what came out, of the shape of the band's center; None while it is not known:
                then the input alone is looked at. It may come later, under the same id.
            id: a name or number of the function, or a sequence of them for a batch. A function that
                was counted is not counted again. None knows functions by their values.

        Returns:
            What the monitor says now.

        Raises:
            ValueError: the band is of another model or calibration, or the truth does not fit or is
                not finite; then nothing of this call is counted.
        """
        self._check(band)
        bands = [band[i] for i in range(len(band))] if band.is_batch else [band]
        names = _names(id, len(bands), band.is_batch)
        truths: Any = [None] * len(bands)
        if truth is not None:
            whole = band.truth(truth)
            truths = whole if band.is_batch else [whole]
        new = [
            self._looked_at(*one) for one in zip(bands, truths, names, strict=True)
        ]  # all of it, before any of it counts
        counted = sum(self._count(*one) for one in new)
        if counted:
            self._write()
        return self.verdict(counted)

    def _looked_at(
        self, band: Band, truth: Any, name: Any
    ) -> tuple[tuple[str, float, bool] | None, tuple[str, float] | None]:
        """What is kept of a function: of its errors and of its input."""
        errors = inputs = None
        if truth is not None:
            score = score_of(self.calibration, band, truth)
            failed = score > float(band.applied_scale)
            errors = identity(name, band.center, band.uncertainty, truth), score, failed
        if len(self._inputs) and band.novelty is not None:
            distance = float(band.novelty.score[0])
            inputs = identity(name, band.center, band.uncertainty), distance
        if errors is None and inputs is None:
            raise ValueError(
                "there is neither a truth nor a novelty of the input to look at: give the truth, "
                "or a band that model.predict made with the model that is monitored"
            )
        return errors, inputs

    def _count(
        self, errors: tuple[str, float, bool] | None, inputs: tuple[str, float] | None
    ) -> bool:
        """Take note of one function; whether anything of it was new."""
        new = False
        if errors is not None and errors[0] not in self.state.errors.known:
            self.state.errors.add(*errors)
            self._play_errors(len(self.state.errors.scores) - 1)
            new = True
        if inputs is not None and inputs[0] not in self.state.inputs.known:
            self.state.inputs.add(*inputs, failed=False)
            self._play_inputs(len(self.state.inputs.scores) - 1)
            new = True
        return new

    def _check(self, band: Any) -> None:
        if not isinstance(band, Band):
            raise ValueError(
                f"observe takes a uqno.Band, got {type(band).__name__}: pass what model.predict "
                "gives"
            )
        own, other = self.calibration, band.calibration
        if own.model != other.model or own != other:
            raise ValueError(
                f"the band is of another model or calibration (model {other.model or 'none':.12}, "
                f"scale {other.scale:.6g}) than the monitor (model {own.model or 'none':.12}, "
                f"scale {own.scale:.6g}): monitor each with a Monitor and a state of its own"
            )

    # --- the games --------------------------------------------------------------------------------

    def _begin(self) -> None:
        c = self.calibration
        scores = c.scores
        assert scores is not None
        # Errors and inputs share η, so that one of them gives a false alarm with at most η.
        parts = 2 if len(self._inputs) else 1
        bets = len(SMALL_P) + len(LARGE_P)
        self._scores, self._distances = Seen(scores), Seen(self._inputs)
        self._games = {ERRORS: _Game(bets, parts / self.false_alarm)}
        if len(self._inputs):
            self._games[INPUTS] = _Game(bets, parts / self.false_alarm)
        self._failure_factors = None
        if getattr(c.rule, "confidence", None) is not None and c.delta is not None:
            self._failure_factors = failure_factors(c.delta)
            self._games[FAILURES] = _Game(self._failure_factors.shape[1], 1 / self.false_alarm)

    def _play_errors(self, t: int) -> None:
        score, failed = self.state.errors.scores[t], self.state.errors.failed[t]
        p = self._scores.p_value(score, smoothing(self.state.seed, 0, t))
        self._games[ERRORS].bet(factors_of(p))
        if self._failure_factors is not None:
            self._games[FAILURES].bet(self._failure_factors[int(failed)])

    def _play_inputs(self, t: int) -> None:
        distance = self.state.inputs.scores[t]
        p = self._distances.p_value(distance, smoothing(self.state.seed, 1, t))
        self._games[INPUTS].bet(factors_of(p))

    # --- what it says -----------------------------------------------------------------------------

    @property
    def alarm(self) -> bool:
        """Whether errors or inputs have given alarm, now or earlier."""
        return any(self._games[n].since is not None for n in (ERRORS, INPUTS) if n in self._games)

    def verdict(self, counted: int = 0) -> Verdict:
        """What the monitor says of all that it has seen."""
        failing = FAILURES in self._games and self._games[FAILURES].since is not None
        tests = {name: self._test(name, game) for name, game in self._games.items()}
        return Verdict(self.alarm, failing, counted, tests)

    def _test(self, name: str, game: _Game) -> Finding:
        eta = self.false_alarm
        bound = f"a false alarm has probability at most {1 / game.threshold:.3g} over all time"
        if name == FAILURES:
            gamma = 1 - float(getattr(self.calibration.rule, "confidence", 0))
            bound = (
                f"a false alarm has probability at most {eta:.3g} + {gamma:.3g} over all time, the "
                "second for the draw of the calibration set"
            )
        return Finding(
            name=name,
            functions=len(game.history),
            wealth=_wealth(float(game.wealth.log)),
            largest=_wealth(max(game.history, default=0.0)),
            threshold=game.threshold,
            alarm=game.since is not None,
            since=game.since,
            history=tuple(game.history),
            bound=bound,
        )

    # --- the file ---------------------------------------------------------------------------------

    def _resume(self, state: State) -> None:
        assert self.path is not None
        if state.calibration != self._mark:
            raise ValueError(
                f"{self.path} is the state of a monitor of another calibration "
                f"({state.calibration:.12}, this one is {self._mark:.12}): give each its own file, "
                "and begin a new one after calibrating again"
            )
        if state.false_alarm != self.false_alarm:
            raise ValueError(
                f"{self.path} was begun with false_alarm = {state.false_alarm:g}, got "
                f"{self.false_alarm:g}: it is fixed when a monitor begins; give the same"
            )
        self.state = state
        for t in range(len(state.errors.scores)):
            self._play_errors(t)
        for t in range(len(state.inputs.scores) if INPUTS in self._games else 0):
            self._play_inputs(t)
        self._written = _stamp(self.path)

    def _write(self) -> None:
        if self.path is None:
            return
        if self._written != _stamp(self.path):
            raise ValueError(
                f"{self.path} was written by another process since this monitor read it, so "
                "functions would be lost: let one process at a time use a state; make the Monitor "
                "again and observe again, what was counted is not counted twice"
            )
        write_state(self.path, self.state)
        self._written = _stamp(self.path)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when another process replaces the file."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return None
    return there.st_ino, there.st_mtime_ns, there.st_size


def _calibration_of(model: Any, alpha: float | None, delta: float | None) -> Calibration:
    if isinstance(model, Calibration):
        calibration = model
    elif hasattr(model, "calibration") and hasattr(model, "calibrations"):
        calibration = model.calibration(alpha, delta)
    else:
        raise ValueError(
            f"model is a {type(model).__name__}: give a calibrated uqno.UQNO or a uqno.Calibration"
        )
    if calibration.scores is None:
        raise ValueError(
            f"the calibration of {calibration.functions} functions has no scores to compare with: "
            "calibrate for a guarantee that scores each function, such as guarantees.Fraction, and "
            "read it from the file that `uqno calibrate` or model.save wrote, for "
            "to_json(scores=False) leaves them out"
        )
    return calibration


def _inputs_of(model: Any) -> Any:
    """The distances of the calibration inputs, sorted; empty where there are none."""
    memory = getattr(model, "memory", None)
    inputs = None if memory is None else memory.inputs
    return np.empty(0) if inputs is None else inputs.calibrated


def _names(given: Any, number: int, is_batch: bool) -> Sequence[Any]:
    if given is None:
        return [None] * number
    if not is_batch:
        return [given]
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != number:
        raise ValueError(
            f"id = {given!r:.60} for a batch of {number} functions: give a sequence of {number} "
            "names, one for each"
        )
    return list(given)


def _wealth(logarithm: float) -> float:
    return exp(min(logarithm, 700.0))
