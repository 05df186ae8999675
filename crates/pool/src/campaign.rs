//! The directory of a campaign: `plan.json`, whole run directories in `shards/K/attempt-A`, and
//! signs of life in `beat/K-A.json`. Machines share nothing but this directory, and each file in it
//! is written by one process. An attempt appears whole, by one rename, or not at all.

use anyhow::{Context, Result, bail, ensure};
use heapmark_core::file::{
    self, Draft, Existing, PUBLIC, WithPath, is_there, length, make_folder, read_stored,
};
use heapmark_core::observe::machine::Root;
use heapmark_core::store;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

pub const PLAN: &str = "plan.json";
const SCHEMA: u32 = 1;
/// How many machines a campaign may be meant for.
pub const MOST_MACHINES: u32 = 10_000;
/// How many runs each machine may make.
pub const MOST_JOBS: u32 = 100;
/// The time between two signs of life of an attempt.
const BEAT: Duration = Duration::from_secs(10);
/// An attempt is lost after this long without a sign of life: what a scheduler reports about a job may be half a minute old,
/// and the clocks of two machines differ a little.
const LOST: Duration = Duration::from_secs(60);

/// What a campaign measures. It never changes once it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CampaignPlan {
    schema: u32,
    /// The version of heapmark that must run the campaign.
    pub heapmark: String,
    /// The arguments that follow `heapmark run`.
    pub run: Vec<String>,
    /// The number of machines that the campaign is meant for.
    pub machines: u32,
    /// The number of runs on each machine, at different times.
    pub jobs: u32,
    /// The seed of shard 0; the seed of shard K is higher by K.
    pub seed: u64,
}

impl CampaignPlan {
    /// A new plan.
    pub fn new(run: Vec<String>, machines: u32, jobs: u32, seed: u64) -> CampaignPlan {
        CampaignPlan {
            schema: SCHEMA,
            heapmark: env!("CARGO_PKG_VERSION").into(),
            run,
            machines,
            jobs,
            seed,
        }
    }

    /// The numbers of the campaign's shards, each a run on one machine.
    pub fn shards(&self) -> std::ops::Range<u32> {
        0..self.machines * self.jobs
    }

    /// The seed of a shard's run.
    pub fn seed_of(&self, shard: u32) -> u64 {
        self.seed + u64::from(shard)
    }

    /// Refuses numbers that are out of range: they would overflow, or take all memory.
    fn checked(self) -> Result<CampaignPlan> {
        let is_within = |number, most| (1..=most).contains(&number);
        ensure!(
            is_within(self.machines, MOST_MACHINES) && is_within(self.jobs, MOST_JOBS),
            "{} machines and {} jobs of each: there may be 1 to {MOST_MACHINES}, and 1 to {MOST_JOBS}",
            self.machines,
            self.jobs
        );
        let last = self.seed.checked_add(self.shards().end.into());
        ensure!(
            last.is_some(),
            "seed {} leaves no seeds for its runs",
            self.seed
        );
        Ok(self)
    }
}

/// A campaign's directory and plan.
pub struct Campaign {
    dir: PathBuf,
    /// What the campaign measures.
    pub plan: CampaignPlan,
}

/// The state of a shard.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ShardState {
    /// No attempt at the shard has given a sign of life.
    Waiting,
    /// An attempt gave a sign of life less than a minute ago.
    Running {
        /// The machine's name.
        host: String,
    },
    /// The last attempt fell silent.
    Lost {
        /// The machine's name.
        host: String,
    },
    /// There is at least one whole run.
    Complete {
        /// The run that counts: if there are several, the one that began first, whatever it measured.
        #[serde(serialize_with = "shown")]
        run: PathBuf,
        /// The other runs.
        #[serde(serialize_with = "all_shown")]
        others: Vec<PathBuf>,
    },
}

/// Serialises a path, which may not be valid text.
fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn all_shown<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

/// A sign of life.
#[derive(Serialize, Deserialize)]
struct Beat {
    host: String,
    boot_id: String,
}

impl Campaign {
    /// Writes a new campaign. Fails if the folder has one.
    pub fn create(dir: &Path, plan: CampaignPlan) -> Result<Campaign> {
        let plan = plan.checked()?;
        make_folder(dir).with_path("cannot create", dir)?;
        let file = dir.join(PLAN);
        if is_there(&file) {
            bail!(
                "{} holds a campaign: choose another --output",
                dir.display()
            );
        }
        let text = serde_json::to_string_pretty(&plan)? + "\n";
        file::replace(&file, text.as_bytes(), PUBLIC).with_path("cannot write", &file)?;
        Ok(Campaign {
            dir: dir.into(),
            plan,
        })
    }

    /// Whether a directory holds a campaign.
    pub fn is_at(dir: &Path) -> bool {
        dir.join(PLAN).is_file()
    }

    /// Reads the campaign of a directory.
    pub fn open(dir: &Path) -> Result<Campaign> {
        let file = dir.join(PLAN);
        let text = read_stored(&file).with_path("cannot read", &file)?;
        let is_none = || format!("{} is no plan of a campaign", file.display());
        let plan: CampaignPlan = serde_json::from_slice(&text).with_context(is_none)?;
        if plan.schema != SCHEMA {
            let schema = plan.schema;
            bail!(
                "{} has schema {schema}, and this heapmark knows {SCHEMA}",
                file.display()
            );
        }
        Ok(Campaign {
            dir: dir.canonicalize().with_path("cannot find", dir)?,
            plan: plan.checked().with_context(is_none)?,
        })
    }

