import pytest

from mimir.errors import ConfigurationError
from mimir.llm.proxies import choose_proxy, hide_login

URL = "https://model.example.com/v1"
PROXY = "http://user:pass@proxy:3128"


@pytest.mark.parametrize(
    ("url", "setting", "environment", "proxy"),
    [
        (URL, "", {"HTTPS_PROXY": PROXY}, PROXY),
        (URL, "", {"https_proxy": "proxy:1", "HTTPS_PROXY": "http://other:1"}, "http://proxy:1"),
        (URL, "", {"HTTP_PROXY": PROXY}, ""),
        (URL, "", {"ALL_PROXY": PROXY}, PROXY),
        (URL, "", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.b, .example.com"}, ""),
        (URL, "", {"HTTPS_PROXY": PROXY, "no_proxy": "example.com:443"}, PROXY),
        (URL, "", {"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.com"}, PROXY),
        (URL, "", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("http://10.1.2.3:80/v1", "", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, ""),
        ("http://10.1.2.3:80/v1", "", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.1.2.3:80"}, ""),
        ("http://localhost:1/v1", "", {"HTTP_PROXY": PROXY}, ""),
        ("http://[::1]:1/v1", "", {"ALL_PROXY": PROXY}, ""),
        (URL, "none", {"HTTPS_PROXY": PROXY}, ""),
        (URL, "http://own:1/", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, "http://own:1"),
        (URL, "", {}, ""),
    ],
)
def test_the_proxy_is_that_of_the_setting_or_of_the_variables(url, setting, environment, proxy):
    assert choose_proxy(url, setting, environment) == proxy


def test_another_kind_of_proxy_is_refused_without_its_password():
    with pytest.raises(ConfigurationError, match="ALL_PROXY is not an HTTP proxy") as caught:
        choose_proxy(URL, "", {"ALL_PROXY": "socks5://user:hidden@proxy:1"})
    assert "hidden" not in str(caught.value)


def test_a_login_is_not_shown():
    assert hide_login(PROXY) == "http://proxy:3128"
