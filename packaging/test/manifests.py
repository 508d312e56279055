#!/usr/bin/env python3
"""Checks packaging/images/*.yaml against the schemas of Compose and Kubernetes, and against the version and
the image names of this repository.

    packaging/test/manifests.py check
    packaging/test/manifests.py pod     print the StatefulSet's first pod, which `podman kube play` runs

The schemas are files of two Python packages (`scripts/tools.sh images`); Debian's python3-jsonschema reads them.
"""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target/tools/images"
KUBERNETES = list(yaml.safe_load_all((ROOT / "packaging/images/kubernetes.yaml").read_text()))
VERSION = "v1.37."
COMPOSE = yaml.safe_load((ROOT / "packaging/images/compose.yaml").read_text())


def validate(document: object, schema: Path) -> None:
    # A schema of Kubernetes refers to another file by a URL, which becomes a path here.
    parsed = json.loads(schema.read_text().replace('"/api/_definitions.json', '"_definitions.json'))
    for key in ("$id", "id", "$schema"):
        parsed.pop(key, None)
    validator = jsonschema.Draft202012Validator(parsed, resolver=jsonschema.RefResolver(schema.as_uri(), parsed))
    errors = list(validator.iter_errors(document))
    if errors:
        sys.exit("\n".join(f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors))


def name(image: str) -> str:
    """An image's name without its registry."""
    full = subprocess.check_output([ROOT / "scripts/image.sh", "name", image], text=True)
    return full.strip().rpartition("/")[2]


def check() -> None:
    validate(COMPOSE, TOOLS / "compose/config/compose_spec.json")
    (schemas,) = (TOOLS / "kubernetes_validate/kubernetes-json-schema").glob(f"{VERSION}*-local-strict")
    for document in KUBERNETES:
        validate(document, schemas / f"{document['kind'].lower()}-{document['apiVersion'].replace('/', '-')}.json")
    shown = COMPOSE["services"]["valkey"]["image"]
    assert shown == f"${{ROLLCALL_IMAGE:-{name('valkey')}}}", f"compose.yaml has {shown}, not {name('valkey')}"
    shown = KUBERNETES[1]["spec"]["template"]["spec"]["initContainers"][0]["image"]
    assert shown == name("files"), f"kubernetes.yaml has {shown}, not {name('files')}"
    print(f"manifests: valid for Compose and for Kubernetes {schemas.name.split('-')[0]}")


def pod() -> None:
    """The pod that Kubernetes would create for the StatefulSet. Podman does not know StatefulSets."""
    stateful = KUBERNETES[1]
    (claim,) = stateful["spec"]["volumeClaimTemplates"]
    pod_name = f"{stateful['metadata']['name']}-0"
    volume = claim["metadata"]["name"]
    template = stateful["spec"]["template"]
    template["spec"]["volumes"].append({"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{pod_name}"}})
    template["metadata"]["name"] = pod_name
    # Without this annotation, Podman 4.3 removes init containers when they end, and sometimes fails because
    # one still runs.
    template["metadata"]["annotations"] = {"io.podman.annotations.init.container.type": "always"}
    yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **template}, sys.stdout)


{"check": check, "pod": pod}[sys.argv[1]]()
