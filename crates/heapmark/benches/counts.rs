//! Whether the recorder agrees with an independent counter, to the call and in each process, in
//! many kinds of programs: `make counts`, or `cargo bench --bench counts -- NAME...` for some of
//! them. Prints which programs are not installed. Exits non-zero if a count differs or a program
//! fails.

#[path = "../tests/further/recordings/counts/compared.rs"]
mod compared;

use anyhow::{Context, Result, bail, ensure};
use compared::{Compared, Place, Process, path};
use std::path::Path;
use std::process::{Command, ExitCode};

struct Program {
    name: &'static str,
    /// A shell command that succeeds if the program is installed.
    there: &'static str,
    /// A shell command that runs before, unrecorded.
    before: &'static str,
    /// The recorded command line; its words are split as in a shell.
    line: &'static str,
}

const fn program(
    name: &'static str,
    there: &'static str,
    before: &'static str,
    line: &'static str,
) -> Program {
    Program {
        name,
        there,
        before,
        line,
    }
}

const PROGRAMS: &[Program] = &[
    program(
        "sh, a pipeline",
        "",
        "",
        "sh -c 'seq 20000 | sort -rn | uniq | tail -1'",
    ),
    program(
        "sort, four threads",
        "",
        "seq 400000 > numbers",
        "sort -rn --parallel=4 -S 50M -o sorted numbers",
    ),
    program(
        "500 children",
        "",
        "",
        "sh -c 'i=0; while [ $i -lt 500 ]; do env true; i=$((i + 1)); done'",
    ),
    program(
        "make, two jobs",
        "command -v make",
        "cp $HERE/Makefile .",
        "make -s -j2 many",
    ),
    program(
        "C, two threads",
        "",
        "cc -O1 -fno-builtin -pthread -o loop $HERE/loop.c",
        "./loop",
    ),
    program(
        "C, a daemon",
        "",
        "cc -fno-builtin -o daemon $HERE/daemon.c",
        "./daemon",
    ),
    program(
        "g++",
        "command -v g++",
        "cp $HERE/words.cpp .",
        "g++ -O1 -c words.cpp -o words.o",
    ),
    program(
        "C++, a program",
        "command -v g++",
        "g++ -O1 -o words $HERE/words.cpp",
        "./words",
    ),
    program(
        "awk",
        "command -v awk",
        "",
        "awk 'BEGIN { for (i = 0; i < 50000; i++) a[i % 999] = a[i % 999] i; print length(a) }'",
    ),
    program(
        "bash",
        "command -v bash",
        "",
        "bash -c 'for i in {1..5000}; do a[$i]=$i$i; done; echo ${#a[@]}'",
    ),
    program(
        "perl",
        "command -v perl",
        "",
        "perl -e 'my %h; $h{$_ % 1000} .= $_ for 1..100000; print scalar(keys %h)'",
    ),
    program(
        "perl, fibres (Coro)",
        "perl -MCoro -e 1",
        "",
        "perl -MCoro -e 'my @all = map { my $n = $_; async { for (1..200) { my $s = \"x\" x ($n * 7 + $_); cede } } } 1..20; $_->join for @all'",
    ),
    program(
        "python3",
        "command -v python3",
        "",
        "env PYTHONMALLOC=malloc python3 $HERE/rows.py",
    ),
    program(
        "python3, fork without exec",
        "command -v python3",
        "",
        "python3 $HERE/forks.py",
    ),
    program(
        "python3, multiprocessing",
        "command -v python3",
        "",
        "python3 $HERE/pool.py",
    ),
    program(
        "python3, fibres (greenlet)",
        "python3 -c 'import greenlet'",
        "",
        "env PYTHONMALLOC=malloc python3 $HERE/greenlets.py",
    ),
    program(
        "lua",
        "command -v lua5.4",
        "",
        "lua5.4 -e 't = {} for i = 1, 50000 do t[i % 999] = i .. \"x\" end print(#t)'",
    ),
    program(
        "ruby, with fibres",
        "command -v ruby",
        "",
        "ruby $HERE/fibers.rb",
    ),
    program(
        "php, with fibres",
        "command -v php",
        "",
        "php $HERE/fibers.php",
    ),
    program(
        "node",
        "command -v node",
        "",
        "node -e 'let a = []; for (let i = 0; i < 50000; i++) a.push(JSON.parse(\"[\" + i + \"]\")); console.log(a.length)'",
    ),
    program("java", "command -v java", "", "java -version"),
    program(
        "Go, with C",
        "command -v go && command -v gcc",
        "mkdir -p go && cp $HERE/cgo.go go/main.go && cd go && go build -o ../cgo main.go",
        "./cgo",
    ),
    program(
        "sqlite3",
        "command -v sqlite3",
        "",
        "sqlite3 :memory: 'create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n limit 20000) insert into t select i, hex(i) from n; select count(*), max(b) from t'",
    ),
    program(
        "jq",
        "command -v jq",
        "python3 -c 'import json; json.dump([{\"a\": [i] * 9} for i in range(5000)], open(\"rows.json\", \"w\"))'",
        "jq -c 'map(.a | add) | add' rows.json",
    ),
    program(
        "z3",
        "command -v z3",
        "cp $HERE/queens.smt2 .",
        "z3 queens.smt2",
    ),
    program(
        "xz, two threads",
        "command -v xz",
        "seq 400000 > numbers.txt",
        "xz -T2 -k -f -1 --block-size=500000 numbers.txt",
    ),
    program(
        "git",
        "command -v git",
        "rm -rf repo && git init -q repo && cd repo && for i in 1 2 3; do echo $i >> a; git add a; git -c user.name=a -c user.email=a@b.c commit -qm $i; done",
        "git -C repo --no-pager log -p",
    ),
    program(
        "xmllint",
        "command -v xmllint",
        "python3 -c 'print(\"<a>\" + \"<b c=\\\"d\\\">e</b>\" * 20000 + \"</a>\")' > items.xml",
        "xmllint --noout items.xml",
    ),
    program(
        "ghostscript",
        "command -v gs",
        "cp $HERE/page.ps .",
        "gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r40 -sOutputFile=page.png page.ps",
    ),
    program(
        "ghostscript, on X11's libraries",
        "command -v gs && gs -h | grep -q x11",
        "cp $HERE/page.ps .",
        "gs -q -dNOPAUSE -dBATCH -sDEVICE=bbox page.ps",
    ),
    program(
        "dot",
        "command -v dot",
        "",
        "sh -c 'echo \"digraph { a -> b -> c -> a; b -> d -> e; e -> a }\" | dot -Tpng -o graph.png'",
    ),
    program(
        "convert",
        "test -x /usr/bin/convert",
        "",
        "/usr/bin/convert -size 200x200 gradient:red-blue -blur 0x3 picture.png",
    ),
    program("sudo", "sudo -n true", "", "sudo -n true"),
    program(
        "another user",
        "id nobody && command -v setpriv",
        "",
        "setpriv --reuid 65534 --clear-groups python3 -c 'x = [str(i) * 50 for i in range(30000)]'",
    ),
    program(
        "postgres, as another user",
        "id postgres && ls /usr/lib/postgresql/*/bin/initdb",
        "sh $HERE/postgres.sh init",
        "sh $HERE/postgres.sh run",
    ),
    program(
        "redis",
        "command -v redis-server && command -v redis-benchmark",
        "",
        "sh $HERE/redis.sh",
    ),
    program(
        "memcached, as another user",
        "command -v memcached",
        "",
        "sh $HERE/memcached.sh",
    ),
    program(
        "nginx, its workers as another user",
        "command -v nginx || test -x /usr/sbin/nginx",
        "",
        "sh $HERE/nginx.sh",
    ),
    program(
        "fibres (Boost.Fiber)",
        "echo '#include <boost/fiber/all.hpp>' | g++ -fsyntax-only -x c++ -",
        "g++ -O1 -o fibers $HERE/fibers.cpp -lboost_fiber -lboost_context -pthread",
        "./fibers",
    ),
    program(
        "fibres (GNU Pth)",
        "echo '#include <pth.h>' | cc -fsyntax-only -x c -",
        "cc -fno-builtin -o pth $HERE/pth.c -lpth",
        "./pth",
    ),
];

