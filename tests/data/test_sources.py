"""Data as people have it, as samples."""

import numpy as np
import pytest
import torch
import xarray
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from uqno.data import as_samples
from uqno.data.conversion import Form
from uqno.data.sources import as_stream, each

A = np.random.default_rng(0).normal(size=(6, 1, 5, 7))
U = A**2


class Pairs(Dataset):
    """A map-style data set of whatever `make` makes of a pair."""

    def __init__(self, make, size=6):
        self.make, self.size, self.reads = make, size, 0

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if not 0 <= i < self.size:
            raise AssertionError("read beyond its end")  # not an IndexError, as many are
        self.reads += 1
        return self.make(A[i], U[i])


class Endless(IterableDataset):
    def __iter__(self):
        return iter([(torch.tensor(a), torch.tensor(u)) for a, u in zip(A, U, strict=True)])


def tensors(a, u):
    return torch.tensor(a), torch.tensor(u)


DATASET = xarray.Dataset(
    {"k": (("sample", "y", "x"), A[:, 0]), "p": (("sample", "x", "y"), U[:, 0].swapaxes(1, 2))}
)
FORMS = {
    "arrays": (A, U),
    "list of arrays": [A, U],
    "dict of arrays": {"a": A, "u": U},
    "tensors": (torch.tensor(A), torch.tensor(U)),
    "array and tensor": (A, torch.tensor(U)),
    "no channel axis": (A[:, 0], U[:, 0]),
    "no channel axis in u": (A, U[:, 0]),
    "TensorDataset": TensorDataset(torch.tensor(A), torch.tensor(U)),
    "tuples": Pairs(tensors),
    "dicts": Pairs(lambda a, u: {"a": torch.tensor(a), "u": torch.tensor(u)}),
    "dicts of NumPy": Pairs(lambda a, u: {"a": a, "u": u}),
    "list of pairs": list(zip(A, U, strict=True)),
    "list of dicts": [{"a": a, "u": u} for a, u in zip(A, U, strict=True)],
    "loader of tuples": DataLoader(Pairs(tensors), batch_size=4),
    "loader of dicts": DataLoader(Pairs(lambda a, u: {"a": a, "u": u}), batch_size=4),
    "loader without batches": DataLoader(Pairs(tensors), batch_size=None),
    "loader of a stream": DataLoader(Endless(), batch_size=4),
    "loader with its own collate": DataLoader(Pairs(tensors), batch_size=4, collate_fn=list),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("read", [as_samples, as_stream])
def test_every_form_gives_the_same_samples(name, read):
    form = Form(channels=1, dimensions=2, dtype=torch.float32)
    samples = list(each(read(FORMS[name], form=form)))
    assert len(samples) == 6
    for i, sample in enumerate(samples):
        assert {n: x.dtype for n, x in sample.items()} == {"a": torch.float32, "u": torch.float32}
        np.testing.assert_array_equal(sample["a"], A[i].astype(np.float32))
        np.testing.assert_array_equal(sample["u"], U[i].astype(np.float32))


def test_an_xarray_dataset_by_names_and_in_the_order_of_its_input():
    samples = as_samples(DATASET, inputs="k", outputs="p")
    assert len(samples) == 6
    np.testing.assert_array_equal(samples[2]["a"], A[2])
    np.testing.assert_array_equal(samples[2]["u"], U[2])  # (x, y) in the file
    both = as_samples(DATASET, inputs=["k", "p"], outputs="p")
    np.testing.assert_array_equal(both[1]["a"], np.concatenate([A[1], U[1]]))


def test_names_of_fields_of_dicts():
    samples = as_samples([{"x": A[0], "y": U[0]}], inputs="x", outputs="y")
    assert sorted(samples[0]) == ["a", "u"]
    with pytest.raises(ValueError, match=r"has the fields x, y: expected the input a .*inputs="):
        as_samples([{"x": A[0], "y": U[0]}])[0]
    with pytest.raises(ValueError, match=r"no field 'z': it has x, y"):
        as_samples([{"x": A[0], "y": U[0]}], inputs="z", outputs="y")[0]


def test_channels_last_are_stated_or_refused_with_the_remedy():
    last = np.moveaxis(np.concatenate([A, 2 * A], axis=1), 1, -1)
    form = Form(channels=2, dimensions=2)
    sample = as_samples((last, np.moveaxis(U, 1, -1)), channels="last", form=form)[3]
    np.testing.assert_array_equal(sample["a"], np.concatenate([A[3], 2 * A[3]]))
    np.testing.assert_array_equal(sample["u"], U[3])
    with pytest.raises(ValueError, match=r"\(5, 7, 2\), that is 5 channels.*channels=\"last\""):
        as_samples((last, np.moveaxis(U, 1, -1)), form=form)[3]
    with pytest.raises(ValueError, match=r"takes 3: give 3 channels, or .*in_channels=1"):
        as_samples((A, U), form=Form(channels=3, dimensions=2))[0]
    with pytest.raises(ValueError, match=r"u of sample 0 .*channels=\"last\""):
        as_samples((A, np.moveaxis(U, 1, -1)), form=Form(dimensions=2))[0]
    with pytest.raises(ValueError, match=r"channels = 'middle', expected \"first\" or \"last\""):
        as_samples((A, U), channels="middle")


def test_a_stated_order_is_not_lost_on_the_way_to_a_model():
    last = as_samples((np.moveaxis(A, 1, -1), np.moveaxis(U, 1, -1)), channels="last")
    sample = as_samples(last, form=Form(1, 2, torch.float32))[0]
    np.testing.assert_array_equal(sample["a"], A[0].astype(np.float32))


def test_swapped_axes_are_said():
    with pytest.raises(ValueError, match=r"u of sample 0 has shape \(1, 7, 5\).*swapped"):
        as_samples((A, U.swapaxes(2, 3)))[0]


def test_a_grid_of_other_dimensions_is_refused():
    with pytest.raises(ValueError, match=r"\(1, 5, 7\), expected .* with 1 grid dimensions"):
        as_samples((A, U), form=Form(dimensions=1))[0]
    np.testing.assert_array_equal(as_samples((A[:, 0, 0], U[:, 0, 0]))[1]["a"], A[1, :, 0])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ((A, U[:5]), r"equally many functions, got a of shape \(6, .*\(5, "),
        ({"x": A, "y": U}, "a dict of arrays needs 'a' and 'u', it has x, y: name them"),
        (A, "data of type ndarray cannot be read as functions: give a pair of arrays"),
        (3, "data of type int"),
        ([(A[0], U[0], U[0])], "sample 0 has 3 parts: expected a dict, or a pair"),
        ([(A[0],)], "sample 0 has the fields a: expected the truth u"),
        ([("text", U[0])], "field 'a' of sample 0 has dtype <U4, expected real numbers"),
        ([(A[0] + 1j, U[0])], "field 'a' of sample 0 is complex: .* two channels"),
        ([(np.array([None]), U[0])], "dtype object, expected real numbers"),
        ([(np.ma.masked_less(A[0], 0), U[0])], "has masked values"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_remedy(data, said):
    with pytest.raises(ValueError, match=said):
        as_samples(data)[0]


def test_whole_numbers_read_only_and_reversed_arrays():
    a = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    a.flags.writeable = False
    sample = as_samples((a, a.astype(">f8")[:, ::-1]), form=Form(1, 2))[1]
    assert sample["a"].dtype == torch.float32
    np.testing.assert_array_equal(sample["a"][0], a[1])
    np.testing.assert_array_equal(sample["u"][0], a[1, ::-1])


def test_nothing_is_copied_and_each_sample_is_read_when_it_is_asked_for():
    a = torch.rand(4, 1, 8)
    samples = as_samples((a, a))
    assert samples[2]["a"].data_ptr() == a[2].data_ptr()
    b = np.random.rand(4, 1, 8)  # noqa: NPY002
    assert samples[2]["a"].data_ptr() == a[2].data_ptr()
    assert as_samples((b, b))[1]["a"].numpy().base is not None
    assert np.shares_memory(as_samples((b, b))[1]["a"].numpy(), b)
    data = Pairs(tensors)
    views = as_samples(data)
    assert data.reads == 0
    views[3]
    assert data.reads == 1


def test_a_loader_is_streamed_once_batch_by_batch():
    data = Pairs(tensors)
    stream = iter(as_stream(DataLoader(data, batch_size=2)))
    next(stream)
    assert data.reads == 2
    assert len(list(stream)) == 5
    assert data.reads == 6


def test_a_batch_of_unequal_fields_is_refused():
    batches = DataLoader([0], batch_size=1, collate_fn=lambda _: {"a": A[:2], "u": U[:3]})
    with pytest.raises(ValueError, match=r"fields of \[2, 3\] functions"):
        list(as_stream(batches))


def test_fields_of_a_geometry_stay_what_they_are():
    points = torch.rand(5, 3, dtype=torch.float64)
    sample = {"points": points, "u": np.ones((1, 5)), "triangles": np.array([[0, 1, 2]])}
    form = Form(dtype=torch.float32)
    first = as_samples([sample], form=form)[0]
    assert first["points"] is points  # what follows from the triangles is computed exactly
    assert first["triangles"].dtype == torch.int64
    assert first["u"].dtype == torch.float32
    del sample["triangles"]
    assert as_samples([sample], form=form)[0]["points"].dtype == torch.float32
