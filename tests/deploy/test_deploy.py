"""What stands in `deploy/` fits together, and fits the package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboards" / "detok.json").read_text(encoding="utf-8"))
METRIC = re.compile(r"\bdetok_\w+")


def published(service: dict[str, Any]) -> list[str]:
    """The ports that a service has on the host."""
    return list(service.get("ports", ()))


@pytest.mark.parametrize("name", ["Dockerfile", "detok.service"])
def test_installed_extras_are_extras(name: str) -> None:
    """What is installed is what the package calls so, and serves."""
    content = (DEPLOY / name).read_text(encoding="utf-8")
    [names] = re.findall(r"EXTRAS=([\w,]+)|detok\[([\w,]+)\]", content)
    installed = set("".join(names).split(","))
    assert installed <= set(EXTRAS)
    assert "serve" in installed


def test_image_is_made_of_files_that_are_there() -> None:
    """Each file that is copied in exists, and the build is given it."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [word for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.M) for word in line.split()]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored


def test_image_runs_as_nobody_who_may_do_anything() -> None:
    """The last user is not root."""
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.M)[-1] == "detok"


def test_compose_opens_nothing_to_other_machines() -> None:
    """Ports are this machine's own, and the engine has none."""
    services = COMPOSE["services"]
    assert published(services["vllm"]) == []
    ports = [port for service in services.values() for port in published(service)]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_puts_detok_in_front_of_the_engine() -> None:
    """The engine's address is that of the other service, which is waited for, and both have the same model."""
    vllm, detok = COMPOSE["services"]["vllm"], COMPOSE["services"]["detok"]
    assert "vllm:http://vllm:8000" in detok["command"]
    assert detok["depends_on"]["vllm"]["condition"] == "service_healthy"
    assert "healthcheck" in vllm
    assert vllm["command"][1] == detok["command"][1]
    assert {"--enable-scale-out", "--tokens-only"} <= set(vllm["command"])


def test_compose_names_files_and_volumes_that_are_there() -> None:
    """Each mount is a folder here or a volume that is declared; none is declared and unused."""
    mounts = [mount.split(":")[0] for service in COMPOSE["services"].values() for mount in service.get("volumes", ())]
    assert {mount for mount in mounts if not mount.startswith(".")} == set(COMPOSE["volumes"])
    assert all((DEPLOY / mount).is_dir() for mount in mounts if mount.startswith("."))
    assert (ROOT / COMPOSE["services"]["detok"]["build"]["dockerfile"]).is_file()


def test_prometheus_reads_services_that_there_are() -> None:
    """Targets are services of the compose file, and the rules are beside it."""
    targets = [target for job in PROMETHEUS["scrape_configs"] for one in job["static_configs"] for target in one["targets"]]
    assert {target.partition(":")[0] for target in targets} <= set(COMPOSE["services"])
    assert all((DEPLOY / "prometheus" / name).is_file() for name in PROMETHEUS["rule_files"])


def test_dashboard_has_room_for_its_panels() -> None:
    """No panel lies over another; each has a query and an own number."""
    panels = DASHBOARD["panels"]
    taken = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_dashboard_asks_the_data_source_that_is_provisioned() -> None:
    """By its uid, and from the folder that is mounted."""
    [source] = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {source["uid"]}
    [provider] = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/detok.yaml").read_text())["providers"]
    mounts = [mount.split(":")[1] for mount in COMPOSE["services"]["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounts


def test_queries_name_metrics_that_are_counted() -> None:
    """A metric that nothing counts would be an empty panel, or an alert that never comes."""
    counted = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\"(detok_[a-z_]+)\"", path.read_text(encoding="utf-8"))
    }
    if not counted:
        pytest.skip("nothing is counted in this tree yet")
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]] + [rule["expr"] for rule in RULES]
    asked = {re.sub("_(bucket|sum|count)$", "", name) for query in queries for name in METRIC.findall(query)}
    assert asked <= counted


def test_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    """Every directive is known, and has a value that it may have."""
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        pytest.skip("no systemd-analyze")
    unit = tmp_path / "detok.service"
    content = (DEPLOY / "detok.service").read_text(encoding="utf-8")
    # The command itself is not installed here.
    unit.write_text(content.replace("/opt/detok/bin/detok", "/bin/true"), encoding="utf-8")
    done = subprocess.run([verifier, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
