//! The text of glibc's `mtrace`, in which each line is `@ CALLER + ADDRESS SIZE`; the caller may be
//! missing, and may have spaces in it.

use super::*;

pub const NAME: &str = "glibc mtrace";
/// What the text of mtrace does not record.
pub const LOST: &str = "mtrace does not say which thread makes a call, which alignment it asks for, nor that it is calloc: one thread makes all calls, by malloc and realloc";

#[derive(Default)]
pub struct Mtrace {
    /// The object that a realloc moves, between the line `<`, which frees the old address, and the
    /// line `>`, which has the new one.
    moving: Option<Option<Token>>,
    ended: bool,
}

impl Format for Mtrace {
    fn line(&mut self, line: &str, to: &mut Import) -> Result<()> {
        self.ended = line == "= End";
        if line.is_empty() || line.starts_with('=') {
            return Ok(());
        }
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let sign = |word: &&str| matches!(*word, "+" | "-" | "<" | ">" | "!");
        let Some(at) = words
            .iter()
            .rposition(sign)
            .filter(|at| *at == 0 || words[0] == "@")
        else {
            return torn("neither a call (`+ - < > !`) nor a mark (`=`)");
        };
        let old = self.moving.take();
        if old.is_some() && words[at] != ">" {
            return torn("no new address of a realloc (`>`) behind its old one (`<`)");
        }
        match (words[at], &words[at + 1..]) {
            ("+", [address, size]) => {
                let (address, size) = (hexadecimal(address)?, hexadecimal(size)?);
                if address != 0 {
                    return to.begin(0, address, moved(None, size));
                }
                let call = Call::Malloc;
                to.write(0, &Event::Failed { call, size })
            }
            ("-", [address]) => to.free(0, hexadecimal(address)?),
            ("<", [address]) => {
                self.moving = Some(to.end(0, hexadecimal(address)?));
                Ok(())
            }
            (">", [address, size]) => {
                let (address, size) = (hexadecimal(address)?, hexadecimal(size)?);
                let Some(old) = old else {
                    return torn(
                        "a new address of a realloc (`>`) without its old one (`<`) before it",
                    );
                };
                to.begin(0, address, moved(old, size))
            }
            ("!", [_, size]) => {
                let (call, size) = (Call::Realloc, hexadecimal(size)?);
                to.write(0, &Event::Failed { call, size })
            }
            (sign, _) => torn(format!("`{sign}` with other words behind it than it has")),
        }
    }

    fn ended(&self) -> bool {
        self.ended && self.moving.is_none()
    }
}

fn torn<T>(what: impl std::fmt::Display) -> Result<T> {
    damaged(format!(
        "{what}; in a program that forks, the child writes what stands in mtrace's buffer once more"
    ))
}
