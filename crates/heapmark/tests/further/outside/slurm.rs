//! A campaign on a Slurm cluster of this machine: all shards run, and what is killed on a node is run again.

use crate::support::campaign::{campaign, planned_of, states};
use crate::support::{End, Place, Port};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A Slurm cluster on this machine: a controller and node daemons, which end with it. Nodes that share a machine are good for
/// the flow of jobs, never for times.
struct Slurm {
    conf: PathBuf,
    daemons: Vec<Child>,
    _ports: Vec<Port>,
}

impl Slurm {
    fn with_nodes(place: &Place, nodes: usize) -> Slurm {
        let ports: Vec<Port> = (0..=nodes).map(|_| Port::free()).collect();
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let (user, dir) = (user.trim(), place.at("slurm"));
        fs::create_dir(&dir).unwrap();
        let dir = dir.display();
        let mut text = format!(
            "ClusterName=heapmark\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/none\nCredType=cred/none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/linear\nMpiDefault=none\nReturnToService=2\nSlurmdParameters=config_overrides\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool-%n\nSlurmctldPidFile={dir}/controller.pid\n\
             SlurmdPidFile={dir}/%n.pid\nSlurmctldLogFile={dir}/controller.log\nSlurmdLogFile={dir}/%n.log\n",
            ports[0].0
        );
        for (number, port) in ports[1..].iter().enumerate() {
            text += &format!(
                "NodeName=n{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={} CPUs=1\n",
                port.0
            );
        }
        text += "PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE\n";
        let conf = place.at("slurm/slurm.conf");
        fs::write(&conf, text).unwrap();
        let daemon = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg("-D").arg("-f").arg(&conf);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            let why = "scripts/setup.sh test brings slurm-wlm";
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{}: {error}: {why}", words[0]))
        };
        let mut daemons = vec![daemon(&["/usr/sbin/slurmctld"])];
        daemons.extend(
            (0..nodes).map(|number| daemon(&["/usr/sbin/slurmd", "-N", &format!("n{number}")])),
        );
        Slurm {
            conf,
            daemons,
            _ports: ports,
        }
    }

    /// What a command of Slurm's prints.
    fn says(&self, words: &[&str]) -> String {
        let output = Command::new(words[0])
            .args(&words[1..])
            .env("SLURM_CONF", &self.conf)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.says(&["scancel", "--name=heapmark", "--signal=KILL"]);
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Waits for something that a scheduler does in its own time.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "not within ten minutes: {what}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Stops the processes that run this shard of the place's campaign; how many there are.
fn stopped(place: &Place, shard: &str) -> usize {
    let (camp, mine) = (place.text("camp"), format!("--shard\0{shard}\0"));
    let number = |entry: fs::DirEntry| {
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_it = words.contains(&camp) && words.ends_with(&mine);
        entry.file_name().to_str()?.parse().ok().filter(|_| is_it)
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(number);
    // A child that has just been forked has the same words, and may be gone.
    let stop = |number| kill_process(Pid::from_raw(number)?, Signal::STOP).ok();
    all.filter_map(stop).count()
}

#[test]
fn slurm_runs_all_shards_and_what_is_killed_on_a_node_is_run_again() {
    let place = Place::new();
    planned_of(&place, "4", "glibc", "60");
    let slurm = Slurm::with_nodes(&place, 4);
    until("four idle nodes", || {
        slurm
            .says(&["sinfo", "-h", "-t", "idle", "-o", "%D"])
            .trim()
            == "4"
    });
    let submit = || {
        let mut command = place.heapmark(&["campaign", "submit", "camp", "--engine", "slurm"]);
        let end = End::of(command.env("SLURM_CONF", &slurm.conf).output().unwrap());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    };
    submit();
    // The work of shard 2's node is killed as soon as there is any.
    let beat = place.at("camp/beat/2-1.json");
    until("a sign of life of shard 2", || {
        fs::read(&beat).is_ok_and(|text| !text.is_empty())
    });
    // It does not end meanwhile.
    assert!(stopped(&place, "2") > 0, "shard 2 is over already");
    let shards = slurm.says(&["squeue", "-h", "-r", "-o", "%K %N"]);
    let node = shards.lines().find_map(|line| line.strip_prefix("2 "));
    let list = format!("--nodelist={}", node.unwrap_or_else(|| panic!("{shards}")));
    let kill = ["scancel", "--signal=KILL", "--full", "--name=heapmark"];
    slurm.says(&[&kill[..], &[&list]].concat());
    let is_over = || slurm.says(&["squeue", "-h"]).is_empty();
    until("the end of the first array", is_over);
    let complete = |states: &[Value]| states.iter().filter(|it| it["state"] == "complete").count();
    let first = states(&place);
    assert!(complete(&first) < 4, "nothing was killed: {first:?}");
    submit();
    until("the end of the second array", is_over);
    let last = states(&place);
    assert_eq!(complete(&last), 4, "{last:?}");
    for (before, after) in first.iter().zip(&last) {
        assert_eq!(after["others"], json!([]), "a shard ran twice");
        assert!(before["state"] != "complete" || before == after);
    }
    let pooled = campaign(&place, &["pool", "camp", "--to", "json"]);
    let pooled: Value = serde_json::from_str(&pooled.stdout).unwrap();
    assert_eq!(
        pooled["machines"][0]["runs"].as_array().unwrap().len(),
        4,
        "one machine, as its id says"
    );
}
