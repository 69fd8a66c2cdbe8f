"""Ending a run on SIGINT, SIGTERM or SIGHUP."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from training import processes


class Interrupted(BaseException):
    """A signal ends the run. Like KeyboardInterrupt no Exception, so that nothing swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Interrupt:
    """Raises Interrupted on the first SIGINT, SIGTERM or SIGHUP within a `with` block.

    SIGHUP, by which a closed terminal ends its programs, stays ignored under `nohup`. Inside
    `postponed` the signal waits for the next `check`. A second one ends the process at once.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.is_postponed = False

    def __enter__(self) -> "Interrupt":
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
            self.check()  # a library may have made another error of it

    @contextmanager
    def postponed(self) -> Iterator[None]:
        self.check()  # Python drops what is raised while it deletes an object
        self.is_postponed = True
        yield
        self.is_postponed = False
        self.check()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside `postponed`, let a signal end the run here."""
        self.check()
        self.is_postponed = False
        try:
            yield
        except Exception:
            self.check()  # a library may have made another error of it
            raise
        finally:
            self.is_postponed = True

    def check(self) -> None:
        if self.signum is not None:
            raise Interrupted(self.signum)

    def _note(self, signum: int, frame: object) -> None:
        for each in self.before:
            signal.signal(each, signal.SIG_DFL)
        self.signum = signum
        if not self.is_postponed:
            raise Interrupted(signum)
        if processes.is_main():
            # Not by print, which the signal may have come into the middle of.
            with suppress(OSError):  # nobody reads standard error any more
                os.write(2, b"\nstopping after this step; once more stops at once\n")
