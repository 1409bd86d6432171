# The settings of sluice.service for `sluice` in root's own shell, which does not see those of the unit:
#   . /etc/sluice/shell.sh
# As the unit: without a file of secrets, the commands use what the service uses without it.
# With the embedded database, type them while the service runs: it could not open files that root has made in its folder.
export SLUICE_CONFIG=/etc/sluice/sluice.yaml SLUICE_DATA_DIR=/var/lib/sluice
export HOST=127.0.0.1 SLUICE_OPERATOR_HOST=127.0.0.1 SLUICE_OPERATOR_PORT=9090
[ ! -f /etc/sluice/secrets/database-url ] || export DATABASE_URL_FILE=/etc/sluice/secrets/database-url
# Of this shell alone, for pg_dump and psql as docs/databases.md types them.
[ ! -f /etc/sluice/secrets/database-url ] || DATABASE_URL=$(cat /etc/sluice/secrets/database-url)
[ ! -f /etc/sluice/secrets/redis-url ] || export REDIS_URL_FILE=/etc/sluice/secrets/redis-url
# With the console. Other variables of the unit go here, too.
[ ! -f /etc/sluice/secrets/secret-key ] ||
  export SLUICE_SECRET_KEY_FILE=/etc/sluice/secrets/secret-key SLUICE_CONSOLE_PORT=8081
set -a
[ ! -f /etc/sluice/oidc ] || . /etc/sluice/oidc
set +a
