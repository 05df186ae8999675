//! `heapmark try --variant`, `--variant-env`: compares builds of a command, and settings of it, as rows.

use crate::build::command::{recognise_command, shown_to_serve};
use crate::build::{self, CargoBuild, Library};
use crate::catalog::allocators::is_name;
use crate::catalog::{Allocator, Source};
use crate::execute::Subject;
use crate::file::{WithPath, folder_of};
use crate::plan::CommandVariant;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Stands for a build's command in the line of a server.
pub const VARIANT: &str = "{variant}";

/// Builds and settings that are compared.
#[derive(clap::Args)]
pub struct VariantFlags {
    /// Compare builds of a program, which run with the same arguments, those behind `--`: CMD is an executable, or a command in
    /// quotes. At least two; the first is the baseline. Without -a each runs as it is built, static ones too; with -a under each
    /// allocator
    #[arg(long = "variant", value_name = "NAME=CMD", value_parser = named, conflicts_with_all = ["age", "limit"], help_heading = "Builds and settings")]
    variants: Vec<(String, String)>,
    /// Compare settings of the command: a row whose environment has this variable. For the same NAME, which may be that of a
    /// --variant, as many as needed; `NAME=`: none
    #[arg(id = "variant_settings", long = "variant-env", value_name = "NAME=VAR=VALUE", value_parser = named, conflicts_with_all = ["age", "limit"], help_heading = "Builds and settings")]
    settings: Vec<(String, String)>,
}

/// Parses `NAME=REST`.
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, rest)) if is_name(name) => Ok((name.into(), rest.into())),
        _ => Err("expected NAME=..., the name of a-z, 0-9, `_` and `-` only".into()),
    }
}

impl VariantFlags {
    /// Whether all rows are settings of one command.
    pub fn are_settings(&self) -> bool {
        self.variants.is_empty() && !self.settings.is_empty()
    }

    /// Whether variants were given, which then are the rows.
    pub fn are_given(&self) -> bool {
        !self.variants.is_empty() || !self.settings.is_empty()
    }

    /// The variants in the order in which they are named. `command` gives the words to start: for a build with its own command line, or,
    /// without one, for the only command.
    pub fn variants(
        &self,
        built: &[CargoBuild],
        command: &dyn Fn(Option<&str>) -> Result<Vec<String>>,
        folder: &Path,
    ) -> Result<Vec<CommandVariant>> {
        let mut variants: Vec<CommandVariant> = Vec::new();
        for build in built {
            let file = build.file.to_string_lossy();
            let words = shlex::try_quote(&file)?;
            let mut variant = of_command(&build.name, command(Some(&words))?, folder)?;
            variant.inside.extend(build.origin.clone());
            variants.push(variant);
        }
        for (name, words) in &self.variants {
            if variants.iter().any(|known| known.name == *name) {
                bail!("--variant {name}: two have this name");
            }
            variants.push(of_command(name, command(Some(words))?, folder)?);
        }
        for (name, setting) in &self.settings {
            let known = variants.iter().position(|known| known.name == *name);
            let place = match known {
                Some(place) => place,
                None if self.variants.is_empty() && built.is_empty() => {
                    variants.push(of_command(name, command(None)?, folder)?);
                    variants.len() - 1
                }
                None => bail!("--variant-env {name}: no --variant has this name"),
            };
            if let Some((variable, value)) = setting.split_once('=') {
                let environment = &mut variants[place].environment;
                if environment.insert(variable.into(), value.into()).is_some() {
                    bail!("--variant-env {name}: two values of {variable}");
                }
            } else if !setting.is_empty() {
                bail!("--variant-env {name}={setting}: expected NAME=VAR=VALUE");
            }
        }
        if let [only] = &variants[..] {
            bail!(
                "--variant {}: one is compared with nothing, name another (--variant-env NAME= is a row without a setting)",
                only.name
            );
        }
        refuse_equal(&variants)?;
        Ok(variants)
    }
}

/// The variant of a build: the files that it executes, and the allocators that its program shows inside.
fn of_command(name: &str, command: Vec<String>, folder: &Path) -> Result<CommandVariant> {
    let recognised = recognise_command(&command, folder);
    let program = recognised.program().to_path_buf();
    if let Some(why) = recognised.unreachable.as_ref().filter(|_| !recognised.runs) {
        bail!("--variant {name}: {}: {why}", program.display());
    }
    let data = fs::read(&program).with_path("cannot read", &program)?;
    let hashes = recognised
        .chain
        .iter()
        .map(|file| build::hash_of_file(file));
    Ok(CommandVariant {
        name: name.to_owned(),
        command,
        program,
        sha256: hashes.collect::<Result<_>>()?,
        environment: BTreeMap::new(),
        silent: recognised.unreachable.filter(|_| recognised.is_silent),
        inside: shown_to_serve(&data),
    })
}

/// Refuses two rows with the same content, which would show noise as a difference between builds. In another folder a program may find
/// other libraries and settings beside it.
fn refuse_equal(variants: &[CommandVariant]) -> Result<()> {
    let folder = |variant: &CommandVariant| {
        folder_of(Path::new(&variant.command[0]))
            .canonicalize()
            .ok()
    };
    for (place, one) in variants.iter().enumerate() {
        let is_equal = |other: &&CommandVariant| {
            one.sha256 == other.sha256
                && folder(one) == folder(other)
                && one.command[1..] == other.command[1..]
                && one.environment == other.environment
        };
        if let Some(other) = variants[place + 1..].iter().find(is_equal) {
            let [one, other] = [&one.name, &other.name];
            bail!(
                "{one} and {other} are the same: equal files, arguments and variables, so there is nothing to compare"
            );
        }
    }
    Ok(())
}

/// The row of a variant that runs with whatever allocator it was built with.
pub fn as_built(variant: &CommandVariant) -> Subject {
    let allocator = Allocator {
        name: variant.name.clone(),
        family: variant.name.clone(),
        about: "a build of the command, or a setting of it".into(),
        source: Source::AsCalled,
        environment: variant.environment.clone(),
        ..Subject::libc().allocator
    };
    let library = Library {
        origin: variant.line(),
        ..Library::default()
    };
    Subject {
        variant: Some(variant.name.clone()),
        ..Subject::new(allocator, library)
    }
}

/// Each variant under each allocator, and the row that is the baseline; the allocators themselves if there are no variants.
pub fn crossed(
    variants: &[CommandVariant],
    baseline: String,
    subjects: Vec<Subject>,
) -> Result<(String, Vec<Subject>)> {
    let Some(first) = variants.first() else {
        return Ok((baseline, subjects));
    };
    if let Some((variant, why)) = variants
        .iter()
        .find_map(|variant| Some((variant, variant.silent.as_ref()?)))
    {
        refuse!(
            "-a: {}: {why}. Leave out -a: each variant then runs as it is built",
            variant.name
        );
    }
    let row = |variant: &CommandVariant, allocator: &str| format!("{}+{allocator}", variant.name);
    let crossed = |variant: &CommandVariant| -> Vec<Subject> {
        let of = |subject: &Subject| {
            let mut subject = subject.clone();
            subject.allocator.name = row(variant, &subject.allocator.name);
            subject
                .allocator
                .environment
                .extend(variant.environment.clone());
            subject.variant = Some(variant.name.clone());
            subject
        };
        subjects.iter().map(of).collect()
    };
    let crossed = variants.iter().flat_map(crossed).collect();
    Ok((row(first, &baseline), crossed))
}
