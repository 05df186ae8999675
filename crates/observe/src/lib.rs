//! What heapmark observes of the machine and of processes before, during and after a run.

mod clock;
pub mod machine;
pub mod memory;

pub use machine::{Counters, Groups, Interference, Prices, Root, interference, preflight, root};
pub use memory::{
    Demand, DemandSampler, MeanHeap, MemoryProfile, MemorySampler, SeriesSampler, TreeSampler,
    Watcher, csv_of_points, mean_heap, memory_profile, memory_sampler, series,
};
