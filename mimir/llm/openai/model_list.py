"""List of an endpoint's models (`GET /models`), with one time limit for all of it."""

import asyncio
import json

import aiohttp

from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.domain.value_class import value_class
from mimir.llm.config import EndpointConfig
from mimir.llm.openai.transport import ConnectionPool
from mimir.llm.storable_text import clean

_MOST_BYTES = 4_000_000


@value_class
class ModelList:
    """Models of an endpoint, or why there is no list."""

    models: tuple[str, ...] = ()
    problem: str = ""
    """Empty: the endpoint gave a list."""
    is_reached: bool = True
    """False: there was no connection, so no request can succeed."""


async def list_models(config: EndpointConfig, *, seconds: float) -> ModelList:
    """Ask an endpoint for its models; a problem is a value, since a model may work without it."""
    connections = ConnectionPool(config)
    try:
        async with asyncio.timeout(seconds):
            return await _read(connections)
    except TimeoutError:
        return ModelList(problem=f"no list of models within {seconds:g} s")
    except aiohttp.ClientConnectorDNSError:
        return ModelList(problem="the host is not known", is_reached=False)
    except aiohttp.ClientConnectorError as error:
        reason = error.strerror or "no connection"
        return ModelList(problem=f"no connection ({reason})", is_reached=False)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return ModelList(problem=f"no list of models ({type(error).__name__})")
    finally:
        await connections.aclose()


async def _read(connections: ConnectionPool) -> ModelList:
    reply = await connections.get("models")
    try:
        if reply.status in (401, 403):
            return ModelList(problem=f"the key is refused ({reply.status})")
        if reply.status >= 300:
            return ModelList(problem=f"no list of models ({reply.status})")
        body = bytearray()
        async for piece in reply.pieces:
            body += piece
            if len(body) > _MOST_BYTES:
                return ModelList(problem="the list of models is too long")
    finally:
        reply.close()
    rows = as_objects(as_object(json.loads(body)).get("data"))
    # Google's list has `models/NAME`.
    names = (clean(as_text(row.get("id"))).removeprefix("models/")[:200] for row in rows)
    found = tuple(dict.fromkeys(name for name in names if name))
    return ModelList(models=found, problem="" if found else "the list of models is empty")
