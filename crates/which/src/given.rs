//! The settings of a process: what its environment gives, what the allocator's parser makes of
//! them, and which values the allocator has, if those can be read.

use crate::objects::MappedObjects;
use crate::process::Process;
use crate::serving::{GPERFTOOLS, Serving, is_called};
use crate::settings::{self, Judged, Setting, version};
use crate::taken::{self, Memory, Values};
use heapmark_core::catalog::malloc_api::matches;
use heapmark_core::catalog::{Allocator, Settings, Tier};
use heapmark_core::execute::reach::{file_name, mappings};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::fs;

/// A setting that a process was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// The place of the setting: a variable, a file, or what is compiled in.
    pub place: String,
    /// The setting's name; empty for text that is no setting.
    pub setting: String,
    /// The value as it was given.
    pub value: String,
    /// What became of the setting.
    pub state: SettingState,
    /// The reason for the state, or the value that is in effect instead.
    pub why: String,
}

/// What became of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingState {
    /// The allocator has this value, as read in the process.
    Taken,
    /// The allocator's parser accepts the value; whether the allocator has it is not known.
    Given,
    /// The allocator has another value, as read in the process.
    Changed,
    /// The allocator's parser rejects the setting.
    Refused,
    /// Nothing reads the setting.
    Ignored,
    /// What became of the setting is not known.
    NotKnown,
}

impl SettingState {
    /// The state in a word or two.
    pub fn word(self) -> &'static str {
        match self {
            SettingState::Taken => "taken",
            SettingState::Given => "given",
            SettingState::Changed => "changed",
            SettingState::Refused => "refused",
            SettingState::Ignored => "ignored",
            SettingState::NotKnown => "not known",
        }
    }

    /// Whether the setting is known not to have its intended effect.
    pub fn is_lost(self) -> bool {
        matches!(
            self,
            SettingState::Changed | SettingState::Refused | SettingState::Ignored
        )
    }
}

/// A variable that an ancestor of a process has, and the process itself does not.
#[derive(Clone, Debug, Serialize)]
pub struct Dropped {
    /// The variable's name.
    pub variable: String,
    /// The variable's value in the ancestor.
    pub value: String,
    /// The number of the nearest ancestor that has the variable.
    pub pid: i32,
    /// The name of that ancestor.
    pub name: String,
}

/// The prefix of the dynamic linker's variables, which are reported separately.
const LINKER: &str = "LD_";
/// The settings of allocators in an environment.
fn of_allocators(environment: &[(String, String)], known: &[Allocator]) -> Vec<(String, String)> {
    let pairs = environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let (_, mut taken) = Settings::of(known).split(pairs);
    let of_jemalloc = environment.iter().filter(|(name, _)| name.ends_with(CONF));
    taken.extend(of_jemalloc.cloned());
    taken.into_iter().collect()
}

/// The end of the name of jemalloc's variable; builds may put a prefix before it.
const CONF: &str = "MALLOC_CONF";

/// Variables that ancestors have and the process does not: whatever started it has dropped them, as
/// `su` does.
pub fn dropped(process: &Process, above: &[Process], known: &[Allocator]) -> Vec<Dropped> {
    let mut found: Vec<Dropped> = Vec::new();
    if process.has_overwritten {
        return found;
    }
    for ancestor in above {
        for (variable, value) in of_allocators(&ancestor.environment, known) {
            let is_new = found.iter().all(|other| other.variable != variable);
            if process.variable(&variable).is_none() && is_new {
                found.push(Dropped {
                    variable,
                    value,
                    pid: ancestor.pid,
                    name: ancestor.name.clone(),
                });
            }
        }
    }
    found
}

/// All settings of a process with these mappings.
pub fn given(
    objects: &MappedObjects,
    maps: &str,
    servings: &[Serving],
    known: &[Allocator],
) -> Vec<Given> {
    let process = objects.process;
    let variables = of_allocators(&process.environment, known);
    let variables = variables
        .into_iter()
        .filter(|(name, _)| !name.starts_with(LINKER));
    let reader = EnvironmentReader {
        process,
        objects,
        maps,
        servings,
        memory: Memory::of(process, maps),
    };
    let mut found = reader.beside_variables();
    found.extend(variables.flat_map(|(name, value)| reader.variable(&name, &value, known)));
    found
}

struct EnvironmentReader<'a> {
    process: &'a Process,
    objects: &'a MappedObjects<'a>,
    maps: &'a str,
    servings: &'a [Serving],
    memory: Result<Memory, String>,
}

