import sys
import threading
from types import ModuleType

import pytest

from mimir.bootstrap.models.keyring_keys import read_key, write_key
from mimir.errors import ConfigurationError


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    ring = ModuleType("keyring")
    monkeypatch.setitem(sys.modules, "keyring", ring)
    return ring


def test_stored_keyring_key_is_read_back(ring: ModuleType):
    kept: dict[tuple[str, str], str] = {}
    ring.__dict__["set_password"] = lambda service, user, key: kept.update({(service, user): key})
    ring.__dict__["get_password"] = lambda service, user: kept.get((service, user))
    write_key("anthropic", "sk-ant-1")
    assert read_key("anthropic") == "sk-ant-1"
    with pytest.raises(ConfigurationError, match="no key for the endpoint 'gemini'"):
        read_key("gemini")


def test_a_broken_keyring_is_named_without_its_text(ring: ModuleType):
    class NoKeyringError(Exception):
        pass

    def fail(*_: str) -> str:
        raise NoKeyringError("sk-secret")

    ring.__dict__["get_password"] = fail
    with pytest.raises(ConfigurationError, match="NoKeyringError") as caught:
        read_key("anthropic")
    assert "sk-secret" not in str(caught.value)
    assert "mimir config set llm.endpoints.anthropic.api_key -" in (caught.value.next_step or "")


def test_keyring_that_hangs_is_abandoned(ring: ModuleType):
    never = threading.Event()
    ring.__dict__["get_password"] = lambda *_: never.wait()
    with pytest.raises(ConfigurationError, match=r"did not answer within 0\.05 s"):
        read_key("anthropic", seconds=0.05)
    never.set()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mimir\[keyring\]'"):
        read_key("anthropic")
