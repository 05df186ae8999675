//! A check of `heapmark check` as a C program that needs nothing of heapmark.

use crate::definition::{Check, CheckProgram, Ends, Form, contains_word};
use heapmark_core::catalog::joined;

/// What a program needs from the harness, in short: paragraphs, each of which begins with what it
/// defines.
const ALONE: &str = include_str!("../../../checks/harness/alone.h");
/// The `#include` lines of this file name headers; after `//`, each lists words of the programs
/// that need the header.
const HEADERS: &str = include_str!("../../../checks/harness/check.h");

/// The `#include` lines that a program needs.
fn headers(program: &str) -> impl Iterator<Item = &str> {
    let includes = HEADERS.lines().filter(|line| line.starts_with("#include"));
    let named = includes.filter_map(|line| line.split_once(" // "));
    let needed = named.filter(|(_, words)| words.split(' ').any(|word| program.contains(word)));
    needed.map(|(include, _)| include)
}

impl Check {
    /// Returns the check as a program. A check that passes or fails exits with 0 if all holds;
    /// otherwise it prints what does not, and exits with 1. A wrong program ends by what stopped
    /// it; otherwise it exits with 1 if a block got two owners, or other bytes than its own, and
    /// with 0 if not. It has no benign twin.
    pub fn printed(&self) -> String {
        let lines = self.body.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.contains("!wrong"));
        let (includes, body): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| self.is_wrong() && line.starts_with("#include"));
        let body = joined(body, "\n")
            .replace("CHECK {", "int main(void) {")
            .replace("MISUSE {", "static void body(void) {")
            .replace("if (wrong) ", "")
            .replace("wrong && ", "");
        let program = self.with_harness(body + "\n");
        let headers = joined(headers(&program).chain(includes), "\n");
        let (compiler, ending) = match self.program {
            CheckProgram::C => ("cc", "c"),
            _ => ("c++ -fcheck-new", "cc"),
        };
        let words = match (self.is_wrong(), self.is_informed()) {
            (false, _) => String::new(),
            (true, false) => format!(" {}", self.sizes[0]),
            (true, true) => format!(" {} [informed]", self.sizes[0]),
        };
        format!(
            "// {}: {}\n// {compiler} -fno-builtin -pthread FILE.{ending} -ldl && LD_PRELOAD=LIBRARY ./a.out{words}; echo $?\n\
             #define _GNU_SOURCE\n{headers}\n{program}",
            self.name, self.about,
        )
    }

    fn is_informed(&self) -> bool {
        self.forms.contains(&Form::Informed)
    }

    /// Adds what a body needs from the harness, before it and after it. A check that passes or
    /// fails needs nothing but macros.
    fn with_harness(&self, body: String) -> String {
        let mut program = body;
        // From the last paragraph to the first, since later paragraphs need earlier ones.
        for paragraph in ALONE.rsplit("\n\n") {
            let rest = paragraph.strip_prefix("// ");
            let Some((name, text)) = rest.and_then(|rest| rest.split_once('\n')) else {
                continue;
            };
            if !self.is_wrong() && !name.chars().all(char::is_uppercase) {
                continue;
            } else if name == "main" {
                program += &self.main(text);
            } else if contains_word(&program, name) {
                program = format!("{text}\n{program}");
            }
        }
        program
    }

    /// The function `main` of a wrong program, without the exercise if that could show nothing.
    fn main(&self, text: &str) -> String {
        let is_for_it = |line: &&str| self.ends == Ends::Outcome || !line.contains("take(");
        let main = joined(text.lines().filter(is_for_it), "\n") + "\n";
        match self.is_informed() {
            true => main.replace("    free(", "    informed = words > 2;\n    free("),
            false => main,
        }
    }
}
