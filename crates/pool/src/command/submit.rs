//! `heapmark campaign submit` and `print`: from a plan to a scheduler.

use super::shard::attempt;
use super::{Started, states};
use crate::campaign::{Campaign, ShardState};
use anyhow::{Context, Result, bail};
use heapmark_core::catalog::joined;
use heapmark_core::cmd::{Exit, print};
use heapmark_core::file::{WithPath, make_folder};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Start all shards of a campaign that are not complete
#[derive(clap::Args)]
pub struct SubmitArgs {
    #[command(flatten)]
    started: Started,
    /// What runs them: this machine, one after the other, or Slurm, as one array of jobs
    #[arg(long, value_enum, default_value = "local")]
    engine: Engine,
    #[command(flatten)]
    slurm: SlurmFlags,
}

/// Print what would be given to a scheduler
#[derive(clap::Args)]
pub struct PrintArgs {
    #[command(flatten)]
    started: Started,
    /// Slurm, a script for sbatch; or Kubernetes, an indexed Job, to be completed by hand
    #[arg(long, value_enum)]
    engine: Scheduler,
    #[command(flatten)]
    slurm: SlurmFlags,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Engine {
    Local,
    Slurm,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Scheduler {
    Slurm,
    K8s,
}

/// The flags that select machines of a Slurm cluster.
#[derive(clap::Args)]
struct SlurmFlags {
    /// Slurm: the partition
    #[arg(long, value_name = "NAME", value_parser = slurm_word)]
    partition: Option<String>,
    /// Slurm: features that a machine must have
    #[arg(long, value_name = "FEATURES", value_parser = slurm_word)]
    constraint: Option<String>,
    /// Slurm: how long a job may take, as sbatch reads it [default: the partition's]
    #[arg(long, value_name = "TIME", value_parser = slurm_word)]
    time: Option<String>,
}

impl SlurmFlags {
    fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let flags = [
            ("partition", &self.partition),
            ("constraint", &self.constraint),
            ("time", &self.time),
        ];
        flags
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// Refuses these flags without Slurm, since they would have no effect.
    fn refused_without(&self, is_slurm: bool) -> Result<()> {
        match self.all().next() {
            Some((name, _)) if !is_slurm => {
                refuse!("--{name} does something with --engine slurm only")
            }
            _ => Ok(()),
        }
    }
}

/// A word that ends neither its line nor its quotes in a script.
fn slurm_word(word: &str) -> Result<String, String> {
    match word.contains(['"', '\n', '\\']) || word.is_empty() {
        true => Err("expected a word without quotes".into()),
        false => Ok(word.into()),
    }
}

/// Runs `submit`.
pub fn run(args: SubmitArgs) -> Result<Exit> {
    args.slurm.refused_without(args.engine == Engine::Slurm)?;
    let campaign = args.started.open()?;
    let open = not_complete(&campaign);
    if open.is_empty() {
        return Ok(Exit::Done);
    }
    if args.engine == Engine::Slurm {
        return submitted(&script(&campaign, &open, &args.slurm, args.started.trust)?);
    }
    let mut worst = Exit::Done;
    for shard in open {
        match attempt(&campaign, shard)? {
            Exit::Done => {}
            Exit::NotAllOk => worst = Exit::NotAllOk,
            other => return Ok(other),
        }
    }
    Ok(worst)
}

/// Runs `print`.
pub fn print_script(args: PrintArgs) -> Result<Exit> {
    args.slurm
        .refused_without(args.engine == Scheduler::Slurm)?;
    let campaign = args.started.open()?;
    match args.engine {
        Scheduler::Slurm => {
            let open = not_complete(&campaign);
            if !open.is_empty() {
                print(script(&campaign, &open, &args.slurm, args.started.trust)?)?;
            }
        }
        Scheduler::K8s => print(manifest(&campaign))?,
    }
    Ok(Exit::Done)
}

/// Returns the shards that are not complete; prints a message if all are.
fn not_complete(campaign: &Campaign) -> Vec<u32> {
    let states = states(campaign).into_iter().zip(campaign.plan.shards());
    let open = states.filter(|(state, _)| !matches!(state, ShardState::Complete { .. }));
    let open: Vec<u32> = open.map(|(_, shard)| shard).collect();
    if open.is_empty() {
        say!("all shards are complete");
    }
    open
}

/// Returns the script for Slurm: one array, whose tasks each have a machine to themselves, so that no neighbour disturbs them.
/// Makes the folder that they write to, which Slurm does not.
fn script(campaign: &Campaign, shards: &[u32], flags: &SlurmFlags, trust: bool) -> Result<String> {
    let program = std::env::current_exe().context("cannot find heapmark's own file")?;
    let [program, dir] = [quoted(&program)?, quoted(campaign.dir())?];
    let logs = campaign.dir().join("log");
    make_folder(&logs).with_path("cannot create", &logs)?;
    let array = joined(shards.iter().map(u32::to_string), ",");
    let mut lines = vec![
        "#!/bin/sh".into(),
        "#SBATCH --job-name=heapmark".into(),
        // Not all at once: the shards of a machine run at different times.
        format!("#SBATCH --array={array}%{}", campaign.plan.machines),
        "#SBATCH --exclusive --hint=nomultithread --mem=0 --requeue".into(),
        // A single % of the path would be a pattern, too.
        format!(
            "#SBATCH --open-mode=append --output={}/log/%a.log\"",
            dir.trim_end_matches('"').replace('%', "%%")
        ),
    ];
    lines.extend(
        flags
            .all()
            .map(|(name, value)| format!("#SBATCH --{name}=\"{value}\"")),
    );
    lines.push(format!(
        "exec {program} campaign run {dir}{} --shard \"$SLURM_ARRAY_TASK_ID\"\n",
        if trust { " --trust" } else { "" }
    ));
    Ok(lines.join("\n"))
}

/// The path in double quotes, for `sh` and for `#SBATCH`.
fn quoted(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) if !text.contains(['"', '\n', '\\', '$', '`']) => Ok(format!("\"{text}\"")),
        _ => bail!(
            "{}: no script can name it: choose a directory whose name is text, without quotes and $",
            path.display()
        ),
    }
}

