"""
Proves that each house check can fail: it breaks every rule once, in a folder of its own, and looks for
the finding. A check that can't find anything would always pass.

    selftest.py CC NM READELF SOURCE_ROOT BUILD_DIR
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import advice
import defects
import hardening
import includes
import names
import symbols
import text
from house import FOLDERS, Tap

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import results  # noqa: E402

UNIT = "config/systemd/cardpack-node.service.in"
CLEAN = {
    "include/base/a.h": "/* A header. */\n#pragma once\n\n#include <stddef.h>\nint a_get(void);\n",
    "src/base/a.c": '/* Why. */\n#include "base/a.h"\n\nint a_get(void)\n{\n    return 1; /* "// */\n}\n',
    "src/base/mem.c": "#include <stdlib.h>\n\nvoid *a_new(void)\n{\n    return malloc(1);\n}\n",
    "src/daemon/b.c": 'void b_log(void)\n{\n    log_info("time() is " "strtol()");\n}\n',
    "include/base/c.h": "#pragma once\ntypedef enum a c_fn(struct b *b);\ntypedef struct b *c_of(int x);\n",
    UNIT: "ExecStartPre=-+nvidia-modprobe -u\nExecStart=x\n",
    "notes.txt": "see https://kubernetes.io/docs, mktemp -d x.X" "XXXXX, $scratch/wo" "rk/go, /network/\n",
}

BROKEN = (  # path, content, the expected finding
    ("src/core/x.c", "int x = atoi(y);\n", "src/core/x.c:1: atoi"),
    ("src/daemon/x.c", "long x = strtoul (y, 0, 10);\n", "src/daemon/x.c:1: strtoul"),
    ("tests/unit/x.c", "\nint x = sprintf(y, z);\n", "tests/unit/x.c:2: sprintf"),
    ("src/io/x.c", "void *x = malloc(1);\n", "src/io/x.c:1: malloc"),
    ("src/daemon/x.c", "char *x = strdup(y);\n", "src/daemon/x.c:1: strdup"),
    ("src/core/x.c", "int x = time(NULL);\n", "src/core/x.c:1: time"),
    ("src/io/x.c", 'char *x = getenv("X");\n', "src/io/x.c:1: getenv"),
    ("src/io/x.c", 'int x = log_warn("x");\n', "src/io/x.c:1: log_warn"),
    ("src/io/x.c", "int x; // y\n", "src/io/x.c:1: //"),
    ("tests/unit/x.c", "int x;\n" * 601, "tests/unit/x.c: 601 lines"),
    ("src/io/x.c", "int x(void)\n{\n" + "    x();\n" * 61 + "}\n", "src/io/x.c:2: a function of 61"),
    ("include/io/x.h", "/* */\n#include <a.h>\n#pragma once\n", "does not begin with #pragma once"),
    ("include/io/x.h", "int x;\n", "does not begin with #pragma once"),
    ("src/base/a.c", '#include <b.h>\n#include "a.h"\n', "does not include its own header first"),
    ("src/core/x.c", '#include "../io/x.h"\n', "../io/x.h: our headers"),
    ("include/io/x.h", "#pragma once\ntypedef struct x {\n} x;\n", "include/io/x.h:2: typedef struct"),
    ("include/io/x.h", "#pragma once\ntypedef struct x y;\n", "include/io/x.h:2: typedef struct"),
    ("src/io/x.c", "static int y_z(void)\n{\n}\n", "src/io/x.c:1: y_z does not begin with x_"),
    ("src/io/x.c", "static __attribute__((cold)) char *y(\n", "src/io/x.c:1: y does not begin with x_"),
    ("src/io/x.c", "/* TO" "DO: x */\n", "src/io/x.c:1: TO" "DO"),
    ("scripts/x", "# FIX" "ME\n", "scripts/x:1: FIX" "ME"),
    ("README.md", "a\nX" "XX\n", "README.md:2: X" "XX"),
    ("scripts/x", "cd /wo" "rk/main\n", "scripts/x:1: /wo" "rk/"),
    ("x.yaml", 'dir: "/fa' 'rm/x"\n', "x.yaml:1: /fa" "rm/"),
    ("scripts/x", "GOPROXY=https://proxy" ".example.org\n", "scripts/x:1: https://proxy" "."),
    ("x.py", "pip -i https://py" "pi.org/simple\n", "x.py:1: py" "pi.org"),
    (UNIT, "ExecStartPre=-nvidia-modprobe -u\nExecStart=x\n", f"{UNIT}:1: ExecStartPre=- has not both"),
    (UNIT, "ExecStartPre=+nvidia-modprobe -u\nExecStart=x\n", f"{UNIT}:1: ExecStartPre=+ has not both"),
    (UNIT, "ExecStart=x\nExecStartPre=-+nvidia-modprobe -u\n", f"{UNIT}: nvidia-modprobe is not before"),
)


def write(root: Path, files: dict[str, str]) -> None:
    """Writes the files into a folder."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def said(check, *args) -> str:
    """A check's output, with its findings."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        check(*args, Tap())
    return out.getvalue()


def prove_text(tap: Tap) -> None:
    """Proves the rules about text."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), CLEAN)
        output = said(text.check, Path(folder))
    tap.check("text: a clean tree is clean", [output] if "not ok" in output else [])
    for path, content, expected in BROKEN:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), CLEAN | {path: content})
            output = said(text.check, Path(folder))
        good = output.count("\nnot ok") + output.startswith("not ok") == 1 and expected in output
        tap.check(f"text: {expected}", [] if good else [output])


