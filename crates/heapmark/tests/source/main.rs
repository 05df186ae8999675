//! The sources themselves: the order of the host's modules, and the links and words of comments and documents.

mod ladder;
mod links;
mod words;
