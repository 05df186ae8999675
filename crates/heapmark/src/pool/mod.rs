//! What runs of several machines say together: `heapmark campaign`.

mod campaign;
mod command;
pub(crate) mod judge;
pub(crate) mod report;

pub use command::{CampaignArgs, page_beside, run};
