//! Machines: what a guest server runs on, and who makes them.
//!
//! A machine belongs to one desktop of a run for the run's life. It is brought back to its clean
//! state between episodes and is only ever asked through its guest server.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use super::EnvError;
use super::guest::Guest;
use crate::tasks::FileCache;
use crate::types::osworld::PlaceholderValues;

/// A stream to a port of a machine.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// How a machine itself is, whatever its server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineState {
    /// It was never started, or was closed.
    Off,
    /// It runs; its layers above are `Guest::health`'s to tell.
    Running,
    /// It ended by itself, and waits to be reverted.
    Ended {
        /// Why.
        reason: String,
    },
    /// It did not come up when it was last reverted.
    Broken {
        /// Why.
        reason: String,
    },
}

/// A machine with a guest server.
#[async_trait]
pub trait Machine: Send + Sync {
    /// What it is called in messages: its provider and its number.
    fn name(&self) -> String;
    /// Brings it to its clean state, with a server that answers; starts it where it does not run.
    /// Nothing of an earlier episode is left, neither files nor programs.
    async fn revert(&mut self) -> Result<(), EnvError>;
    /// How it is, below its server.
    fn state(&self) -> MachineState {
        MachineState::Running
    }
    /// Its server's client. Asks nobody before `revert` has come back.
    fn guest(&self) -> &Guest;
    /// Starts its server anew and leaves all else as it is.
    async fn restart_server(&mut self) -> Result<(), EnvError>;
    /// A connection to a port that a program on it listens on, as a client on the machine itself
    /// would have.
    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, EnvError>;
    /// What it has for the placeholders of set-up steps.
    fn placeholders(&self) -> PlaceholderValues;
    /// Stops its time. A no-op where that cannot be.
    async fn suspend(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Undoes `suspend`.
    async fn wake(&mut self) -> Result<(), EnvError> {
        Ok(())
    }
    /// Ends it and removes all that is left of it; the machine is gone even if this fails.
    async fn close(&mut self) -> Result<(), EnvError>;
}

/// Who makes machines of one kind.
pub trait Provider: Send + Sync {
    /// The machine of one desktop of the run. Starts nothing: the first `revert` does.
    fn machine(&self, desktop: u32) -> Result<Box<dyn Machine>, EnvError>;
}

/// What an evaluator reads a real desktop by.
#[derive(Clone, Copy)]
pub struct RealDesktop<'a> {
    /// The machine.
    pub machine: &'a dyn Machine,
    /// What set-up steps of this episode kept of their programs' output, by the name they gave it.
    pub kept: &'a BTreeMap<String, Vec<u8>>,
    /// Files from the web.
    pub files: &'a FileCache,
}
