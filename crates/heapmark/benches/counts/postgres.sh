# `init` makes a database in ./data; `run` starts postgres as its own user, asks it something and stops it. Runs as root.
set -eu
export PATH="$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH"
data=$PWD/data
as_postgres() { runuser -u postgres -- "$@"; }
case $1 in
init)
    mkdir data
    chown postgres data
    as_postgres initdb -D "$data" -A trust > /dev/null
    ;;
run)
    as_postgres pg_ctl -D "$data" -l "$data/log" -o "-k $data -h ''" -w start > /dev/null
    as_postgres psql -q -h "$data" -d postgres -c "create table t as select i, md5(i::text) from generate_series(1, 20000) i" \
        -c "select count(distinct md5) from t" > /dev/null
    as_postgres pg_ctl -D "$data" -m fast -w stop > /dev/null
    ;;
esac
