//! The compilers, found once, with the flags that every allocator gets. Flags for one allocator
//! only are in its recipe.

use anyhow::{Result, anyhow};
use heapmark_catalog::allocator::Language;
use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::sync::LazyLock;

/// Fingerprint that changes when the code that builds libraries changes.
pub const SOURCES: &str = env!("HEAPMARK_LIBRARY_SOURCES");

/// Flags that the caller sets for the caller's own builds. If they were used here, every library would have them, and rows
/// would measure something other than their names say.
const NOT_TAKEN: [&str; 4] = ["CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"];

/// Other variables by which compilers, the crate `cc` and `configure` scripts take up files, folders and flags of the caller's.
const NOT_TAKEN_AS_NAMED: [&str; 10] = [
    "CCC_OVERRIDE_OPTIONS",
    "COMPILER_PATH",
    "CONFIG_SITE",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "CRATE_CC_NO_DEFAULTS",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "LD_RUN_PATH",
    "LIBRARY_PATH",
];

/// Flags for every file. Initial-exec TLS because a preloaded library may have it, and because the
/// general model costs a call per access; hidden symbols because the functions of an allocator
/// should call each other directly; no builtins because a compiler that knows what `malloc` does
/// may delete it from inside `calloc`. The flags themselves are written into the library, where
/// anyone can read them; they are not loaded at run time.
const FLAGS: [&str; 9] = [
    "-DNDEBUG",
    "-pthread",
    "-ftls-model=initial-exec",
    "-fvisibility=hidden",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-frecord-gcc-switches",
];

/// Flags for C. A function that was never declared would return `int`: half a pointer.
const C_FLAGS: [&str; 3] = [
    "-D_GNU_SOURCE",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
];

/// Flags for linking every library. Functions are bound at load time, so that the first call of one costs as much as the others.
pub const LINK_FLAGS: [&str; 8] = [
    "-shared",
    "-pthread",
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,-z,defs",
    "-Wl,--gc-sections",
    "-Wl,--exclude-libs,ALL",
    "-Wl,--build-id=sha1",
];

/// Returns the flags for every file of every library that affect code: ours and the compiler crate's own.
pub fn for_all() -> impl Iterator<Item = &'static str> {
    // The first flags are those that the crate `cc` adds.
    ["-O3", "-fPIC", "-ffunction-sections", "-fdata-sections"]
        .into_iter()
        .chain(FLAGS)
}

/// Returns whether a caller's variable would change what compilers make: `CFLAGS`, `TARGET_CFLAGS`,
/// `CFLAGS_x86_64_unknown_linux_gnu`, `CPATH`, ...
fn is_not_taken(variable: &OsStr) -> bool {
    let words = variable.to_str().unwrap_or_default();
    let names = |(before, after): (&str, &str)| {
        (before.is_empty() || before.ends_with('_')) && (after.is_empty() || after.starts_with('_'))
    };
    NOT_TAKEN_AS_NAMED.contains(&words)
        || NOT_TAKEN
            .iter()
            .any(|name| words.split_once(name).is_some_and(names))
}

/// Returns the variables of the caller's environment that are ignored when libraries are compiled.
fn variables_not_taken() -> impl Iterator<Item = OsString> {
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| is_not_taken(name))
}

/// Returns what is ignored of the caller's environment when libraries are compiled: variables, and words after a compiler's name.
pub fn not_taken() -> Vec<String> {
    let mut all: Vec<String> = variables_not_taken()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if let Ok(toolchain) = Toolchain::find() {
        for (variable, compiler) in [("CC", &toolchain.c), ("CXX", &toolchain.cpp)] {
            if !compiler.not_taken.is_empty() {
                all.push(format!("{} of {variable}", compiler.not_taken));
            }
        }
    }
    all
}

/// Removes the variables that would change what compilers make from a command's environment, and those by which `make` hands on its own.
pub fn remove_flags(command: &mut Command) {
    let of_make = ["MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEOVERRIDES"];
    for name in variables_not_taken().chain(of_make.map(OsString::from)) {
        command.env_remove(name);
    }
}

/// A compiler of this machine.
pub struct Compiler {
    /// The program, in the form that `configure` scripts expect in `CC`.
    pub program: OsString,
    arguments: Vec<OsString>,
    /// The first line of `--version`.
    version: String,
    /// The words after the compiler in `CC` or `CXX`, which are not passed to it.
    not_taken: String,
}

