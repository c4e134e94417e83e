import pytest

from moorage.api.errors import MoorageError
from moorage.snapshots.manifests import read_manifest

TWO = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: day, annotations: {since: 2024-01-01}}}
  - {apiVersion: batch/v1, kind: Job, metadata: {generateName: run-}}
"""


def test_documents_and_lists_in_order(tmp_path):
    path = tmp_path / "all.yaml"
    path.write_text(TWO)
    objects = read_manifest(path)
    assert [obj["kind"] for obj in objects] == ["Namespace", "ConfigMap", "Job"]
    assert objects[1]["metadata"]["annotations"]["since"] == "2024-01-01"  # text, not a date


def test_json_is_yaml(tmp_path):
    path = tmp_path / "one.json"
    path.write_text('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}')
    assert [obj["metadata"]["name"] for obj in read_manifest(path)] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML"),
        ("just words", "document 1, is not an object: apiVersion and kind are missing"),
        ("kind: Pod\nmetadata: {name: a}", "apiVersion and kind are missing"),
        ("apiVersion: v1\nkind: Pod", "is a Pod without metadata.name"),
        ("apiVersion: v1\nkind: List\nitems: [1]", "is not an object"),
        ("!!python/object/apply:os.getcwd []", "is not YAML"),
        ("[" * 5000, "is nested more than 256 levels deep"),
    ],
)
def test_anything_else_is_one_sentence(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(MoorageError) as refused:
        read_manifest(path)
    assert message in str(refused.value)
    assert "bad.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MoorageError, match=r"nowhere.yaml cannot be read: No such file or directory"):
        read_manifest(tmp_path / "nowhere.yaml")
