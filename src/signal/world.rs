//! What all tasks of the server share: the machine, the sockets' slots, the store's thread and the clock.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;

use crossdesk_core::signaling::{
    CloseReason, Effect, MAX_SEND_BYTES, Moment, Note, Server, SocketId, StoreOutcome, StoreRequest,
};
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;
use tokio::sync::Notify;

/// Bytes read at a time, for all sockets together: reading never waits while it is in use.
const READ_BYTES: usize = 16 * 1024;

/// How a socket's task learns what the machine wants of it.
#[derive(Default)]
pub(super) struct Slot {
    /// Something changed: a text waits, or the socket must close.
    pub(super) changed: Notify,
    texts: RefCell<VecDeque<String>>,
    bytes: Cell<usize>,
    close: Cell<Option<CloseReason>>,
}

impl Slot {
    /// The next text to write.
    pub(super) fn take_text(&self) -> Option<String> {
        let text = self.texts.borrow_mut().pop_front()?;
        self.bytes.set(self.bytes.get() - text.len());
        Some(text)
    }

    /// Why to close.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.close.get()
    }

    /// False when the peer reads too slowly.
    fn push(&self, text: String) -> bool {
        let bytes = self.bytes.get() + text.len();
        if bytes > MAX_SEND_BYTES {
            return false;
        }
        self.bytes.set(bytes);
        self.texts.borrow_mut().push_back(text);
        true
    }
}

/// See the module's description. Borrows are short and never held across an await.
pub(super) struct World {
    server: RefCell<Server>,
    slots: RefCell<HashMap<SocketId, Rc<Slot>>>,
    /// `None` once the store has been let go.
    store: RefCell<Option<SyncSender<StoreRequest>>>,
    scratch: RefCell<Box<[u8; READ_BYTES]>>,
    alarm: Cell<Option<Monotonic>>,
    alarm_changed: Notify,
    task_ended: Notify,
}

impl World {
    /// `store` must have room for one question.
    pub(super) fn new(server: Server, store: SyncSender<StoreRequest>) -> Self {
        Self {
            server: RefCell::new(server),
            slots: RefCell::default(),
            store: RefCell::new(Some(store)),
            scratch: RefCell::new(Box::new([0; READ_BYTES])),
            alarm: Cell::new(None),
            alarm_changed: Notify::new(),
            task_ended: Notify::new(),
        }
    }

    /// Lets the machine handle something and carries out what follows from it.
    pub(super) fn server<T>(&self, handle: impl FnOnce(&mut Server, Moment) -> T) -> T {
        let outcome = handle(&mut self.server.borrow_mut(), moment());
        self.carry_out();
        self.set_alarm();
        outcome
    }

    /// Asks the machine something that changes nothing.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&Server) -> T) -> T {
        question(&self.server.borrow())
    }

    /// Lends the buffer into which sockets are read.
    pub(super) fn with_scratch<T>(&self, read: impl FnOnce(&mut [u8]) -> T) -> T {
        read(&mut self.scratch.borrow_mut()[..])
    }

    /// A socket has finished its handshake; `None` when there are too many.
    pub(super) fn open(&self, address: IpAddr) -> Option<(SocketId, Rc<Slot>)> {
        let id = self.server(|server, now| server.handle_open(now, address))?;
        let slot = Rc::new(Slot::default());
        self.slots.borrow_mut().insert(id, Rc::clone(&slot));
        Some((id, slot))
    }

    /// A socket is gone.
    pub(super) fn close(&self, id: SocketId) {
        self.slots.borrow_mut().remove(&id);
        self.server(|server, now| server.handle_disconnect(now, id));
    }

    fn carry_out(&self) {
        loop {
            let effect = self.server.borrow_mut().poll_effect();
            match effect {
                None => return,
                Some(Effect::Send(id, text)) => self.deliver(id, text),
                Some(Effect::Close(id, reason)) => self.end(id, reason),
                Some(Effect::Store(question)) => self.ask_store(question),
                Some(Effect::Note(note)) => log(&note),
            }
        }
    }

    fn deliver(&self, id: SocketId, text: String) {
        let slot = self.slots.borrow().get(&id).cloned();
        let Some(slot) = slot else { return };
        if slot.push(text) {
            slot.changed.notify_one();
        } else {
            let reason = CloseReason::SendBacklog;
            self.server.borrow_mut().handle_violation(moment(), id, reason);
        }
    }

    fn end(&self, id: SocketId, reason: CloseReason) {
        tracing::info!(socket = %id, reason = reason.close().text, "closed");
        if let Some(slot) = self.slots.borrow().get(&id) {
            slot.close.set(Some(reason));
            slot.changed.notify_one();
        }
    }

    /// The machine asks one question at a time, so there is room; a thread that is gone cannot answer.
    fn ask_store(&self, question: StoreRequest) {
        let store = self.store.borrow();
        if store
            .as_ref()
            .is_none_or(|store| store.try_send(question).is_err())
        {
            let mut server = self.server.borrow_mut();
            server.handle_store(moment(), StoreOutcome::Failed);
        }
    }

    /// Wakes the timer only when it would sleep too long; waking early does no harm.
    fn set_alarm(&self) {
        let next = self.ask(Server::next_deadline);
        if let Some(next) = next.filter(|next| self.alarm.get().is_none_or(|alarm| *next < alarm)) {
            self.alarm.set(Some(next));
            self.alarm_changed.notify_one();
        }
    }

    /// Keeps time for the machine.
    pub(super) async fn keep_time(&self) {
        loop {
            let Some(alarm) = self.alarm.get() else {
                self.alarm_changed.notified().await;
                continue;
            };
            let wait = alarm.since(clock::now());
            tokio::select! {
                () = self.alarm_changed.notified() => {}
                () = tokio::time::sleep(wait) => {
                    self.alarm.set(None);
                    self.server(|server, now| server.handle_timeout(now));
                }
            }
        }
    }

    /// A connection's task has ended.
    pub(super) fn task_ends(&self) {
        self.task_ended.notify_one();
    }

    /// Lets the store's thread end.
    pub(super) fn release_store(&self) {
        self.store.take();
    }

    /// Tells every socket that the server stops, and waits until all are gone.
    pub(super) async fn farewell(&self) {
        self.server(|server, now| server.handle_shutdown(now));
        while !self.slots.borrow().is_empty() {
            self.task_ended.notified().await;
        }
    }
}

fn moment() -> Moment {
    Moment {
        at: clock::now(),
        unix: clock::unix_seconds(),
    }
}

/// Identities may be logged; passwords, tokens and descriptions are not in a note.
fn log(note: &Note) {
    match note {
        Note::Registered(socket, device) => tracing::info!(%socket, %device, "registered"),
        Note::LoggedIn(socket, user) => tracing::info!(%socket, %user, "logged in"),
        Note::LoginRefused(socket, why) => tracing::info!(%socket, why = why.as_str(), "login refused"),
        Note::Joined(guest, host) => tracing::info!(%guest, %host, "joined"),
        Note::JoinRefused(socket, why) => tracing::info!(%socket, why = why.as_str(), "join refused"),
        Note::PasswordChanged(device) => tracing::info!(%device, "password changed"),
        Note::StoreFailed => tracing::warn!("the device store did not answer a request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_takes_no_more_than_its_bound() {
        let slot = Slot::default();
        let half = "x".repeat(MAX_SEND_BYTES / 2);
        assert!(slot.push(half.clone()) && slot.push(half.clone()));
        assert!(!slot.push("x".to_owned()));
        assert_eq!(slot.take_text(), Some(half));
        assert!(slot.push("x".to_owned()));
    }
}
