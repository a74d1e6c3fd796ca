import re
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel

from mimir.domain.money import ModelPrice
from mimir.errors import ConfigurationError
from mimir.settings.layers import load
from mimir.settings.model import (
    EndpointSettings,
    HistorySettings,
    LlmSettings,
    Neo4jSettings,
    RoleSettings,
    RunSettings,
    SandboxSettings,
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_nothing_set_gives_the_defaults(tmp_path: Path):
    loaded = load(tmp_path, environment={})
    assert loaded.settings.run.workers == 4
    assert loaded.settings.sandbox.backend == "bubblewrap"
    assert loaded.warnings == ()


def test_stronger_layers_win(tmp_path: Path):
    write(tmp_path / "mimir.toml", "[run]\nworkers = 2\nmax_calls = 10\nparallel_checks = 3\n")
    user = tmp_path / "user.toml"
    write(user, "[run]\nworkers = 3\nmax_calls = 20\n")
    env = {"MIMIR_CONFIG": str(user), "MIMIR_RUN__MAX_CALLS": "30"}
    run = load(tmp_path, {"run.max_calls": 40}, env).settings.run
    assert (run.workers, run.max_calls, run.parallel_checks) == (3, 40, 3)


def test_prices_are_exact_and_named_as_the_model_is(tmp_path: Path):
    user = tmp_path / "user.toml"
    write(user, '[llm.prices."gpt-4.1-mini"]\ninput = 0.1\noutput = 1.6\n[run]\nmax_cost = 2.5\n')
    loaded = load(tmp_path, environment={"MIMIR_CONFIG": str(user)}).settings
    assert loaded.prices == {"gpt-4.1-mini": ModelPrice(input=100_000, output=1_600_000)}
    assert loaded.run.max_cost == Decimal("2.5")


@pytest.mark.parametrize(
    "line",
    [
        "[run]\nmax_cost = 0\n",
        "[run]\nmax_cost = nan\n",
        "[run]\nmax_cost = 1e9\n",
        "[llm.prices.m]\ninput = -1\noutput = 1\n",
        "[llm.prices.m]\ninput = inf\noutput = 1\n",
        "[llm.prices.m]\ninput = 0.0000001\noutput = 1\n",
        "[llm.prices.m]\ninput = 1\n",
        "[llm.prices.m]\ninput = 1\noutput = 1\ncached = 1\n",
        "[llm.prices]\nm = 3\n",
    ],
)
def test_money_that_cannot_be_counted_is_refused_by_name(line: str, tmp_path: Path):
    write(tmp_path / "user.toml", line)
    with pytest.raises(ConfigurationError, match=r"llm\.prices\.m|run\.max_cost"):
        load(tmp_path, environment={"MIMIR_CONFIG": str(tmp_path / "user.toml")})


def test_section_of_pyproject_is_read_where_there_is_no_file_of_its_own(tmp_path: Path):
    write(tmp_path / "pyproject.toml", "[tool.mimir.run]\nworkers = 7\n")
    assert load(tmp_path, environment={}).settings.run.workers == 7


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("[llm]\nbase_url = 'http://evil.invalid/v1'\n", "llm.base_url"),
        ("[llm]\napi_key_env = 'AWS_SECRET_ACCESS_KEY'\n", "llm.api_key_env"),
        ("[llm]\nmodel = 'play:/tmp/always-pass.yaml'\n", "llm.model"),
        ("[llm.prices.m]\ninput = 0\noutput = 0\n", "llm.prices"),
        ("sandbox = 'none'\n", "sandbox"),
        ("[sandbox]\nread_only = ['/root']\n", "sandbox.read_only"),
        ("store = 'neo4j://evil.invalid'\n", "store"),
        ("[history]\nremote = 'ssh://evil.invalid/x'\n", "history.remote"),
    ],
)
def test_project_may_not_choose_endpoint_key_sandbox_or_store(
    tmp_path: Path, line: str, named: str
):
    write(tmp_path / "mimir.toml", line)
    loaded = load(tmp_path, environment={"OPENAI_API_KEY": "sk-person-0123456789"})
    assert loaded.settings.llm.base_url == ""
    assert loaded.settings.llm.model == ""
    assert loaded.settings.sandbox.backend == "bubblewrap"
    assert loaded.settings.sandbox.read_only == []
    assert loaded.settings.prices == {}
    assert loaded.settings.store == ""
    assert loaded.settings.history.remote == ""
    assert len(loaded.warnings) == 1
    assert repr(named) in loaded.warnings[0]


