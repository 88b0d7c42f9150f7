# Run with the kit mounted into an environment, as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
! touch /opt/kit/bin/new 2>/dev/null
export HOME=/tmp/home PATH="/opt/kit/bin:$PATH"
mkdir -p $HOME
[ "$(opencode --version)" = 1.18.33 ]
echo needle > /tmp/hay && [ "$(rg -c needle /tmp/hay)" = 1 ]
/opt/kit/python/bin/python3 -I -S -c 'import sys; assert sys.version_info >= (3, 9); print("smoke passed: é")'
