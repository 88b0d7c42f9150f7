#!/usr/bin/env bash
# A Docker engine where none answers: Debian's package, started detached. One that answers is never touched, nor is its
# configuration. Then the few programs that images and workspaces need beside it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
python="$root_dir/.venv/bin/python"
config=/etc/docker/daemon.json
log=/var/log/workstead-dockerd.log

# Says "answers", "denied" (there, but not for this user) or "absent".
engine_state() {
  "$python" - <<'PY'
import docker, requests
from docker.errors import DockerException
try:
    client = docker.from_env(timeout=10)
    client.ping()
    print("answers")
except (DockerException, requests.RequestException, OSError) as error:
    print("denied" if "Permission denied" in str(error) else "absent")
PY
}

wait_for_engine() { # seconds
  local deadline=$((SECONDS + $1))
  while [ $SECONDS -lt $deadline ]; do
    [ "$(engine_state)" = answers ] && return 0
    sleep 0.3
  done
  return 1
}

write_config() {
  [ -e "$config" ] && return 0
  local runtime=''
  # `kvm` hangs and the default platform cannot enter an empty namespace; host networking is the container's own
  # namespace here, because the engine gives it none (docs/decisions, CONTRACTS 5).
  if available runsc || command -v runsc >/dev/null; then
    runtime=', "runtimes": {"runsc-planted": {"path": "/usr/bin/runsc", "runtimeArgs":
    ["--platform=ptrace", "--network=host", "--host-uds=open"]}}'
  fi
  as_root install -d -m 0755 /etc/docker
  printf '{"live-restore": true%s}\n' "$runtime" | as_root tee "$config" >/dev/null
}

start_engine() {
  if [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then
    as_root systemctl start docker && return 0
  fi
  # Its own session and no inherited descriptors: whoever called this script can end without waiting for the daemon.
  as_root bash -c 'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ "$fd" -gt 2 ] && eval "exec $fd>&-"; done 2>/dev/null
    setsid dockerd >"$0" 2>&1 </dev/null &' "$log"
}

ensure_engine() {
  case "$(engine_state)" in
    answers) return 0 ;;
    denied) die "a Docker engine is there, but not for user $(id -un): run as root, or add the user to group docker" ;;
  esac
  [ -z "${DOCKER_HOST:-}" ] || die "no engine answers at DOCKER_HOST=$DOCKER_HOST"
  if grep -qsx dockerd /proc/[0-9]*/comm; then
    wait_for_engine 30 || die "dockerd runs and does not answer: left alone"
    return 0
  fi
  local packages=(docker.io iptables)
  installed docker.io || as_root apt-get update -qq >&2 || die "needs root to install a Docker engine"
  if available runsc; then packages+=(runsc); fi
  # Before the package: where the system starts services, installing it starts the daemon.
  write_config
  command -v dockerd >/dev/null && command -v iptables >/dev/null || apt_install "${packages[@]}"
  wait_for_engine 1 && return 0
  start_engine
  wait_for_engine 60 || { tail -n 20 "$log" >&2 2>/dev/null || true; die "dockerd did not come up"; }
  say "started a Docker engine (log: $log)"
}

helpers() {
  local packages=(e2fsprogs mmdebstrap mount)
  if available debian-archive-keyring; then packages+=(debian-archive-keyring); fi
  apt_install "${packages[@]}" || say "going on without them: quota-backed workspaces or the base image may fail"
}

ensure_engine
helpers
