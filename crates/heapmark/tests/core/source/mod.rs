//! The sources themselves: the order of the host's modules, the files that know what modes there are, the links and length of
//! documents.

mod figures;
mod ladder;
mod links;
mod modes;
