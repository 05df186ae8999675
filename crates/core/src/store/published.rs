//! The paths of a run as others may read them: without the names of homes, users and hosts.

use std::borrow::Cow;
use std::sync::LazyLock;

/// How paths in strings are read.
#[derive(Clone, Copy, PartialEq)]
pub enum Paths {
    /// Paths as they were stored: what is started needs them.
    Stored,
    /// Paths as anybody may read them.
    Published,
}

impl Paths {
    /// Returns a document with its paths as they are to be read.
    pub(super) fn of(self, document: &[u8]) -> Cow<'_, [u8]> {
        match (self, str::from_utf8(document)) {
            (Paths::Published, Ok(text)) => match published(text) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
            _ => document.into(),
        }
    }
}

/// Names of the user and the machine; empty if unknown.
struct Names {
    home: String,
    user: String,
    host: String,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let home = variable("HOME").trim_end_matches('/').to_owned();
    let host = rustix::system::uname().nodename().to_string_lossy().into();
    Names {
        user: variable("USER"),
        home,
        host,
    }
});

/// Folders that contain the homes of other users.
const HOMES: [&str; 2] = ["home", "Users"];

/// Returns a text with `~` in place of homes at the beginning of absolute paths, and placeholders
/// for names within them; JSON stays JSON.
pub fn published(text: &str) -> Cow<'_, str> {
    NAMES.published(text)
}

impl Names {
    fn published<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut published = String::new();
        let mut kept = 0;
        let mut at = 0;
        while let Some(place) = text[at..].find('/').map(|found| at + found) {
            let (before, path) = (&text[..place], &text[place..]);
            let end = self.end_of(path);
            at = place + end;
            // The path of a URL names no folder here.
            if before.ends_with(':') && path.starts_with("//") {
                continue;
            }
            if let Some(shown) = self.path(&path[..end], begins_after(before)) {
                published += &text[kept..place];
                published += &shown;
                kept = at;
            }
        }
        match kept {
            0 => text.into(),
            _ => (published + &text[kept..]).into(),
        }
    }

    /// Returns where a path in a text ends. The name of a home may contain any characters.
    fn end_of(&self, path: &str) -> usize {
        let home = match path.starts_with(&self.home) {
            true => self.home.len(),
            false => 0,
        };
        let rest = &path[home.max(1)..];
        home.max(1) + rest.find(|c| !is_of_path(c)).unwrap_or(rest.len())
    }

    /// Returns the path as others may read it; `None` if nothing in it names a home, a user or a host. If `is_whole` is
    /// false, the path lies below another folder, and its parts may only happen to equal a name.
    fn path(&self, path: &str, is_whole: bool) -> Option<String> {
        let below_home = path.strip_prefix(&self.home);
        let below_home = below_home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut shown = String::new();
        let parts = match below_home {
            Some(rest) if is_whole && !self.home.is_empty() => {
                shown.push('~');
                rest.split('/').skip(1)
            }
            _ => path.split('/').skip(1),
        };
        let mut last = "";
        let mut is_changed = !shown.is_empty();
        for (place, part) in parts.enumerate() {
            let is_name = HOMES.contains(&last) && !part.is_empty();
            let word = match part {
                "root" if is_whole && !is_changed && place == 0 => "~",
                _ if is_name && is_whole && !is_changed && place == 1 => {
                    shown.clear();
                    "~"
                }
                _ if is_name => "USER",
                _ if part.is_empty() || !is_whole => part,
                _ if part == self.user => "USER",
                _ if part == self.host => "HOST",
                _ => part,
            };
            if word != "~" {
                shown.push('/');
            }
            shown += word;
            is_changed |= word != part;
            last = part;
        }
        is_changed.then_some(shown)
    }
}

/// Returns whether a path that comes next is absolute. In JSON, a line break is escaped and so ends with a letter.
fn begins_after(before: &str) -> bool {
    ["\\n", "\\t", "\\r"]
        .iter()
        .any(|escape| before.ends_with(escape))
        || !before.ends_with(|c: char| is_of_path(c) || c == '/')
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "/._-+~@%".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let names = Names {
            home: "/data/people/Ann Lee".into(),
            user: "ann".into(),
            host: "box7".into(),
        };
        names.published(text).into_owned()
    }

    #[test]
    fn no_path_names_a_home_a_user_or_a_host() {
        for (stored, wanted) in [
            ("/data/people/Ann Lee/x.so", "~/x.so"),
            ("/data/people/Ann Lee", "~"),
            ("/data/people/Ann Leery/x", "/data/people/Ann Leery/x"),
            ("\"/home/bob/a.so:/root/b.so\"", "\"~/a.so:~/b.so\""),
            ("x=/home/bob", "x=~"),
            ("a\\n/home/bob/x", "a\\n~/x"),
            ("/mnt/home/bob/x", "/mnt/home/USER/x"),
            ("m/home/bob/x", "m/home/USER/x"),
            ("/scratch/ann/box7/x", "/scratch/USER/HOST/x"),
        ] {
            assert_eq!(shown(stored), wanted, "{stored}");
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for text in [
            "",
            "/",
            "churn@1/b00/ann",
            "https://github.com/ann/x",
            "ann, box7 and root, in ns/op",
            "/usr/lib/libc.so.6: /proc/1/root/x and /home and /home/",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
