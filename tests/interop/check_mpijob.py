"""Validates examples/kubernetes/mpijob.yaml against the schema of Kubeflow's MPIJob.

    VENV/bin/python tests/interop/check_mpijob.py CRD [FILE]

CRD: manifests/base/kubeflow.org_mpijobs.yaml of kubeflow/mpi-operator. A person runs this; VENV
needs jsonschema and pyyaml. A field that the schema does not know is an error, as with
`kubectl apply --validate=strict`; a cluster would drop it.
"""

import pathlib
import sys

import jsonschema
import yaml


def strict(schema):
    """The schema with no other fields than it names."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if (
        isinstance(schema.get("properties"), dict)
        and "additionalProperties" not in schema
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        result["additionalProperties"] = False
    return result


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    crd = yaml.safe_load(pathlib.Path(sys.argv[1]).read_text())
    example = pathlib.Path(__file__).parents[2] / "examples/kubernetes/mpijob.yaml"
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else example
    job = yaml.safe_load(path.read_text())
    problems = []
    names = crd["spec"]["names"]
    group, _, version = job["apiVersion"].partition("/")
    if (group, job["kind"]) != (crd["spec"]["group"], names["kind"]):
        problems.append(f"{job['apiVersion']} {job['kind']} is not of this definition")
    schemas = [v["schema"] for v in crd["spec"]["versions"] if v["name"] == version]
    if not schemas:
        sys.exit(f"the definition has no version {version}")
    schema = strict(schemas[0]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}  # Kubernetes' own
    for error in jsonschema.Draft202012Validator(schema).iter_errors(job):
        problems.append("/".join(map(str, error.absolute_path)) + ": " + error.message)
    for problem in problems:
        print(f"{path}: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"{path}: a valid {job['kind']} of {job['apiVersion']}")


main()
