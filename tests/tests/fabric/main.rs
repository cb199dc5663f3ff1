//! The client on the real NorFab, with CURVE and without.

#[macro_use]
mod common;

mod adoption;
mod audit;
mod clocks;
mod delayed;
mod faults;
mod immediate;
mod keys;
mod kill;
mod schedules;
