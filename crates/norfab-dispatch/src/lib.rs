//! The dispatcher of a NorFab client: releases delayed jobs at their time, makes jobs of the occurrences of schedules,
//! sends what is NEW, again where it was not delivered, follows what is in flight and ends what is overdue, over any store
//! ([`Store`](norfab_model::Store) and [`ScheduleStore`](norfab_model::ScheduleStore)),
//! [`Broker`](norfab_model::Broker) and [`Clock`](norfab_model::Clock).
//!
//! The rooms: [`Dispatcher`] with its loop and its pass; [`Control`], through which the rest of a program speaks to it;
//! [`Notice`], what it tells; [`Config`]. One task owns a dispatcher; only that task sends or receives.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod again;
mod answer;
mod config;
mod connection;
mod control;
mod dispatcher;
mod event;
mod gather;
mod hang;
mod hold;
mod inbox;
mod instants;
mod link;
mod live;

mod manual;
mod materialize;
mod poll;
mod post;
mod recover;
mod registry;
mod release;
mod reply;
mod requests;
mod stray;
mod together;
mod trouble;
mod weight;

pub use config::Config;
pub use control::{Control, ControlError, Health, LinkState, Notice};
pub use dispatcher::{Dispatcher, Ports};
pub use hang::Watch;
pub use manual::ManualClock;
