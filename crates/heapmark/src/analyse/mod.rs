//! Records -> Tables. Pure: no process, no clock, no file. `stats` inside knows nothing of allocators.

pub mod stats;
