//! Locks on data that several threads use.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns what a lock guards, even if a thread panicked while it held the lock: no invariant spans two changes, so the
/// data is valid at any time.
pub fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
