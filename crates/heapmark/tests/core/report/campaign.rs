//! `heapmark campaign` through the built binary: real runs of shards, one of them killed.

use crate::support::campaign::{campaign, planned, planned_of, planned_with, states};
use crate::support::live::{finish, guests, send, start, wait_for};
use crate::support::stored::copy;
use crate::support::{End, Place, head, samples};
use heapmark::store::sealed;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

#[test]
fn a_campaign_runs_each_shard_once_with_a_seed_of_its_own() {
    let place = Place::new();
    planned(&place, "2");
    assert_eq!(campaign(&place, &["status", "camp"]).code, Some(4));
    let end = campaign(&place, &["submit", "camp"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let status = campaign(&place, &["status", "camp"]);
    assert_eq!(status.code, Some(0), "{}", status.stdout);
    let seeds = [0, 1].map(|shard| {
        let run = place.at(&format!("camp/shards/{shard}/attempt-1"));
        head(&run)["plan"]["seed"].clone()
    });
    assert_eq!(seeds, [json!(1), json!(2)]);
    // Whoever may read the campaign may pool it.
    let mode = |path: &str| place.at(path).metadata().unwrap().permissions().mode();
    assert_eq!(mode("camp/shards/0/attempt-1"), mode("camp/shards/0"));
    let again = campaign(&place, &["submit", "camp"]);
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (Some(0), "all shards are complete\n")
    );
    // A script for no shard is none.
    let script = campaign(&place, &["print", "camp", "--engine", "slurm"]);
    assert_eq!((script.code, script.stdout.as_str()), (Some(0), ""));
    assert_eq!(script.stderr, "all shards are complete\n");
    let pooled = campaign(&place, &["pool", "camp", "--to", "json"]);
    let pooled: Value = serde_json::from_str(&pooled.stdout).unwrap();
    assert_eq!(pooled["machines"][0]["runs"].as_array().unwrap().len(), 2);
    // It was kept elsewhere than it was made.
    assert!(!end.says("heapmark-draft"), "{}", end.stdout);
    let page = fs::read_to_string(place.at("camp/shards/0/attempt-1/report.html"));
    assert!(!page.unwrap().contains("heapmark-draft"));
    // Without its samples an attempt counts as none.
    fs::remove_file(place.at("camp/shards/0/attempt-1/samples.jsonl")).unwrap();
    let status = campaign(&place, &["status", "camp"]);
    assert_eq!(status.code, Some(4), "{}", status.stdout);
    assert!(
        status.stderr.contains("has no samples"),
        "{}",
        status.stderr
    );
}

#[test]
fn two_hundred_shards_are_pooled_in_a_gibibyte() {
    are_pooled_in_a_gibibyte(200);
}

#[test]
#[ignore = "make test-all"]
fn so_are_a_thousand() {
    are_pooled_in_a_gibibyte(1000);
}

fn are_pooled_in_a_gibibyte(shards: usize) {
    let place = Place::new();
    let mine = format!("glibc,mine={}", place.fake("honest").display());
    planned_with(&place, &shards.to_string(), &mine);
    assert_eq!(
        campaign(&place, &["run", "camp", "--shard", "0"]).code,
        Some(0)
    );
    let of_shard = |shard| place.at(&format!("camp/shards/{shard}/attempt-1"));
    // Two megabytes that no pool reads.
    fs::remove_file(of_shard(0).join("report.html")).unwrap();
    // To parse them for each shard takes longer than the pool.
    let (mut head, mut records) = (head(&of_shard(0)), samples(&of_shard(0)));
    for document in records.iter_mut().chain([&mut head]) {
        document.as_object_mut().unwrap().shift_remove("crc");
    }
    for shard in 1..shards {
        let run = of_shard(shard);
        fs::create_dir_all(run.parent().unwrap()).unwrap();
        copy(&of_shard(0), &run);
        head["machine"]["machine_id"] = json!(shard.to_string());
        fs::write(run.join("run.json"), sealed(&head.to_string())).unwrap();
        let line = |record: &mut Value| {
            record["seed"] = json!(shard);
            sealed(&record.to_string()) + "\n"
        };
        let text: String = records.iter_mut().map(line).collect();
        fs::write(run.join("samples.jsonl"), text).unwrap();
    }
    let mut pool = place.heapmark(&["campaign", "pool", "camp", "--to", "json"]);
    let gibibyte = libc::rlimit {
        rlim_cur: 1 << 30,
        rlim_max: 1 << 30,
    };
    // SAFETY: one async-signal-safe call between fork and exec.
    unsafe {
        pool.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &gibibyte) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let end = End::of(pool.output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let pooled: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(pooled["machines"].as_array().unwrap().len(), shards);
    assert_eq!(pooled["rows"][0]["on"].as_array().unwrap().len(), shards);
    assert_eq!(pooled["refused"], json!([]));
}

#[test]
fn an_interrupted_shard_keeps_nothing_and_names_no_run_to_go_on_with() {
    let place = Place::new();
    planned_of(&place, "1", "glibc", "300");
    let shard = start(&place, &["campaign", "run", "camp", "--shard", "0"]);
    wait_for("a process", || guests(&place) > 0);
    send(&shard, Signal::INT);
    let end = finish(shard);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    let told = &end.stderr;
    assert!(told.contains("nothing of it is kept"), "{told}");
    assert!(!told.contains("--resume"), "{told}");
    assert!(!place.at("camp/shards/0").exists());
}

#[test]
fn of_two_attempts_the_one_that_began_first_counts() {
    let place = Place::new();
    planned(&place, "1");
    for _ in 0..2 {
        assert_eq!(
            campaign(&place, &["run", "camp", "--shard", "0"]).code,
            Some(0)
        );
    }
    let [state] = &states(&place)[..] else {
        panic!("one shard")
    };
    assert!(
        state["run"]
            .as_str()
            .unwrap()
            .ends_with("shards/0/attempt-1"),
        "{state}"
    );
    assert_eq!(state["others"].as_array().unwrap().len(), 1);
}

#[test]
fn a_machine_that_dies_leaves_no_run_and_its_shard_can_be_run_again() {
    let place = Place::new();
    planned(&place, "1");
    let beat = place.at("camp/beat/0-1.json");
    let mut command = place.heapmark(&["campaign", "run", "camp", "--shard", "0"]);
    let mut job = command
        .env("TMPDIR", place.at(""))
        .process_group(0)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !fs::read(&beat).is_ok_and(|text| !text.is_empty()) {
        assert!(
            job.try_wait().unwrap().is_none(),
            "it ended before it was killed"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    job.kill().unwrap();
    job.wait().unwrap();
    assert_eq!(
        states(&place)[0]["state"],
        "running",
        "its last sign is younger than a minute"
    );
    let minutes_ago = SystemTime::now() - Duration::from_secs(120);
    File::open(&beat)
        .unwrap()
        .set_modified(minutes_ago)
        .unwrap();
    assert_eq!(states(&place)[0]["state"], "lost");
    let told = campaign(&place, &["pool", "camp"]);
    assert_eq!(told.code, Some(2));
    assert!(
        told.stderr.contains("0 of 1 shards are complete"),
        "{}",
        told.stderr
    );
    assert_eq!(campaign(&place, &["submit", "camp"]).code, Some(0));
    let run = states(&place)[0]["run"].as_str().unwrap().to_owned();
    assert!(run.ends_with("shards/0/attempt-2"), "{run}");
    assert_eq!(fs::read_dir(place.at("camp/shards/0")).unwrap().count(), 1);
}

#[test]
fn a_scheduler_gets_the_shards_that_are_open() {
    let place = Place::new();
    planned(&place, "2");
    assert_eq!(
        campaign(&place, &["run", "camp", "--shard", "0"]).code,
        Some(0)
    );
    let flags = ["print", "camp", "--engine", "slurm", "--partition", "quiet"];
    let script = campaign(&place, &flags).stdout;
    for line in [
        "#SBATCH --array=1%2\n",
        "--exclusive",
        "#SBATCH --partition=\"quiet\"\n",
    ] {
        assert!(script.contains(line), "no `{line}` in {script}");
    }
    // Slurm makes no folder for what a job prints.
    assert!(place.at("camp/log").is_dir());
    let last = script.trim_end().lines().last().unwrap();
    assert!(last.ends_with("--shard \"$SLURM_ARRAY_TASK_ID\""), "{last}");
    let manifest = campaign(&place, &["print", "camp", "--engine", "k8s"]).stdout;
    for line in [
        "completions: 2",
        "parallelism: 2",
        "completionMode: Indexed",
        // Failed rows are a result, and the image's id is no machine's.
        "|| [ $? -eq 4 ]\"]",
        "mountPath: /etc/machine-id",
    ] {
        assert!(manifest.contains(line), "no `{line}` in {manifest}");
    }
}

#[test]
fn a_script_for_slurm_names_a_directory_whatever_its_name_or_is_refused() {
    let place = Place::new();
    planned(&place, "1");
    let script = |name: &OsStr| {
        fs::create_dir(place.at("").join(name)).unwrap();
        fs::copy(
            place.at("camp/plan.json"),
            place.at("").join(name).join("plan.json"),
        )
        .unwrap();
        let mut command = place.heapmark(&["campaign", "print", "--engine", "slurm"]);
        End::of(command.arg(name).output().unwrap())
    };
    let end = script(OsStr::new("50%a"));
    let log = format!("--output=\"{}/50%%a/log/%a.log\"", place.text(""));
    let log = log.replace("//50", "/50");
    assert!(end.says(&log), "{log}: {}", end.stdout);
    assert!(end.says("/50%a\" --shard"), "{}", end.stdout);
    let end = script(OsStr::from_bytes(b"caf\xe9"));
    end.is_one_line(1);
    assert!(
        end.stderr.contains("no script can name it"),
        "{}",
        end.stderr
    );
}

/// A user other than this one.
const ANOTHER: u32 = 12_345;

#[test]
fn what_another_user_has_planned_is_not_started_unless_it_is_trusted() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a file to another user");
        return;
    }
    let place = Place::new();
    planned(&place, "1");
    let commands: [&[&str]; 3] = [
        &["run", "camp", "--shard", "0"],
        &["submit", "camp"],
        &["print", "camp", "--engine", "slurm"],
    ];
    for theirs in ["camp/plan.json", "camp"] {
        chown(place.at(theirs), Some(ANOTHER), None).unwrap();
        for command in commands {
            let end = campaign(&place, command);
            end.is_one_line(2);
            let told =
                "belongs to user 12345, and going on with it starts what its plan.json names";
            assert!(end.stderr.contains(told), "{theirs}: {}", end.stderr);
            assert!(end.stderr.contains("--trust"), "{}", end.stderr);
        }
        assert!(!place.at("camp/beat").exists() && !place.at("camp/shards").exists());
        chown(place.at(theirs), Some(0), None).unwrap();
    }
    chown(place.at("camp/plan.json"), Some(ANOTHER), None).unwrap();
    assert_eq!(campaign(&place, &["status", "camp"]).code, Some(4));
    let script = campaign(&place, &["print", "camp", "--engine", "slurm", "--trust"]).stdout;
    assert!(script.contains(" --trust --shard "), "{script}");
    let end = campaign(&place, &["submit", "camp", "--trust"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn a_plan_with_numbers_that_no_campaign_has_is_none() {
    let place = Place::new();
    planned(&place, "1");
    let plan = fs::read_to_string(place.at("camp/plan.json")).unwrap();
    for changes in [
        &[("machines", 4_294_967_295)][..],
        &[("machines", 65_536), ("jobs", 65_536)],
        &[("machines", 0)],
        &[("jobs", 0)],
        &[("seed", u64::MAX)],
    ] {
        let mut plan: Value = serde_json::from_str(&plan).unwrap();
        changes
            .iter()
            .for_each(|(key, number)| plan[*key] = json!(number));
        fs::write(place.at("camp/plan.json"), plan.to_string()).unwrap();
        for command in [
            &["status", "camp"][..],
            &["pool", "camp"],
            &["run", "camp", "--shard", "0"],
        ] {
            let end = campaign(&place, command);
            end.is_one_line(2);
            assert!(
                end.stderr.contains("camp/plan.json is no plan"),
                "{}",
                end.stderr
            );
        }
    }
    let far = u64::MAX.to_string();
    let end = campaign(
        &place,
        &["plan", "-o", "far", "--machines", "1", "--seed", &far],
    );
    end.is_one_line(2);
    assert!(end.stderr.contains("leaves no seeds"), "{}", end.stderr);
    assert!(!place.at("far").exists());
}

#[test]
fn what_makes_no_campaign_is_refused_in_a_line() {
    let place = Place::new();
    planned(&place, "1");
    fs::create_dir(place.at("other")).unwrap();
    fs::write(place.at("other/plan.json"), "{}").unwrap();
    for (words, why) in [
        (
            &["plan", "-o", "camp", "--machines", "2"][..],
            "camp holds a campaign",
        ),
        (
            &["plan", "-o", "new", "--machines", "2", "--", "--seed", "7"],
            "--seed does not belong into a campaign",
        ),
        (
            &["plan", "-o", "new", "--machines", "2", "--", "--block", "7"],
            "unexpected argument '--block'",
        ),
        (
            &["run", "camp", "--shard", "1"],
            "the campaign has shards 0 to 0",
        ),
        (&["status", "nowhere"], "nowhere/plan.json"),
        (&["status", "other"], "is no plan of a campaign"),
        (
            &["submit", "camp", "--partition", "quiet"],
            "--partition does something with --engine slurm only",
        ),
        (
            &["print", "camp", "--engine", "slurm", "--time", "a\"b"],
            "expected a word without quotes",
        ),
    ] {
        let end = campaign(&place, words);
        assert_eq!(end.code, Some(2), "{words:?}: {}", end.stderr);
        assert!(end.stderr.contains(why), "{words:?}: {}", end.stderr);
    }
}

#[test]
fn what_could_not_be_pooled_is_not_planned() {
    let place = Place::new();
    for (flags, why) in [
        (
            &["memory-shapes"][..],
            "suite memory-shapes measures memory alone, and a campaign pools what timed processes have",
        ),
        (&["-w", "churn,shift"], "-w shift measures memory alone"),
        (
            &["--latency"],
            "--latency measures something in place of time",
        ),
        (
            &["--retained"],
            "--retained measures something in place of time",
        ),
    ] {
        let plan = ["plan", "-o", "camp", "--machines", "2", "--"];
        let end = campaign(&place, &[&plan[..], flags].concat());
        end.is_one_line(2);
        assert!(end.stderr.contains(why), "{flags:?}: {}", end.stderr);
    }
    assert!(!place.at("camp").exists());
}
