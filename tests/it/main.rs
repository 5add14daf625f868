//! Integration tests, one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actions;
mod attach;
mod attached;
mod bench;
mod bytes;
#[cfg(feature = "torch")]
mod console;
mod ctl;
mod debugger;
mod desk;
mod desktops;
mod docker;
mod doctor;
mod guest;
mod guest_server;
#[cfg(feature = "torch")]
mod live;
mod loopback;
mod machines;
mod pictures;
mod processes;
mod profiles;
mod prompt;
mod protocols;
mod pty;
mod qemu;
mod reference;
mod replay;
mod screen;
mod simulated;
mod step;
mod stop;
mod store;
mod synthetic;
mod tasks;
mod tasks_files;
mod terminals;
mod tidy;
mod tokens;
mod tui;
mod xvfb;
