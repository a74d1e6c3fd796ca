"""Parts of the schemas of tools: each keyword is one that mimir checks."""

from mimir.domain.json_value import JsonObject

TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
FLAG: JsonObject = {"type": "boolean"}


def arguments_of(*required: str, **members: JsonObject) -> JsonObject:
    """Return the schema of arguments: an object with these members only."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": members, **needed, "additionalProperties": False}


def result_of(**kinds: str) -> JsonObject:
    """Return a schema of results, which may hold further members."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


def text(description: str = "", most: int = 0, least: int = 0) -> JsonObject:
    """Return the schema of a text."""
    bounds = {"minLength": least} if least else {}
    bounds |= {"maxLength": most} if most else {}
    return {"type": "string", **({"description": description} if description else {}), **bounds}


def texts(description: str = "", most: int = 0) -> JsonObject:
    """Return the schema of a list of texts."""
    shown = {"description": description} if description else {}
    return {**TEXTS, **shown, **({"maxItems": most} if most else {})}


def whole(least: int = 1, most: int = 0) -> JsonObject:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, **({"maximum": most} if most else {})}
