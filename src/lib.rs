#![doc = include_str!("../ARCHITECTURE.md")]

pub mod types;

pub mod action;
pub mod config;
pub mod event;
pub mod grpo;
pub mod http;
pub mod screen;

pub mod bus;
pub mod env;
pub mod guest;
pub mod prompt;
pub mod store;
pub mod tasks;

pub mod evaluator;
pub mod policy;

pub mod rollout;
pub mod session;

pub mod cli;
pub mod tui;
