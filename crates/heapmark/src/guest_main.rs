//! The measured process. A thin door to the guest library.

fn main() {}
