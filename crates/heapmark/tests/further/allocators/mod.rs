//! Which library serves: allocators of the catalogue and those that the user brings, proved, inspected, checked, and planted to fail.

mod bring;
mod checked;
mod checks;
mod commits;
mod control;
mod fakes;
mod hardening;
mod inspection;
mod libraries;
mod noted;
mod proof;
mod releases;
mod turnover;
mod wheels;