def test_unknown_key_is_an_error_with_the_nearest(tmp_path: Path):
    write(tmp_path / "mimir.toml", "[run]\nworker = 2\n")
    with pytest.raises(ConfigurationError, match=r"run\.worker'.*Did you mean 'run\.workers'"):
        load(tmp_path, environment={})


@pytest.mark.parametrize("text", ["[run\n", "\udcff", "workers = {\n"])
def test_file_that_cannot_be_read_is_named(tmp_path: Path, text: str):
    (tmp_path / "mimir.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"mimir\.toml cannot be read"):
        load(tmp_path, environment={})


def test_value_of_the_wrong_kind_names_its_setting(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"'run\.workers'"):
        load(tmp_path, {"run.workers": 0}, {})


@pytest.mark.parametrize("name", ["MIMIR_LLM__LANE_HEADER", "MIMIR_LLM_LANE_HEADER"])
def test_environment_may_be_written_with_one_or_two_underscores(tmp_path: Path, name: str):
    assert load(tmp_path, environment={name: "true"}).settings.llm.lane_header is True


def test_unknown_variable_is_a_warning_not_an_error(tmp_path: Path):
    loaded = load(tmp_path, environment={"MIMIR_MODLE": "x", "MIMIR_TEST_NEO4J_URI": "y"})
    assert len(loaded.warnings) == 1
    assert "MIMIR_MODLE" in loaded.warnings[0]
    assert "MIMIR_MODEL" in loaded.warnings[0]


def test_names_of_an_earlier_server_are_weaker_than_those_of_mimir(tmp_path: Path):
    env = {
        "SECONDBRAIN_CHATMODE_PATH": "/one:/two",
        "SECONDBRAIN_LOG_LEVEL": "DEBUG",
        "SECONDBRAIN_SESSION_DIR": "/sessions",
        "SECONDBRAIN_OTHER": "x",
    }
    loaded = load(tmp_path, environment=env)
    assert loaded.settings.agents.path == ["/one", "/two"]
    assert loaded.settings.mcp.log_level == "debug"
    assert [one.split()[0] for one in loaded.warnings] == ["SECONDBRAIN_SESSION_DIR"]
    stronger = load(tmp_path, environment={**env, "MIMIR_MCP__LOG_LEVEL": "error"})
    assert stronger.settings.mcp.log_level == "error"


def test_names_of_openai_and_the_short_names_are_honoured(tmp_path: Path):
    env = {
        "OPENAI_API_KEY": "sk-0123456789",
        "OPENAI_BASE_URL": "http://localhost:1/v1",
        "MIMIR_MODEL": "small",
        "MIMIR_STORE": "other.db",
    }
    loaded = load(tmp_path, environment=env)
    assert loaded.settings.api_key == "sk-0123456789"
    assert loaded.settings.llm.base_url == "http://localhost:1/v1"
    assert (loaded.settings.llm.model, loaded.settings.store) == ("small", "other.db")
    assert "sk-0123456789" in loaded.secrets
    assert "sk-0123456789" not in repr(loaded.settings)


def test_temperature_may_be_none(tmp_path: Path):
    loaded = load(tmp_path, {"roles.worker.temperature": "none"}, {})
    assert loaded.settings.role("worker").temperature is None
    assert loaded.settings.role("qc").temperature == 0.0


def test_sandbox_is_named_by_a_word_or_a_table(tmp_path: Path):
    user = tmp_path / "user.toml"
    write(user, 'sandbox = "none"\n')
    by_word = load(tmp_path, environment={"MIMIR_CONFIG": str(user)}).settings.sandbox
    write(user, '[sandbox]\nbackend = "none"\nshare = ["third_party"]\n')
    by_table = load(tmp_path, environment={"MIMIR_CONFIG": str(user)}).settings.sandbox
    assert by_word.backend == by_table.backend == "none"
    assert by_table.share == ["third_party"]


def test_a_folder_of_programs_is_named_absolutely(tmp_path: Path):
    user = tmp_path / "user.toml"
    write(user, '[sandbox]\nread_only = ["/opt/sdk", "~/.rustup"]\n')
    with pytest.raises(ConfigurationError, match=r"sandbox\.read_only.*'~/\.rustup'"):
        load(tmp_path, environment={"MIMIR_CONFIG": str(user)})


def test_every_setting_is_in_the_document():
    document = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z0-9_.]+)`", document))
    sections: list[type[BaseModel]] = [
        LlmSettings,
        EndpointSettings,
        RunSettings,
        RoleSettings,
        SandboxSettings,
    ]
    names = {name for section in sections for name in section.model_fields}
    names |= {f"neo4j.{name}" for name in Neo4jSettings.model_fields}
    names |= {f"history.{name}" for name in HistorySettings.model_fields}
    assert sorted(names - told) == []
