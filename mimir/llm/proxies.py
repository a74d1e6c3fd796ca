"""Choice of the HTTP proxy of an endpoint, from a setting or the usual variables.

The rules are those of curl and Go: lower-case names first; no proxy for loopback. `NO_PROXY` holds names, suffixes, addresses and networks.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from mimir.errors import ConfigurationError

DIRECT = ("none", "direct")


def choose_proxy(base_url: str, setting: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy for an endpoint; empty: a direct connection.

    Args:
        base_url: Of the endpoint.
        setting: `llm.proxy`; it applies to every host. Empty: the variables decide.
        environment: Variables of the process.

    Raises:
        ConfigurationError: The proxy is not an HTTP proxy.
    """
    if setting.strip().lower() in DIRECT:
        return ""
    if setting.strip():
        return _normalise_proxy(setting, "llm.proxy")
    parts = urlsplit(base_url)
    name = f"{parts.scheme.upper()}_PROXY"
    source = name if _value(environment, name) else "ALL_PROXY"
    proxy = _value(environment, source)
    host = parts.hostname or ""
    if not proxy or is_loopback(host) or _is_excluded(host, parts.port, environment):
        return ""
    return _normalise_proxy(proxy, source)


def _is_excluded(host: str, port: int | None, environment: Mapping[str, str]) -> bool:
    return any(
        _matches(pattern.strip().lower(), host.lower(), port)
        for pattern in _value(environment, "NO_PROXY").replace(" ", ",").split(",")
        if pattern.strip()
    )


def hide_login(proxy: str) -> str:
    """Return the URL of a proxy without user name and password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if proxy else ""


def _value(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name.lower()) or environment.get(name) or "").strip()


def _normalise_proxy(proxy: str, source: str) -> str:
    url = proxy.strip().rstrip("/")
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http:
        # A password may stand in it, so only its kind is shown.
        raise ConfigurationError(
            f"The proxy of {source} is not an HTTP proxy ({url.partition('://')[0][:20]}://…).",
            next_step='Set llm.proxy to http://HOST:PORT, or to "none" for a direct connection.',
        )
    return url


def _matches(pattern: str, host: str, port: int | None) -> bool:
    if pattern == "*":
        return True
    name, colon, number = pattern.rpartition(":")
    if colon and number.isdigit() and ":" not in name:
        return port == int(number) and _matches(name, host, port)
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(pattern.strip("[]"), strict=False)
        except ValueError:
            return False
    suffix = pattern.removeprefix("*").lstrip(".")
    return host == suffix or host.endswith(f".{suffix}")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> "ipaddress.IPv4Address | ipaddress.IPv6Address | None":
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