impl Compiler {
    /// Returns the compiler's name and version, as the compiler reports them.
    pub fn name(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// Returns a command that starts the compiler with the flags that every file gets.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        // The compiler's output is searched for `error:` and shown, so it must not depend on the user's language.
        command.env("LC_ALL", "C");
        remove_flags(&mut command);
        command
    }
}

/// The command that installs compilers.
pub const PACKAGE: &str = "apt-get install build-essential";

/// The C and the C++ compiler.
pub struct Toolchain {
    c: Compiler,
    cpp: Compiler,
}

impl Toolchain {
    /// Finds the compilers that `$CC` and `$CXX` name, or the usual ones; they are searched for
    /// once. The error names what is missing, without [`PACKAGE`].
    pub fn find() -> Result<&'static Toolchain> {
        static TOOLCHAIN: LazyLock<Result<Toolchain, String>> = LazyLock::new(|| {
            Ok(Toolchain {
                c: compiler(Language::C)?,
                cpp: compiler(Language::Cpp)?,
            })
        });
        TOOLCHAIN.as_ref().map_err(|why| anyhow!("{why}"))
    }

    /// Returns the compiler for a language.
    pub fn compiler(&self, language: Language) -> &Compiler {
        match language {
            Language::C | Language::Assembly => &self.c,
            Language::Cpp => &self.cpp,
        }
    }

    /// Returns everything about the compilers that affects a library.
    pub fn identity(&self) -> String {
        let words = |compiler: &Compiler| {
            format!(
                "{} {:?} {:?}",
                compiler.version, compiler.program, compiler.arguments
            )
        };
        format!(
            "{SOURCES} {} {LINK_FLAGS:?} {} {}",
            std::env::consts::ARCH,
            words(&self.c),
            words(&self.cpp)
        )
    }
}

fn compiler(language: Language) -> Result<Compiler, String> {
    let cpp = language == Language::Cpp;
    let (kind, variable) = if cpp { ("C++", "CXX") } else { ("C", "CC") };
    let none = |why: String| format!("no {kind} compiler ({why}; ${variable} may name another)");
    // Cargo passes the target to build scripts only; heapmark does not run in one.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let tool = cc::Build::new()
        .set_envs_snapshot(std::env::vars_os().filter(|(name, _)| !is_not_taken(name)))
        .target(&target)
        .host(&target)
        .opt_level(3)
        .debug(false)
        .pic(true)
        .warnings(false)
        .cargo_metadata(false)
        .cargo_warnings(false)
        .cpp(cpp)
        .try_get_compiler()
        .map_err(|error| none(error.to_string()))?;
    let version = super::step::output(Command::new(tool.path()).arg("--version"))
        .ok_or_else(|| none(format!("{} does not run", tool.path().display())))?;
    let mut arguments = tool.args().to_vec();
    arguments.extend(FLAGS.map(OsString::from));
    if !cpp {
        arguments.extend(C_FLAGS.map(OsString::from));
    }
    Ok(Compiler {
        program: tool.path().into(),
        arguments,
        version: version.trim().to_string(),
        not_taken: words_behind(&tool),
    })
}

/// Returns the words after the compiler in `CC` or `CXX`. In the compiler's command they come before the arguments that the crate `cc` has
/// chosen, and after the compiler itself if a wrapper such as `ccache` starts it.
fn words_behind(tool: &cc::Tool) -> String {
    let command = tool.to_command();
    let arguments = command.get_args();
    let more = arguments.len().saturating_sub(tool.args().len());
    let words: Vec<_> = arguments
        .take(more)
        .filter(|word| *word != tool.path().as_os_str())
        .map(OsStr::to_string_lossy)
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_callers_are_known_by_their_names() {
        for name in [
            "CFLAGS",
            "HOST_CFLAGS",
            "CXXFLAGS_x86_64-unknown-linux-gnu",
            "LDFLAGS",
            "CRATE_CC_NO_DEFAULTS",
            "CPATH",
            "LD_RUN_PATH",
        ] {
            assert!(is_not_taken(name.as_ref()), "{name}");
        }
        for name in ["CC", "CXX", "MYCFLAGS", "PATH", "FLAGS", "GOPATH"] {
            assert!(!is_not_taken(name.as_ref()), "{name}");
        }
    }
}
