"""Files of one's own are loaded once, by their names, and what is wrong with them is said."""

import sys

import pytest

from uqno.experiments import extensions
from uqno.experiments.description import TASKS
from uqno.experiments.methods import METHODS
from uqno.experiments.task import Task

SOURCE = """
from uqno.experiments.methods import METHODS, Method
plain = METHODS["constant"]
Method(name="copied", label="Copied", reference="none", operators=plain.operators,
       uncertainty=plain.uncertainty, make=lambda workshop, e: plain.make(workshop, e))
"""


@pytest.fixture
def own_file(tmp_path):
    file = tmp_path / "copied_method.py"
    file.write_text(SOURCE)
    yield file
    METHODS.pop("copied", None)
    sys.modules.pop("copied_method", None)


def test_a_file_is_loaded_once_and_named_for_other_processes(own_file):
    before = extensions.modules()
    first = extensions.use(str(own_file))
    assert extensions.use(str(own_file)) is first
    assert METHODS["copied"].label == "Copied"
    known = extensions.modules()
    assert set(known) - set(before) == {("copied_method", str(own_file))}
    del METHODS["copied"], sys.modules["copied_method"]  # as in another process
    extensions.use_again(known)
    assert METHODS["copied"].label == "Copied"


def test_what_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"--use .*none\.py does not exist"):
        extensions.use(str(tmp_path / "none.py"))
    with pytest.raises(ValueError, match="--use no_such_module: No module named"):
        extensions.use("no_such_module")
    (tmp_path / "json.py").touch()
    with pytest.raises(ValueError, match="another module 'json'; rename the file"):
        extensions.use(str(tmp_path / "json.py"))


def test_a_name_is_given_once(own_file):
    extensions.use(str(own_file))
    other = own_file.with_name("copied_again.py")
    other.write_text(SOURCE)
    with pytest.raises(ValueError, match="there is a method 'copied' already, Copied: choose"):
        extensions.use(str(other))
    assert "copied_again" not in sys.modules
    first = type("First", (Task,), {"name": "own-name"})
    with pytest.raises(ValueError, match=r"there is a task 'own-name' already, .*First: choose"):
        type("Second", (Task,), {"name": "own-name"})
    assert TASKS.pop("own-name") is first
