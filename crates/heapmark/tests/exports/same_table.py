"""Whether a Parquet file holds what a CSV file holds, as DuckDB reads both: columns with their types, rows, and rows of one alone."""

import json
import sys

import duckdb

parquet, text = sys.argv[1:]
duckdb.sql(f"CREATE VIEW typed AS SELECT * FROM read_parquet('{parquet}')")
duckdb.sql("CREATE VIEW ours AS SELECT coalesce(COLUMNS(*)::VARCHAR, '') FROM typed")
duckdb.sql(f"CREATE VIEW lines AS SELECT * FROM read_csv('{text}', header = true, all_varchar = true)")
duckdb.sql("CREATE VIEW theirs AS SELECT coalesce(COLUMNS(*), '') FROM lines")


def value(query):
    return duckdb.sql(query).fetchall()[0][0]


def count(query):
    return value(f"SELECT count(*) FROM ({query})")


print(json.dumps({
    "types": {name: kind for name, kind, *_ in duckdb.sql("DESCRIBE typed").fetchall()},
    "columns": [row[0] for row in duckdb.sql("DESCRIBE lines").fetchall()],
    "rows": count("FROM typed"),
    "only_parquet": count("FROM ours EXCEPT ALL FROM theirs"),
    "only_csv": count("FROM theirs EXCEPT ALL FROM ours"),
    "failed": count("FROM typed WHERE outcome <> 'ok' AND wall_ns IS NULL"),
    "wall_ns": int(value("SELECT sum(wall_ns) FROM typed WHERE NOT cold")),
}))
