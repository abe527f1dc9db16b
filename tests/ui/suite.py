"""Runs the checks; see run."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import checks_ask  # noqa: E402
import checks_life  # noqa: E402
import checks_look  # noqa: E402
import checks_picture  # noqa: E402
import figures  # noqa: E402
from lab import CHECKS, Lab  # noqa: E402

MODULES = (checks_picture, checks_ask, checks_life, checks_look)


def strangers(lab: Lab) -> tuple[int, list[str]]:
    """The number of the page's requests, and those to other hosts than its daemon."""
    own = {f"127.0.0.1:{d.port}" for d in lab.daemons.values()}
    urls = lab.browser.requests()
    return len(urls), [url for url in urls if urlsplit(url).netloc not in own]


def complaints(lab: Lab) -> list[str]:
    """The console's messages, without those that a check expects."""
    return [line for line in lab.browser.console()
            if not any(known in line for known in lab.expected)]


def run(lab: Lab, name: str) -> bool:
    began = time.monotonic()
    lab.expected = ()
    try:
        CHECKS[name](lab)
        assert not (found := complaints(lab)), f"the console says {found}"
        urls, found = strangers(lab)
        assert urls and not found, f"of {urls} requests went elsewhere: {found}"
    except Exception:
        print(f"FAILED {name}: {CHECKS[name].__doc__}")
        traceback.print_exc(file=sys.stdout)
        lab.browser.console()
        return False
    print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", action="append", choices=sorted(CHECKS))
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--figures", action="store_true")
    args = parser.parse_args()
    lab = Lab(str(Path(args.binary).resolve()))
    passed = failed = 0
    try:
        if args.shots or args.figures:
            figures.main(lab, args.shots, args.figures)
            return 0
        for name in CHECKS:
            if args.only and name not in args.only:
                continue
            if run(lab, name):
                passed += 1
            else:
                failed += 1
    finally:
        wrong = lab.close()
    for line in wrong:
        print(f"FAILED {line}")
    failed += len(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