def prove_includes(tap: Tap, source: Path, build: Path) -> None:
    """
    Proves the rules about includes: visible headers, hidden headers, and headers that need another
    include.
    """
    commands = includes.folder_commands(source, build)
    good = commands["base"][0]
    everything = commands["daemon"][0]
    cases = (
        ("base", everything, "loop.h can be included, and must not be"),
        ("core", everything, "jread.h can be included, and must not be"),
        ("io", good, "loop.h does not compile alone"),
    )
    for lib, command, expected in cases:
        output = said(includes.check, source, {f: [] for f in FOLDERS} | {lib: [command]})
        tap.check(f"includes: {lib}: {expected}", [] if expected in output else [output])
    output = said(includes.check, source, {f: [] for f in FOLDERS} | {"base": [good, everything]})
    expected = "not ok 1 - all of base sees the same headers"
    tap.check(f"includes: {expected}", [] if expected in output else [output])
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {"include/base/lean.h": "#pragma once\nsize_t lean(void);\n"})
        words = (good.words[0], "-iquote", f"{folder}/include")
        command = includes.Command(folder, words)
        output = said(includes.check, Path(folder), {f: [] for f in FOLDERS} | {"base": [command]})
    expected = "lean.h does not compile alone"
    tap.check(f"includes: {expected}", [] if expected in output else [output])
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "src/core/low/a.c": '#include "core/high/b.h"\n',
            "include/core/high/b.h": '#include "core/low/a.h"\n',
            "include/core/low/a.h": '#include "core/top.h"\n',
            "include/core/top.h": '#include "core/high/b.h"\n',
        }
        write(Path(folder), files)
        output = said(includes.check, Path(folder), {f: [] for f in FOLDERS})
    expected = "a.c of low includes high, which includes low"
    tap.check(f"includes: {expected}", [] if expected in output else [output])


