"""Image and services: the promises of their files."""

import re
from pathlib import Path

import yaml

from mimir.workspace.sandbox import diagnosis

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}


def steps() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def test_the_image_is_slim_not_root_and_has_tini_git_and_bubblewrap():
    made = steps()
    assert re.fullmatch(r"python:3\.\d+-slim", made[0][1])
    installed = next(text for step, text in made if "apt-get install" in text)
    assert {"bubblewrap", "git", "tini"} <= set(installed.split())
    [user] = [text for step, text in made if step == "USER"]
    assert user not in ("root", "0")
    names = [step for step, _ in made]
    assert names.index("USER") > max(n for n, step in enumerate(names) if step == "RUN")
    assert ("ENTRYPOINT", '["tini", "--", "mimir"]') in made


def test_only_the_wheel_reaches_the_build():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored == ["*", "!dist/*.whl"]


def test_the_services_have_the_security_options_that_doctor_names():
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    options = set(services["mimir"]["security_opt"])
    assert options - {"no-new-privileges=true"} == OPTIONS
    assert services["mimir"]["cap_drop"] == ["ALL"]
    assert "privileged" not in text
    assert all(port.startswith("127.0.0.1:") for port in services["neo4j"]["ports"])
    advised = Path(diagnosis.__file__).read_text(encoding="utf-8")
    manual = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for option in OPTIONS:
        assert f"--security-opt {option}" in advised
        assert f"--security-opt {option}" in manual
