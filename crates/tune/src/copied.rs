//! Lines to copy: how a setting is given in a shell, by systemd, in a Dockerfile, in Kubernetes, and when a program is built.

use crate::setting::Setting;
use heapmark_core::catalog::knob;
use heapmark_core::execute::Subject;
use serde::Serialize;

/// A line to copy, and the place where it belongs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopiedLine {
    /// The place, such as `shell` or `systemd`.
    pub place: &'static str,
    /// The line itself.
    pub line: String,
}

/// Returns the lines for a setting whose row is `row`; `command` is the program's command line. Empty for an allocator that the
/// program has anyway.
pub fn lines(setting: &Setting, row: &Subject, command: &str) -> Vec<CopiedLine> {
    let variables = row.environment();
    if variables.is_empty() {
        return Vec::new();
    }
    let joined = |one: fn(&str, &str) -> String, by: &str| {
        let all = variables.iter().map(|(name, value)| one(name, value));
        all.collect::<Vec<String>>().join(by)
    };
    let mut lines = vec![
        ("shell", joined(in_shell, " ") + " " + command),
        (
            "systemd",
            format!("Environment={}", joined(in_systemd, " ")),
        ),
        ("Dockerfile", format!("ENV {}", joined(in_dockerfile, " "))),
        (
            "Kubernetes",
            format!("env: [{}]", joined(in_kubernetes, ", ")),
        ),
    ];
    // The C library is wherever a program runs.
    if let Some(files) = variables
        .get("LD_PRELOAD")
        .filter(|files| !files.contains("/libc.so"))
    {
        lines.push((
            "first",
            format!("copy {files} to where these lines name it"),
        ));
    }
    if let Some(conf) = variables.get("MALLOC_CONF") {
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
    let parts = setting.parts.iter();
    let set_by_parts = knob::variables(parts.map(|(knob, value)| (knob, value.as_str())));
    // Some knobs of a bundle would be another setting, and so would all knobs without what the allocator's entry sets.
    if !calls.is_empty()
        && calls.len() == setting.parts.len()
        && set_by_parts == row.allocator.environment
    {
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

fn in_dockerfile(name: &str, value: &str) -> String {
    format!("{name}={}", format!("{value:?}").replace('$', "\\$"))
}

fn in_kubernetes(name: &str, value: &str) -> String {
    format!("{{name: {name}, value: {:?}}}", value.replace("$(", "$$("))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::settings;
    use heapmark_core::build::Library;
    use heapmark_core::catalog::Knob;
    use heapmark_core::cmd::catalog;

    /// The lines of a setting of the allocator with this library.
    fn lines_of(setting: &Setting, files: &[&str], command: &str) -> Vec<CopiedLine> {
        let library = Library {
            files: files.iter().map(Into::into).collect(),
            ..Library::default()
        };
        let allocator = catalog().unwrap().allocator(&setting.allocator).unwrap();
        let subject = Subject::new(allocator.clone(), library);
        lines(
            setting,
            &setting.row().subject(&[subject]).unwrap(),
            command,
        )
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
        let of_row = lines_of(&of_glibc, &[], "app x");
        let conf = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864";
        assert_eq!(
            line(&of_row, "shell").unwrap(),
            format!("GLIBC_TUNABLES='{conf}' app x")
        );
        assert_eq!(
            line(&of_row, "systemd").unwrap(),
            format!("Environment=\"GLIBC_TUNABLES={conf}\"")
        );
        assert_eq!(
            line(&of_row, "C, before the first allocation").unwrap(),
            "mallopt(M_MMAP_THRESHOLD, 33554432); mallopt(M_TRIM_THRESHOLD, 67108864);"
        );
        let of_jemalloc = settings("jemalloc", &knobs("jemalloc")).remove(0);
        let of_row = lines_of(&of_jemalloc, &["/lib/je.so"], "app");
        assert_eq!(
            line(&of_row, "shell").unwrap(),
            "LD_PRELOAD=/lib/je.so MALLOC_CONF='dirty_decay_ms:60000,muzzy_decay_ms:60000' app"
        );
        assert_eq!(
            line(&of_row, "C").unwrap(),
            "const char *malloc_conf = \"dirty_decay_ms:60000,muzzy_decay_ms:60000\";"
        );
        assert!(
            line(&of_row, "Kubernetes")
                .unwrap()
                .contains("{name: LD_PRELOAD, value: \"/lib/je.so\"}")
        );
        let first = "copy /lib/je.so to where these lines name it";
        assert_eq!(line(&of_row, "first"), Some(first));
        let of_user = Setting::given("glibc", 1, "GLIBC_TUNABLES", "a$b$(c)");
        let of_row = lines_of(&of_user, &[], "app");
        let shown =
            ["shell", "Dockerfile", "Kubernetes"].map(|place| line(&of_row, place).unwrap());
        let meant = [
            "GLIBC_TUNABLES='a$b$(c)' app",
            r#"ENV GLIBC_TUNABLES="a\$b\$(c)""#,
            r#"env: [{name: GLIBC_TUNABLES, value: "a$b$$(c)"}]"#,
        ];
        assert_eq!(shown, meant);
        // A bundle of which C can set a part only has no line for it.
        let mut half = knobs("glibc")[..2].to_vec();
        half[1] = Knob {
            call: String::new(),
            ..half[1].clone()
        };
        let of_row = lines_of(&settings("glibc", &half)[0], &[], "app");
        assert_eq!(line(&of_row, "C, before the first allocation"), None);
        // What the entry itself sets belongs to its row.
        let of_variant = settings("jemalloc-hpa", &knobs("jemalloc")).remove(0);
        let of_row = lines_of(&of_variant, &[], "app");
        assert_eq!(
            line(&of_row, "C").unwrap(),
            "const char *malloc_conf = \"hpa:true,dirty_decay_ms:60000,muzzy_decay_ms:60000\";"
        );
        let of_variant = settings("glibc-arena1", &knobs("glibc")).remove(0);
        let of_row = lines_of(&of_variant, &[], "app");
        let shell = line(&of_row, "shell").unwrap();
        assert!(shell.contains("glibc.malloc.arena_max=1"), "{shell}");
        assert_eq!(line(&of_row, "C, before the first allocation"), None);
        let of_row = lines_of(&Setting::none("mimalloc3-purge0"), &[], "app");
        assert_eq!(
            line(&of_row, "shell").unwrap(),
            "MIMALLOC_PURGE_DELAY=0 app"
        );
        assert!(lines_of(&Setting::none("glibc"), &[], "app").is_empty());
    }
}
