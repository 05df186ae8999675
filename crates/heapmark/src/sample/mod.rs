//! What is known of the machine while a run goes on.

pub mod machine;
pub mod maps;
pub mod series;
