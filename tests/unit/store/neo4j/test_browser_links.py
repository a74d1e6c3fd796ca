"""Links into Neo4j Browser: their address, their query, and no injection by an id."""

from urllib.parse import parse_qs, urlsplit

import pytest

from mimir.bootstrap import stores
from mimir.settings.layers import load
from mimir.store.neo4j.address import parse
from mimir.store.neo4j.browser_links import links


@pytest.mark.parametrize(
    ("uri", "page", "place", "asked"),
    [
        ("neo4j://db", "", "http://db:7474/browser/", {"dbms": "neo4j://db:7687", "db": "neo4j"}),
        ("bolt://[::1]:1/x", "", "http://[::1]:7474/browser/", {"dbms": "bolt://[::1]:1", "db": "x"}),
        ("neo4j+s://u:geheim@db", "", "https://db:7473/browser/", {"dbms": "neo4j+s://db:7687", "db": "neo4j"}),
        ("bolt://db", "https://see.it/", "https://see.it/", {"dbms": "bolt://db:7687", "db": "neo4j"}),
    ],
)  # fmt: skip
def test_link_leads_to_the_browser_of_the_store(uri, page, place, asked):
    link = links(parse(uri), page)("run", "run-1")

    parts = urlsplit(link)
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == place
    assert {name: given[name] for name in asked} == asked
    assert "geheim" not in link
    assert given.get("preselectAuthMethod") == (None if "geheim" in uri else "NO_AUTH")
    assert given["cmd"] == "edit"


def test_browser_link_selects_its_node_for_any_id():
    id = "run-1/it's)>] \\u0027 &cmd=play\n\x07$store"
    link = links(parse("neo4j://db?store=mine"))("task", id)

    assert not set(link) & set(" ()<>[]'\n\x07")
    (asked,) = parse_qs(urlsplit(link).query)["arg"]
    assert asked.startswith("MATCH p = (:Task {_store: 'mine', id: replace('run-1/it\\'s")
    assert "$store" in asked
    assert "\n" not in asked


@pytest.mark.parametrize(("uri", "has"), [("", False), ("sqlite:x.db", False), ("neo4j://h", True)])  # fmt: skip
def test_only_a_server_has_a_page(tmp_path, uri, has):
    settings = load(tmp_path, {"store": uri}, {}).settings

    assert (stores.node_links(settings) is not None) is has