fn main() -> Result<ExitCode> {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let heapmark = Path::new(env!("CARGO_BIN_EXE_heapmark"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/counts");
    let (mut agree, mut differ, mut absent) = (0, Vec::new(), Vec::new());
    println!(
        "{:38}{:>10}{:>12}{:>10}",
        "", "processes", "calls", "left out"
    );
    for program in PROGRAMS {
        if !asked.is_empty()
            && !asked
                .iter()
                .any(|word| program.name.contains(word.as_str()))
        {
            continue;
        }
        if !program.there.is_empty() && !succeeds(program.there) {
            absent.push(program.name);
            continue;
        }
        match run(program, heapmark, &here) {
            Ok(compared) => {
                let sum = |of: fn(&Process) -> u64| compared.processes.iter().map(of).sum::<u64>();
                let (calls, left_out) = (sum(Process::calls), sum(|process| process.left_out));
                print!(
                    "{:38}{:>10}{calls:>12}{left_out:>10}",
                    program.name,
                    compared.processes.len()
                );
                let wrong: Vec<&Process> = compared
                    .processes
                    .iter()
                    .filter(|process| !process.agrees())
                    .collect();
                println!("{}", if wrong.is_empty() { "" } else { "  DIFFERENT" });
                wrong.iter().for_each(|process| println!("    {process}"));
                if wrong.is_empty() {
                    agree += 1
                } else {
                    differ.push(program.name)
                }
            }
            Err(error) => {
                println!("{:38}  FAILED: {error:#}", program.name);
                differ.push(program.name);
            }
        }
    }
    println!("agree to the call in every process: {agree} programs");
    if !differ.is_empty() {
        println!("differ or failed: {}", differ.join("; "));
    }
    if !absent.is_empty() {
        println!(
            "not installed here, so not looked at (make setup-counts): {}",
            absent.join("; ")
        );
    }
    ensure!(
        agree + differ.len() > 0,
        "there is no such program: {}",
        asked.join(", ")
    );
    Ok(if differ.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run(program: &Program, heapmark: &Path, here: &Path) -> Result<Compared> {
    let place = Place::new(&[]);
    let here = here.to_str().context("the folder's name is no UTF-8")?;
    if !program.before.is_empty() {
        let mut shell = Command::new("sh");
        let end = shell
            .args(["-e", "-c", program.before])
            .env("HERE", here)
            .env("PATH", path())
            .current_dir(place.work.path())
            .output()?;
        ensure!(
            end.status.success(),
            "before: {}",
            String::from_utf8_lossy(&end.stderr)
        );
    }
    let words = shlex::split(&program.line.replace("$HERE", here)).context("a quote is missing")?;
    let compared = place.compare(heapmark, &words);
    let said = String::from_utf8_lossy(&compared.end.stderr);
    if !compared.end.status.success() {
        bail!("{}: {}", compared.end.status, said.trim());
    }
    ensure!(
        compared.processes.iter().any(|process| process.calls() > 0),
        "nothing was counted: {}",
        said.trim()
    );
    Ok(compared)
}

fn succeeds(words: &str) -> bool {
    Command::new("sh")
        .args(["-c", words])
        .env("PATH", path())
        .output()
        .is_ok_and(|end| end.status.success())
}
