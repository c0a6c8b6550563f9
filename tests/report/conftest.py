"""One browser for all pages of a file."""

import pytest

from tests.report.browser import launched


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found
