//! Releases of Linux, as the allocators' entries and as kernels name them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A release of Linux: `6.19` is 6.19.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinuxRelease([u32; 3]);

impl LinuxRelease {
    /// Returns the release of a kernel with this name: `7.0.0-15-generic` is 7.0.0 and `6.19.0-rc3`
    /// is 6.19.0, since what distributions and candidates append has no order.
    pub fn of_kernel(name: &str) -> Option<LinuxRelease> {
        let end = name.find(|c: char| !c.is_ascii_digit() && c != '.');
        let mut numbers = [0; 3];
        let words = name[..end.unwrap_or(name.len())].split('.');
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = word.parse().ok()?;
        }
        Some(LinuxRelease(numbers))
    }
}

impl TryFrom<String> for LinuxRelease {
    type Error = String;

    fn try_from(text: String) -> Result<LinuxRelease, String> {
        let is_plain = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        let parts = text.split('.').count();
        if !(2..=3).contains(&parts) || !text.split('.').all(is_plain) {
            return Err(format!(
                "`{text}` is no release of Linux: write it as 6.19 or 7.0.14"
            ));
        }
        LinuxRelease::of_kernel(&text).ok_or_else(|| format!("`{text}`: a number is too large"))
    }
}

impl From<LinuxRelease> for String {
    fn from(release: LinuxRelease) -> String {
        release.to_string()
    }
}

impl fmt::Display for LinuxRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [major, minor, 0] => write!(f, "{major}.{minor}"),
            [major, minor, patch] => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

/// Releases on which an allocator is not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotOnLinux {
    /// The first release on which the allocator fails.
    pub from: LinuxRelease,
    /// The first later release on which the allocator works again, if there is one.
    pub before: Option<LinuxRelease>,
    /// What happens on these releases.
    pub why: String,
}

impl NotOnLinux {
    /// Returns why the allocator is not run on the kernel with this name, if it is one of these
    /// releases.
    pub fn why_not_on(&self, kernel: &str) -> Option<String> {
        let here = LinuxRelease::of_kernel(kernel)?;
        let is_mended = self.before.is_some_and(|before| here >= before);
        let before = self.before.map(|before| format!(" and before {before}"));
        (here >= self.from && !is_mended).then(|| {
            format!(
                "on Linux since {}{} (here {kernel}): {}",
                self.from,
                before.unwrap_or_default(),
                self.why
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Result<LinuxRelease, String> {
        LinuxRelease::try_from(text.to_owned())
    }

    #[test]
    fn releases_have_the_order_of_their_numbers() {
        let order = [
            "5.10", "6.9.12", "6.18.44", "6.19", "7.0", "7.0.9", "7.0.14",
        ];
        let releases = order.map(|text| release(text).unwrap());
        assert!(releases.is_sorted());
        assert_eq!(releases.map(|release| release.to_string()), order);
        assert_eq!(release("6.19.0"), release("6.19"));
        for wrong in [
            "",
            "6",
            "6.x",
            "6.19-rc1",
            "6..1",
            "1.2.3.4",
            "6.99999999999",
        ] {
            assert!(release(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_kernel_is_known_by_its_first_numbers() {
        for (name, known) in [
            ("7.0.0-15-generic", "7.0"),
            ("6.19.0-rc3", "6.19"),
            ("6.1-rc2+", "6.1"),
            ("6.6.87.2-microsoft-standard-WSL2", "6.6.87"),
            ("6.18.44", "6.18.44"),
        ] {
            assert_eq!(LinuxRelease::of_kernel(name), release(known).ok(), "{name}");
        }
        assert_eq!(LinuxRelease::of_kernel("Darwin"), None);
    }
}