CALLS = (  # folder of src/, object, function that it calls, finding or none
    ("core", "core_x.c", "memcpy", None),
    ("core", "core_x.c", "exp2", None),
    ("core", "core_x.c", "exp10", "core_x.c.o calls exp10"),
    ("core", "core_x.c", "base_thing", None),
    ("core", "core_x.c", "log_write", "core_x.c.o calls log_write"),
    ("core", "core_x.c", "printf", "core_x.c.o calls printf"),
    ("core", "core_x.c", "time", "core_x.c.o calls time"),
    ("core", "core_x.c", "qsort", "core_x.c.o calls qsort"),
    ("base", "base_x.c", "curl_easy_init", "base_x.c.o calls curl_easy_init"),
    ("base", "base_x.c", "epoll_wait", "base_x.c.o calls epoll_wait"),
    ("json", "json_x.c", "snprintf", None),
    ("json", "json_x.c", "yaml_parser_parse", None),
    ("json", "json_x.c", "read", "json_x.c.o calls read"),
    ("json", "json_x.c", "MHD_run", "json_x.c.o calls MHD_run"),
    ("json", "json_x.c", "clock_gettime", "json_x.c.o calls clock_gettime"),
    ("json", "json_x.c", "file_read", "json_x.c.o calls file_read"),
    ("json", "json_x.c", "setenv", "json_x.c.o calls setenv"),
    ("json", "json_x.c", "yaml_parser_set_input_file", "json_x.c.o calls yaml_parser_set_input_file"),
    ("base", "base_mem.c", "realloc", None),
    ("base", "base_x.c", "realloc", "base_x.c.o calls realloc"),
    ("io", "io_x.c", "strdup", "io_x.c.o calls strdup"),
    ("daemon", "daemon_x.c", "free", "daemon_x.c.o calls free"),
    ("base", "base_mem.c", "pthread_mutex_lock", "base_mem.c.o calls pthread_mutex_lock"),
    ("io", "io_x.c", "pthread_create", "io_x.c.o calls pthread_create"),
    ("io", "io_x.c", "thrd_create", "io_x.c.o calls thrd_create"),
    ("daemon", "daemon_x.c", "fork", "daemon_x.c.o calls fork"),
    ("daemon", "daemon_x.c", "execve", "daemon_x.c.o calls execve"),
    ("daemon", "daemon_x.c", "system", "daemon_x.c.o calls system"),
    ("daemon", "daemon_x.c", "posix_spawn", "daemon_x.c.o calls posix_spawn"),
    ("io", "io_kubectl_child.c", "fork", "io_kubectl_child.c.o calls fork"),
    ("kubectl", "kubectl_child.c", "fork", None),
    ("kubectl", "kubectl_child.c", "execv", None),
    ("kubectl", "kubectl_child.c", "execvp", "kubectl_child.c.o calls execvp"),
    ("kubectl", "kubectl_child.c", "posix_spawn", "kubectl_child.c.o calls posix_spawn"),
    ("kubectl", "kubectl_child.c", "pthread_create", "kubectl_child.c.o calls pthread_create"),
    ("kubectl", "kubectl_child.c", "free", "kubectl_child.c.o calls free"),
)

DAEMONS = (  # the objects of a daemon, finding or none
    ("int main(void) { return 0; }", None),
    ("int fork(void); int main(void) { return fork(); }", "it has fork"),
    (
        "int kubectl_child_start(void) { return 0; } int main(void) { return 0; }",
        "it has kubectl_child_start",
    ),
    ("int posix_spawnp(void); int main(void) { return posix_spawnp(); }", "it has posix_spawnp"),
)


def library(cc: str, folder: Path, lib: str, objects: dict[str, str]) -> Path:
    """A library of objects, each calling one function."""
    built = []
    for name, function in objects.items():
        (folder / name).write_text(
            f"void {function}(void);\nvoid {lib}_thing(void) __attribute__((weak));\n"
            f"void {lib}_thing(void) {{ {function}(); }}\n"
        )
        command = [cc, "-w", "-O0", "-fno-builtin", "-c", name, "-o", f"{name}.o"]
        subprocess.run(command, cwd=folder, check=True)
        built.append(f"{name}.o")
    subprocess.run(["ar", "rcs", f"lib{lib}.a", *built], cwd=folder, check=True)
    return folder / f"lib{lib}.a"


