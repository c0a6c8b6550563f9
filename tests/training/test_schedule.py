import pytest

from uqno.training.schedule import learning_rate


@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("steps", [1, 2, 7, 100])
def test_it_rises_then_falls_and_never_rests(steps, warmup):
    rates = [learning_rate(s, steps, 0.3, warmup) for s in range(steps)]
    top = rates.index(max(rates))
    assert all(0 < rate <= 0.3 for rate in rates)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert top <= warmup * steps + 1
