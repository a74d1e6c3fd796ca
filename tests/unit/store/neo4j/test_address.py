"""Addresses of a Neo4j store, and errors of an address without a server."""

import secrets
import socket
import threading

import pytest

from mimir.errors import ConfigurationError, StoreError, UnavailableError
from mimir.store.neo4j.address import Neo4jAddress, is_address, parse, secrets_of
from mimir.store.neo4j.neo4j_store import Neo4jStore
from mimir.store.neo4j.query_library import CypherText, join_texts, query
from tests.support.bolt_stub import BoltStub


@pytest.mark.parametrize(
    ("uri", "driver", "user", "password", "database", "within", "shown"),
    [
        ("neo4j://h", "neo4j://h:7687", "", "", "", "mimir", "neo4j://h:7687"),
        ("bolt://h:1/d", "bolt://h:1", "", "", "d", "mimir", "bolt://h:1/d"),
        ("NEO4J+S://H/", "neo4j+s://h:7687", "", "", "", "mimir", "neo4j+s://h:7687"),
        ("bolt://u:p%40%2F@h:1/d?store=t", "bolt://h:1", "u", "p@/", "d", "t", "bolt://h:1/d?store=t"),
        ("bolt://:p@[::1]:9", "bolt://[::1]:9", "neo4j", "p", "", "mimir", "bolt://[::1]:9"),
        ("bolt://u@h:1", "bolt://h:1", "", "", "", "mimir", "bolt://h:1"),
        (
            "neo4j://h?policy=eu&store=t", "neo4j://h:7687?policy=eu", "", "", "", "t",
            "neo4j://h:7687?policy=eu&store=t",
        ),
    ],
)  # fmt: skip
def test_neo4j_uri_is_split_into_driver_values_and_shown_form(
    uri, driver, user, password, database, within, shown
):
    address = parse(uri)

    found = (address.uri, address.user, address.password, address.database, address.store)
    assert found == (driver, user, password, database, within)
    assert address.shown == shown
    assert is_address(uri)


def test_settings_complete_a_neo4j_uri():
    address = parse("bolt://h", user="anna", password="geheim", database="d")
    assert (address.user, address.password, address.database) == ("anna", "geheim", "d")

    address = parse("bolt://u:p@h/e", user="anna", password="geheim", database="d")
    assert (address.user, address.password, address.database) == ("u", "p", "e")


@pytest.mark.parametrize(
    "uri",
    ["bolt://", "neo4j:///d", "neo4j://h:x", "neo4j://h:99999", "bolt://h?store=a/b", "bolt://h?policy=x", "http://h", "bolt://[::1"],
)  # fmt: skip
def test_invalid_uri_is_a_wrong_setting(uri):
    with pytest.raises(ConfigurationError, match="URI cannot be used") as refused:
        parse(uri.replace("://", "://u:geheim@", 1))

    assert "geheim" not in str(refused.value) + str(refused.value.next_step)


@pytest.mark.parametrize(
    ("uri", "secret"),
    [
        ("neo4j://u:p%40ss@h", {"p%40ss", "p@ss"}),
        ("bolt://u:a:b@h:1/d", {"a:b"}),
        ("bolt://h:7687", set()),
        ("neo4j://u@h", set()),
        ("sqlite:///u:p@h", set()),
        ("", set()),
    ],
)
def test_passwords_of_a_uri_are_known(uri, secret):
    assert set(secrets_of(uri)) == secret


def test_address_never_shows_its_password():
    address = parse("bolt://u:geheim@h")

    assert "geheim" not in repr(address) + str(address) + address.shown + address.uri


@pytest.mark.parametrize("piece", ["Task) DETACH DELETE n //", "task", "", "w1 OR 1=1", "n"])
def test_no_text_from_outside_gets_into_a_query(piece):
    with pytest.raises(StoreError, match="cannot stand in a query"):
        query("get", label=piece)
    with pytest.raises(StoreError, match="cannot stand in a query"):
        join_texts([CypherText("a"), CypherText("b")], piece or " OR ")


# Messages without a store behind it


async def opening(address: Neo4jAddress, clock) -> str:
    """Open a store that must refuse; return its message."""
    store = Neo4jStore(address, clock, door=secrets.token_hex(4))
    try:
        await store.init()
    finally:
        await store.close()
    raise AssertionError("it opened")


@pytest.fixture
def stub():
    """Make a server that refuses something; closed in the end."""
    made = []

    def make(**how):
        made.append(BoltStub(**how))
        return parse(f"bolt://anna:geheim@127.0.0.1:{made[-1].port}")

    yield make
    for server in made:
        server.close()


async def test_wrong_neo4j_address_is_refused_at_once(frozen_clock):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    with pytest.raises(UnavailableError, match=r"cannot be reached\.\n.*refused") as refused:
        await opening(parse(f"bolt://anna:geheim@127.0.0.1:{port}"), frozen_clock)

    assert "geheim" not in str(refused.value)
    assert refused.value.next_step


async def test_other_server_at_the_address_is_no_store(frozen_clock):
    def hang_up():
        for _ in range(2):
            connection, _ = other.accept()
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=hang_up, daemon=True).start()
        address = parse(f"bolt://127.0.0.1:{other.getsockname()[1]}")

        with pytest.raises(UnavailableError, match="cannot be reached"):
            await opening(address, frozen_clock)


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"agent": "Neo4j/4.4.30"}, UnavailableError, r"too old\.\nIt is Neo4j/4.4.30; Neo4j 5 is needed"),
        ({"agent": "Other/9"}, UnavailableError, "too old"),
        ({"refuse": {"logon": "Neo.ClientError.Security.Unauthorized"}}, ConfigurationError, "refuses this user or password"),
        ({"refuse": {"logon": "Neo.ClientError.Security.CredentialsExpired"}}, ConfigurationError, "refuses this user or password"),
        ({"refuse": {"begin": "Neo.ClientError.Database.DatabaseNotFound"}}, ConfigurationError, "no such database"),
        ({"refuse": {"MERGE": "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase"}}, UnavailableError, "may only be read"),
        ({"refuse": {"CREATE": "Neo.ClientError.Security.Forbidden"}}, UnavailableError, "may only be read"),
        ({"refuse": {"MERGE": "Neo.ClientError.Statement.SyntaxError"}}, StoreError, "refused"),
    ],
)  # fmt: skip
async def test_unsuitable_neo4j_server_is_refused_in_three_lines(
    stub, frozen_clock, how, error, said
):
    with pytest.raises(error, match=said) as refused:
        await opening(stub(**how), frozen_clock)

    assert str(refused.value).count("\n") == 1
    assert "geheim" not in str(refused.value)
