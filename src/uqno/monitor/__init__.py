"""Does the promise still stand? A test martingale on the errors of the functions that come in.

`martingale` is the wealth that cannot grow unless something changed, `monitor` what it is played
on, `state` the file that survives, `page` what a person looks at.
"""

from uqno.monitor.monitor import Monitor
from uqno.monitor.verdict import Verdict

__all__ = ["Monitor", "Verdict"]
