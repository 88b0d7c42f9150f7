#!/usr/bin/env bash
# The distribution's PostgreSQL server, for the test on the oldest supported version. No cluster is made or started.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
apt_install postgresql-common
conf=/etc/postgresql-common/createcluster.d
as_root sh -c "mkdir -p $conf && echo 'create_main_cluster = false' > $conf/workstead.conf"
apt_install postgresql
