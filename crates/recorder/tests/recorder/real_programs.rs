//! Widely used programs behave the same with and without the recorder, and their recordings are
//! consistent.

use crate::support::{Capture, Ledger, good, recorder};
use std::process::Command;

/// Runs a shell command line in a folder with some files, plain and recorded: the output must be
/// the same. Returns the recordings.
fn same(line: &str) -> Vec<Capture> {
    let home = tempfile::tempdir().unwrap();
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"HOME\")); return 0; }\n";
    std::fs::write(home.path().join("program.c"), source).unwrap();
    let run = |recorded: bool| {
        let mut shell = Command::new("/bin/sh");
        shell.current_dir(home.path()).arg("-c").arg(line);
        if recorded {
            shell
                .env("LD_PRELOAD", recorder())
                .env("HEAPMARK_RECORD_TO", home.path().join("run"));
        }
        good(shell.output().unwrap())
    };
    let plain = run(false);
    assert!(!plain.is_empty(), "{line}: something to compare");
    assert_eq!(plain, run(true), "{line}");
    let captures = crate::support::captures(home.path());
    for capture in &captures {
        let ledger = Ledger::of(capture);
        let inherits = capture.text("begin") == "fork";
        assert!(
            ledger.born_twice.is_empty(),
            "{}: {:x?}",
            capture.text("exe"),
            ledger.born_twice
        );
        assert!(
            inherits || ledger.unknown.is_empty(),
            "{}: {:x?}",
            capture.text("exe"),
            ledger.unknown
        );
        assert_eq!(capture.dropped, 0);
    }
    captures
}

/// Events of the processes that executed a file whose name begins like this.
fn events(captures: &[Capture], name: &str) -> usize {
    let of = |capture: &&Capture| {
        capture
            .text("exe")
            .rsplit('/')
            .next()
            .unwrap()
            .starts_with(name)
    };
    captures
        .iter()
        .filter(of)
        .map(|capture| capture.events().count())
        .sum()
}

#[test]
fn python() {
    let captures = same(
        "PYTHONMALLOC=malloc python3 -c 'import json; print(len(json.dumps([{\"a\": [i] * 9} for i in range(20000)])))'",
    );
    assert!(events(&captures, "python3") > 5_000);
}

#[test]
fn gcc() {
    let captures = same("gcc -O2 -c program.c -o program.o && cksum < program.o");
    assert!(events(&captures, "cc1") > 5_000);
}

#[test]
fn perl() {
    let captures = same(
        "perl -e 'my %h; $h{$_ % 1000} .= $_ for 1..50000; print length(join(\",\", sort values %h)), \"\\n\"'",
    );
    assert!(events(&captures, "perl") > 10_000);
}

#[test]
fn git() {
    let line = "git init -q . && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m one --date=@1 \
                && git log --format=%s && rm -rf .git";
    assert!(events(&same(line), "git") > 1_000);
}

#[test]
fn sqlite() {
    let line = "sqlite3 :memory: 'create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n limit 20000) \
                insert into t select i, hex(i) from n; select count(*), max(b) from t'";
    assert!(events(&same(line), "sqlite3") > 10_000);
}

#[test]
fn redis() {
    let line = "redis-server --port 0 --unixsocket ./socket --save '' --daemonize no > log & server=$!; \
                while ! redis-cli -s ./socket ping > /dev/null 2>&1; do sleep 0.05; done; \
                redis-benchmark -q -s ./socket -n 2000 -t set,lpush,zadd > /dev/null; \
                redis-cli -s ./socket set key value; redis-cli -s ./socket get key; \
                redis-cli -s ./socket shutdown nosave; wait $server; rm -f socket";
    assert!(events(&same(line), "redis") > 10_000);
}
