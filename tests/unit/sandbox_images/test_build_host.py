from pathlib import Path

from sandbox_images.build_host import FOLDER, certificates, context_files, proxies

_ONE = "-----BEGIN CERTIFICATE-----\nONE\n-----END CERTIFICATE-----"
_TWO = "-----BEGIN CERTIFICATE-----\nTWO\n-----END CERTIFICATE-----"


def test_proxies_are_given_in_both_spellings() -> None:
    found = proxies({"HTTPS_PROXY": "http://p:1", "no_proxy": "localhost", "UNRELATED": "x"})
    assert found == {
        "https_proxy": "http://p:1", "HTTPS_PROXY": "http://p:1", "no_proxy": "localhost", "NO_PROXY": "localhost",
    }  # fmt: skip


def test_certificates_are_those_of_the_named_bundle_once_each(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"# a comment\n{_ONE}\n{_TWO}\n{_ONE}\n")
    found = certificates({"SSL_CERT_FILE": str(bundle)})
    assert found.startswith(f"{_ONE}\n{_TWO}\n")
    assert found.count("ONE") == 1


def test_npm_settings_are_registries_and_their_credentials_only(tmp_path: Path) -> None:
    lines = [
        "registry = https://r.invalid/",
        "cafile=/etc/x",
        "@a:registry=https://a.invalid/",
        "//a.invalid/:_authToken=t",
    ]
    (tmp_path / ".npmrc").write_text("\n".join([*lines, "init-author-name=me"]))
    found = context_files({}, tmp_path)[f"{FOLDER}/npmrc"].decode()
    assert "registry=https://r.invalid/\n@a:registry=https://a.invalid/\n//a.invalid/:_authToken=t\n" in found
    assert "cafile" not in found
    assert "author" not in found


def test_folders_of_this_machine_are_not_sent() -> None:
    conf = context_files({}, Path("/nonexistent"))[f"{FOLDER}/pip.conf"].decode()
    assert "file:" not in conf
    assert " /" not in conf
