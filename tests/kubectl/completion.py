#!/usr/bin/env python3
"""TAB in real shells: the scripts that kubectl-cardpack prints, in bash, zsh and fish.

    completion.py KUBECTL_CARDPACK

bash and zsh sit at a terminal and are typed at; fish is asked for what it would offer. The last
line is "N passed, N failed".
"""

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 60.0
READY = "ready-for-more"

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(kubectl-cardpack completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source <(kubectl-cardpack completion zsh)",
    ),
}


class Terminal:
    """A shell that believes that somebody sits there."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, wanted: str) -> bool:
        """Until it stands on the screen; what was there by then is forgotten."""
        end = time.monotonic() + PATIENCE
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return False
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                return False
        return True

    def mark(self) -> None:
        """Past all that was printed so far."""
        self.type(f"echo {READY[:5]}''{READY[5:]}\n")
        assert self.wait_for(READY), f"the shell is silent: {self.seen!r}"
        self.seen = self.seen.split(READY, 1)[1]

    def close(self) -> None:
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def cases(folder: Path) -> list[tuple[str, str]]:
    """What is typed, and the word that it becomes."""
    (folder / "a-pod-of-mine.yaml").touch()
    return [
        ("compl", "completion"),
        ("top --no-h", "--no-headers"),
        ("top -o js", "json"),
        ("top --output=js", "json"),
        ("cards --kube", "--kubeconfig"),
        ("completion fi", "fish"),
        (f"fit -f {folder}/a-pod", f"{folder}/a-pod-of-mine.yaml"),
    ]


def type_at(shell: str, env: dict[str, str], typed: list[tuple[str, str]]) -> list[bool]:
    """Each word is completed, and the line is then run as an argument of printf."""
    argv, setup = SHELLS[shell]
    terminal = Terminal(argv, env)
    results = []
    try:
        terminal.type(setup + "\n")
        terminal.mark()
        for text, word in typed:
            terminal.type(f"kubectl-cardpack {text}\t")
            rest = word[len(re.split(r"[ =]", text)[-1]) :]
            results.append(terminal.wait_for(rest.rstrip()))
            terminal.type("\x15")
            terminal.mark()
    finally:
        terminal.close()
    return results


def ask_fish(env: dict[str, str], typed: list[tuple[str, str]]) -> list[bool]:
    results = []
    for text, word in typed:
        line = f"kubectl-cardpack completion fish | source; complete -C 'kubectl-cardpack {text}'"
        done = subprocess.run(["fish", "--no-config", "-c", line], capture_output=True, text=True,
                              env=env, timeout=PATIENCE)
        words = [row.split("\t")[0] for row in done.stdout.splitlines()]
        results.append(words in ([word], [f"--output={word}"]))
        if not results[-1]:
            print(f"# fish: {text!r}: {words} {done.stderr}")
    return results


def main() -> int:
    program = Path(sys.argv[1]).resolve()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb", "HOME": name,
               "PS1": "$ ", "LC_ALL": "C.UTF-8",
               "ASAN_OPTIONS": "detect_leaks=0"}  # its tracer can't attach within a shell's job
        typed = cases(folder)
        for shell in (*SHELLS, "fish"):
            results = ask_fish(env, typed) if shell == "fish" else type_at(shell, env, typed)
            for (text, _), good in zip(typed, results, strict=True):
                print(f"{'ok' if good else 'FAILED'}  {shell}: {text}")
            passed += sum(results)
            failed += len(results) - sum(results)
        link = folder / "kubectl_complete-cardpack"
        link.symlink_to(program)
        out = subprocess.run([link, "top", "-o", "y"], capture_output=True, text=True).stdout
        good = out.startswith("yaml\t") and out.endswith(":4\n")
        print(f"{'ok' if good else 'FAILED'}  kubectl's own: kubectl_complete-cardpack")
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
