//! The program of a Rust project, built once for each global allocator: from copies of its workspace in the cache, each
//! with one added module. The project's own files are only read.

use super::cache::{self, TAG, hash_of_file, root, short_hash};
use super::step::{Slots, Steps, output};
use anyhow::{Context, Result, bail};
use heapmark_catalog::file::{self, Existing, RESULTS, WithPath};
use heapmark_catalog::folder::listing;
use heapmark_catalog::{did_you_mean, joined};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that cargo is to build.
#[derive(Clone, Debug, Default)]
pub struct CargoProgram {
    /// Name of the package to build, if the user named one.
    pub package: Option<String>,
    /// Name of the binary to build, if the user named one.
    pub bin: Option<String>,
    /// Features to enable, in the notation of cargo's `--features`.
    pub features: Option<String>,
    /// Target to build for, in the notation of cargo's `--target`.
    pub target: Option<String>,
}

/// A finished build of the program with one allocator.
#[derive(Debug)]
pub struct CargoBuild {
    /// The allocator's name.
    pub name: String,
    /// Path of the executable.
    pub file: PathBuf,
    /// The allocator's crate, as in `crate mimalloc 0.1.52`; `None` for the system's allocator.
    pub origin: Option<String>,
}

/// An allocator that a program can be built with.
struct GlobalAllocator {
    name: &'static str,
    /// Name of the allocator's package, and the rest of its entry among the dependencies.
    package: Option<(&'static str, &'static str)>,
    /// Constant to which the global allocator's static is set.
    value: &'static str,
}

/// The allocators that `--cargo` can build in.
const GLOBAL: [GlobalAllocator; 4] = [
    GlobalAllocator {
        name: "system",
        package: None,
        value: "std::alloc::System",
    },
    GlobalAllocator {
        name: "mimalloc",
        package: Some(("mimalloc", "version = \"0.1\"\ndefault-features = false\n")),
        value: "heapmark_global_allocator::MiMalloc",
    },
    GlobalAllocator {
        name: "jemalloc",
        package: Some(("tikv-jemallocator", "version = \">=0.6, <0.8\"\n")),
        value: "heapmark_global_allocator::Jemalloc",
    },
    GlobalAllocator {
        name: "snmalloc",
        // The feature `build_cc` builds the allocator without cmake.
        package: Some((
            "snmalloc-rs",
            "version = \">=0.3.8, <0.8\"\ndefault-features = false\nfeatures = [\"build_cc\"]\n",
        )),
        value: "heapmark_global_allocator::SnMalloc",
    },
];

/// File name of the module that is added to each copy of the project.
const MODULE: &str = "heapmark_global_allocator.rs";
/// The attribute by which a project's sources choose an allocator.
const CHOSEN: &str = "#[global_allocator]";

/// Returns the names of all global allocators.
pub fn global_allocators() -> impl Iterator<Item = &'static str> {
    GLOBAL.iter().map(|one| one.name)
}

/// A binary of a workspace.
struct Binary {
    workspace: PathBuf,
    /// The manifest's path below the workspace; `main` is relative to the workspace, too.
    manifest: PathBuf,
    main: PathBuf,
    /// The folder into which cargo builds.
    target: PathBuf,
    package: String,
    name: String,
}

/// Builds the program of the project around `folder` with each of these allocators, in this order.
pub fn build_with(
    folder: &Path,
    program: &CargoProgram,
    allocators: &[String],
    tell: &dyn Fn(String),
) -> Result<Vec<CargoBuild>> {
    let of = |name: &String| {
        let found = GLOBAL.iter().find(|one| one.name == name);
        found.with_context(|| {
            let hint = did_you_mean(name, global_allocators());
            format!(
                "--global-allocators {name}: there are {}{hint}",
                joined(global_allocators(), ", ")
            )
        })
    };
    let allocators: Vec<&GlobalAllocator> = allocators.iter().map(of).collect::<Result<_>>()?;
    let binary = Binary::find(folder, program)?;
    binary.refuse_own_choice()?;
    let key = short_hash([binary.workspace.to_string_lossy().as_ref()]);
    let place = root()?.join("cargo").join(format!("{}-{key}", binary.name));
    cache::make(&place).with_path("cannot create", &place)?;
    let lock = place.join("lock");
    let lock = File::create(&lock).with_path("cannot create", &lock)?;
    lock.lock()
        .context("waiting for another heapmark that builds this project")?;
    let slots = Slots::new(1);
    let builds = allocators.into_iter().map(|allocator| {
        tell(format!("building {} with {}", binary.name, allocator.name));
        binary.built(program, allocator, &place, &slots, tell)
    });
    builds.collect()
}

