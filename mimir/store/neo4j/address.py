"""Address of a Neo4j store: a URI, parted into values for the driver and secrets."""

import re
from dataclasses import field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError

# `+s`: encrypted; `+ssc`: encrypted with a certificate that no authority signed.
SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
PORT = 7687
DEFAULT_STORE = "mimir"

_STORE = re.compile(r"[A-Za-z0-9._-]{1,100}")


@value_class
class Neo4jAddress:
    """Address of a Neo4j store."""

    uri: str
    """For the driver, without secrets: scheme, host, port, routing."""
    host: str
    port: int
    user: str = ""
    """Empty: no authentication."""
    password: str = field(default="", repr=False)
    database: str = ""
    """Empty: the user's default database."""
    store: str = DEFAULT_STORE
    """Name of the store in the database."""

    @property
    def shown(self) -> str:
        """URI without user and password."""
        database = f"/{self.database}" if self.database else ""
        plain, _, routing = self.uri.partition("?")
        own = urlencode({"store": self.store}) if self.store != DEFAULT_STORE else ""
        options = "&".join(part for part in (routing, own) if part)
        return f"{plain}{database}{'?' if options else ''}{options}"


def is_address(uri: str) -> bool:
    """Return whether a URI belongs to a Neo4j server."""
    return uri.partition("://")[0].lower() in SCHEMES and "://" in uri


def parse(uri: str, *, user: str = "neo4j", password: str = "", database: str = "") -> Neo4jAddress:
    """Return the address of `neo4j://user:password@host:7687/database?store=name`.

    The arguments are defaults of the parts that the URI lacks. Without a password there is no authentication.

    Raises:
        ConfigurationError: It is invalid; the message holds no secret.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise _wrong("its host or port cannot be read") from error
    if parts.scheme.lower() not in SCHEMES or not host:
        raise _wrong("it names no host")
    options = dict(parse_qsl(parts.query))
    store = options.pop("store", DEFAULT_STORE)
    if not _STORE.fullmatch(store):
        raise _wrong("its option `store` may hold letters, digits, dot, dash and underscore alone")
    if options and not parts.scheme.lower().startswith("neo4j"):
        raise _wrong(f"bolt:// knows no option {next(iter(options))!r}")
    secret = unquote(parts.password or "") or password
    place = f"[{host}]" if ":" in host else host
    routing = f"?{urlencode(options)}" if options else ""
    return Neo4jAddress(
        uri=f"{parts.scheme.lower()}://{place}:{port}{routing}",
        host=host,
        port=port,
        user=(unquote(parts.username or "") or user) if secret else "",
        password=secret,
        database=unquote(parts.path.strip("/")) or database,
        store=store,
    )


def secrets_of(uri: str) -> tuple[str, ...]:
    """Return the secrets of a URI: its password, as it is and as it is written."""
    # Both forms: the user may have escaped characters of the password.
    if not is_address(uri):
        return ()
    written = uri.partition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")[2]
    return tuple({secret for secret in (written, unquote(written)) if secret})


def _wrong(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"The store's URI cannot be used: {why}.",
        next_step="Write it as neo4j://HOST:7687, with the password in MIMIR_NEO4J_PASSWORD.",
    )
