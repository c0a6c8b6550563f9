import pytest
import torch
from training_stub import Stub, make_data, same_weights

from uqno.training import RelativeL2, crossfit
from uqno.training.crossfit import assign_folds

OPTIONS = {"loss": RelativeL2(), "epochs": 2, "batch_size": 4, "learning_rate": 0.01}


class Remembering(Stub):
    """Knows the first number of every sample it was trained, validated or prepared on."""

    def __init__(self):
        super().__init__(dropout=0.1)
        self.seen: set[float] = set()

    def forward(self, batch):
        self.seen.update(batch["a"][:, 0, 0].tolist())
        return super().forward(batch)

    def fit_normalisers(self, data):
        self.seen.update(data[i]["a"][0, 0].item() for i in range(len(data)))
        super().fit_normalisers(data)


@pytest.mark.parametrize("folds", [2, 3, 17])
def test_every_sample_is_predicted_by_an_operator_that_has_not_seen_it(folds):
    data = make_data(17)
    result = crossfit(Remembering, data, folds=folds, **OPTIONS)
    first = [sample["a"][0, 0].item() for sample in data]
    assert result.operator.seen == set(first)
    for fold, operator in enumerate(result.fold_operators):
        assert operator.seen == {first[i] for i, k in enumerate(result.assignment) if k != fold}
    predictions = list(result.predictions(data, batch_size=5))
    assert len(predictions) == 17
    for i, prediction in enumerate(predictions):
        operator = result.fold_operators[result.assignment[i]]
        with torch.no_grad():
            expected = operator(operator.collate([data[i]]))[0]
        assert torch.allclose(prediction, expected, atol=1e-6)
        assert torch.allclose(prediction, result.prediction(data, i), atol=1e-6)
        assert not prediction.requires_grad


def test_predictions_are_streamed():
    data = make_data(12)
    result = crossfit(Remembering, data, folds=2, **OPTIONS)
    touched = []

    class Watched(list):
        def __getitem__(self, i):
            touched.append(i)
            return super().__getitem__(i)

    stream = result.predictions(Watched(data), batch_size=3)
    assert not touched
    next(stream)
    assert sorted(touched) == [0, 1, 2]


def test_padded_predictions_are_cut_to_the_sample():
    class Padding(Stub):
        def collate(self, samples):
            size = max(s["u"].shape[1] for s in samples)
            pad = lambda x: torch.nn.functional.pad(x, (0, size - x.shape[-1]))  # noqa: E731
            batch = {name: torch.stack([pad(s[name]) for s in samples]) for name in ("a", "u")}
            weights = [pad(torch.ones(s["u"].shape[1])) for s in samples]
            counts = torch.tensor([s["u"].shape[1] for s in samples])
            return batch | {"weights": torch.stack(weights), "point_count": counts}

    data = [{k: v[:, : 4 + i % 3] for k, v in s.items()} for i, s in enumerate(make_data(12))]
    result = crossfit(Padding, data, folds=2, **OPTIONS)
    for sample, prediction in zip(data, result.predictions(data), strict=True):
        assert prediction.shape == sample["u"].shape


def test_it_is_repeatable_and_resumes_fold_by_fold(tmp_path):
    data = make_data(12)
    whole = crossfit(Remembering, data, folds=3, **OPTIONS)
    made = []

    def stopping():
        made.append(1)
        if len(made) == 3:
            raise RuntimeError("stopped")
        return Remembering()

    with pytest.raises(RuntimeError, match="stopped"):
        crossfit(stopping, data, folds=3, folder=tmp_path, **OPTIONS)
    torch.manual_seed(99)
    resumed = crossfit(Remembering, data, folds=3, folder=tmp_path, resume=True, **OPTIONS)
    assert not resumed.fold_operators[1].seen  # read, not trained
    assert resumed.fold_operators[2].seen
    pairs = zip(whole.fold_operators, resumed.fold_operators, strict=True)
    assert all(same_weights(mine, theirs) for mine, theirs in pairs)
    assert same_weights(whole.operator, resumed.operator)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["final", "fold-0", "fold-1", "fold-2"]
    assert not same_weights(*whole.fold_operators[:2])


def test_folds_are_balanced_and_bad_ones_named():
    sizes = torch.bincount(torch.tensor(assign_folds(17, 5, 0)))
    assert sizes.tolist().count(3) == 3
    assert sizes.tolist().count(4) == 2
    for folds in (1, 18):
        with pytest.raises(ValueError, match=f"folds={folds} must be from 2 to .* 17"):
            assign_folds(17, folds, 0)


def test_bad_data_are_named_by_their_own_index():
    data = make_data(12)
    data[7]["u"][0, 0] = torch.nan
    with pytest.raises(ValueError, match="field 'u' of sample 7"):
        crossfit(Stub, data, folds=2, **OPTIONS)


def test_other_data_cannot_be_predicted_out_of_fold():
    result = crossfit(Stub, make_data(12), folds=2, **OPTIONS)
    with pytest.raises(ValueError, match="got 11 samples but the folds were made of 12"):
        next(result.predictions(make_data(11)))
