//! How much stack the functions of a library take, with all functions that they call in it: from
//! its disassembly.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

#[derive(Default)]
struct Function {
    /// Its own frame, at most, with the return address; `None` if that has no fixed size.
    bytes: Option<usize>,
    /// Bytes that it uses below its frame.
    below: usize,
    /// Calls in the same library.
    calls: Vec<String>,
    /// Tail calls, after it has left its own frame.
    jumps: Vec<String>,
}

/// Bytes of stack from the call of each function of a library to its deepest point there. Frames of
/// other libraries do not count, nor those of a panic, which ends the process. `None` if unknown: a
/// frame has no fixed size, or functions call each other in a cycle.
pub fn deepest(library: &Path) -> HashMap<String, Option<usize>> {
    let end = Command::new("objdump")
        .args(["-d", "-w", "--no-show-raw-insn"])
        .arg(library)
        .output()
        .unwrap();
    assert!(
        end.status.success(),
        "objdump: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    let mut functions: HashMap<String, Function> = HashMap::new();
    let mut name = String::new();
    for line in String::from_utf8(end.stdout).unwrap().lines() {
        if let Some((_, rest)) = line
            .split_once(" <")
            .filter(|(_, rest)| rest.ends_with(">:"))
        {
            name = rest.trim_end_matches(">:").to_string();
            functions.insert(
                name.clone(),
                Function {
                    bytes: Some(8),
                    ..Function::default()
                },
            );
        } else if let Some((_, instruction)) = line.split_once(":\t")
            && let Some(function) = functions.get_mut(&name)
        {
            function.follow(instruction, &name);
        }
    }
    let mut known = HashMap::new();
    for name in functions.keys() {
        depth(name, &functions, &mut known, &mut Vec::new());
    }
    known
}

impl Function {
    fn follow(&mut self, instruction: &str, own: &str) {
        let (operation, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let operands = operands.trim();
        let number = |text: &str| usize::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let taken = match (operation, operands.strip_suffix(",%rsp")) {
            ("push", _) => Some(8),
            ("sub", Some(what)) => what.strip_prefix('$').and_then(number),
            ("lea", Some(what)) => what
                .strip_prefix('-')
                .and_then(|what| number(what.strip_suffix("(%rsp)")?)),
            // An alignment, which takes less than its unit.
            ("and", Some(what)) => what
                .strip_prefix("$0x")
                .and_then(|what| u64::from_str_radix(what, 16).ok())
                .map(|mask| !mask as usize),
            _ => Some(0),
        };
        self.bytes = self.bytes.zip(taken).map(|(bytes, taken)| bytes + taken);
        for (before, _) in operands
            .match_indices("(%rsp")
            .map(|(at, _)| operands.split_at(at))
        {
            let place = before.rsplit([',', ' ']).next().unwrap_or_default();
            self.below = self
                .below
                .max(place.strip_prefix('-').and_then(number).unwrap_or(0));
        }
        let target = operands.split_once(" <").map_or("", |(_, target)| target);
        let target = target.split(['>', '+']).next().unwrap_or_default();
        // A target from a register or memory, or with an `@`, is in another library.
        if operands.starts_with('*')
            || target.is_empty()
            || target.contains('@')
            || target.contains("panic")
        {
        } else if operation == "call" || operation.starts_with('j') && target.contains(".cold") {
            self.calls.push(target.to_string());
        } else if operation.starts_with('j') && target != own {
            self.jumps.push(target.to_string());
        }
    }
}

fn depth(
    name: &str,
    functions: &HashMap<String, Function>,
    known: &mut HashMap<String, Option<usize>>,
    path: &mut Vec<String>,
) -> Option<usize> {
    if let Some(depth) = known.get(name) {
        return *depth;
    }
    if path.iter().any(|other| other == name) {
        return None;
    }
    let function = functions.get(name)?;
    path.push(name.to_string());
    let mut most = |names: &[String], least: usize| {
        names.iter().try_fold(least, |most, name| {
            Some(depth(name, functions, known, path)?.max(most))
        })
    };
    let within = most(&function.calls, function.below);
    let behind = most(&function.jumps, 0);
    path.pop();
    let depth_here = function
        .bytes
        .zip(within)
        .zip(behind)
        .map(|((own, within), behind)| (own + within).max(behind));
    known.insert(name.to_string(), depth_here);
    depth_here
}
