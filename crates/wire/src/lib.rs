//! What crosses a process border: job text, report text, the shared page. No dependencies, no allocation.
