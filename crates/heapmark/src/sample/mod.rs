//! What is known of the machine before, while and after a run goes on.

pub mod cgroup;
pub mod counters;
pub mod disturbance;
pub mod machine;
pub mod maps;
pub mod preflight;
pub mod root;
pub mod series;
