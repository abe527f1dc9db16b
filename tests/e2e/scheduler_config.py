"""Makes a KubeSchedulerConfiguration for a test from the shipped files.

The tests use the files in config/ and change only what a test needs, so that a mistake in those files
fails a test. Python's library has no YAML: this module replaces keys by line, and each key must occur
exactly once.
"""

from __future__ import annotations

import re
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[2] / "config"
# The scheduler's default of 50 requests a second would hide all other limits.
CLIENT_QPS = 5000


def shipped(version: str) -> Path:
    """The shipped file for a release: v1beta1 up to 1.22, v1beta3 since 1.23, v1 since 1.25."""
    minor = int(version.split(".")[1])
    suffix = "-v1beta1" if minor < 23 else "-v1beta3" if minor < 25 else ""
    return CONFIG / f"kube-scheduler{suffix}.yaml"


def _set(text: str, key: str, value: str) -> str:
    pattern = re.compile(rf"^([ ]*(?:- )?){re.escape(key)}:.*$", re.MULTILINE)
    text, count = pattern.subn(lambda m: f"{m[1]}{key}: {value}", text)
    if count != 1:
        raise ValueError(f"{key} is {count} times in the shipped configuration, not once")
    return text


def _without_extenders(text: str) -> str:
    """Removes the section up to the next top-level key, or the end."""
    text, count = re.subn(r"^extenders:\n(?:(?:[ #-].*)?\n)*", "", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError("no section of extenders in the shipped configuration")
    return text


def render(
    version: str,
    kubeconfig: Path,
    url_prefix: str | None,
    overrides: dict[str, str] | None = None,
    extender_lines: tuple[str, ...] = (),
    extra: str = "",
    plain_port: int = 0,
) -> str:
    """The shipped configuration for a test.

    url_prefix None leaves the extender out. overrides replace the value of keys
    that the file has ({"httpTimeout": "2s"}); extender_lines are added to the
    extender ("prioritizeVerb: prioritize"), extra at the end, at top level.
    plain_port replaces v1beta1's plain HTTP port.
    """
    text = shipped(version).read_text()
    text = _set(text, "kubeconfig", str(kubeconfig))
    text = _set(text, "leaderElect", "false")
    if plain_port:
        text = re.sub(r"(BindAddress: .*:)\d+$", rf"\g<1>{plain_port}", text, flags=re.MULTILINE)
    text = re.sub(
        r"^clientConnection:$",
        f"clientConnection:\n  qps: {CLIENT_QPS}\n  burst: {CLIENT_QPS}",
        text,
        flags=re.MULTILINE,
    )
    if url_prefix is None:
        text = _without_extenders(text)
    else:
        text = _set(text, "urlPrefix", url_prefix)
        added = "".join(f"  {line}\n" for line in extender_lines)
        text = re.sub(r"^(  filterVerb:.*\n)", rf"\g<1>{added}", text, flags=re.MULTILINE)
    for key, value in (overrides or {}).items():
        text = _set(text, key, value)
    return text + extra
