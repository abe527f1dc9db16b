"""
Checks rules that need only the text: banned functions, comments, sizes, headers, and text that is
right on one machine only.

    text.py SOURCE_ROOT
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from house import MAY_LOG, PROGRAMS, Tap, folder_of, read, tree

FILE_LINES = 600
FUNCTION_LINES = 60

# The comment after each one gives the reason.
BANNED_EVERYWHERE = {
    r"ato(i|l|ll|f)|strto(l|ul|ll|ull|imax|umax)": "use str_to_u64 or str_to_i64: they check",
    r"v?sscanf|v?fscanf|v?scanf": "parse with str_cut and str_to_u64",
    r"v?sprintf|st[rp]n?cpy|strn?cat|gets|strtok(_r)?": "no bound: use buf, or snprintf",
    r"alloca": "the stack has no ceiling that can be checked",
    r"setlocale": "numbers would be written with a comma",
    r"rand|rand_r|srand|random|srandom|drand48": "not seeded by us: a test could not repeat it",
}
# The programs and the loop read the clock and the environment; other code gets them as arguments.
BANNED_BELOW = {
    r"time|gettimeofday|localtime|localtime_r|ctime": "time is an argument, or loop_now_ms",
    r"getenv|secure_getenv|setenv|putenv": "the environment is read in the programs",
    r"log_(info|warn|error)": "only kube, report and the programs log more than log_debug",
    r"exit|_exit|abort": "only kube, report and the programs may end the process",
}
BANNED_IN_SRC = {
    r"malloc|calloc|realloc|reallocarray|free|strn?dup|v?asprintf": "allocate through mem.h",
}

# Split, so that this file does not match itself.
DEBT = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK")) + r")\b")
MACHINE = re.compile(r"(?<![\w.$}/-])/(" + "|".join(("wo" "rk", "fa" "rm")) + r")(/|\b(?=[\s\"'`]))")
REGISTRY = re.compile(
    r"https?://(deb|ftp|archive|proxy|registry|snapshot|security|mirrors?)\.|"
    + r"\b("
    + "|".join(
        (
            "proxy" r"\.golang\.org",
            "sum" r"\.golang\.org",
            "pypi" r"\.(org|python\.org)",
            "pythonhosted" r"\.org",
            "registry" r"\.npmjs\.org",
            "crates" r"\.io",
            "deb" r"\.debian\.org",
        )
    )
    + r")\b"
)

# Not a function type that returns one.
TYPEDEF = re.compile(r"\btypedef\s+(struct|union|enum)\b(?:[^;({]*;|\s*\w*\s*\{)")

# At column 0. A macro's name in capitals makes functions of its own.
STATIC_FUNCTION = re.compile(
    r"^static\b(?: __attribute__\(\([^)]*\)+)?[\w \t*]*?[ *]((?!__)[a-z_]\w*)\s*\(", re.MULTILINE
)

TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/) | (?P<line>//[^\n]*) | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.VERBOSE | re.DOTALL,
)


def blank(text: str) -> str:
    """The same number of lines, all empty."""
    return "\n" * text.count("\n")


def code_only(text: str) -> str:
    """C code without comments and without the contents of literals; line numbers stay."""

    def replace(match: re.Match[str]) -> str:
        if match["block"] is not None or match["line"] is not None:
            return " " + blank(match[0])
        return match[0][0] * 2

    return TOKEN.sub(replace, text)


def is_c(path: Path) -> bool:
    """Whether the rules for C apply."""
    return path.suffix in (".c", ".h") and path.parts[0] in ("src", "include", "tests")


def lines_with(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The line number and the match of each hit."""
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[0]


