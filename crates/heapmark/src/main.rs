//! The list of commands, nothing else.

fn main() {}
