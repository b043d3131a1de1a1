//! What a viewer may say: its ticket, acknowledgements and keyframe wishes, parsed strictly.
//!
//! A message is one JSON object with exactly the fields of its kind, each once and of its exact type.

use std::fmt;

use serde::{Deserialize, Deserializer};

use super::Ticket;

/// A message of an authorised viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// The frame with this generation and sequence has arrived.
    Ack {
        /// Generation from the frame's header.
        generation: u32,
        /// Sequence from the frame's header.
        sequence: u32,
    },
    /// The viewer's decoder needs a keyframe.
    Keyframe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketWire {
    ticket: SecretText,
}

/// Text that must not show up anywhere, error messages of the JSON reader included.
struct SecretText(String);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    // Not an enum: derived ones also take `{"keyframe":null}`.
    r#type: String,
    // `Option` would also take `null`; the function takes numbers only.
    #[serde(default, deserialize_with = "number")]
    generation: Option<u32>,
    #[serde(default, deserialize_with = "number")]
    sequence: Option<u32>,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    u32::deserialize(deserializer).map(Some)
}

/// The text is not one of the messages a viewer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMessage;

impl fmt::Display for NotAMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a message of the video protocol")
    }
}

impl std::error::Error for NotAMessage {}

/// Reads the first message of a connection, `{"ticket":"…"}`.
///
/// # Errors
/// On anything else. The error says nothing about the text, which may hold a ticket.
pub fn parse_ticket_message(text: &[u8]) -> Result<Ticket, NotAMessage> {
    let wire: TicketWire = parse_object(text)?;
    Ticket::parse(&wire.ticket.0).ok_or(NotAMessage)
}

/// Reads a message of an authorised viewer.
///
/// # Errors
/// On anything but `{"type":"ack","generation":N,"sequence":N}` and `{"type":"keyframe"}`.
pub fn parse_client_message(text: &[u8]) -> Result<ClientMessage, NotAMessage> {
    let wire: Wire = parse_object(text)?;
    match (wire.r#type.as_str(), wire.generation, wire.sequence) {
        ("ack", Some(generation), Some(sequence)) => Ok(ClientMessage::Ack { generation, sequence }),
        ("keyframe", None, None) => Ok(ClientMessage::Keyframe),
        _ => Err(NotAMessage),
    }
}

/// Derived readers also take an array of the values in order; the protocol knows objects only.
fn parse_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, NotAMessage> {
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(NotAMessage);
    }
    serde_json::from_slice(text).map_err(|_| NotAMessage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "AbCdEfGhIjKlMnOpQrStUvWxYz0123-_";

    #[test]
    fn the_two_messages_of_a_viewer_are_read() {
        assert_eq!(
            parse_client_message(br#" {"sequence":4294967295,"type":"ack","generation":1}"#),
            Ok(ClientMessage::Ack {
                generation: 1,
                sequence: u32::MAX
            })
        );
        assert_eq!(
            parse_client_message(br#"{"type":"keyframe"}"#),
            Ok(ClientMessage::Keyframe)
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"["ack",1,1]"#,
            r#"["keyframe"]"#,
            r#"{"type":"ack"}"#,
            r#"{"type":"ack","generation":1}"#,
            r#"{"type":"ack","generation":1,"sequence":null}"#,
            r#"{"type":"ack","generation":1,"sequence":"1"}"#,
            r#"{"type":"ack","generation":1,"sequence":1.0}"#,
            r#"{"type":"ack","generation":1,"sequence":-1}"#,
            r#"{"type":"ack","generation":1,"sequence":4294967296}"#,
            r#"{"type":"ack","generation":1,"sequence":1,"sequence":1}"#,
            r#"{"type":"ack","generation":1,"sequence":1,"extra":0}"#,
            r#"{"type":"ack","generation":1,"sequence":1} x"#,
            r#"{"type":"keyframe","generation":1}"#,
            r#"{"type":"keyframe","sequence":null}"#,
            r#"{"type":"Keyframe"}"#,
            r#"{"type":{"keyframe":null}}"#,
            r#"{"type":"input","x":1}"#,
            "{\"type\":\"keyframe\0\"}",
        ] {
            assert_eq!(parse_client_message(text.as_bytes()), Err(NotAMessage), "{text}");
        }
        assert_eq!(parse_client_message(b"{\"type\":\"\xff\"}"), Err(NotAMessage));
    }

    #[test]
    fn a_ticket_message_has_one_field_of_exactly_32_characters() {
        let ok = format!(r#"{{"ticket":"{TICKET}"}}"#);
        assert_eq!(
            parse_ticket_message(ok.as_bytes()),
            Ok(Ticket::parse(TICKET).unwrap())
        );
        for text in [
            format!(r#"["{TICKET}"]"#),
            format!(r#"{{"ticket":"{TICKET}","view":1}}"#),
            format!(r#"{{"ticket":"{TICKET}","ticket":"{TICKET}"}}"#),
            format!(r#"{{"ticket":"{}"}}"#, &TICKET[1..]),
            format!(r#"{{"ticket":"{TICKET}="}}"#),
            format!(r#"{{"ticket":"{}+/"}}"#, &TICKET[2..]),
            r#"{"ticket":null}"#.into(),
        ] {
            assert_eq!(parse_ticket_message(text.as_bytes()), Err(NotAMessage), "{text}");
        }
    }
}
