# Run with the kit mounted into an environment, as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
! touch /opt/kit/bin/new 2>/dev/null
export HOME=/tmp/home PATH="/opt/kit/bin:$PATH"
mkdir -p $HOME
mini --help >/dev/null 2>&1
/opt/kit/python/bin/python3 -I -c 'import sys, minisweagent, workstead_mini
assert sys.version_info >= (3, 9) and minisweagent.__version__ == "2.4.6"
print("smoke passed: é")' | tail -n 1