    /// Reads the campaign of a directory, to start what its plan names.
    pub fn trusted(dir: &Path, trust: bool) -> Result<Campaign> {
        let campaign = Campaign::open(dir)?;
        if !trust {
            store::refuse_of_others(&campaign.dir, PLAN, "give --trust")?;
        }
        Ok(campaign)
    }

    /// The campaign's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins an attempt at a shard: takes the first number that no other attempt has, and gives
    /// signs of life from now on.
    pub fn begin(&self, shard: u32) -> Result<Attempt> {
        let beats = self.dir.join("beat");
        make_folder(&beats).with_path("cannot create", &beats)?;
        for number in 1.. {
            let beat = beats.join(format!("{shard}-{number}.json"));
            match OpenOptions::new().write(true).create_new(true).open(&beat) {
                Ok(_) => return Attempt::begin(self.folder_of(shard), number, beat),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_path("cannot write", &beat),
            }
        }
        unreachable!("numbers do not end")
    }

    fn folder_of(&self, shard: u32) -> PathBuf {
        self.dir.join("shards").join(shard.to_string())
    }

    /// The state of each shard.
    pub fn states(&self) -> Vec<ShardState> {
        // The newest sign of life of each shard.
        let mut beats: BTreeMap<u32, (SystemTime, PathBuf)> = BTreeMap::new();
        for beat in entries(&self.dir.join("beat")) {
            let name = beat.file_name().unwrap_or_default().to_string_lossy();
            let shard = name
                .split_once('-')
                .and_then(|(shard, _)| shard.parse().ok());
            let at = beat.metadata().and_then(|known| known.modified());
            if let (Some(shard), Ok(at)) = (shard, at) {
                let newest = beats.entry(shard).or_insert((at, beat.clone()));
                *newest = (at, beat).max(newest.clone());
            }
        }
        let shards = self.plan.shards();
        shards
            .map(|shard| self.state(shard, beats.get(&shard)))
            .collect()
    }

    /// Why some attempts cannot be read: these do not count.
    pub fn unreadable(&self) -> Vec<anyhow::Error> {
        let attempts = entries(&self.dir.join("shards")).flat_map(|shard| entries(&shard));
        attempts.filter_map(|dir| begun(&dir).err()).collect()
    }

    fn state(&self, shard: u32, newest: Option<&(SystemTime, PathBuf)>) -> ShardState {
        let mut complete: Vec<(String, PathBuf)> = entries(&self.folder_of(shard))
            .filter_map(|dir| Some((begun(&dir).ok()?, dir)))
            .collect();
        complete.sort();
        let mut complete = complete.into_iter().map(|(_, dir)| dir);
        if let Some(run) = complete.next() {
            return ShardState::Complete {
                run,
                others: complete.collect(),
            };
        }
        let Some((at, beat)) = newest else {
            return ShardState::Waiting;
        };
        let text = read_stored(beat).unwrap_or_default();
        let host = serde_json::from_slice(&text).map_or("?".into(), |beat: Beat| beat.host);
        match at.elapsed() {
            Ok(age) if age > LOST => ShardState::Lost { host },
            _ => ShardState::Running { host },
        }
    }
}

/// When an attempt began. Fails if its run cannot be read, or has no samples.
fn begun(attempt: &Path) -> Result<String> {
    let head = store::head(attempt)?;
    if length(store::samples_of(attempt)) == 0 {
        bail!("{} has no samples", attempt.display());
    }
    Ok(head.started)
}

/// All entries of a folder except drafts; none if the folder does not exist.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        !path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    })
}

/// A running attempt.
pub struct Attempt {
    number: u32,
    folder: PathBuf,
    beat: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Attempt {
    fn begin(folder: PathBuf, number: u32, beat: PathBuf) -> Result<Attempt> {
        let root = Root::machine();
        let word = |file: &str| root.text(file).unwrap_or_default();
        let sign = serde_json::to_vec(&Beat {
            host: word("proc/sys/kernel/hostname"),
            boot_id: word("proc/sys/kernel/random/boot_id"),
        })?;
        file::replace(&beat, &sign, PUBLIC).with_path("cannot write", &beat)?;
        let (end, ended) = channel();
        let beats = move || {
            // A file system that fails for a moment must not end the run.
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let _ = file::replace(&beat, &sign, PUBLIC);
            }
        };
        Ok(Attempt {
            number,
            folder,
            beat: Some((end, std::thread::spawn(beats))),
        })
    }

    /// Copies a whole run, which lies elsewhere on this machine until then, into the campaign's directory.
    pub fn keep(self, run: &Path) -> Result<PathBuf> {
        make_folder(&self.folder).with_path("cannot create", &self.folder)?;
        let target = self.folder.join(format!("attempt-{}", self.number));
        let draft = Draft::folder(&self.folder).with_path("cannot write to", &self.folder)?;
        copy(run, draft.path())?;
        // Everyone who may read the campaign may read the run: a draft can be read by its maker alone.
        let mode = self.folder.metadata().map(|folder| folder.permissions());
        mode.and_then(|mode| fs::set_permissions(draft.path(), mode))
            .with_path("cannot write", draft.path())?;
        draft
            .keep(&target, Existing::Stays)
            .with_path("cannot write", &target)?;
        Ok(target)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some((end, beats)) = self.beat.take() {
            drop(end);
            let _ = beats.join();
        }
    }
}

/// Copies the files and folders of a folder; a run has nothing else.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_path("cannot read", from)? {
        let entry = entry.with_path("cannot read", from)?;
        let target = to.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::create_dir(&target).with_path("cannot create", &target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_path("cannot write", &target)?;
        }
    }
    Ok(())
}
