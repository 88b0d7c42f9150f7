#!/bin/sh
# Makes the cluster at the first start, with one login role and its database, then becomes the server.
set -eu
user=${POSTGRES_USER:-postgres} database=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}

if [ "$(id -u)" = 0 ]; then
  chown postgres:postgres "$PGDATA" /var/run/postgresql
  chmod 0700 "$PGDATA"
  # The secret may be readable to root only.
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    install -o postgres -g postgres -m 0400 "$POSTGRES_PASSWORD_FILE" /tmp/password
  fi
  exec setpriv --reuid postgres --regid postgres --init-groups --no-new-privs "$0"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  find "$PGDATA" -mindepth 1 -delete # what an interrupted first start left
  initdb --username="$user" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 >/dev/null
  rm -f /tmp/password
  # initdb's own rules let only this machine in.
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  if [ "$database" != postgres ]; then
    echo "CREATE DATABASE \"$database\";" | postgres --single -jE postgres >/dev/null
  fi
fi
exec postgres -c listen_addresses='*' -c max_connections=200 -c unix_socket_directories=/var/run/postgresql
