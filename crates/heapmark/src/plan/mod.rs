//! Catalog + flags -> ordered, seeded, interleaved cells. Deterministic and pure.
