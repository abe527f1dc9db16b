"""docs/openapi.yaml: checks it, and validates requests and answers with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, RefResolver

Json = Any
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

# The keys of the specification that the document uses; any other key is a mistake.
_TEXT = {"type": "string", "minLength": 1}
_MAP = {"type": "object"}
_REF = {
    "type": "object",
    "required": ["$ref"],
    "properties": {"$ref": {"type": "string", "pattern": "^#/components/"}},
    "additionalProperties": False,
}


def _object(needed: str, more: str = "", /, **properties: Json) -> Json:
    known = {name: properties.get(name, _TEXT) for name in (needed + " " + more).split()}
    return {
        "type": "object",
        "required": needed.split(),
        "properties": known,
        "additionalProperties": False,
    }


def _or_ref(schema: Json) -> Json:
    is_ref = {"type": "object", "required": ["$ref"]}
    return {"if": is_ref, "then": _REF, "else": schema}


def _map_of(schema: Json, key: str = ".") -> Json:
    return {
        "type": "object",
        "patternProperties": {key: schema},
        "additionalProperties": False,
        "minProperties": 1,
    }


_CONTENT = _map_of(_object("schema", "example", schema=_MAP, example={}), "^[a-z]+/[a-z0-9.+-]+$")
_HEADERS = _map_of(_object("schema", "description", schema=_MAP))
_RESPONSE = _or_ref(_object("description", "content headers", content=_CONTENT, headers=_HEADERS))
_BODY = _or_ref(_object("content", "required description", content=_CONTENT, required={"type": "boolean"}))
_PARAMETER = _or_ref(
    _object(
        "name in schema", "required description",
        schema=_MAP, required={"type": "boolean"}, **{"in": {"enum": ["path", "query", "header"]}},
    )
)  # fmt: skip
_OPERATION = _object(
    "operationId tags summary responses", "description parameters requestBody security",
    tags={"type": "array", "items": _TEXT, "minItems": 1},
    responses=_map_of(_RESPONSE, "^([1-5][0-9][0-9]|default)$"),
    parameters={"type": "array", "items": _PARAMETER},
    requestBody=_BODY,
    security={"type": "array"},
)  # fmt: skip
_SPECIFICATION = _object(
    "openapi info paths", "servers security tags components",
    openapi={"type": "string", "pattern": r"^3\.1\.[0-9]+$"},
    info=_object("title version", "description license summary", license=_object("name", "identifier url")),
    servers={"type": "array", "items": _object("url", "description")},
    security={"type": "array", "items": _MAP},
    tags={"type": "array", "items": _object("name", "description")},
    paths=_map_of(_map_of(_OPERATION, f"^({'|'.join(METHODS)})$"), "^/"),
    components=_object(
        "", "schemas responses parameters requestBodies securitySchemes",
        schemas=_MAP, responses=_map_of(_RESPONSE), parameters=_map_of(_PARAMETER),
        requestBodies=_map_of(_BODY), securitySchemes=_map_of(_object("type", "description scheme")),
    ),
)  # fmt: skip


class _Strict(yaml.SafeLoader):
    """A duplicate key is an error."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> Json:
    loader.flatten_mapping(node)
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.YAMLError(f"{key!r} twice, line {node.start_mark.line + 1}")
    return loader.construct_mapping(node, deep=True)


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


