"""UQNO: Algorithm 1 of the paper, from a base operator to a calibrated band.

1. Ĝ, the base operator, is trained on part of the training functions.
2. E, the uncertainty, is trained on residuals of functions that Ĝ has not seen.
3. λ̂ is found on calibration functions that neither has seen.
4. The band of a new function a is the ball of radius λ̂·E(a)(x) around Ĝ(a)(x), at any x.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from uqno.band import Band
from uqno.conformal import Calibration, checks
from uqno.conformal.guarantees import Guarantee
from uqno.conformal.repeats import choice
from uqno.data.conversion import Form, as_tensors
from uqno.data.fields import Names
from uqno.data.sources import as_samples, as_stream, size_of
from uqno.model import files, tie
from uqno.model.base import as_base, as_uncertainty, checked_members, is_trained
from uqno.model.calibrating import Notes, calibrated, quantity_of
from uqno.model.folds import as_crossfits, checked_folds, out_of_fold, residuals_of, train_base
from uqno.model.history import Past
from uqno.model.inputs import Places, is_surface, refuse_other_functions
from uqno.model.memory import Memory
from uqno.model.naming import as_inputs
from uqno.model.parts import ModelParts
from uqno.model.predicting import Told, band_for, groups_of, of_groups
from uqno.model.quantities import Quantities, learn
from uqno.model.scoring import Level, asked_guarantees, chosen, predicted, scored, unless_tied
from uqno.model.seen import Seen, Watch
from uqno.operators.symmetry import Symmetry, augmentation
from uqno.storage import as_path
from uqno.training import CrossFit, RelativeL2
from uqno.types import Array, Sample
from uqno.uncertainty import Uncertainty
from uqno.uncertainty.contract import Base, Feature, Options, Prediction

log = logging.getLogger(__name__)


class UQNO:
    """A base operator with a calibrated band around its answer.

    Args:
        base: any operator, torch module or callable. An FNO, a GINO or another `NeuralOperator`
            that is not trained yet is trained by `fit`; anything else is taken as trained unless
            trained=False. Or what `uqno.training.crossfit` returns: `fit` then takes its
            out-of-fold residuals. Or several such, of different seeds: Ĝ is their mean.
        uncertainty: the estimator of E; by default the paper's quantile operator.
        symmetries: of the problem (`uqno.operators.square()`); they augment training, and
            predictions are averaged over them.
        features: callables (batch, Ĝ(a)) → (batch, f, *points) that hint at the error, for E to
            see: a PDE residual, a coarse solver, the disagreement of other operators.
        deviation: whether E sees the deviation of the answers over symmetries and members.
        trained: whether the base is trained already; None decides by its kind.
        members: operators that `fit` trains, from other weights and on other folds; Ĝ is their
            mean: a better center where functions are few.
    """

    def __init__(
        self,
        base: Callable[..., Tensor] | CrossFit | Sequence[CrossFit],
        uncertainty: Uncertainty | None = None,
        *,
        symmetries: Sequence[Symmetry] = (),
        features: Sequence[Feature] = (),
        deviation: bool = True,
        trained: bool | None = None,
        members: int = 1,
    ) -> None:
        self.folds = as_crossfits(base)
        given: Any = self.folds[0].operator if self.folds else base
        operator = as_base(given, trained)
        others = tuple(fold.operator for fold in self.folds[1:])
        self.base = Base(operator, symmetries, features, deviation, others)
        self.uncertainty = as_uncertainty(uncertainty)
        self.trained = is_trained(given, self.base.operator) if trained is None else trained
        self.members = checked_members(members, self.trained)
        self.fitted = False
        self.calibrations: tuple[Calibration, ...] = ()
        self.intervals: tuple[Calibration, ...] = ()
        self.quantities = Quantities()
        self.groups: Any = None  # the callables of `calibrate`, for `predict` to ask
        self.shift: Any = None
        self.seen, self.history = Seen(), tuple[Past, ...]()
        self.dimensions: int | None = None
        self.surfaces = False
        self.probe: tie.Probe | None = None
        self.memory = Memory()
        self._glance: tie.Glance | None = None

    # --- 1. and 2. train Ĝ, then E ----------------------------------------------------------

    def fit(
        self,
        train: Any,
        *,
        inputs: Names = None,
        outputs: Names = None,
        crossfit: int | None = 2,
        epochs: int = 25,
        uncertainty_epochs: int | None = None,
        loss: Callable[[Tensor, Mapping[str, Tensor]], Tensor] | None = None,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        functionals: Mapping[str, Any] | None = None,
        **training: Any,
    ) -> UQNO:
        """Train Ĝ unless it is trained, then E, on residuals of functions that Ĝ has not seen.

        Args:
            train: functions in any form that `uqno.data.as_samples` takes, arrays (a, u) among
                them; for a trained base, none that it was trained on, and E sees all.
            inputs, outputs: the names of variables in it.
            crossfit: K ≥ 2 folds, so that both see all of `train`; None for the paper's split, Ĝ
                on the first half and E on the second.
            epochs: of the base.
            uncertainty_epochs: of E; as many by default.
            loss: of the base, `RelativeL2` by default.
            seed: decides the folds, the weights and the order of the functions.
            folder: where checkpoints are written; None writes none.
            resume: go on with what is in `folder`.
            functionals: quantities of interest by name, f(field, sample) or a `uqno.Functional`:
                the uncertainty of each is learned, for the intervals that `calibrate` makes.
            training: of `uqno.training.fit`: batch_size, learning_rate, precision, progress, …
        """
        folder = None if folder is None else as_path(folder)
        train = as_samples(train, inputs, outputs, form=self.base.operator.form)
        if not len(train):
            raise ValueError("there are no functions to train on: `train` is empty")
        fingerprints, seen = Seen.of(train, self.base)
        self.dimensions = train[0]["a"].ndim - 1 if "a" in train[0] else None
        self.surfaces = is_surface(self.base.operator, train[0])

        def options(part: str, epochs: int) -> dict[str, Any]:
            where = None if folder is None else folder / part
            return {"epochs": epochs, "folder": where, "resume": resume, **training}

        base_options = {
            "loss": loss or RelativeL2(),
            "seed": seed,
            "augment": augmentation(self.base.symmetries),
            **options("base", epochs),
        }
        checked_folds(self.members, crossfit)
        if folder is not None:
            refuse_other_functions(folder, fingerprints, resume)
        # From here on weights change: a fit that fails leaves no calibration of other weights.
        self.fitted, self.calibrations, self.intervals, self.probe = False, (), (), None
        self.seen |= seen  # with those of earlier fits: Ĝ stays as these left it
        if self.folds:
            residuals = out_of_fold(self.base, train, self.folds)
        elif self.trained:
            residuals = residuals_of(self.base, train)
        else:
            self.base, residuals = train_base(
                self.base, train, crossfit, self.members, base_options
            )
        self.trained = True
        log.info("training the uncertainty on %d residuals", len(residuals))
        uncertainty_options = options(
            "uncertainty", epochs if uncertainty_epochs is None else uncertainty_epochs
        )
        self.uncertainty.fit(self.base, residuals, Options(uncertainty_options, seed))
        self.quantities = learn(functionals or {}, residuals, self.base, self.uncertainty)
        self.memory = Memory.of(self.base, self.uncertainty, residuals)
        self.fitted = True
        return self

    # --- 3. calibrate λ̂ ---------------------------------------------------------------------

    def calibrate(
        self,
        data: Any,
        alpha: Level = 0.1,
        delta: Level = 0.02,
        sampling: str = "grid",
        weights: bool = False,
        confidence: float | None = None,
        *,
        guarantee: Guarantee | Sequence[Guarantee] | None = None,
        groups: Any = None,
        shift: Any = None,
        functionals: Mapping[str, Any] | None = None,
        joint: bool = False,
        inputs: Names = None,
        outputs: Names = None,
        batch_size: int = 16,
        repeated: str = "refuse",
    ) -> Any:
        """λ̂ from held-out functions, each read once, scored and forgotten.

        Args:
            data: functions that took no part in training, of any mix of resolutions, in any form
                that `fit` takes; a DataLoader is read once, as it comes.
            inputs, outputs: names of variables, as in `fit`.
            alpha, delta: of the paper's guarantee, `guarantees.Fraction`; several of equal number
                give several calibrations in one pass.
            sampling, confidence: of that guarantee too.
            weights: measure coverage by the samples' `weights` instead of by points.
            guarantee: another guarantee, or several, instead of these.
            groups: a promise for each group by itself: labels as in `uqno.calibrate`, or a callable
                that gives the group of a sample, which it sees without its truth.
            shift: dQ/dP of each function, as in `uqno.calibrate`, or a callable of a sample.
            functionals: quantities to give intervals of, at δ; by default those of `fit`.
            joint: promise the band and all quantities at once.
            batch_size: functions that are predicted together.
            repeated: "refuse" functions whose input is that of another, or "allow" them if each was
                drawn anew; the guarantee then tells.

        Returns:
            The `Calibration`, with groups a `GroupedCalibration`; or a tuple of them where several
            were asked for. The calibrations of quantities are in `intervals`.

        Raises:
            InfeasibleError: no finite λ̂ carries the guarantee; the message says what would.
            ValueError: functions were used in training or repeat others, or are copies of such;
                the model answers differently when it is asked twice; or points are promised to be
                random that an operator takes as its input, so that its answers depend on them.
        """
        self._need_fit("calibrate")
        data = as_stream(data, inputs, outputs, form=self._form)
        watch = Watch(self.seen, self.base, data, choice(repeated))
        if (size := size_of(data)) is not None:
            checks.functions(size)
        rules, several = asked_guarantees(guarantee, alpha, delta, sampling, confidence)
        functions = scored(self.base, self.uncertainty, data, batch_size, weights)
        if any(rule.needs_independent_points for rule in rules):
            functions = unless_tied(functions, self.base, self.uncertainty)
        functions = self.memory.watch(functions)
        probe = tie.Probe()
        notes = Notes(groups, shift, self.quantities.asked(functionals))
        made = calibrated(
            probe.watch(functions, self.base, self.uncertainty), rules, notes, watch.over,
            weighted=weights, joint=joint, repeated=repeated,
        )  # fmt: skip
        self._glance = tie.Glance.of(self.base, self.uncertainty)
        told, self.history = watch.told(made.all_bands(), self.history, self._glance.digest)
        made = made.retold(told)
        self.calibrations, self.intervals = told, made.intervals
        self.groups, self.shift = groups, shift
        self.quantities = notes.quantities.with_probe(probe)
        needed = tie.needs_probe(self.base, self.uncertainty) or bool(made.intervals)
        self.probe = probe if needed else None
        return made.bands if several else made.bands[0]

    def scored(
        self, data: Any, batch_size: int = 16, weighted: bool = False
    ) -> Iterator[tuple[Array, Array, Array | None]]:
        """(error, uncertainty, weights), each (points,), function by function."""
        self._need_fit("scored")
        data = as_stream(data, form=self._form)
        for one in scored(self.base, self.uncertainty, data, batch_size, weighted):
            yield one.error, one.uncertainty, one.weights

    @torch.no_grad()
    def uncalibrated(self, sample: Sample) -> Prediction:
        """Ĝ(a) and E(a) of one function, before calibration, with a batch axis of 1."""
        self._need_fit("uncalibrated")
        return predicted(
            self.base, self.uncertainty, self.base.batch([as_tensors(sample, self._form.dtype)])
        )

    # --- 4. the band ------------------------------------------------------------------------

    @torch.no_grad()
    def predict(
        self,
        a: Any,
        at: Places = None,
        *,
        inputs: Names = None,
        outputs: Names = None,
        alpha: float | None = None,
        delta: float | None = None,
        group: Any = None,
        likelihood_ratio: Any = None,
        batch_size: int = 16,
    ) -> Band:
        """The calibrated band of one function or of a batch.

        Args:
            a: (channel, *grid) for one function, (batch, channel, *grid) for several; or a sample
                (a dict of fields), for geometries, with `triangles` (faces, 3) for a surface: it
                is seen as in training, and the band lies on it; or functions in any form that
                `fit` takes. The labels of xarray and of files go with it.
            inputs, outputs: names of variables; the output may be absent, or names the band.
            at: None for the grid of a, a resolution (421 or (421, 421)), or points (q, d), in the
                coordinates of a where it has any.
            alpha, delta: which of several calibrations; the first by default.
            group: of the function, after a calibration by groups: a label, or several in a set; a
                list with one entry for each function. By default what its callable says.
            likelihood_ratio: dQ/dP of the function, or of each, after one with a shift; alike.
            batch_size: how many functions are predicted together.

        Returns:
            The band; with intervals of quantities in `functionals`, where `at` is None.

        Raises:
            InfeasibleError: under the shift, no finite scale carries the promise for a function.
            ValueError: the model has changed since it was calibrated, or a does not fit it.
        """
        calibrations = self.at_levels(alpha, delta)
        self._check_tie(calibrations[0])
        given, naming = as_inputs(a, inputs, outputs, self._form)
        told = Told(group, likelihood_ratio)
        return band_for(self, calibrations, given, naming, at, told, batch_size)

    def calibration(
        self, alpha: float | None = None, delta: float | None = None, group: Any = None
    ) -> Calibration:
        """The calibration for (α, δ), the first one by default, and for a group if there are."""
        found = self.at_levels(alpha, delta)
        return of_groups(found, groups_of(group, None, ({},), bool(found[0].group)))

    def at_levels(self, alpha: float | None, delta: float | None) -> tuple[Calibration, ...]:
        """The calibrations for (α, δ), or for the first pair: one, or one for each group."""
        if not self.calibrations:
            self._need_fit("predict")
        first = chosen(self.calibrations, alpha, delta)
        return tuple(one for one in self.calibrations if one.rule == first.rule)

    # --- files ------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """A folder of safetensors and JSON; loads anywhere, without the training data."""
        self._need_fit("save")
        for calibration in self.calibrations:
            self._check_tie(calibration)
        saved = ModelParts(
            self.base.operator, self.base.others, self.uncertainty, tuple(self.base.symmetries),
            self.calibrations + self.intervals, self.seen, self.dimensions,
            len(self.base.features), self.base.deviation, self.surfaces, self.probe,
            self.history, self.quantities.saved(), self.memory,
        )  # fmt: skip
        files.save(as_path(folder), saved)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        base: Callable[..., Tensor] | None = None,
        uncertainty: Uncertainty | None = None,
        *,
        symmetries: Sequence[Symmetry] | None = None,
        features: Sequence[Feature] = (),
        functionals: Mapping[str, Any] | None = None,
    ) -> UQNO:
        """The model in a folder. What is not uqno's own is passed in: a module, features, …

        Without `functionals`, the callables of its quantities, it gives no intervals of them.

        Raises:
            DamagedError: a file is missing or is not what was saved.
            ValueError: something must be passed in, or is not what was calibrated.
        """
        saved = files.load(as_path(folder), base, uncertainty, symmetries)
        files.check_features(folder, saved, len(features))
        model = cls(
            saved.base, saved.uncertainty, symmetries=saved.symmetries, features=features,
            deviation=saved.deviation, trained=True,
        )  # fmt: skip
        model.base = replace(model.base, others=saved.others)
        model.fitted = True
        model.calibrations = tuple(c for c in saved.calibrations if not quantity_of(c))
        model.intervals = tuple(c for c in saved.calibrations if quantity_of(c))
        model.seen, model.dimensions = saved.seen, saved.dimensions
        model.surfaces, model.probe = saved.surfaces, saved.probe
        quantities = Quantities.restored(saved.quantities)
        model.quantities = quantities.passed_again(functionals or {}, saved.probe)
        model.history, model.memory = saved.history, saved.memory
        for calibration in model.calibrations:
            model._check_tie(calibration)
        return model

    def _check_tie(self, calibration: Calibration) -> None:
        """Refuse a calibration of another model; one of arrays carries no digest to compare."""
        if calibration.model:
            self._glance = tie.check(
                self._glance, self.base, self.uncertainty, calibration.model, self.probe
            )

    @property
    def _form(self) -> Form:
        """What the base takes, and the dimensions of the grids that it was fitted on."""
        return replace(self.base.operator.form, dimensions=self.dimensions)

    def _need_fit(self, what: str) -> None:
        if not self.fitted:
            raise ValueError(f"the model is not fitted: call model.fit(train) before {what}")
