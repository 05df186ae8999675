//! Lines to copy: how a setting is given in a shell, by systemd, in a Dockerfile, in Kubernetes, and when a program is built.

use crate::setting::Setting;
use heapmark_core::execute::Subject;
use serde::Serialize;
use std::collections::BTreeMap;

/// A line, and where it belongs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopiedLine {
    /// `shell`, `systemd`.
    pub place: &'static str,
    /// To copy.
    pub line: String,
}

/// The lines of a setting; `command` is the program's line.
pub fn lines(setting: &Setting, allocator: &Subject, command: &str) -> Vec<CopiedLine> {
    let mut variables: BTreeMap<String, String> = setting.environment.clone();
    let files = allocator
        .library
        .files
        .iter()
        .map(|file| file.display().to_string());
    let preload = files.collect::<Vec<String>>().join(":");
    if !preload.is_empty() {
        variables.insert("LD_PRELOAD".into(), preload);
    }
    let joined = |one: fn(&str, &str) -> String, by: &str| {
        let all = variables.iter().map(|(name, value)| one(name, value));
        all.collect::<Vec<String>>().join(by)
    };
    let quoted = |name: &str, value: &str| format!("{name}={value:?}");
    let mut lines = vec![
        ("shell", joined(in_shell, " ") + " " + command),
        (
            "systemd",
            format!("Environment={}", joined(in_systemd, " ")),
        ),
        ("Dockerfile", format!("ENV {}", joined(quoted, " "))),
        (
            "Kubernetes",
            format!("env: [{}]", joined(in_kubernetes, ", ")),
        ),
    ];
    if let Some(conf) = setting.environment.get("MALLOC_CONF") {
        lines.push(("C", format!("const char *malloc_conf = {conf:?};")));
        lines.push((
            "Rust (tikv-jemallocator)",
            format!(
                "#[unsafe(export_name = \"_rjem_malloc_conf\")] pub static MALLOC_CONF: &[u8] = b\"{conf}\\0\";"
            ),
        ));
    }
    let calls = setting
        .parts
        .iter()
        .filter(|(knob, _)| !knob.call.is_empty());
    let calls: Vec<String> = calls
        .map(|(knob, value)| knob.call.replace("{}", value))
        .collect();
    // Part of a bundle would be another setting.
    if !calls.is_empty() && calls.len() == setting.parts.len() {
        lines.push(("C, before the first allocation", calls.join(" ")));
    }
    lines
        .into_iter()
        .map(|(place, line)| CopiedLine { place, line })
        .collect()
}

fn in_shell(name: &str, value: &str) -> String {
    format!("{name}={}", shlex::try_quote(value).unwrap_or_default())
}

fn in_systemd(name: &str, value: &str) -> String {
    format!(
        "\"{name}={}\"",
        value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('%', "%%")
    )
}

fn in_kubernetes(name: &str, value: &str) -> String {
    format!("{{name: {name}, value: {value:?}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::settings;
    use heapmark_core::build::Library;
    use heapmark_core::catalog::{Allocator, Knob};
    use heapmark_core::cmd::catalog;

    fn subject(files: &[&str]) -> Subject {
        let library = Library {
            files: files.iter().map(Into::into).collect(),
            ..Library::default()
        };
        Subject::new(Allocator::default(), library)
    }

    fn line<'l>(lines: &'l [CopiedLine], place: &str) -> Option<&'l str> {
        lines
            .iter()
            .find(|entry| entry.place == place)
            .map(|entry| entry.line.as_str())
    }

    #[test]
    fn a_setting_is_given_wherever_a_program_is_started_or_built() {
        let knobs = |name: &str| catalog().unwrap().allocator(name).unwrap().knobs.clone();
        let of_glibc = settings("glibc", &knobs("glibc")).remove(0);
        let lines_of = lines(&of_glibc, &subject(&[]), "app x");
        let conf = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864";
        assert_eq!(
            line(&lines_of, "shell").unwrap(),
            format!("GLIBC_TUNABLES='{conf}' app x")
        );
        assert_eq!(
            line(&lines_of, "systemd").unwrap(),
            format!("Environment=\"GLIBC_TUNABLES={conf}\"")
        );
        assert_eq!(
            line(&lines_of, "C, before the first allocation").unwrap(),
            "mallopt(M_MMAP_THRESHOLD, 33554432); mallopt(M_TRIM_THRESHOLD, 67108864);"
        );
        let of_jemalloc = settings("jemalloc", &knobs("jemalloc")).remove(0);
        let lines_of = lines(&of_jemalloc, &subject(&["/lib/je.so"]), "app");
        assert_eq!(
            line(&lines_of, "shell").unwrap(),
            "LD_PRELOAD=/lib/je.so MALLOC_CONF='dirty_decay_ms:60000,muzzy_decay_ms:60000' app"
        );
        assert_eq!(
            line(&lines_of, "C").unwrap(),
            "const char *malloc_conf = \"dirty_decay_ms:60000,muzzy_decay_ms:60000\";"
        );
        assert!(
            line(&lines_of, "Kubernetes")
                .unwrap()
                .contains("{name: LD_PRELOAD, value: \"/lib/je.so\"}")
        );
        // A bundle of which C can set a part only has no line for it.
        let mut half = knobs("glibc")[..2].to_vec();
        half[1] = Knob {
            call: String::new(),
            ..half[1].clone()
        };
        let lines_of = lines(&settings("glibc", &half)[0], &subject(&[]), "app");
        assert_eq!(line(&lines_of, "C, before the first allocation"), None);
    }
}
