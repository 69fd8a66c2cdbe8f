"""The standard streams and exit codes of the scripts."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from tqdm import tqdm

PIPE_CLOSED = 128 + 13  # exit code of a program that SIGPIPE ends


def set_up_streams() -> None:
    """Make the standard streams UTF-8, whatever the locale, and replace closed ones.

    Lone surrogates, which UTF-8 cannot encode, are written as question marks.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # else a file that is opened later would get the number of a closed stream
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
    """A file descriptor that discards output after its first failure.

    Its reader may end, its terminal may close, or its disk may be full.
    """

    def write(self, data: bytes) -> int:
        """Write data, or discard it after a failure; return the number of bytes."""
        try:
            return super().write(data)
        except OSError as error:
            discard_output(self.fileno())
            if self.fileno() == 1:
                with suppress(OSError):
                    os.write(2, f"standard output failed ({error}), the work goes on\n".encode())
            return len(data)


def outlive_readers() -> None:
    """Keep the process alive if standard output or standard error fails.

    The Ctrl-C that asks a training to save also ends `tee`; a terminal may be closed; a log may
    fill the disk. From the first failure on, the output of that stream is discarded.
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
    """Redirect a file descriptor to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def shows_bars() -> bool:
    """Return whether standard error is a terminal; otherwise it gets lines instead of bars."""
    return sys.stderr.isatty()


def print_note(message: str) -> None:
    """Print to standard error, above any progress bar."""
    if sys.stderr is not None:
        tqdm.write(message, file=sys.stderr)


def run_script(name: str, work: Callable[[], int]) -> int:
    """Run the work of a script and return its exit code.

    A user's mistake (ValueError, OSError, a missing package) prints one line on standard error and
    gives exit code 1. Ctrl-C gives 130. If the reader of the output ends early, such as `head`, the
    script ends silently with 141.
    """
    set_up_streams()
    try:
        code = work()
    except SystemExit:  # after a help text, or for an invalid command line
        failure = _flush(name)
        if failure:
            return failure
        raise
    except KeyboardInterrupt:
        code = _fail("", 130)
    except BrokenPipeError:
        code = PIPE_CLOSED
    except (ValueError, OSError, ImportError) as error:
        code = _fail(f"{name}: {error}", 1)
    failure = _flush(name)
    return code or failure


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # standard error may be closed
        print(message, file=sys.stderr)
    return code


def _flush(name: str) -> int:
    """Write buffered output; return 0, or an exit code if that fails."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        return 0
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        code = _fail(f"{name}: the output cannot be written: {error}", 1)
    for descriptor in (1, 2):  # Python flushes both again when it ends
        discard_output(descriptor)
    return code
