//! The sources themselves: the order of the host's modules, and the words of comments and documents.

mod ladder;
mod words;
