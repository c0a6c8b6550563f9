"""What an operator is made of beside its weights, as JSON: with both it can be built again."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from uqno.operators.adapter import Operator
from uqno.operators.fno import FNO
from uqno.operators.gino import GINO

MODULES: dict[str, type[nn.Module]] = {"FNO": FNO, "GINO": GINO}


def describe(operator: Operator) -> dict[str, Any]:
    """All but the weights; `module` is None for one that is not uqno's own."""
    module = operator.module
    own = type(module).__name__ if type(module) in MODULES.values() else None
    return {
        "module": own,
        "class": type(module).__name__,
        "config": getattr(module, "config", None) if own else None,
        "fields": operator.fields,
        "normalise": sorted(operator.inputs),
        "output": operator.output,
        "channels_last": operator.channels_last,
    }


def another(operator: Operator, instead: str) -> Operator:
    """A new operator of the same kind with weights of its own, untrained, on the same device.

    instead: what to do where it is not uqno's own and cannot be made.
    """
    described = describe(operator)
    if described["module"] is None:
        raise ValueError(
            f"{described['class']} is not one of uqno's own operators, so no others like it can be "
            f"made: {instead}"
        )
    return rebuild(described).to(operator.device)


def rebuild(described: Mapping[str, Any], module: Callable[..., Tensor] | None = None) -> Operator:
    """An untrained operator of the kind described; `module` is given where it is not uqno's own."""
    if module is None:
        if described["module"] not in MODULES:
            raise ValueError(
                f"{described['class']} is not one of uqno's own operators {sorted(MODULES)}: pass "
                "an instance of it"
            )
        module = MODULES[described["module"]](**described["config"])
    return Operator(
        module,
        described["fields"],
        normalise=described["normalise"],
        output=described["output"],
        channels_last=described["channels_last"],
    )
