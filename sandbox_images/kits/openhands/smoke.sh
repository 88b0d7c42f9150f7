# Run with the kit mounted into an environment, as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
! touch /opt/kit/bin/new 2>/dev/null
export HOME=/tmp/home PATH="/opt/kit/bin:$PATH"
mkdir -p $HOME
tmux -V >/dev/null
/opt/kit/python/bin/python3 -I -c 'import sys, openhands.sdk, openhands.tools.preset.default
assert sys.version_info >= (3, 12) and openhands.sdk.__version__ == "1.58.2"
print("smoke passed: é")' | tail -n 1
