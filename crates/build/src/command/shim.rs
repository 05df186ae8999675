//! Version managers (pyenv, rbenv, nodenv, asdf, ...) put small scripts with a program's name before that program in PATH. A shell runs
//! such a script, finds the version, and becomes the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A script of a version manager.
#[derive(Debug, PartialEq)]
pub struct Shim {
    /// The manager, as the script names it.
    manager: PathBuf,
    /// The script's path.
    path: PathBuf,
    /// The program's name.
    program: String,
}

impl Shim {
    /// Recognises a version manager's script, given its path and content.
    pub fn of(path: &Path, data: &[u8]) -> Option<Shim> {
        let text = std::str::from_utf8(data)
            .ok()
            .filter(|text| text.starts_with("#!"))?;
        let words = text.lines().find_map(|line| {
            let words = shlex::split(line.trim_start().strip_prefix("exec ")?)?;
            (words.get(1)? == "exec").then_some(words)
        })?;
        let manager = PathBuf::from(&words[0]);
        let name = manager.file_name()?.to_str()?;
        (name.ends_with("env") || name == "asdf").then_some(())?;
        Some(Shim {
            path: path.to_owned(),
            program: path.file_name()?.to_str()?.to_owned(),
            manager,
        })
    }

    /// Returns advice for the user to name the program's own path, if the manager reports that path.
    pub fn advice(&self) -> String {
        let manager = self.manager.display();
        let output = Command::new(&self.manager)
            .args(["which", &self.program])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let output = output.ok().filter(|end| end.status.success());
        let path = output.map(|end| String::from_utf8_lossy(&end.stdout).trim().to_owned());
        // A manager that has lost its settings reports its own script as the program.
        let is_program = |path: &String| Path::new(path).is_file() && Path::new(path) != self.path;
        let advice = match path.filter(is_program) {
            Some(path) => format!("name {path} instead"),
            None => format!(
                "name what `{manager} which {}` prints instead",
                self.program
            ),
        };
        format!(
            "a shell script of {manager}, which finds the program and then becomes it: {advice}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_version_managers_are_told_from_others() {
        let of = |text: &str| Shim::of(Path::new("/h/shims/python3"), text.as_bytes());
        let pyenv = "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexec \"/h/.pyenv/libexec/pyenv\" exec \"$program\" \"$@\"\n";
        let found = of(pyenv).unwrap();
        assert_eq!(
            (found.manager.as_path(), found.program.as_str()),
            (Path::new("/h/.pyenv/libexec/pyenv"), "python3")
        );
        assert!(
            of("#!/usr/bin/env bash\n# asdf-plugin: python\nexec asdf exec \"python3\" \"$@\"\n")
                .is_some()
        );
        for other in [
            "#!/bin/sh\nexec python3 \"$@\"\n",
            "#!/bin/sh\nexec env python3\n",
            "exec pyenv exec python3\n",
            "#!/bin/sh\nexec '",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
