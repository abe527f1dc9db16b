"""Generates values that a schema allows, and such values with one mistake."""

from __future__ import annotations

import copy
import random
from typing import Any

from document import Document

Json = Any

# Some keys and texts that have a meaning for cardpack.
_TEXTS = ("", "a", "default", "inference-t4-0", "training-a100-0", "web-0", "nowhere", "3", "8Gi", "1e3",
          "-1", "Always", "True", "Succeeded", "ü\u0000\n", "x" * 300)  # fmt: skip
_LABELS = ("aliyun.com/gpu-count", "ack.gpushare.placement", "app")
_NUMBERS = (0, 1, 2, 3, 8, 100, 20000, -1, 1 << 40)
_ODD: tuple[Json, ...] = (None, True, 7, 2.5, -3, "", "text", [], [1], {}, {"a": 1})


def value(chance: random.Random, document: Document, schema: Json, depth: int = 0) -> Json:
    """A value that the schema allows, as far as these generators know; the caller validates it."""
    schema = document.deref(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kinds = schema.get("type", "object")
    kind = chance.choice(kinds) if isinstance(kinds, list) and chance.random() < 0.3 else kinds
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "null":
        return None
    if kind == "object":
        return _object(chance, document, schema, depth)
    if kind == "array":
        items = schema.get("items", {"type": "string"})
        return [value(chance, document, items, depth + 1) for _ in range(chance.randrange(4))]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -(1 << 40)), schema.get("maximum", 1 << 40)
        return min(max(chance.choice(_NUMBERS), low), high)
    if kind == "boolean":
        return chance.random() < 0.5
    return chance.choice([text for text in _TEXTS if len(text) >= schema.get("minLength", 0)])


def _object(chance: random.Random, document: Document, schema: Json, depth: int) -> Json:
    needed = set(schema.get("required", []))
    if choices := schema.get("anyOf"):
        needed |= set(chance.choice(choices)["required"])
    made = {}
    for name, part in schema.get("properties", {}).items():
        if name in needed or chance.random() < 0.7:
            made[name] = value(chance, document, part, depth + 1)
            if name in needed and made[name] is None:
                made[name] = value(chance, document, {**document.deref(part), "type": "object"}, depth)
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        for _ in range(chance.randrange(3)):
            name = chance.choice(_LABELS + _TEXTS[1:6])
            made[name] = value(chance, document, rest, depth + 1)
    elif chance.random() < 0.2:
        made[chance.choice(("more", "Ungewöhnlich", ""))] = chance.choice(_ODD)
    keys = list(made)
    chance.shuffle(keys)
    return {key: made[key] for key in keys}


def spoil(chance: random.Random, good: Json) -> Json:
    """A copy with one part replaced."""
    bad = copy.deepcopy(good)
    places = list(_places(bad))
    if not places:
        return chance.choice(_ODD)
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and chance.random() < 0.3:
        del holder[key]
    else:
        holder[key] = chance.choice(_ODD)
    return bad


def _places(part: Json) -> Any:
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, inner in list(items):
        yield part, key
        yield from _places(inner)