def banned(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Calls of functions that the project does not use."""
    rules = dict(BANNED_EVERYWHERE)
    folder = folder_of(path)
    if folder is not None and path != Path("src/base/mem.c"):
        rules |= BANNED_IN_SRC
    if folder not in (None, *MAY_LOG) and path != Path("include/base/log.h"):
        rules |= BANNED_BELOW
    code = code_only(text)
    for names, why in rules.items():
        pattern = re.compile(rf"(?<![\w.>])({names})(?=\s*\()")
        for line, name in lines_with(code, pattern):
            yield f"{path}:{line}: {name}: {why}"


def comments(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Comments with two slashes, which are only for temporary notes."""
    for match in TOKEN.finditer(text):
        if match["line"] is not None:
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"


def sizes(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Files and functions that are too long. Functions open and close at column 0."""
    n = text.count("\n")
    if n > FILE_LINES:
        yield f"{path}: {n} lines, {FILE_LINES} allowed"
    start = 0
    for i, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = i
        elif line == "}" and start > 0:
            if i - start - 1 > FUNCTION_LINES:
                yield f"{path}:{start}: a function of {i - start - 1} lines, {FUNCTION_LINES} allowed"
            start = 0


def headers(path: Path, text: str, paths: set[Path]) -> Iterator[str]:
    """The rules for includes."""
    code = re.sub(r"/\*.*?\*/", lambda m: blank(m[0]), text, flags=re.DOTALL)
    directives = re.findall(r"^#[ \t]*(.*)$", code, re.MULTILINE)
    if path.suffix == ".h" and (not directives or directives[0].strip() != "pragma once"):
        yield f"{path}: does not begin with #pragma once"
    includes = re.findall(r'^#[ \t]*include[ \t]*([<"][^">]*)', code, re.MULTILINE)
    folder = folder_of(path)
    if path.suffix == ".c" and folder is not None:
        own = path.with_suffix(".h") if folder in PROGRAMS else Path("include", folder, path.stem + ".h")
        if own in paths and (not includes or includes[0] != '"' + "/".join(own.parts[1:])):
            yield f"{path}: does not include its own header first"
    for name in includes:
        if name[0] == '"' and ".." in name and name.endswith(".h"):
            yield f"{path}: {name[1:]}: our headers are included as FOLDER/NAME, or by name from beside"


def types(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """A struct must be visible as a struct."""
    for line, name in lines_with(code_only(text), TYPEDEF):
        yield f"{path}:{line}: {' '.join(name.split())}"


def names(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Static functions without their file's name in front: a debugger and ctags would find several."""
    if folder_of(path) is None or path.suffix != ".c":
        return
    for match in STATIC_FUNCTION.finditer(code_only(text)):
        if not match[1].startswith(path.stem + "_"):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match[1]} does not begin with {path.stem}_"


def debts(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Notes of work to do later."""
    for line, word in lines_with(text, DEBT):
        yield f"{path}:{line}: {word}"


def machines(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Paths of the author's machine."""
    for line, word in lines_with(text, MACHINE):
        yield f"{path}:{line}: {word}"


def registries(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """Hosts of package registries: the machine configures the clients, not this project."""
    for line, word in lines_with(text, REGISTRY):
        yield f"{path}:{line}: {word}"


def units(path: Path, text: str, _: set[Path]) -> Iterator[str]:
    """
    In the unit of cardpack-node, what makes the driver's device nodes: without + its sandbox refuses a setuid
    program, and without - a node that lacks the program has no cardpack-node.
    """
    if path.name != "cardpack-node.service.in":
        return
    if not re.search(r"^ExecStartPre=.*nvidia-modprobe.*^ExecStart=", text, re.MULTILINE | re.DOTALL):
        yield f"{path}: nvidia-modprobe is not before ExecStart"
    for line, command in lines_with(text, re.compile(r"^ExecStartPre=[-+:@!|]*", re.MULTILINE)):
        if not {"-", "+"} <= set(command):
            yield f"{path}:{line}: {command} has not both - and +"


Rule = Callable[[Path, str, set[Path]], Iterator[str]]
RULES: tuple[tuple[str, bool, Rule], ...] = (  # name, for C only, rule
    ("no banned function", True, banned),
    ("no // comment", True, comments),
    ("files and functions are short", True, sizes),
    ("headers are included as agreed", True, headers),
    ("no struct is typedef'd", True, types),
    ("static functions carry their file's name", True, names),
    ("no debt is left in the tree", False, debts),
    ("no path of one machine", False, machines),
    ("no host of a package registry", False, registries),
    ("the unit of cardpack-node makes the device nodes", False, units),
)


def check(root: Path, tap: Tap) -> None:
    """Applies every rule to every file that it covers."""
    texts = {path: read(root / path) for path in tree(root)}
    paths = set(texts)
    for name, only_c, rule in RULES:
        found: list[str] = []
        for path, text in texts.items():
            if text is not None and (is_c(path) or not only_c):
                found += rule(path, text, paths)
        tap.check(name, found)


def main() -> int:
    """See the top of this file."""
    tap = Tap()
    check(Path(sys.argv[1]).resolve(), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
