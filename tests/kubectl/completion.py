#!/usr/bin/env python3
"""TAB in real shells: the scripts that kubectl-cardpack prints, in bash, zsh and fish.

    completion.py CARDPACK KUBECTL_CARDPACK

bash and zsh run in a terminal and get typed keys; fish prints its offers. Names come from a daemon
that serves a small cluster. The last line is "N passed, N failed".
"""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import listening  # noqa: E402

PATIENCE = 60.0
SLOW = 5.0  # seconds: a shell needs two, and a busy machine more
READY = "ready-for-more"

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(kubectl-cardpack completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source <(kubectl-cardpack completion zsh)",
    ),
}


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, wanted: str) -> bool:
        """Waits until the text is on the screen, and drops the output so far."""
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
        """Skips all output so far."""
        self.type(f"echo {READY[:5]}''{READY[5:]}\n")
        assert self.wait_for(READY), f"the shell is silent: {self.seen!r}"
        self.seen = self.seen.split(READY, 1)[1]

    def close(self) -> None:
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


NODE = """
- kind: Node
  metadata: {name: %s}
  status: {capacity: {aliyun.com/gpu-mem: "32", aliyun.com/gpu-count: "2"}}
"""
POD = """
- kind: Pod
  metadata: {name: %s, namespace: %s, annotations: {ALIYUN_COM_GPU_MEM_IDX: "0"}}
  spec: {nodeName: %s, containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 1}}}]}
"""
# The plugin never offers names with characters that are special to a shell. The API server has no such
# names, but another server in its place may.
CLUSTER = (
    "kind: List\nitems:"
    + NODE % "gold-1" + NODE % "silver-1" + NODE % '"si$(touch pwned)lver"'
    + "- {kind: Node, metadata: {name: bare-1}}\n"
    + POD % ("train-a", "team", "gold-1") + POD % ("serve-b", "team", "gold-1")
    + POD % ('"tr;rm"', "team", "gold-1") + POD % ("other", "lab", "silver-1")
)  # fmt: skip


def cases(folder: Path, port: int) -> list[tuple[str, str]]:
    """The typed text, and the word that it becomes."""
    (folder / "a-pod-of-mine.yaml").touch()
    where = f"--daemon-url http://127.0.0.1:{port}"
    return [
        ("compl", "completion"),
        ("top --no-h", "--no-headers"),
        ("top -o js", "json"),
        ("top --output=js", "json"),
        ("cards --kube", "--kubeconfig"),
        ("completion fi", "fish"),
        (f"fit -f {folder}/a-pod", f"{folder}/a-pod-of-mine.yaml"),
        (f"cards {where} go", "gold-1"),
        (f"cards {where} si", "silver-1"),
        (f"explain {where} -n team tr", "train-a"),
        (f"explain {where} -n la", "lab"),
        (f"explain {where} --namespace=la", "lab"),
    ]


def type_at(shell: str, env: dict[str, str], typed: list[tuple[str, str]]) -> list[bool]:
    """Completes each word, and runs the line with it as an argument of printf."""
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
        flag = text.split()[-1].partition("=")[0] if "=" in text.split()[-1] else ""
        results.append(words in ([word], [f"{flag}={word}"]))
        if not results[-1]:
            print(f"# fish: {text!r}: {words} {done.stderr}")
    return results


# The typed line, and all words that are offered at its end.
OFFERS = (
    ("cards @ ", ["gold-1", "silver-1"]),
    ("cards @ x", []),
    ("cards @ gold-1 ", []),
    ("explain @ -n team ", ["serve-b", "train-a"]),
    ("explain @ -n lab ", ["other"]),
    ("explain @ ", []),
    ("explain @ -f x ", []),
    ("fit @ -n ", ["lab", "team"]),
    ("fit @ --namespace=t", ["--namespace=team"]),
    # No server, or none that may be asked: no word, and nothing on standard error.
    ("cards --daemon-url http://127.0.0.1:1 ", []),
    ("cards --daemon-url http://example.invalid ", []),
    ("cards --kubeconfig /nowhere ", []),
    ("explain --server http://127.0.0.1:1 ", []),
    ("cards --service nonsense --output xml --server http://127.0.0.1:1 ", []),
)


def offers(program: Path, argv: list[str], expected: list[str], env: dict[str, str]) -> str:
    """What is wrong with the offers; empty if they are right, without errors, and in time."""
    began = time.monotonic()
    done = subprocess.run([program, *argv], capture_output=True, text=True, env=env, timeout=PATIENCE)
    took = time.monotonic() - began
    lines = done.stdout.splitlines()
    words = [line.split("\t")[0] for line in lines[:-1]]
    good = words == expected and lines[-1:] == [":4"] and not done.stderr and done.returncode == 0
    return "" if good and took < SLOW else f"{done.stdout!r} {done.stderr!r} in {took:.1f} s"


def silent_server() -> tuple[socket.socket, int]:
    """Accepts connections and sends nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    return server, server.getsockname()[1]


def ask_directly(program: Path, port: int, env: dict[str, str]) -> list[tuple[str, str]]:
    """Tests the protocol between shells and program, which is also kubectl's: returns line and error."""
    found = []
    link = Path(env["HOME"]) / "kubectl_complete-cardpack"
    link.symlink_to(program)
    for line, expected in OFFERS:
        words = line.replace("@", f"--daemon-url http://127.0.0.1:{port}").split(" ")
        found.append((line, offers(program, ["__complete", *words], expected, env)))
        found.append((f"kubectl's own: {line}", offers(link, words, expected, env)))
    server, deaf = silent_server()
    line = f"cards --daemon-url http://127.0.0.1:{deaf} "
    with server:
        found.append(("a daemon that is silent", offers(link, line.split(" "), [], env)))
    kubectl = Path(env["HOME"]) / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text("#!/bin/sh\necho noise >&2\nexec sleep 60\n")
    kubectl.chmod(0o700)
    slow = env | {"PATH": f"{kubectl.parent}:{env['PATH']}"}
    for line in ("cards ", "explain ", "explain --context c -n "):
        found.append((f"a kubectl that is silent: {line}", offers(link, line.split(" "), [], slow)))
    return found


def main() -> int:
    cardpack, program = (Path(arg).resolve() for arg in sys.argv[1:3])
    passed = failed = 0

    def tell(what: str, good: bool) -> None:
        nonlocal passed, failed
        print(f"{'ok' if good else 'FAILED'}  {what}")
        passed += good
        failed += not good

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb", "HOME": name,
               "PS1": "$ ", "LC_ALL": "C.UTF-8",
               "ASAN_OPTIONS": "detect_leaks=0"}  # its tracer can't attach within a shell's job
        (folder / "cluster.yaml").write_text(CLUSTER)
        daemon, port = listening([str(cardpack), "--cluster", str(folder / "cluster.yaml")])
        typed = cases(folder, port)
        for shell in (*SHELLS, "fish"):
            results = ask_fish(env, typed) if shell == "fish" else type_at(shell, env, typed)
            for (text, _), good in zip(typed, results, strict=True):
                tell(f"{shell}: {text}", good)
        for what, wrong in ask_directly(program, port, env):
            tell(f"{what}  {wrong}", not wrong)
        out = subprocess.run([folder / "kubectl_complete-cardpack", "top", "-o", "y"],
                             capture_output=True, text=True).stdout  # fmt: skip
        tell("kubectl's own: a flag's value", out.startswith("yaml\t") and out.endswith(":4\n"))
        daemon.terminate()
        daemon.stderr.read()
        tell("the daemon ends well", daemon.wait() == 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