class Document:
    """The document; records which answers were seen."""

    def __init__(self, path: Path) -> None:
        self.root = yaml.load(path.read_text(), _Strict)  # a SafeLoader
        self._resolver = RefResolver("", self.root)
        self.seen: set[tuple[str, str]] = set()  # operationId and status

    # ---- the document itself ----------------------------------------------------------------

    def faults(self) -> list[str]:
        """Why it is not an OpenAPI document, or has unused or missing parts."""
        found = [
            f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in Draft202012Validator(_SPECIFICATION).iter_errors(self.root)
        ]
        if found:
            return found
        for where, ref in _refs(self.root, "#"):
            if self._get(ref) is None:
                found.append(f"{where}: {ref} is not there")
        for where, schema in self._schemas():
            for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema):
                found.append(f"{where}: {error.message[:200]}")
        return found + self._loose_ends()

    def _loose_ends(self) -> list[str]:
        found = []
        used = {ref for _, ref in _refs(self.root, "#")}
        for kind, items in self.root["components"].items():
            if kind != "securitySchemes":
                found += [
                    f"components/{kind}/{name}: nothing refers to it"
                    for name in items
                    if f"#/components/{kind}/{name}" not in used
                ]
        tags = {tag["name"] for tag in self.root["tags"]}
        names: list[str] = []
        for path, method, operation in self.operations():
            names.append(operation["operationId"])
            found += [f"{method} {path}: tag {t}" for t in operation["tags"] if t not in tags]
            parameters = [self.deref(p) for p in operation.get("parameters", [])]
            given = [p["name"] for p in parameters if p["in"] == "path"]
            if sorted(given) != sorted(re.findall(r"{(\w+)}", path)):
                found.append(f"{method} {path}: its parameters are {given}")
        found += [f"operationId {name} twice" for name in {*names} if names.count(name) > 1]
        return found

    def _schemas(self) -> Iterator[tuple[str, Json]]:
        for name, schema in self.root["components"]["schemas"].items():
            yield f"schemas/{name}", schema
        for where, part in _walk(self.root["paths"], "paths"):
            if isinstance(part, dict) and isinstance(part.get("schema"), dict):
                yield where, part["schema"]
        for where, part in _walk(self.root["components"]["responses"], "responses"):
            if isinstance(part, dict) and isinstance(part.get("schema"), dict):
                yield where, part["schema"]

    # ---- what it says -------------------------------------------------------------------------

    def operations(self) -> Iterator[tuple[str, str, Json]]:
        """Path, method in capitals, and the operation."""
        for path, item in self.root["paths"].items():
            for method, operation in item.items():
                yield path, method.upper(), operation

    def methods(self, path: str) -> set[str]:
        """The methods of a path in the document; GET includes HEAD."""
        methods = {method.upper() for method in self.root["paths"][path]}
        return methods | ({"HEAD"} if "GET" in methods else set())

    def find(self, method: str, path: str) -> Json:
        """The operation for a request; None if none is documented."""
        method = "GET" if method == "HEAD" else method
        path = path.partition("?")[0]
        for template, item in self.root["paths"].items():
            if method.lower() in item and matches(template, path):
                return item[method.lower()]
        return None

    def errors(self, schema: Json, item: Json) -> list[str]:
        """A value's errors against a schema."""
        validator = Draft202012Validator(schema, resolver=self._resolver)
        return [
            f"{'/'.join(map(str, error.absolute_path)) or 'it'}: {error.message[:300]}"
            for error in validator.iter_errors(item)
        ]

    def request_errors(self, operation: Json, item: Json) -> list[str]:
        """A value's errors against the schema of an operation's body."""
        content = self.deref(operation["requestBody"])["content"]
        return self.errors(content["application/json"]["schema"], item)

    def answer_errors(self, operation: Json, status: int, kind: str, body: Json) -> list[str]:
        """The errors of an answer; body is parsed if kind is JSON."""
        response = operation["responses"].get(str(status))
        if response is None:
            return [f"{operation['operationId']}: status {status} is not documented"]
        content = self.deref(response)["content"]
        media = content.get(kind.partition(";")[0].strip())
        if media is None:
            return [f"{operation['operationId']}: {status} {kind} is not documented"]
        self.seen.add((operation["operationId"], str(status)))
        return self.errors(media["schema"], body)

    def deref(self, item: Json) -> Json:
        """The target of a reference; other items as they are."""
        return self._get(item["$ref"]) if "$ref" in item else item

    def _get(self, ref: str) -> Json:
        part = self.root
        for key in ref.removeprefix("#/").split("/"):
            part = part.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
        return part


def matches(template: str, path: str) -> bool:
    """Whether a path matches a template."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))
    return re.fullmatch(pattern, path) is not None


def _walk(part: Json, where: str) -> Iterator[tuple[str, Json]]:
    yield where, part
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield from _walk(value, f"{where}/{key}")


def _refs(part: Json, where: str) -> Iterator[tuple[str, str]]:
    for place, item in _walk(part, where):
        if isinstance(item, dict) and isinstance(item.get("$ref"), str):
            yield place, item["$ref"]
