//! Locks of what several threads use.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock guards. No invariant spans two changes: what a thread that panicked has left is as good as any.
pub fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
