//! A git repository, which may come from someone else; all git commands are in this file. They only read objects and references. Nothing
//! that the repository's settings or attributes name is run (monitors, hooks, filters, transports for missing objects), and its index stays
//! as it is.

use super::launched::ending_with_heapmark;
use anyhow::{Context, Result, bail};
use heapmark_catalog::file::WithPath;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

/// A repository on this machine.
pub struct Repository(PathBuf);

/// A file of a commit.
pub struct TreeEntry {
    /// Path from the repository's root.
    pub path: PathBuf,
    kind: Kind,
    object: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    File {
        mode: u32,
    },
    Link,
    /// A commit of another repository.
    Submodule,
}

impl Repository {
    /// Opens a repository; `None` if git finds none there that this user may read.
    pub fn open(path: &Path) -> Option<Repository> {
        let repository = Repository(path.to_owned());
        repository.line(&["rev-parse", "--git-dir"])?;
        Some(repository)
    }

    /// Returns the hash of the commit that a revision names.
    pub fn commit(&self, revision: &str) -> Option<String> {
        let wanted = format!("{revision}^{{commit}}");
        let quiet = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        self.line(&[&quiet[..], &[&wanted]].concat())
    }

    /// Returns the last line that git prints about a commit in this format.
    pub fn fact(&self, commit: &str, format: &str) -> Option<String> {
        let format = format!("--format={format}");
        let lines = self.line(&["rev-list", "--max-count=1", &format, commit])?;
        lines.lines().last().map(String::from)
    }

    /// Returns a commit's distance from the last commit with a version number.
    pub fn description(&self, commit: &str) -> Option<String> {
        let versions = "--match=[0-9]*.[0-9]*.[0-9]*";
        self.line(&["describe", "--long", "--abbrev=40", versions, commit])
    }

    /// Returns the files of a commit.
    pub fn files(&self, commit: &str) -> Option<Vec<TreeEntry>> {
        let listed = self.bytes(&["ls-tree", "-r", "--full-tree", "-z", commit])?;
        let lines = listed.split(|byte| *byte == 0);
        lines.filter(|line| !line.is_empty()).map(entry).collect()
    }

    /// Returns the text of a file of a commit.
    pub fn text(&self, file: &TreeEntry) -> Result<String> {
        let mut text = String::new();
        self.contents(&[file], |_, content| {
            Ok(content.read_to_string(&mut text).map(drop)?)
        })?;
        Ok(text)
    }

    /// Returns whether the files in the working tree, or in the index, differ from those of a commit. Files that were never added do not
    /// count. Git's own comparison would run filters.
    pub fn differs(&self, commit: &str, files: &[TreeEntry]) -> Result<bool> {
        let Some(top) = self.line(&["rev-parse", "--show-toplevel"]) else {
            // The repository has no working tree.
            return Ok(false);
        };
        let staged = self.bytes(&["diff-index", "--cached", "--name-only", commit]);
        let mut differs = staged.is_some_and(|staged| !staged.is_empty());
        let files: Vec<&TreeEntry> = files.iter().collect();
        self.contents(&files, |file, content| {
            differs = differs || !file.lies_in(Path::new(&top), content)?;
            Ok(())
        })?;
        Ok(differs)
    }

    /// Writes the files of a commit into an empty folder, as they are stored. Submodules are not part
    /// of a commit.
    pub fn write(&self, commit: &str, into: &Path) -> Result<()> {
        let files = self.files(commit).with_context(|| self.broken(commit))?;
        let foreign = |part: Component| !matches!(part, Component::Normal(_));
        if let Some(file) = files
            .iter()
            .find(|file| file.path.components().any(foreign))
        {
            bail!("{commit}: {:?} is no path below its folder", file.path);
        }
        // The files get the time of the commit: `make` compares it, and `__TIMESTAMP__` becomes it.
        let seconds = self.fact(commit, "%ct").and_then(|text| text.parse().ok());
        let since = Duration::from_secs(seconds.unwrap_or_default());
        let epoch = SystemTime::UNIX_EPOCH;
        let time = epoch.checked_add(since).unwrap_or(epoch);
        // Links come last, so that nothing is written through one.
        let (links, others): (Vec<&TreeEntry>, Vec<&TreeEntry>) =
            files.iter().partition(|file| file.kind == Kind::Link);
        self.contents(&[others, links].concat(), |file, content| {
            let path = into.join(&file.path);
            file.write(&path, content, time).with_path("writing", &path)
        })
    }

