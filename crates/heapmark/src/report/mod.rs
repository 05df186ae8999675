//! Tables -> terminal, Markdown, CSV and JSON. Never measures.