/// The values that an allocator has, as far as they can be read.
struct Taken {
    values: Result<Values, String>,
    /// Whether the values are complete, so that a setting that is not among them was not set.
    are_all: bool,
}

impl EnvironmentReader<'_> {
    fn variable(&self, name: &str, value: &str, known: &[Allocator]) -> Vec<Given> {
        let one = |state, why: String| {
            vec![Given {
                place: name.into(),
                setting: String::new(),
                value: value.into(),
                state,
                why,
            }]
        };
        let mut servings = self.servings.iter();
        let reader = servings.find_map(|serving| {
            let own = serving.allocator.as_deref()?;
            reads(own, name, known).then_some((own, serving))
        });
        let Some((own, serving)) = reader else {
            let family = family_of(name, known);
            let serves = self
                .servings
                .first()
                .and_then(|serving| serving.allocator.as_deref());
            return match serves {
                Some(serves) => {
                    let ignored = format!("{family} reads it, and {serves} serves here");
                    let parts = value.split(':').filter_map(|part| part.split_once('='));
                    let is_read = |setting: &str| reads_listed(serves, name, setting, known);
                    if !parts.clone().any(|(setting, _)| is_read(setting)) {
                        return one(SettingState::Ignored, ignored);
                    }
                    let given = |(setting, value): (&str, &str)| {
                        let (state, why) = match is_read(setting) {
                            true => (
                                SettingState::NotKnown,
                                format!("{serves} reads it; how is not known"),
                            ),
                            false => (SettingState::Ignored, ignored.clone()),
                        };
                        Given {
                            place: name.into(),
                            setting: setting.into(),
                            value: value.into(),
                            state,
                            why,
                        }
                    };
                    parts.map(given).collect()
                }
                None => one(
                    SettingState::NotKnown,
                    "what serves here is not known".into(),
                ),
            };
        };
        if self.process.is_secure {
            let why = "set-user-ID, set-group-ID or capabilities: allocators and the dynamic linker then read no variable";
            return one(SettingState::Ignored, why.into());
        }
        match own {
            "glibc" => self.of_glibc(name, value, serving),
            "jemalloc" => {
                let names = conf_names(&self.objects.data(&serving.file));
                match &names[..] {
                    [] => one(
                        SettingState::NotKnown,
                        "the name that it reads was not found in its file".into(),
                    ),
                    names if !names.iter().any(|variable| variable == name) => one(
                        SettingState::Ignored,
                        format!("this jemalloc reads {}", names.join(" and ")),
                    ),
                    _ => self.of_jemalloc(name, value, serving),
                }
            }
            "mimalloc" => self.of_mimalloc(name, value, serving),
            GPERFTOOLS => self.of_gperftools(name, value, serving),
            _ => one(
                SettingState::NotKnown,
                format!("{own} reads it; how is not known"),
            ),
        }
    }

    /// The settings that jemalloc reads before its variable: a link in /etc, and the text that the
    /// program has compiled in.
    fn beside_variables(&self) -> Vec<Given> {
        let is_it = |serving: &&Serving| serving.allocator.as_deref() == Some("jemalloc");
        let Some(serving) = self.servings.iter().find(is_it) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if let Ok(conf) = fs::read_link(self.process.path("/etc/malloc.conf")) {
            found.extend(self.of_jemalloc("/etc/malloc.conf", &conf.to_string_lossy(), serving));
        }
        let program = self.process.program.to_string_lossy();
        let compiled_in = [&*program, &serving.file].into_iter().find_map(|file| {
            let data = self.objects.data(file);
            let memory = self.memory.as_ref().ok()?;
            taken::jemalloc::compiled_in(&memory.object(file, &data)?)
        });
        if let Some(conf) = compiled_in {
            found.extend(self.of_jemalloc("malloc_conf, compiled in", &conf, serving));
        }
        found
    }

    fn of_glibc(&self, name: &str, value: &str, serving: &Serving) -> Vec<Given> {
        let version = serving.version.as_deref().map(version);
        let linker = mappings(self.maps)
            .find(|mapping| mapping.is_of_linker())
            .map(|mapping| mapping.file.to_owned());
        let taken = Taken {
            // A static program contains the list of tunables itself.
            values: self.read(
                linker.as_ref().unwrap_or(&serving.file),
                taken::glibc::values,
            ),
            are_all: true,
        };
        let settings = match name {
            "GLIBC_TUNABLES" => settings::glibc::tunables(value, version),
            _ => vec![settings::glibc::variable(name, value, version)],
        };
        let mut found = taken.of_all(name, settings);
        // It changes what malloc has, and not the list of tunables.
        if let Some(caller) = self.objects.importer_of("mallopt") {
            let taken = |given: &&mut Given| given.state == SettingState::Taken;
            for given in found.iter_mut().filter(taken) {
                given.state = SettingState::Given;
                given.why = format!("{} calls mallopt, which may overrule it", file_name(caller));
            }
        }
        found
    }

    fn of_jemalloc(&self, place: &str, conf: &str, serving: &Serving) -> Vec<Given> {
        const OF_THE_PROFILER: &[u8] = b"Leak approximation summary";
        let data = self.objects.data(&serving.file);
        let built = settings::jemalloc::Built {
            version: serving.version.as_deref().map(version),
            has_prof: memmem::find(&data, OF_THE_PROFILER).is_some(),
        };
        let taken = Taken {
            values: self.read(&serving.file, taken::jemalloc::values),
            are_all: false,
        };
        taken.of_all(place, settings::jemalloc::parse(conf, built))
    }

    fn of_mimalloc(&self, name: &str, value: &str, serving: &Serving) -> Vec<Given> {
        let options = self.read(&serving.file, taken::mimalloc::options);
        let option = settings::mimalloc::option(name).unwrap_or_default();
        let names = match &options {
            Ok(options) => options.names.clone(),
            // Otherwise the file is searched, which contains the names as strings.
            Err(_) => {
                let data = self.objects.data(&serving.file);
                let is_there = memmem::find(&data, format!("{option}\0").as_bytes()).is_some();
                is_there.then(|| option.clone()).into_iter().collect()
            }
        };
        let taken = Taken {
            are_all: options.as_ref().is_ok_and(|options| !options.is_unread),
            values: options.map(|options| options.values),
        };
        let setting = settings::mimalloc::variable(name, value, &names);
        vec![taken.of(name, &option, setting)]
    }

    fn of_gperftools(&self, name: &str, value: &str, serving: &Serving) -> Vec<Given> {
        let data = self.objects.data(&serving.file);
        let is_in_file =
            |name: &str| memmem::find(&data, format!("\0{name}\0").as_bytes()).is_some();
        let taken = Taken {
            values: self.read(&serving.file, taken::gperftools::values),
            are_all: false,
        };
        let setting = settings::gperftools::variable(name, value, is_in_file);
        vec![taken.of(name, name, setting)]
    }

    /// Reads values from a mapped file with the function `read`.
    fn read<T>(
        &self,
        file: &str,
        read: impl Fn(&taken::Mapped) -> Result<T, String>,
    ) -> Result<T, String> {
        let memory = self.memory.as_ref().map_err(String::clone)?;
        let data = self.objects.data(file);
        let object = memory
            .object(file, &data)
            .ok_or("its file may not be read")?;
        read(&object)
    }
}

