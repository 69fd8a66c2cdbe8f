"""Stopping a run in order on SIGINT, SIGTERM or SIGHUP."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from training import processes


class StoppedBySignal(BaseException):
    """A signal stopped the run.

    It is no Exception, like KeyboardInterrupt, so that no handler for errors catches it.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class StopSignals:
    """Raises StoppedBySignal on the first SIGINT, SIGTERM or SIGHUP within a `with` block.

    A closed terminal sends SIGHUP; under `nohup` it stays ignored. Inside `postponed` the signal
    waits for the next `check`. A second signal ends the process at once.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.is_postponed = False

    def __enter__(self) -> "StopSignals":
        signals = [signal.SIGINT, signal.SIGTERM]
        hangup = getattr(signal, "SIGHUP", None)  # Windows has none
        if hangup and signal.getsignal(hangup) != signal.SIG_IGN:
            signals.append(hangup)
        self.before = {each: signal.signal(each, self._note) for each in signals}
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for signum, handler in self.before.items():
            signal.signal(signum, handler)
        if isinstance(error, Exception) and not self.is_postponed:
            self.check()  # a library may have replaced StoppedBySignal by its own error

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Hold a signal back until `check`, or until the end of this block."""
        self.check()  # an exception is lost if the signal arrived inside a __del__ method
        self.is_postponed = True
        yield
        self.is_postponed = False
        self.check()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside `postponed`, let a signal stop the run within this block."""
        self.check()
        self.is_postponed = False
        try:
            yield
        except Exception:
            self.check()  # a library may have replaced StoppedBySignal by its own error
            raise
        finally:
            self.is_postponed = True

    def check(self) -> None:
        """Raise StoppedBySignal if a signal has arrived."""
        if self.signum is not None:
            raise StoppedBySignal(self.signum)

    def across_ranks(self) -> int:
        """Return the signal that has arrived in any process, or 0.

        All processes call this once per update, because a signal may reach one of them first.
        """
        return processes.max_over_ranks(self.signum or 0)

    def _note(self, signum: int, frame: object) -> None:
        for each in self.before:
            signal.signal(each, signal.SIG_DFL)
        self.signum = signum
        if not self.is_postponed:
            raise StoppedBySignal(signum)
        if processes.is_main():
            # Not by print, which the signal may have interrupted.
            with suppress(OSError):  # standard error may be closed
                os.write(2, b"\nstopping after this update; a second signal stops at once\n")
