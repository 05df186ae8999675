//! Sources -> shared libraries, cached by recipe hash; and the inspection of libraries that others made.
