//! What a program calls instead of the next library: each hook passes its call on and notes it.

mod c;
mod operators;
mod others;
mod programs;
mod tuning;