impl Taken {
    fn of_all(&self, place: &str, settings: Vec<Setting>) -> Vec<Given> {
        let one = |setting: Setting| self.of(place, &setting.name.clone(), setting);
        settings.into_iter().map(one).collect()
    }

    /// What became of a setting whose value has the name `key`.
    fn of(&self, place: &str, key: &str, setting: Setting) -> Given {
        let value = self.values.as_ref().map(|values| values.get(key));
        let in_effect = match &value {
            Ok(Some(value)) => format!("; it has {value}"),
            _ => String::new(),
        };
        let (state, why) = match setting.judged {
            Judged::Accepted(meant) => match value {
                Ok(Some(value)) if *value == meant => {
                    (SettingState::Taken, "read in its memory".into())
                }
                Ok(Some(value)) => (
                    SettingState::Changed,
                    format!("it has {value}: read in its memory"),
                ),
                Ok(None) if self.are_all => (
                    SettingState::Ignored,
                    "it was not set: read in its memory".into(),
                ),
                Ok(None) => (SettingState::Given, "not known whether taken".into()),
                Err(why) => (
                    SettingState::Given,
                    format!("not known whether taken ({why})"),
                ),
            },
            Judged::Refused(why) => (SettingState::Refused, why + &in_effect),
            Judged::Ignored(why) => (SettingState::Ignored, why + &in_effect),
            Judged::NotKnown(why) => match value {
                Ok(Some(value)) => (SettingState::NotKnown, format!("{why}; it has {value}")),
                _ => (SettingState::NotKnown, why),
            },
        };
        Given {
            place: place.into(),
            // For a variable with a single setting, the setting has no name of its own.
            setting: if setting.name == place {
                String::new()
            } else {
                setting.name
            },
            value: setting.value,
            state,
            why,
        }
    }
}

