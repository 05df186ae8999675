//! Plain pthreads: their creation, and the ways in which they wait for each other.

mod create;
mod gate;
mod team;
mod turns;
mod wait;

pub use create::{create, detach};
pub use gate::Gate;
pub use team::{Body, Team, ThreadTime, Workers, make_ready};
pub use turns::Turns;
pub use wait::{Barrier, Rendezvous, Semaphore, wait_asleep, wait_long_until, wait_until};