    /// Reads the contents of files, one after the other.
    fn contents(
        &self,
        files: &[&TreeEntry],
        mut take: impl FnMut(&TreeEntry, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let mut git = self.git(&["cat-file", "--batch", "--buffer"]);
        let git = git.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut git = git.spawn().context("cannot start git")?;
        let (to, from) = (git.stdin.take(), git.stdout.take());
        let (mut to, from) = to.zip(from).context("cannot talk to git")?;
        let stored = || files.iter().filter(|file| file.kind != Kind::Submodule);
        let names: String = stored().map(|file| format!("{}\n", file.object)).collect();
        let read = thread::scope(|scope| {
            scope.spawn(move || to.write_all(names.as_bytes()));
            let mut from = BufReader::new(from);
            for file in files {
                if file.kind == Kind::Submodule {
                    take(file, &mut io::empty())?;
                    continue;
                }
                let mut head = String::new();
                from.read_line(&mut head)
                    .context("cannot read what git writes")?;
                let size = head
                    .trim_end()
                    .strip_prefix(&format!("{} blob ", file.object))
                    .and_then(|size| size.parse().ok())
                    .with_context(|| self.broken(&file.path.display().to_string()))?;
                let mut content = (&mut from).take(size);
                take(file, &mut content)?;
                io::copy(&mut content, &mut io::sink()).context("cannot read what git writes")?;
                // Git writes a newline after the content, which is missing if git has ended early.
                from.read_exact(&mut [0])
                    .with_context(|| self.broken(&file.path.display().to_string()))?;
            }
            Ok(())
        });
        let _ = git.wait();
        read
    }

    fn broken(&self, what: &str) -> String {
        let path = self.0.display();
        format!("{what} is not in {path}, or cannot be read there: git -C {path} fsck tells more")
    }

    /// Returns what git prints, without spaces around it; `None` if git fails.
    fn line(&self, arguments: &[&str]) -> Option<String> {
        let line = super::step::output(&mut self.git(arguments))?;
        Some(line.trim().to_owned())
    }

    fn bytes(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = self.git(arguments).output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        // Git's hooks set such variables for another repository. The user's settings stay, though.
        for (name, _) in std::env::vars_os() {
            let is = |start: &str| name.as_bytes().starts_with(start.as_bytes());
            if is("GIT_") && !is("GIT_CONFIG_") && !is("GIT_EXEC_PATH") {
                git.env_remove(name);
            }
        }
        git.arg("--no-optional-locks")
            // Otherwise a commit's replacement would be measured under the commit's name.
            .arg("--no-replace-objects")
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            // A missing object stays missing: a transport may be a command.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .arg("-C")
            .arg(&self.0)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        ending_with_heapmark(&mut git);
        git
    }
}

/// Parses a line of `git ls-tree`: `MODE KIND OBJECT\tPATH`.
fn entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = str::from_utf8(&line[..tab]).ok()?;
    let mut words = head.split(' ');
    let kind = match words.next()? {
        "100755" => Kind::File { mode: 0o777 },
        "120000" => Kind::Link,
        "160000" => Kind::Submodule,
        _ => Kind::File { mode: 0o666 },
    };
    Some(TreeEntry {
        path: OsStr::from_bytes(&line[tab + 1..]).into(),
        kind,
        object: words.nth(1)?.to_owned(),
    })
}

impl TreeEntry {
    fn write(&self, path: &Path, content: &mut dyn Read, time: SystemTime) -> Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        match self.kind {
            Kind::Submodule => fs::create_dir_all(path)?,
            Kind::Link => {
                let mut target = Vec::new();
                content.read_to_end(&mut target)?;
                symlink(OsStr::from_bytes(&target), path)?;
            }
            Kind::File { mode } => {
                let mut options = File::options();
                let options = options.write(true).create_new(true).mode(mode);
                let mut file = options.open(path)?;
                io::copy(content, &mut file)?;
                file.set_modified(time)?;
            }
        }
        Ok(())
    }

    /// Returns whether the file lies in the working tree with this content.
    fn lies_in(&self, top: &Path, content: &mut dyn Read) -> Result<bool> {
        let path = top.join(&self.path);
        let Ok(known) = path.symlink_metadata() else {
            return Ok(false);
        };
        let found = match self.kind {
            Kind::Submodule => return Ok(true),
            Kind::Link if known.is_symlink() => {
                fs::read_link(&path).map(|target| target.into_os_string().into_encoded_bytes())
            }
            Kind::File { .. } if known.is_file() => fs::read(&path),
            _ => return Ok(false),
        };
        let mut wanted = Vec::new();
        content.read_to_end(&mut wanted)?;
        Ok(found.is_ok_and(|found| found == wanted))
    }
}
