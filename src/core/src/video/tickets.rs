//! The tickets that wait to be presented, and the origins they may come from.

use std::collections::VecDeque;

use subtle::ConstantTimeEq as _;

use super::{Grant, GrantRefusal, MAX_GRANTS, OriginRule, TICKET_LIFETIME, Ticket, ViewId};
use crate::time::Monotonic;

struct Entry {
    grant: Grant,
    expires: Monotonic,
    /// Presented or revoked; kept until it expires so that the same ticket cannot be granted again.
    spent: bool,
}

/// Grants by ticket. Expired entries are removed whenever the book is used.
#[derive(Default)]
pub(super) struct TicketBook {
    entries: VecDeque<Entry>,
    /// Origins granted in this generation, oldest first: a handshake from elsewhere cannot succeed. They outlive
    /// their tickets, so that a page with a spent ticket is told so instead of failing without a reason.
    origins: VecDeque<OriginRule>,
}

impl TicketBook {
    /// Adds a grant; lower view generations of its view lose their tickets.
    pub(super) fn add(&mut self, now: Monotonic, grant: Grant) -> Result<(), GrantRefusal> {
        self.expire(now);
        if self.find(&grant.ticket).is_some() {
            return Err(GrantRefusal::TicketReused);
        }
        let newer = |entry: &Entry| entry.grant.outranks(&grant);
        if self.live().any(newer) {
            return Err(GrantRefusal::StaleView);
        }
        self.make_room()?;
        for entry in &mut self.entries {
            entry.spent |= grant.outranks(&entry.grant);
        }
        self.remember_origin(grant.origin);
        let expires = now + TICKET_LIFETIME;
        self.entries.push_back(Entry {
            grant,
            expires,
            spent: false,
        });
        Ok(())
    }

    /// Spends `ticket`. `None` when it is unknown, spent, expired or not for `origin`; it is spent then, too, as
    /// a ticket that shows up in the wrong place is no secret any more.
    pub(super) fn take(&mut self, now: Monotonic, ticket: &Ticket, origin: &str) -> Option<Grant> {
        self.expire(now);
        let entry = self.find(ticket).map(|at| &mut self.entries[at])?;
        let fresh = !std::mem::replace(&mut entry.spent, true);
        (fresh && entry.grant.origin.allows(origin)).then(|| entry.grant.clone())
    }

    /// Makes a ticket usable again that was taken by a socket that could not be served for want of room.
    pub(super) fn put_back(&mut self, ticket: &Ticket) {
        if let Some(at) = self.find(ticket) {
            self.entries[at].spent = false;
        }
    }

    /// Spends the tickets of `view`, or all.
    pub(super) fn revoke(&mut self, view: Option<ViewId>) {
        for entry in &mut self.entries {
            entry.spent |= view.is_none_or(|view| view == entry.grant.view);
        }
    }

    /// Forgets everything: the generation the tickets were bound to is over.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.origins.clear();
    }

    /// True when a ticket of this generation was granted to `origin`.
    pub(super) fn knows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|rule| rule.allows(origin))
    }

    /// Compares with every ticket held, in a time that does not depend on which one matches or how far.
    fn find(&self, ticket: &Ticket) -> Option<usize> {
        let mut found = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.grant.ticket.ct_eq(ticket).into() {
                found = Some(at);
            }
        }
        found
    }

    fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.spent)
    }

    fn expire(&mut self, now: Monotonic) {
        // Entries are in the order they were granted and live equally long.
        while self.entries.front().is_some_and(|entry| entry.expires <= now) {
            self.entries.pop_front();
        }
    }

    fn make_room(&mut self) -> Result<(), GrantRefusal> {
        if self.entries.len() < MAX_GRANTS {
            return Ok(());
        }
        let spent = self.entries.iter().position(|entry| entry.spent);
        let at = spent.ok_or(GrantRefusal::TooManyTickets)?;
        self.entries.remove(at);
        Ok(())
    }

    fn remember_origin(&mut self, rule: OriginRule) {
        self.origins.retain(|known| *known != rule);
        self.origins.push_back(rule);
        if self.origins.len() > MAX_GRANTS {
            self.origins.pop_front();
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_invariants(&self, generation: Option<u32>) {
        assert!(self.entries.len() <= MAX_GRANTS && self.origins.len() <= MAX_GRANTS);
        assert!(self.entries.iter().is_sorted_by_key(|entry| entry.expires));
        assert!(
            self.entries
                .iter()
                .all(|entry| Some(entry.grant.generation) == generation)
        );
    }
}