def prove_symbols(tap: Tap, cc: str, nm: str) -> None:
    """Proves which calls each folder may make and which not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clean = {lib: {f"{lib}_y.c": "strlen"} for lib in FOLDERS}
        clean["base"] |= {"base_mem.c": "calloc", "base_log.c": "write"}
        paths = {lib: library(cc, folder, lib, clean[lib]) for lib in FOLDERS}
        for i, (lib, obj, function, expected) in enumerate(CALLS):
            (folder / str(i)).mkdir()
            broken = library(cc, folder / str(i), lib, clean[lib] | {obj: function})
            output = said(symbols.check, nm, paths | {lib: broken})
            good = expected in output if expected else "not ok" not in output
            what = f"symbols: {lib} calls {function}: {'no' if expected else 'yes'}"
            tap.check(what, [] if good else [output])


def prove_daemon(tap: Tap, cc: str, nm: str) -> None:
    """Proves that the check finds each way to start a program from the daemon."""
    with tempfile.TemporaryDirectory() as name:
        for code, expected in DAEMONS:
            (Path(name) / "daemon.c").write_text(code)
            command = [cc, "-w", "-O0", "-fno-builtin", "daemon.c", "-o", "daemon"]
            subprocess.run(command, cwd=name, check=True)
            output = said(symbols.check_daemon, nm, Path(name) / "daemon")
            good = expected in output if expected else "not ok" not in output
            what = f"symbols: a daemon: {expected or 'as it should be'}"
            tap.check(what, [] if good else [output])


DEFECTS = {
    "docs/defects.md": "| row | the defect | in cardpack | tests |\n|---|---|---|---|\n"
    "| A1 | a | b | `test_a.c:one` `a.py:two` `01-a` `fuzz_a.c` `symbols.py:three` |\n"
    "| A2 | a | cannot apply: b | |\n"
    "| B1 | a | Not built yet: b | |\n",
    "tests/unit/test_a.c": "TEST(one) /* A1 */\n",
    "tests/e2e/scenarios/__init__.py": "from . import a\n\nMODULES = (a,)\n",
    "tests/e2e/scenarios/a.py": '@scenario("fake")\ndef two(lab: Lab) -> None:\n',
    "tests/golden/routes/01-a.req": "GET /\n",
    "tests/golden/routes/01-a.out": "200\n",
    "tests/fuzz/fuzz_a.c": "int x;\n",
    "tests/fuzz/corpus/a/x": "x\n",
    "tests/house/symbols.py": 'tap.check("three", [])\n',
}

DEFECTS_BROKEN = (  # path, text, its replacement, finding
    ("docs/defects.md", "| A2 |", "| A3 |", "A2: 0 rows"),
    ("docs/defects.md", "| A2 |", "| A1 |", "A1: 2 rows"),
    ("docs/defects.md", "| B1 |", "| B2 |", "B2: no such defect"),
    ("docs/defects.md", "cannot apply: b", "b", "A2: neither a test nor why"),
    ("docs/defects.md", "`01-a`", "01-a", "A1: '01-a' is no test"),
    ("docs/defects.md", "`01-a`", "`01`", "A1: no test 01"),
    ("tests/unit/test_a.c", "one", "other", "A1: no test test_a.c:one"),
    ("tests/e2e/scenarios/a.py", "@scenario", "@other", "A1: no test a.py:two"),
    ("tests/e2e/scenarios/__init__.py", "(a,)", "()", "A1: no test a.py:two"),
    ("tests/golden/routes/01-a.out", None, None, "A1: no test 01-a"),
    ("tests/fuzz/corpus/a/x", None, None, "A1: no test fuzz_a.c"),
    ("tests/house/symbols.py", "three", "3", "A1: no test symbols.py:three"),
)


def prove_threats(tap: Tap) -> None:
    """Proves that the check finds a missing test of the threat model."""
    for named, expected in (
        ("`a.py:two`", ""),
        ("`a.py:three`", "no test a.py:three"),
        ("`test_b.c:one`", "no test test_b.c:one"),
        ("a.py:two", "none is named"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), DEFECTS | {"docs/threat-model.md": f"| x | {named} |\n"})
            output = said(defects.check_threats, Path(folder))
        good = expected in output if expected else "not ok" not in output
        tap.check(f"threats: {named}", [] if good else [output])


def prove_defects(tap: Tap) -> None:
    """Proves that the check finds missing rows and tests."""
    rows = {"A": 2, "B": 1}

    def finding(files: dict[str, str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), files)
            return said(lambda root, t: defects.check(root, t, rows), Path(folder))

    output = finding(DEFECTS)
    tap.check("defects: a whole table is whole", [output] if "not ok" in output else [])
    for path, old, new, expected in DEFECTS_BROKEN:
        files = {name: text for name, text in DEFECTS.items() if name != path or old is not None}
        if old is not None:
            files[path] = files[path].replace(old, new)
        output = finding(files)
        good = "not ok" in output and expected in output
        tap.check(f"defects: {path}: {expected}", [] if good else [output])


ADVICE = {
    "src/kubectl/doctor_x.c": '#define A "b"\n'
    'void x(void)\n{\n    finding_add(f, FINDING_FAIL, y(1, z), "delete it", "%s has \\"" A "\\"", v);\n'
    '    finding_add(f, FINDING_WARN, o, "look", "odd");\n}\n',
    "tests/unit/test_doctor_twins.c": "} twins[] = {\n"
    '    {"%s has "\n     "\\"b\\"",\n     {.node = A},\n     {.node = B}},\n};\n',
}


def prove_advice(tap: Tap) -> None:
    """Proves that the check finds a FAIL without a row, and a row without a FAIL."""
    for path, old, new, expected in (
        ("src/kubectl/doctor_x.c", "", "", ""),
        ("src/kubectl/doctor_x.c", "FINDING_WARN", "FINDING_FAIL", '"odd" has no row'),
        ("src/kubectl/doctor_x.c", "FINDING_FAIL", "FINDING_WARN", "no check of doctor says"),
        ("tests/unit/test_doctor_twins.c", "%s has", "%u has", "has no row"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), ADVICE | {path: ADVICE[path].replace(old, new)})
            output = said(advice.check, Path(folder))
        good = expected in output if expected else "not ok" not in output
        tap.check(f"advice: {expected}", [] if good else [output])


FILES = (  # files, finding
    (("src/core/x/a.c", "include/core/x/a.h", "src/io/b.c", "src/io/main.c", "src/sim/main.c"), None),
    (("src/core/x/a.c", "src/io/a.c"), "src/core/x/a.c and src/io/a.c: give one"),
    (("src/core/x/a.c", "src/core/y/a.c"), "src/core/x/a.c and src/core/y/a.c: give one"),
    (("src/sim/a.h", "include/io/a.h"), "src/sim/a.h and include/io/a.h: give one"),
)


def prove_files(tap: Tap) -> None:
    """Proves that the check finds two source files of one name."""
    for paths, expected in FILES:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), {path: "" for path in paths})
            output = said(names.check_files, Path(folder))
        good = expected in output if expected else "not ok" not in output
        tap.check(f"names: {expected or 'none'}", [] if good else [output])


HARD = ("-O2", "-fPIE", "-pie", "-fstack-protector-all", "-Wl,-z,relro,-z,now,-z,noexecstack")
SOFT = (  # options added to those, finding
    (("-no-pie", "-fno-pie"), "not ok 1 - position"),
    (("-Wl,-z,execstack",), "not ok 3 - the stack"),
    (("-Wl,-z,norelro",), "not ok 4 - relocations"),
    (("-Wl,-z,lazy",), "not ok 5 - symbols"),
    (("-Wl,-rpath,/x",), "not ok 6 - no library path"),
    (("-fno-stack-protector",), "not ok 7 - canaries"),
    (("-DWRITABLE",), "not ok 2 - no segment"),
    (("-DUNMARKED",), "libx.a(x.o)"),
    (("-U_FORTIFY_SOURCE",), "not ok 8 - copies"),
    ((), None),
)
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WRITABLE
__asm__(".section .writable, \\"awx\\", @progbits\\n.byte 0\\n.previous");
#endif
int main(int argc, char **argv)
{
    char text[8], copy[8];
    snprintf(text, (size_t)argc, "%s", argv[0]);
    memcpy(copy, text, (size_t)argc);
    return puts(copy);
}
"""


