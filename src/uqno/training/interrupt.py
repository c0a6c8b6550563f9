"""Ctrl-C waits for the end of the step: between two steps the weights are consistent."""

import signal
import threading
from types import FrameType, TracebackType


class Interrupt:
    """While entered, the first Ctrl-C sets `requested`; the second one interrupts at once."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> "Interrupt":
        # Python delivers signals to the main thread only, and refuses handlers elsewhere.
        self._mine = threading.current_thread() is threading.main_thread()
        if self._mine:
            self._before = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, self._before)
        if self.requested and kind is None:  # too late to stop this, but not what comes next
            raise KeyboardInterrupt(
                "interrupted after the last step; with a folder, resume=True "
                "returns the finished run"
            )

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
