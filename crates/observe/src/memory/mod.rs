//! The memory of processes while they run: sampled from outside, or by a guest itself.

pub mod demand;
mod maps;
pub mod mean_heap;
pub mod memory_profile;
pub mod memory_sampler;
mod pace;
mod process_files;
pub mod series;
pub mod tree;
mod watcher;

pub use demand::{Demand, DemandSampler};
pub use mean_heap::MeanHeap;
pub use memory_profile::MemoryProfile;
pub use memory_sampler::{MemorySampler, csv_of_points};
pub use process_files::{ProcessFiles, stat_words};
pub use series::SeriesSampler;
pub use tree::TreeSampler;
pub use watcher::Watcher;
