import base64
import stat

import pytest
import yaml

from moorage.api.errors import MoorageError
from moorage.up import kubeconfig

TEXT = kubeconfig.text("https://127.0.0.1:1234", "secret", b"-----BEGIN CERTIFICATE-----")


def test_it_names_server_token_and_authority():
    config = yaml.safe_load(TEXT)
    (cluster,) = config["clusters"]
    assert cluster["cluster"]["server"] == "https://127.0.0.1:1234"
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"])
    assert authority == b"-----BEGIN CERTIFICATE-----"
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_only_the_owner_can_read_it(tmp_path):
    path = tmp_path / "sub" / "config"
    kubeconfig.write(path, TEXT)
    kubeconfig.write(path, TEXT)  # its own file may be replaced
    assert path.read_text() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["config"]


@pytest.mark.parametrize(
    "content",
    [
        yaml.safe_dump({"users": [{"name": "admin", "user": {"token": "precious"}}]}),
        yaml.safe_dump({"users": [{"name": "moorage"}, {"name": "admin"}]}),
        "not: [yaml",
        "just words",
    ],
)
def test_other_peoples_credentials_are_never_overwritten(tmp_path, content):
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(MoorageError, match="name another file with --kubeconfig"):
        kubeconfig.write(path, TEXT)
    assert path.read_text() == content


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MoorageError, match=r"cannot write the kubeconfig .*file/config: "):
        kubeconfig.write(tmp_path / "file" / "config", TEXT)
