//! The way of input to a host: the data channel that takes it, and what the host can do with it.

use std::sync::Arc;

use bytes::Bytes;
use crossdesk_core::automation::ControlOutcome;
use crossdesk_core::control::{ControlMessage, wire};

use super::super::webrtc::{ChannelId, Connection};

/// Channels of a host that are looked at; the public ones open seven.
const MAX_CHANNELS: usize = 16;
/// Labels of channels that take input, best first.
const INPUT_LABELS: [&str; 3] = ["control_data", "mouse", "keyboard"];
/// Labels that never do.
const OTHER_LABELS: [&str; 3] = ["clipboard", "file", "file_feedback"];

struct Channel {
    id: ChannelId,
    stream: u16,
    label: String,
}

/// See the module's description.
pub(super) struct Line {
    connection: Arc<Connection>,
    channels: Vec<Channel>,
    /// The host types text in one message.
    pub(super) text: bool,
}

impl Line {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            channels: Vec::new(),
            text: false,
        }
    }

    pub(super) fn opened(&mut self, id: ChannelId, stream: u16, label: &str) {
        if self.channels.len() < MAX_CHANNELS {
            let label = label.to_owned();
            self.channels.push(Channel { id, stream, label });
        }
    }

    pub(super) fn closed(&mut self, id: ChannelId) {
        self.channels.retain(|channel| channel.id != id);
    }

    /// The channel for input: by its label where labels say something, else the one announced last, which is the one
    /// that the public web client uses.
    fn channel(&self) -> Option<ChannelId> {
        let labelled = INPUT_LABELS
            .iter()
            .find_map(|label| self.channels.iter().find(|channel| channel.label == *label));
        let last = || {
            let candidates = self
                .channels
                .iter()
                .filter(|channel| !OTHER_LABELS.contains(&channel.label.as_str()));
            candidates.max_by_key(|channel| channel.stream)
        };
        labelled.or_else(last).map(|channel| channel.id)
    }

    /// True when input can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.channel().is_some()
    }

    pub(super) fn say(&self, text: String) -> bool {
        let Some(channel) = self.channel() else {
            return false;
        };
        self.connection
            .send_message(channel, false, Bytes::from(text))
            .is_ok()
    }

    pub(super) fn send(&self, message: &ControlMessage) -> ControlOutcome {
        if matches!(message, ControlMessage::Text(_)) && !self.text {
            return ControlOutcome::Refused;
        }
        for (sent, text) in wire::guest_texts(message).into_iter().enumerate() {
            if !self.say(text) {
                return if sent == 0 {
                    ControlOutcome::Refused
                } else {
                    ControlOutcome::Failed
                };
            }
        }
        ControlOutcome::Sent
    }
}