/// Gives a script to Slurm.
fn submitted(script: &str) -> Result<Exit> {
    let started = Command::new("sbatch").stdin(Stdio::piped()).spawn();
    let mut sbatch = match started {
        Ok(sbatch) => sbatch,
        Err(error) => {
            refuse!("cannot start sbatch: {error}: is this a machine of a Slurm cluster?")
        }
    };
    let mut stdin = sbatch.stdin.take().context("sbatch has no stdin")?;
    stdin
        .write_all(script.as_bytes())
        .context("cannot write to sbatch")?;
    drop(stdin);
    let status = sbatch.wait().context("cannot wait for sbatch")?;
    if !status.success() {
        bail!("sbatch failed: {status}");
    }
    Ok(Exit::Done)
}

/// An indexed Job whose pods keep away from each other and have whole CPUs.
fn manifest(campaign: &Campaign) -> String {
    let (shards, machines) = (campaign.plan.shards().len(), campaign.plan.machines);
    format!(
        r#"# To be completed: the image (it has heapmark), CPUs and memory of a machine, and a volume that all pods share.
apiVersion: batch/v1
kind: Job
metadata:
  name: heapmark
spec:
  completions: {shards}
  parallelism: {machines}
  completionMode: Indexed
  template:
    metadata:
      labels:
        app: heapmark
    spec:
      restartPolicy: OnFailure
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app: heapmark
      containers:
        - name: heapmark
          image: IMAGE
          # 4: some rows failed. That run is whole and kept, and would fail again. --trust: a pod's user is another one.
          command: [sh, -c, "heapmark campaign run /campaign --trust --shard $JOB_COMPLETION_INDEX || [ $? -eq 4 ]"]
          resources:
            requests: &all
              cpu: "CPUS"
              memory: MEMORY
            limits: *all
          volumeMounts:
            - name: campaign
              mountPath: /campaign
            # Otherwise all pods have the image's, or none: by this id machines are told apart.
            - name: machine-id
              mountPath: /etc/machine-id
              readOnly: true
      volumes:
        - name: machine-id
          hostPath:
            path: /etc/machine-id
            type: File
        - name: campaign
          persistentVolumeClaim:
            claimName: CLAIM
"#
    )
}
