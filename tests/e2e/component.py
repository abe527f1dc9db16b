"""A program that a test starts, kills, freezes and starts again.

No program may outlive its test. Every program dies with the test process, however that process ends.
The test waits until a stopped program has ended, because an old program that still holds a port would
answer in place of the new one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# The kernel sends the death signal when the *thread* that forked dies. So a single thread, which lives
# as long as this process, forks everything.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
_POLL_SECONDS = 0.02
# For the start of a program. An API server needs 5 s on an idle machine; with a load of 77 it was 90 s. A program
# that ends is noticed at once.
START_SECONDS = 300.0

T = TypeVar("T")


class StartError(RuntimeError):
    """A program ended or never became ready; the message ends with its log."""


class StillAlive(RuntimeError):
    """A program did not end in time after a signal."""


def wait_for(
    check: Callable[[], T], what: str, timeout: float = 30.0, poll: float = _POLL_SECONDS
) -> T:
    """Polls until check() returns a true value, and returns that value."""
    deadline = time.monotonic() + timeout
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(poll)


def die_with_parent() -> Callable[[], None]:
    """Returns a preexec_fn; call this function in the process that becomes the parent."""
    parent = os.getpid()

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare


@contextmanager
def here() -> Iterator[Callable[[], None]]:
    """Where a Component runs: entered in the thread that forks, for the time of the fork.

    It yields a preexec_fn. This is the default: beside the test. machine.py has another.
    """
    yield die_with_parent()


class Ports:
    """Free ports that stay reserved while their programs are down.

    They are below the kernel's range of ephemeral ports: a client that retries a connection to a free
    port of that range can get the same port as its source port, and then connects to itself. A UDP
    socket with the same number tells other test runs that the port is taken.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self) -> int:
        """Returns a port of 127.0.0.1 on which no process listens."""
        for _ in range(1000):
            port = 10240 + int.from_bytes(os.urandom(2), "big") % (30000 - 10240)
            holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                holder.bind(("127.0.0.1", port))
                with socket.create_server(("127.0.0.1", port)):
                    pass
            except OSError:
                holder.close()
                continue
            self._held.append(holder)
            return port
        raise RuntimeError("no free port")

    def close(self) -> None:
        """Gives all ports back."""
        while self._held:
            self._held.pop().close()


class Component:
    """One program: its command line, its log, and its runs."""

    def __init__(
        self,
        name: str,
        argv: Iterable[str | os.PathLike[str]],
        workdir: Path,
        ready: Callable[[], bool],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = START_SECONDS,
        before_start: Callable[[], None] = lambda: None,
        after_change: Callable[[], None] = lambda: None,
        where: Callable[[], AbstractContextManager[Callable[[], None]]] = here,
    ) -> None:
        self.name = name
        self.argv = [os.fspath(a) for a in argv]
        self.log = workdir / f"{name}.log"
        self._workdir = workdir
        self._ready = ready
        # A small environment: without proxy settings, KUBECONFIG and ETCD_* of the caller.
        self._env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(workdir),
            **(env or {}),
        }
        self._timeout = timeout
        self._before_start = before_start
        self._after_change = after_change
        self._where = where
        self._process: subprocess.Popen[bytes] | None = None
        self.status: int | None = None  # exit status of the last run; -N: killed by signal N
        self.start_seconds = 0.0

    @property
    def alive(self) -> bool:
        """Whether the program runs, frozen or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended_itself(self) -> bool:
        """Whether the program has ended although nothing here has ended it."""
        return self._process is not None and self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    def launch(self) -> None:
        """Starts the program without waiting for it to be ready."""
        if self.alive:
            raise RuntimeError(f"{self.name} runs already")
        self._before_start()

        def spawn() -> subprocess.Popen[bytes]:
            with self.log.open("ab") as log, self._where() as prepare:
                log.write(f"---- {time.strftime('%H:%M:%S')} {' '.join(self.argv)}\n".encode())
                log.flush()
                return subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._workdir,
                    env=self._env,
                    start_new_session=True,
                    preexec_fn=prepare,
                )

        self._process = _SPAWNER.submit(spawn).result()
        self._after_change()

    def wait_ready(self) -> None:
        """Waits until the program answers; raises StartError if it ends earlier."""

        def answers() -> bool:
            if self._process is None or self._process.poll() is not None:
                status = None if self._process is None else self._process.returncode
                raise StartError(f"{self.name} ended with status {status}\n{self.tail()}")
            return self._ready()

        try:
            wait_for(answers, self.name, self._timeout)
        except TimeoutError as error:
            raise StartError(f"{error}\n{self.tail()}") from None

    def start(self) -> None:
        """Starts the program and waits until it is ready."""
        began = time.monotonic()
        self.launch()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone. Nothing to do if it is not running."""
        self._end(signal.SIGKILL, 30.0)

    def terminate(self, timeout: float = 120.0) -> None:
        """SIGTERM, and waits until it is gone.

        The API server waits up to 60 s for its watches: end its clients before.
        """
        self._end(signal.SIGTERM, timeout)

    def restart(self, *, graceful: bool = False) -> None:
        """
        Ends the program, with SIGKILL unless graceful, and starts it again with the same arguments.
        """
        if graceful:
            self.terminate()
        else:
            self.kill()
        self.start()

    def pause(self) -> None:
        """
        SIGSTOP, and waits until no thread runs: from then on it keeps its connections and sends no
        answers. On a busy machine the signal may take effect only after an answer to the next request.
        """
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(self._stopped, f"{self.name} to stop")

    def _stopped(self) -> bool:
        """Whether every thread is stopped; the state follows the name, which ends with the last ")"."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        try:
            return all(thread.read_text().rpartition(") ")[2].startswith("T") for thread in threads)
        except OSError:  # a thread that has just ended
            return False

    def resume(self) -> None:
        """SIGCONT: the end of a pause."""
        os.kill(self.pid, signal.SIGCONT)

    def tail(self, lines: int = 30) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 65536))
            text = log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _end(self, sig: signal.Signals, timeout: float) -> None:
        process = self._process
        if process is None:
            return
        process.send_signal(sig)  # does nothing once the process is reaped
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise StillAlive(
                f"{self.name} lives {timeout:g} s after {sig.name}\n{self.tail()}"
            ) from None
        self.status = process.returncode
        self._process = None
        self._after_change()
