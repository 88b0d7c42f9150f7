# Run with the kit mounted into an environment, as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
! touch /opt/kit/bin/new 2>/dev/null
export HOME=/tmp/home PATH="/opt/kit/bin:$PATH"
mkdir -p $HOME
case "$(openclaw --version)" in *2026.9.6*) ;; *) exit 1 ;; esac
/opt/kit/python/bin/python3 -I -S -c 'import sys; assert sys.version_info >= (3, 9); print("smoke passed: é")'