def prove_hardening(tap: Tap, cc: str, readelf: str) -> None:
    """Proves that the check finds a program without each hardening."""
    option = "-fcf-protection" if platform.machine() == "x86_64" else "-mbranch-protection"
    full = "full" if platform.machine() == "x86_64" else "standard"
    for options, expected in SOFT:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "x.c").write_text(PROGRAM)
            (folder / "y.c").write_text("int y(void) { return 1; }\n")
            fortify = () if "-U_FORTIFY_SOURCE" in options else ("-D_FORTIFY_SOURCE=2",)
            build = [cc, "-w", *HARD, *fortify, *options, "x.c", "-o", "x"]
            subprocess.run(build, cwd=folder, check=True, capture_output=True)
            protection = "none" if "-DUNMARKED" in options else full
            mark = ["-c", f"{option}={protection}", "y.c", "-o", "x.o"]
            subprocess.run([cc, "-w", *mark], cwd=folder, check=True, capture_output=True)
            subprocess.run(["ar", "rcs", "libx.a", "x.o"], cwd=folder, check=True)
            output = said(
                hardening.check, readelf, folder / "x", {"fortified", "branches"}, [folder / "libx.a"]
            )
        good = expected in output if expected else "not ok" not in output
        tap.check(f"hardening: {expected or 'none'}", [] if good else [output])