/// Whether allocators of a family read a variable. Entries of the user's may read what others read, too.
pub fn reads(family: &str, variable: &str, known: &[Allocator]) -> bool {
    let is_own = |entry: &&Allocator| entry.tier == Tier::User && entry.family == family;
    is_called(family, family_of(variable, known))
        || known.iter().filter(is_own).any(|own| names(own, variable))
}

/// The family of allocators that reads a variable.
fn family_of<'a>(name: &str, known: &'a [Allocator]) -> &'a str {
    if name.ends_with(CONF) {
        return "jemalloc";
    }
    if name.starts_with("TCMALLOC_") {
        return "tcmalloc";
    }
    let first = known.iter().find(|allocator| names(allocator, name));
    first.map_or("another allocator", |allocator| allocator.family.as_str())
}

/// Whether an entry names a variable among those that its allocator reads.
fn names(allocator: &Allocator, variable: &str) -> bool {
    allocator.reads.iter().any(|pattern| {
        let pattern = pattern.split(':').next().unwrap_or(pattern);
        matches(pattern, variable)
    })
}

/// Whether allocators of a family read a setting of a variable that lists several, `GLIBC_TUNABLES`.
fn reads_listed(family: &str, variable: &str, setting: &str, known: &[Allocator]) -> bool {
    let listed = format!("{variable}:{setting}");
    let of_family = known
        .iter()
        .filter(|entry| is_called(family, &entry.family));
    of_family
        .flat_map(|entry| &entry.reads)
        .any(|pattern| matches(pattern, &listed))
}

/// The variables that a jemalloc reads, found as strings in its file.
fn conf_names(data: &[u8]) -> Vec<String> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit();
    let mut plain = false;
    let mut prefixed = Vec::new();
    for at in memmem::find_iter(data, format!("{CONF}\0").as_bytes()) {
        let before = data[..at]
            .iter()
            .rev()
            .take_while(|byte| is_part(byte))
            .count();
        match before {
            // This string may also be the end of one of jemalloc's messages.
            0 => plain = true,
            _ => {
                let name =
                    String::from_utf8_lossy(&data[at - before..at + CONF.len()]).into_owned();
                if !prefixed.contains(&name) {
                    prefixed.push(name);
                }
            }
        }
    }
    match prefixed.is_empty() {
        false => prefixed,
        true => plain.then(|| CONF.to_owned()).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_that_a_jemalloc_reads_is_a_string_of_its_own() {
        let plain = b"value of the environment variable MALLOC_CONF\0x";
        assert_eq!(conf_names(plain), ["MALLOC_CONF"]);
        let prefixed = b"value of the environment variable MALLOC_CONF\0_RJEM_MALLOC_CONF\0";
        assert_eq!(conf_names(prefixed), ["_RJEM_MALLOC_CONF"]);
        assert!(conf_names(b"MALLOC_CONFIG\0").is_empty());
    }

    #[test]
    fn an_allocator_may_read_a_part_of_a_list() {
        let known = &heapmark_core::cmd::catalog().unwrap().allocators;
        let read = |family| {
            ["glibc.pthread.rseq", "glibc.malloc.arena_max"]
                .map(|setting| reads_listed(family, "GLIBC_TUNABLES", setting, known))
        };
        assert_eq!(read("tcmalloc"), [true, false]);
        assert_eq!(read("jemalloc"), [false, false]);
    }

    #[test]
    fn a_setting_is_taken_only_if_its_value_was_read() {
        let setting = || Setting {
            name: "narenas".into(),
            value: "2".into(),
            judged: Judged::Accepted("2".into()),
        };
        let state = |values: Result<&[(&str, &str)], &str>, are_all| {
            let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            let values = values.map(|all| all.iter().map(pair).collect());
            let taken = Taken {
                values: values.map_err(str::to_owned),
                are_all,
            };
            taken.of("MALLOC_CONF", "narenas", setting()).state
        };
        assert_eq!(state(Ok(&[("narenas", "2")]), false), SettingState::Taken);
        assert_eq!(state(Ok(&[("narenas", "4")]), false), SettingState::Changed);
        assert_eq!(state(Ok(&[]), false), SettingState::Given);
        assert_eq!(state(Ok(&[]), true), SettingState::Ignored);
        assert_eq!(state(Err("ptrace_scope"), true), SettingState::Given);
    }
}
