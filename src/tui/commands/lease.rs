//! Several consoles on one run: asking for the lease, and giving it up.

use crate::bus::LeaseRequest;
use crate::tui::app::{App, Link};
use crate::tui::theme::Role;
use crate::tui::update::Effect;

pub(super) fn take(app: &mut App, _: &str) -> Vec<Effect> {
    let refusal = match (app.ui.link, &app.ui.lease) {
        (Link::Recorded, _) => "this is a recorded run",
        (Link::WatchOnly, _) => "this console only watches; attach without --watch",
        (Link::Live, Some(lease)) if lease.state.yours => "you write already",
        (Link::Live, Some(_)) => return vec![Effect::Lease(LeaseRequest::Take)],
        (Link::Live, None) => "the engine knows no lease: every console writes",
    };
    app.say(Role::Warning, refusal);
    Vec::new()
}

pub(super) fn release(app: &mut App, _: &str) -> Vec<Effect> {
    let holds = app.ui.lease.as_ref().is_some_and(|lease| lease.state.yours);
    if holds {
        return vec![Effect::Lease(LeaseRequest::Release)];
    }
    app.say(Role::Warning, "this console does not write");
    Vec::new()
}