RESULTS = (  # result, standard output, passed, failed
    ("OK", "ok 1 - a\nok 2 - b\n1..2\n", 2, 0),
    ("OK", "1..3\nok 1\nok 2 - b # SKIP none\nok 3\n", 2, 0),
    ("FAIL", "ok 1 - a\nnot ok 2 - b\n1..2\n", 1, 1),
    ("ERROR", "ok 1 - a\nok 2 - b\n1..2\n", 2, 1),
    ("ERROR", "ok 1 - a\n", 0, 1),
    ("TIMEOUT", "", 0, 1),
    ("OK", "ok, this is no TAP\n", 1, 0),
    ("FAIL", "ok, this is no TAP\n", 0, 1),
    ("SKIP", "1..0 # SKIP no GPU\n", 0, 0),
    ("EXPECTEDFAIL", "", 1, 0),
)


def prove_results(tap: Tap) -> None:
    """Proves how scripts/test counts."""
    for result, stdout, *expected in RESULTS:
        counted = results.count([json.dumps({"result": result, "stdout": stdout})])
        wrong = [] if list(counted) == expected else [f"{counted}, expected {expected}"]
        tap.check(f"results: {result} {stdout!r}", wrong)


def main() -> int:
    """See the top of this file."""
    cc, nm, readelf = sys.argv[1:4]
    source, build = Path(sys.argv[4]), Path(sys.argv[5])
    tap = Tap()
    prove_text(tap)
    prove_includes(tap, source.resolve(), build.resolve())
    prove_symbols(tap, cc, nm)
    prove_daemon(tap, cc, nm)
    prove_advice(tap)
    prove_files(tap)
    prove_defects(tap)
    prove_threats(tap)
    prove_hardening(tap, cc, readelf)
    prove_results(tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
