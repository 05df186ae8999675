//! `heapmark run` on real programs, planted ones in the user's folder: what differs, fails, is not installed or stays behind must
//! be said for what it is.

use crate::support::home::Home;
use crate::support::{Place, copy_program, head, word};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A program of one script for sh, which is the same for each size.
fn plant(home: &Home, name: &str, keys: &str, script: &str) {
    let toml = format!(
        "name = \"{name}\"\nabout = \"planted\"\nfamily = \"planted\"\npackages = [\"{name}-package\"]\n\
         generate = [\"sh\", \"generate.sh\"]\nrole = \"test\"\nthreads = 1\nquick = 1\npaper = 10\n{keys}\n"
    );
    home.write(&format!("real-programs/{name}/program.toml"), &toml);
    let generator = format!("cat > work.sh <<'END'\n# size $2\n{script}\nEND\n");
    home.write(&format!("real-programs/{name}/generate.sh"), &generator);
}

const SH: &str = "needs = []\nrun = [\"sh\", \"work.sh\"]\n";
/// 1 under the library that hands on, 0 under glibc.
const WHICH: &str = "echo $LD_PRELOAD | grep -c honest || true";

fn check<'a>(records: &'a [Value], program: &str, allocator: &str) -> &'a Value {
    let is = |record: &&Value| {
        record["purpose"] == "check"
            && record["workload"] == program
            && record["allocator"] == allocator
    };
    let found = records.iter().find(is);
    found.unwrap_or_else(|| panic!("no check of {program} under {allocator}"))
}

fn ended(records: &[Value], program: &str, allocator: &str) -> String {
    let outcome = &check(records, program, allocator)["outcome"];
    let words = ["kind", "code", "what", "why"].map(|key| match &outcome[key] {
        Value::Null => String::new(),
        Value::String(word) => word.clone() + " ",
        other => format!("{other} "),
    });
    words.concat()
}

