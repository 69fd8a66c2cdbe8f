"""The standard streams of the scripts: their encoding, their end, and what a log shows."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

PIPE_CLOSED = 128 + 13  # exit code of a program that SIGPIPE ends


def set_up_streams() -> None:
    """Make the standard streams UTF-8, whatever the locale, and replace those that are closed.

    Half a character, which no encoding has, is written as a question mark.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # none of a closed stream is left for a file that is opened later
    os.close(descriptor)
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None and name != "stdin":  # closed by the caller, or there is no console
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    if not shows_bars():
        for library in ("HF_DATASETS", "HF_HUB"):
            os.environ.setdefault(f"{library}_DISABLE_PROGRESS_BARS", "1")


class OutputThatMayEnd(io.FileIO):
    """A file descriptor that takes all output, also after its reader, terminal or disk is gone."""

    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except OSError as error:
            discard_output(self.fileno())
            if self.fileno() == 1:
                with suppress(OSError):
                    os.write(2, f"standard output is lost ({error}), the work goes on\n".encode())
            return len(data)


def outlive_readers() -> None:
    """Keep a standard output or error that fails from ending the process.

    `tee` dies of the same Ctrl-C that asks a training to save; a terminal is closed; a log fills
    the disk. From the first failure on, that stream is discarded.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = OutputThatMayEnd(stream.fileno(), "w", closefd=False)
            lasting = io.TextIOWrapper(
                io.BufferedWriter(raw),
                encoding=stream.encoding,
                errors=stream.errors,
                newline="\n",
                line_buffering=True,
            )
            setattr(sys, name, lasting)
            setattr(sys, f"__{name}__", lasting)


def discard_output(descriptor: int) -> None:
    """Send to nowhere what is still written to a file descriptor."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def shows_bars() -> bool:
    """Tell whether somebody looks at progress bars: else a log should have plain lines."""
    return sys.stderr.isatty()


def run_script(name: str, work: Callable[[], int]) -> int:
    """Do the work of a script; returns its exit code.

    A user's mistake (ValueError, OSError, a package that is missing) is one line on standard error
    and exit code 1, Ctrl-C is 130. Whoever reads the output may have seen enough, as `head`: that
    ends the script with 141 and without a word.
    """
    set_up_streams()
    try:
        code = work()
    except SystemExit:  # of a help, or a command line that is refused
        failure = _flush(name)
        if failure:
            return failure
        raise
    except KeyboardInterrupt:
        code = _tell("", 130)
    except BrokenPipeError:
        code = PIPE_CLOSED
    except (ValueError, OSError, ImportError) as error:
        code = _tell(f"{name}: {error}", 1)
    failure = _flush(name)
    return code or failure


def _tell(words: str, code: int) -> int:
    with suppress(OSError):  # nobody reads standard error any more
        print(words, file=sys.stderr)
    return code


def _flush(name: str) -> int:
    """Write what is left of the output; returns 0, or the exit code where that cannot be done."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        return 0
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        code = _tell(f"{name}: the output cannot be written: {error}", 1)
    for descriptor in (1, 2):  # Python flushes both once more at its end
        discard_output(descriptor)
    return code