impl Binary {
    /// Finds the program in what cargo reports about the project.
    fn find(folder: &Path, program: &CargoProgram) -> Result<Binary> {
        let mut cargo = Command::new("cargo");
        cargo
            .args([
                "metadata",
                "--format-version",
                "1",
                "--no-deps",
                "--offline",
            ])
            .current_dir(folder);
        let output = cargo
            .output()
            .context("--cargo: cannot start cargo: https://rustup.rs")?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            bail!(
                "--cargo: {}",
                words.lines().next().unwrap_or("cargo metadata failed")
            );
        }
        let metadata: Value =
            serde_json::from_slice(&output.stdout).context("reading what cargo metadata prints")?;
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let workspace = PathBuf::from(text(&metadata, "workspace_root"));
        let none = Vec::new();
        let packages = metadata["packages"].as_array().unwrap_or(&none);
        let below = |path: &str| {
            let path = Path::new(path).strip_prefix(&workspace);
            path.map(Path::to_path_buf).ok()
        };
        for dependency in packages
            .iter()
            .flat_map(|one| one["dependencies"].as_array())
            .flatten()
        {
            if let Some(path) = dependency["path"]
                .as_str()
                .filter(|path| below(path).is_none())
            {
                bail!(
                    "--cargo: {} is a dependency outside of the workspace ({path}), which a copy of it would not have: build \
                     the program yourself, and compare the builds (--variant)",
                    text(dependency, "name")
                );
            }
        }
        let mut found = Vec::new();
        for package in packages {
            let name = text(package, "name");
            if program
                .package
                .as_ref()
                .is_some_and(|wanted| *wanted != name)
            {
                continue;
            }
            let chosen = program
                .bin
                .clone()
                .or_else(|| package["default_run"].as_str().map(str::to_owned));
            for target in package["targets"].as_array().unwrap_or(&none) {
                let is_bin = target["kind"] == serde_json::json!(["bin"]);
                let target_name = text(target, "name");
                if is_bin && chosen.as_ref().is_none_or(|chosen| *chosen == target_name) {
                    found.push((
                        name.clone(),
                        target_name,
                        text(package, "manifest_path"),
                        text(target, "src_path"),
                    ));
                }
            }
        }
        let (package, name, manifest, main) = match &found[..] {
            [one] => one.clone(),
            [] => bail!(
                "--cargo: {} has no such binary: -p PACKAGE --bin NAME",
                workspace.display()
            ),
            several => bail!(
                "--cargo: {} has several binaries, of which --bin must name one: {}",
                workspace.display(),
                joined(several.iter().map(|(_, name, ..)| name), ", ")
            ),
        };
        let inside = |path: &str| {
            below(path).with_context(|| format!("--cargo: {path} is outside of the workspace"))
        };
        Ok(Binary {
            manifest: inside(&manifest)?,
            main: inside(&main)?,
            target: text(&metadata, "target_directory").into(),
            workspace: workspace.clone(),
            package,
            name,
        })
    }

    /// Refuses a project that chooses a global allocator itself: a program can have only one.
    fn refuse_own_choice(&self) -> Result<()> {
        let mut chosen = None;
        self.each_file(&mut |path| {
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if chosen.is_none() && is_source {
                let text = fs::read_to_string(self.workspace.join(path)).unwrap_or_default();
                let is_choice = |line: &str| line.trim_start().starts_with(CHOSEN);
                chosen = text.lines().any(is_choice).then(|| path.to_path_buf());
            }
            Ok(())
        })?;
        match chosen {
            None => Ok(()),
            Some(file) => bail!(
                "--cargo: {} sets its own {CHOSEN}, and a program has one: put it behind a feature, build the program with and \
                 without, and compare the builds (--variant)",
                file.display()
            ),
        }
    }

    /// Calls `each` with every file of the project, by its path below the workspace, except for the files that cargo, git
    /// and heapmark keep there.
    fn each_file(&self, each: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let full = self.workspace.join(&folder);
            for entry in fs::read_dir(&full).with_path("cannot read", &full)? {
                let entry = entry.with_path("cannot read", &full)?;
                let path = folder.join(entry.file_name());
                let kind = entry.file_type().with_path("cannot read", &path)?;
                let full = entry.path();
                let is_made = || full == self.target || full.join(TAG).exists();
                if !kind.is_dir() {
                    each(&path)?;
                } else if ![".git", RESULTS]
                    .iter()
                    .any(|name| entry.file_name() == *name)
                    && !is_made()
                {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }

    /// Copies the project's files again, with their modification times, so that cargo rebuilds only what has changed.
    fn copied(&self, into: &Path) -> Result<()> {
        if into.exists() {
            fs::remove_dir_all(into).with_path("cannot remove", into)?;
        }
        fs::create_dir_all(into).with_path("cannot create", into)?;
        self.each_file(&mut |path| {
            let (from, to) = (self.workspace.join(path), into.join(path));
            let folder = to.parent().unwrap_or(into);
            fs::create_dir_all(folder).with_path("cannot create", folder)?;
            // A link counts as the file that it leads to; a link that leads nowhere, or to a socket, is no source.
            let Ok(metadata) = from.metadata() else {
                return Ok(());
            };
            if metadata.is_file() {
                fs::copy(&from, &to).with_path("cannot copy", &from)?;
                let modified = metadata.modified().with_path("cannot read", &from)?;
                let copy = File::options()
                    .append(true)
                    .open(&to)
                    .with_path("cannot open", &to)?;
                copy.set_modified(modified)
                    .with_path("cannot set the time of", &to)?;
            }
            Ok(())
        })
    }

    fn built(
        &self,
        program: &CargoProgram,
        allocator: &GlobalAllocator,
        place: &Path,
        slots: &Slots,
        tell: &dyn Fn(String),
    ) -> Result<CargoBuild> {
        let copy = place.join(allocator.name);
        self.copied(&copy)?;
        let main = copy.join(&self.main);
        let add = |file: &Path, text: &str| {
            let old = fs::read_to_string(file).with_path("cannot read", file)?;
            fs::write(file, old + text).with_path("cannot write", file)
        };
        add(
            &main,
            &format!("\n#[path = \"{MODULE}\"]\nmod heapmark_global_allocator_of_build;\n"),
        )?;
        let value = allocator.value;
        let module = format!(
            "//! The allocator of this build.\n\n{CHOSEN}\nstatic ALLOCATOR: {value} = {value};\n"
        );
        let file = main.with_file_name(MODULE);
        fs::write(&file, module).with_path("cannot write", &file)?;
        if let Some((package, rest)) = allocator.package {
            let entry = format!(
                "\n[dependencies.heapmark_global_allocator]\npackage = \"{package}\"\n{rest}"
            );
            add(&copy.join(&self.manifest), &entry)?;
        }
        let log = place.join(format!("{}.log", allocator.name));
        let steps = Steps::new(&log, slots)?;
        let cargo = |words: &[&str]| {
            let mut cargo = Command::new("cargo");
            cargo
                .args(words)
                .current_dir(&copy)
                .env("CARGO_TARGET_DIR", place.join("target"));
            cargo
        };
        let host = output(Command::new("rustc").arg("-vV")).unwrap_or_default();
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .unwrap_or_default();
        let target = program.target.as_deref().unwrap_or(host);
        let fetch = |more: &[&str]| cargo(&[&["fetch", "--target", target], more].concat());
        if steps
            .run("cargo fetch --offline", &mut fetch(&["--offline"]))
            .is_err()
        {
            tell(format!("fetching the crates of {} once", allocator.name));
            steps.run("cargo fetch", &mut fetch(&[]))?;
        }
        let mut words = vec![
            "build",
            "--release",
            "--offline",
            "-p",
            &self.package,
            "--bin",
            &self.name,
        ];
        words.extend(
            program
                .features
                .iter()
                .flat_map(|features| ["--features", features]),
        );
        words.extend(
            program
                .target
                .iter()
                .flat_map(|target| ["--target", target]),
        );
        let step = format!("building {} with {}", self.name, allocator.name);
        // A flag, a variable or the project's configuration says whether it is below the name of its target. What an earlier
        // build left elsewhere would be taken for it.
        let executables = || -> Vec<PathBuf> {
            let target = place.join("target");
            let folders = std::iter::once(target.clone()).chain(listing(&target));
            let files = folders.map(|folder| folder.join("release").join(&self.name));
            files.filter(|file| file.is_file()).collect()
        };
        for left in executables() {
            fs::remove_file(&left).with_path("cannot remove", &left)?;
        }
        steps.run(&step, &mut cargo(&words))?;
        let Some(built) = executables().pop() else {
            bail!("cargo has made no release/{}: {}", self.name, log.display());
        };
        // Another heapmark may still measure an earlier build, so each has a path of its own. Reports show the file's name.
        let hash = hash_of_file(&built)?;
        let folder = place.join("bin").join(&hash[..12]);
        fs::create_dir_all(&folder).with_path("cannot create", &folder)?;
        let file = folder.join(format!("{}-{}", self.name, allocator.name));
        if !hash_of_file(&file).is_ok_and(|there| there == hash) {
            let write = |to: &mut File| std::io::copy(&mut File::open(&built)?, to);
            let (draft, _) = file::draft(&file, 0o777, write).with_path("cannot copy", &built)?;
            let kept = draft.keep(&file, Existing::Goes);
            kept.with_path("cannot write", &file)?;
        }
        let version = |package: &str| {
            let lock = fs::read_to_string(copy.join("Cargo.lock")).ok()?;
            let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
            Some(format!("crate {package} {}", rest.split('"').next()?))
        };
        Ok(CargoBuild {
            name: allocator.name.to_owned(),
            file,
            origin: allocator.package.and_then(|(package, _)| version(package)),
        })
    }
}
