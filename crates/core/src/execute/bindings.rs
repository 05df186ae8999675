//! What the dynamic linker reports with `LD_DEBUG=bindings`.

use super::{LoadedObject, Proof, prove};
use crate::catalog::malloc_api;
use std::path::Path;

/// Returns the objects that the malloc family was bound to, from lines like ``12: binding file ./a
/// [0] to /lib/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]``. If a function was bound to
/// several objects, one that is not `wanted` counts: a single stray caller makes the program use
/// two heaps.
pub fn bindings(text: &str, wanted: impl Fn(&Path) -> bool) -> Proof {
    let mut proof = Proof::default();
    for line in text.lines() {
        let read = || {
            let (_, line) = line.split_once("binding file ")?;
            let (from, line) = line.split_once(" to ")?;
            let (path, line) = line.split_once(" [")?;
            Some((from, path, line))
        };
        let Some((from, path, line)) = read() else {
            continue;
        };
        // An allocator may consist of two files, one of which is bound only by the other and never
        // by the program: both were loaded.
        let from = from.split(" [").next().unwrap_or_default();
        [from, path]
            .iter()
            .filter(|path| wanted(Path::new(path)))
            .for_each(|path| _ = place(&mut proof, path));
        let function = line
            .split_once('`')
            .and_then(|(_, rest)| rest.split_once('\''));
        let Some((function, _)) =
            function.filter(|(name, _)| malloc_api::required().any(|known| known == *name))
        else {
            continue;
        };
        let place = place(&mut proof, path);
        // A function that the library itself takes from the C library, such as a wrapper's original
        // `free`, does not count.
        let own_affair = wanted(Path::new(from)) && !wanted(Path::new(path));
        if !own_affair && (!wanted(Path::new(path)) || !proof.owners.contains_key(function)) {
            proof.owners.insert(function.to_string(), place);
        }
    }
    proof
}

/// Returns a program's output without the lines of the dynamic linker, which may start in the
/// middle of a line: functions are bound when they are first called, and many programs write a line
/// with several calls.
pub fn without_bindings(text: &str) -> String {
    let length = |line: &'_ str| match line.find(":\t") {
        Some(end) => line[..end]
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches(' ')
            .len(),
        None => line.len(),
    };
    text.split_inclusive('\n')
        .map(|line| &line[..length(line)])
        .collect()
}

/// Returns the index of an object in a proof; adds the object if it is new.
fn place(proof: &mut Proof, path: &str) -> usize {
    proof
        .objects
        .iter()
        .position(|object| object.path == path)
        .unwrap_or_else(|| {
            let (device, inode) = prove::identity(Path::new(path)).unwrap_or_default();
            proof.objects.push(LoadedObject {
                path: path.into(),
                device,
                inode,
                ..LoadedObject::default()
            });
            proof.objects.len() - 1
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_may_write_into_the_middle_of_a_line() {
        let binding = "       812:\tbinding file ./a [0] to /lib/libc.so.6 [0]: normal symbol `fputs' [GLIBC_2.2.5]\n";
        let text =
            format!("{binding}figure={binding}depth 4{binding}1\n{binding}figure=releases 7\n");
        assert_eq!(
            without_bindings(&text),
            "figure=depth 41\nfigure=releases 7\n"
        );
    }

    #[test]
    fn the_linker_says_who_was_bound() {
        let text = "   12:\tbinding file ./a [0] to /lib/x.so [0]: normal symbol `malloc' [GLIBC_2.2.5]\n\
            12:\tbinding file ./a [0] to /lib/libc.so.6 [0]: normal symbol `puts' [GLIBC_2.2.5]\n\
            12:\tbinding file /lib/y.so [0] to /lib/z.so [0]: normal symbol `free'\n\
            12:\tbinding file ./a [0] to /lib/x.so [0]: normal symbol `free'\n\
            12:\tbinding file /lib/x.so [0] to /lib/libc.so.6 [0]: normal symbol `calloc'\nmalloc `free' nonsense\n";
        let proof = bindings(text, |path| path.ends_with("x.so"));
        let owner = |function: &str| proof.objects[proof.owners[function]].path.as_str();
        assert_eq!(
            (owner("malloc"), owner("free"), proof.owners.len()),
            ("/lib/x.so", "/lib/z.so", 2)
        );
    }
}
