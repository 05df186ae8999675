//! Kernels and what the harness says of them: exact counts of calls, sizes as drawn, memory over time, presets of the right shape.

mod catalogue;
mod counter;
mod counting;
mod counting_aged;
mod counting_memory;
mod counting_operations;
mod counting_replay;
mod counting_shapes;
mod counting_vector_and_scatter;
mod counting_zalloc_cache_speed;
mod distributions;
mod duets;
mod main_thread;
mod open_loop;
mod operations;
mod time_parts;
