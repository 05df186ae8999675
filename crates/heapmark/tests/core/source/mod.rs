//! The sources themselves: the order of the host's modules, files that import each other, and the links and words of comments and documents.

mod ladder;
mod links;
mod words;
