"""What build steps need of this machine: certificates, proxies and package-index settings.

They reach build steps and stay in no image. Proxies are predefined build arguments, which the builder keeps out of the
history. The rest is the folder ``.build-host/`` in the build context, for a stage that is not the last one::

    FROM ${PARENT} AS build
    LABEL org.workstead.stage=build
    COPY .build-host/ /build-host/
    RUN . /build-host/env.sh && pip install --target /opt/kit …
    FROM ${PARENT}
    COPY --from=build /opt/kit /opt/kit
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = ".build-host"
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy")
_SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_LOCAL_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "timeout", "default-timeout", "retries")
_NPM_KEY = re.compile(r"^(registry|strict-ssl|@[^:=\s]+:registry|//[^=\s]+)$")
_ENV_SH = """\
here=/build-host
if [ -s $here/ca.crt ]; then
  for name in SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO; do
    export $name=$here/ca.crt
  done
fi
export PIP_CONFIG_FILE=$here/pip.conf PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
export NPM_CONFIG_GLOBALCONFIG=$here/npmrc NPM_CONFIG_UPDATE_NOTIFIER=false
"""


@dataclass(frozen=True, slots=True)
class BuildHost:
    """What one machine gives to build steps."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """By path in the build context, all below :data:`FOLDER`."""
    proxies: Mapping[str, str] = field(default_factory=dict[str, str])


def this_machine() -> BuildHost:
    return BuildHost(context_files(), proxies())


def proxies(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The proxy variables of this machine, in both spellings."""
    found: dict[str, str] = {}
    for name in _PROXIES:
        value = environ.get(name) or environ.get(name.upper())
        if value:
            found |= {name: value, name.upper(): value}
    return found


def context_files(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> dict[str, bytes]:
    """The files of ``.build-host/``, by path in the build context."""
    files = {
        "ca.crt": certificates(environ),
        "pip.conf": _pip_conf(_pip_settings()),
        "npmrc": _npmrc(environ, home or Path.home()),
        "env.sh": _ENV_SH,
    }
    return {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}


def certificates(environ: Mapping[str, str] = os.environ) -> str:
    """Every certificate authority that this machine trusts, as one PEM bundle."""
    named = environ.get("SSL_CERT_FILE")
    sources = [Path(named)] if named else [_SYSTEM_BUNDLE]
    sources += sorted(_LOCAL_CERTIFICATES.glob("*.crt"))
    pems: dict[str, None] = {}
    for source in sources:
        if source.is_file():
            pems |= dict.fromkeys(_PEM.findall(source.read_text(errors="replace")))
    return "".join(f"{pem}\n" for pem in pems)


def _pip_settings() -> dict[str, str]:
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    settings: dict[str, str] = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in _PIP_KEYS:
            settings[name] = str(ast.literal_eval(value))
    return settings


def _pip_conf(settings: Mapping[str, str]) -> str:
    lines = ["[global]"]
    for name, value in settings.items():
        # Folders of this machine are not there in a build step.
        words = [word for word in value.split() if not word.startswith(("file:", "/"))]
        if words:
            lines.append(f"{name} = {' '.join(words)}")
    return "\n".join([*lines, ""])


def _npmrc(environ: Mapping[str, str], home: Path) -> str:
    lines: dict[str, str] = {}
    for source in (Path("/etc/npmrc"), home / ".npmrc"):
        for line in source.read_text().splitlines() if source.is_file() else ():
            key, _, value = (part.strip() for part in line.partition("="))
            if _NPM_KEY.match(key):
                lines[key] = value
    registry = environ.get("NPM_CONFIG_REGISTRY") or environ.get("npm_config_registry")
    if registry:
        lines["registry"] = registry
    return "".join(f"{key}={value}\n" for key, value in lines.items())
