//! One guest of a host: its connection, what it may do and what it holds.

use std::sync::Arc;

use bytes::Bytes;
use crossdesk_core::control::Held;
use crossdesk_core::control::wire::{self, Extensions, HostInfo};

use crate::transport::webrtc::{ChannelId, Connection};

/// A guest with a connection, or with one in the making.
pub(super) struct Guest {
    /// Numbers guests; never used twice.
    pub(super) number: u64,
    /// The id it has at the signaling server.
    pub(super) id: String,
    pub(super) connection: Arc<Connection>,
    /// True once media can flow.
    pub(super) connected: bool,
    /// The display it looks at.
    pub(super) display: usize,
    /// What it holds down.
    pub(super) held: Held,
    /// What it understands beyond the public protocol.
    pub(super) extensions: Extensions,
    channels: Vec<ChannelId>,
}

impl Guest {
    pub(super) fn new(number: u64, id: String, connection: Arc<Connection>) -> Self {
        Self {
            number,
            id,
            connection,
            connected: false,
            display: 0,
            held: Held::default(),
            extensions: Extensions::default(),
            channels: Vec::new(),
        }
    }

    /// A channel opened: the guest is told who the host is.
    pub(super) fn opened(&mut self, channel: ChannelId, info: &HostInfo) {
        self.channels.push(channel);
        self.say(wire::host_info(info));
    }

    pub(super) fn closed(&mut self, channel: ChannelId) {
        self.channels.retain(|known| *known != channel);
    }

    /// Tells a guest that understands it whether its input is taken.
    pub(super) fn tell_control(&self, allowed: bool) {
        if self.extensions.control_status {
            self.say(wire::control_status(allowed));
        }
    }

    /// Public hosts write bytes, and guests read both.
    fn say(&self, text: String) {
        let Some(channel) = self.channels.first() else {
            return;
        };
        if let Err(reason) = self.connection.send_message(*channel, true, Bytes::from(text)) {
            tracing::warn!(guest = self.id, %reason, "a message to a guest is lost");
        }
    }
}
