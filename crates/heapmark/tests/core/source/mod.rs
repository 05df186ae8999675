//! The sources themselves: the order of the host's modules, and the links and length of documents.

mod ladder;
mod links;