#[test]
fn several_programs_are_measured_compared_and_leave_nothing() {
    let (home, place) = (Home::new(), Place::new());
    plant(
        &home,
        "t-steady",
        &format!("{SH}check-output = true"),
        "echo \"same, $HOME\"",
    );
    plant(
        &home,
        "t-differs",
        &format!("{SH}check-output = true"),
        WHICH,
    );
    let digest = "digest = [\"sh\", \"-c\", \"cksum < out\"]\nchanges-input = true";
    // In a folder that an earlier process has changed it fails.
    let writes = "test ! -e out || exit 3\necho";
    plant(
        &home,
        "t-writes",
        &format!("{SH}{digest}"),
        &format!("{writes} > out"),
    );
    plant(
        &home,
        "t-writes-another",
        &format!("{SH}{digest}"),
        &format!("{writes} `{WHICH}` > out"),
    );
    plant(&home, "t-fails", SH, "exit 3");
    plant(
        &home,
        "t-absent",
        "needs = [\"t-no-such\"]\nrun = [\"t-no-such\"]",
        "",
    );
    let server = "import http.server, subprocess, sys\nsubprocess.Popen([NAP, '600'])\n\
        http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')";
    copy_program("/bin/sleep", home.at("nap"));
    let nap = format!("'{}'", home.at("nap").display());
    let client = "import sys, urllib.request as r; print(len(r.urlopen('http://127.0.0.1:{port}/work.sh').read()))";
    plant(
        &home,
        "t-serves",
        &format!(
            "needs = [\"python3\"]\nrun = [\"python3\", \"work.sh\", \"{{port}}\"]\n\
             client = [\"python3\", \"-c\", \"{client}\"]\ncheck-output = true"
        ),
        &server.replace("NAP", &nap),
    );
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let end = home.heapmark(&[
        "run",
        "programs",
        "-w",
        "program:t-*",
        "-a",
        &honest,
        "-o",
        "run",
        "--blocks",
        "2",
        "--no-repeat",
        "--no-aa-copy",
        "--alone",
    ]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let absent = "not installed: t-absent; apt-get install t-absent-package\n";
    assert!(end.stderr.contains(absent), "{}", end.stderr);
    let records = crate::support::samples(&home.at("run"));
    for program in ["t-steady", "t-serves", "t-writes"] {
        let digests = ["glibc", "honest"].map(|allocator| {
            let record = check(&records, program, allocator);
            assert_eq!(word(&record["outcome"], "kind"), "ok", "{record}");
            record["measurement"]["notes"]["digest"].clone()
        });
        assert!(
            digests[0].is_string() && digests[0] == digests[1],
            "{digests:?}"
        );
    }
    assert_eq!(
        ended(&records, "t-differs", "honest"),
        "wrong-result line 1 of the output: \"1\\n\", but \"0\\n\" under glibc "
    );
    let another = ended(&records, "t-writes-another", "honest");
    assert!(
        another.starts_with("wrong-result what it wrote has the digest "),
        "{another}"
    );
    assert_eq!(ended(&records, "t-fails", "glibc"), "exit 3 ");
    assert!(ended(&records, "t-fails", "honest").contains("it does not run under glibc"));
    let samples = |program: &str| {
        let own = records.iter().filter(|it| it["purpose"] == "sample");
        own.filter(|it| it["workload"] == program).count()
    };
    assert_eq!(samples("t-writes"), 4, "each with the input as it was");
    assert_eq!((samples("t-fails"), samples("t-differs")), (0, 2));
    assert!(!home.naps(), "what a server starts is ended with it");
    // What they worked in is gone, and what they worked from is as it was.
    let head = head(&home.at("run"));
    for case in head["plan"]["cases"].as_array().unwrap() {
        let command = &case["target"]["command"];
        assert!(!Path::new(word(command, "folder")).exists(), "{command}");
        let input = Path::new(word(&command["real"], "input"));
        assert!(input.join("work.sh").exists() && !input.join("out").exists());
    }
    for words in [
        "Time over glibc's",
        "Peak memory over glibc's",
        "in malloc: the share of the program's CPU time",
    ] {
        assert!(end.says(words), "no {words}: {}", end.stdout);
    }
    let page = fs::read_to_string(home.at("run/report.html")).unwrap();
    assert!(page.contains("t-serves"));
    // Resumed with everything done, and with another generator.
    let again = home.heapmark(&["run", "--resume", "run"]);
    assert_eq!(again.code, Some(4), "{}", again.stderr);
    plant(
        &home,
        "t-steady",
        &format!("{SH}check-output = true"),
        "echo other",
    );
    let other = home.heapmark(&["run", "--resume", "run"]);
    assert!(
        other
            .stderr
            .contains("t-steady is not the program that this run began with"),
        "{}",
        other.stderr
    );
}

#[test]
fn what_real_programs_cannot_do_is_refused_in_a_line() {
    let home = Home::new();
    plant(&home, "t-steady", SH, "echo same");
    plant(
        &home,
        "t-absent",
        "needs = [\"t-no-such\"]\nrun = [\"t-no-such\"]",
        "",
    );
    for (flags, why) in [
        (
            &["-w", "t-absent"][..],
            "t-absent is not installed: apt-get install t-absent-package",
        ),
        (&["-w", "program:t-steadu"], "did you mean `t-steady`"),
        (&["-w", "t-steady,larson"], "larson is no real program"),
        (
            &["-w", "t-steady", "--preset", "small"],
            "they have quick and paper",
        ),
        (
            &["-w", "t-steady", "--set", "t-steady.length=3"],
            "one parameter, size",
        ),
        (
            &["-w", "t-steady", "--set", "t-steady.size=0"],
            "a whole number, 1 or more",
        ),
        (
            &["-w", "t-steady", "--set", "other.size=3"],
            "no program of this run",
        ),
        (
            &["-w", "t-steady", "-a", "own"],
            "own: the chosen programs are not all linked to one allocator; leave own out",
        ),
        (
            &["-w", "t-steady", "--latency"],
            "--latency, --counter and --retained",
        ),
        (&["-w", "t-steady", "-t", "2"], "--threads: real programs"),
        (&["-w", "t-steady", "--series", "1ms"], "--series:"),
        (&["-w", "t-steady", "--target-ms", "10"], "--target-ms:"),
        (&["-w", "t-steady", "--no-floor"], "--no-floor:"),
        (
            &["-w", "t-steady", "--allow-forwarding"],
            "--allow-forwarding:",
        ),
    ] {
        let end =
            home.heapmark(&[&["run", "programs", "-a", "glibc", "--dry-run"], flags].concat());
        end.is_one_line(2);
        assert!(end.stderr.contains(why), "{why}: {}", end.stderr);
    }
    let sized = home.heapmark(&[
        "run",
        "programs",
        "-w",
        "t-ste*",
        "-a",
        "glibc",
        "--dry-run",
        "--cells",
        "--set",
        "t-*.size=7",
    ]);
    assert!(
        sized.stdout.contains("t-steady@1  size=7"),
        "{}{}",
        sized.stdout,
        sized.stderr
    );
    plant(
        &home,
        "t-writes",
        &format!("{SH}changes-input = true"),
        "echo > out",
    );
    let both = [
        "run",
        "programs",
        "-w",
        "t-steady,t-writes",
        "-a",
        "glibc,glibc-notcache",
        "--dry-run",
    ];
    let planned = home.heapmark(&both).stdout;
    assert!(
        planned.contains(" t-steady@1: their CPU time"),
        "what changes its input would change the other side's: {planned}"
    );
    let listed = home.heapmark(&["list", "programs"]).stdout;
    let line = |name: &str| {
        let mut lines = listed
            .lines()
            .filter(|line| line.trim_start().starts_with(name));
        lines
            .next()
            .unwrap_or_else(|| panic!("no {name}: {listed}"))
            .to_owned()
    };
    assert!(line("t-steady").contains("ready"));
    assert!(line("t-absent").contains("t-no-such is not there: apt-get install t-absent-package"));
}

#[test]
fn redis_alone_has_a_row_of_the_allocator_that_it_is_linked_to() {
    let installed = |file: &str| Path::new("/usr/bin").join(file).exists();
    if !installed("redis-server") || !installed("redis-cli") {
        return;
    }
    let (home, place) = (Home::new(), Place::new());
    let run = place.at("run");
    let end = home.heapmark(&[
        "run",
        "programs",
        "-w",
        "redis-values",
        "--set",
        "redis-values.size=2000",
        "-a",
        "own,glibc",
        "--blocks",
        "1",
        "--no-repeat",
        "--output",
        run.to_str().unwrap(),
    ]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = crate::support::samples(&run);
    for (allocator, file) in [("glibc", "libc.so.6"), ("own", "libjemalloc.so.2")] {
        let proof = &check(&records, "redis-values", allocator)["proof"];
        let owner = &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize];
        assert!(word(owner, "path").ends_with(file), "{owner}");
    }
}
