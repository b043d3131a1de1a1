//! From one line to one [`Request`], or to the one refusal it deserves.
//!
//! Nothing is guessed: unknown members, wrong types, `null` in place of a value, keys that appear twice and numbers
//! written as `1.0` are all refused.

use crate::error::ErrorCode;

use super::fields::{Bad, Fields};
use super::json::{self, Unreadable, Value};
use super::parse_action;
use super::request::{
    Connect, DecodePath, DecoderPreference, Method, Mode, Request, Screenshot, Token, VideoOpen,
    ViewerOperation,
};
use super::{MAX_REQUEST_BYTES, PROTOCOL};

/// Longest observation id accepted, in bytes; ours are far shorter.
const MAX_OBSERVATION_ID: usize = 64;
/// Longest operation id accepted, in bytes; a UUID with a prefix fits, a document does not.
const MAX_OPERATION_ID: usize = 128;
/// Longest wait for a picture, in milliseconds (protocol, "Methods").
const MAX_TIMEOUT_MS: u64 = 5000;

/// Why a line was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line's id, when it could be read.
    pub id: Option<u64>,
    /// What is wrong.
    pub code: ErrorCode,
    /// The member at fault, for the log; empty when none can be named.
    pub member: &'static str,
}

/// Reads one line without its newline.
///
/// # Errors
/// Says what is wrong with it and which id the error reply must carry.
pub fn parse_line(line: &[u8]) -> Result<Request, Refusal> {
    if line.len() >= MAX_REQUEST_BYTES {
        return Err(refuse(None, ErrorCode::RequestTooLarge, ""));
    }
    let document = json::read(line).map_err(|unreadable| match unreadable {
        Unreadable::Syntax => refuse(None, ErrorCode::InvalidJson, ""),
        Unreadable::NoValue(id) => refuse(id, ErrorCode::InvalidJson, ""),
        Unreadable::TooDeep(id) => refuse(id, ErrorCode::RequestTooDeep, ""),
    })?;
    let Value::Object(members) = document.value else {
        return Err(refuse(None, ErrorCode::InvalidJson, ""));
    };
    let id = only_id(&members);
    if document.duplicate_key {
        return Err(refuse(id, ErrorCode::InvalidRequest, ""));
    }
    let Some(number) = id else {
        return Err(refuse(None, ErrorCode::InvalidRequest, "id"));
    };
    let mut fields = Fields::new(members);
    fields.take("id");
    let name = fields
        .text("method")
        .map_err(|_| refuse(id, ErrorCode::InvalidRequest, "method"))?;
    let method = method(&name, &mut fields)
        .and_then(|method| fields.finish().map(|()| method))
        .map_err(|bad| refuse(id, bad.code, bad.member))?;
    Ok(Request { id: number, method })
}

fn refuse(id: Option<u64>, code: ErrorCode, member: &'static str) -> Refusal {
    Refusal { id, code, member }
}

/// The value of `id` when there is exactly one and it is a non-negative integer.
fn only_id(members: &[(String, Value)]) -> Option<u64> {
    let mut ids = members.iter().filter(|(key, _)| key == "id");
    match (ids.next(), ids.next()) {
        (Some((_, Value::Number(number))), None) => number.as_u64(),
        _ => None,
    }
}

fn method(name: &str, fields: &mut Fields) -> Result<Method, Bad> {
    Ok(match name {
        "hello" => hello(fields)?,
        "connect" => Method::Connect(connect(fields)?),
        "status" => Method::Status,
        "screenshot" => Method::Screenshot(image(fields, 2048, true)?),
        "preview" => Method::Preview(image(fields, 960, false)?),
        "video_open" => Method::VideoOpen(video_open(fields)?),
        "video_revoke" => Method::VideoRevoke {
            view: fields.optional("view", Fields::token)?,
        },
        "action" => action(fields)?,
        "control" => Method::Control {
            enabled: fields.boolean("enabled")?,
        },
        "viewer_control" => Method::ViewerControl(viewer_operation(fields)?),
        "display" => Method::Display {
            index: display(fields, "index")?,
        },
        "cancel" => Method::Cancel {
            request_id: fields.integer("request_id", 0..=u64::MAX)?,
        },
        "disconnect" => Method::Disconnect,
        "exit" => Method::Exit,
        _ => return Err(Bad::new(ErrorCode::UnknownMethod, "method")),
    })
}

fn hello(fields: &mut Fields) -> Result<Method, Bad> {
    if fields.text("protocol")? == PROTOCOL {
        Ok(Method::Hello)
    } else {
        Err(Bad::new(ErrorCode::ProtocolUnsupported, "protocol"))
    }
}

fn connect(fields: &mut Fields) -> Result<Connect, Bad> {
    let device = fields.text("device")?;
    if device.len() != 9 || !device.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Bad::argument("device"));
    }
    Ok(Connect {
        device,
        mode: fields.word("mode", &[("observe", Mode::Observe), ("control", Mode::Control)])?,
        display: display(fields, "display")?,
        decode_path: fields
            .optional("decode_path", |fields, name| {
                fields.word(
                    name,
                    &[("browser", DecodePath::Browser), ("minirtc", DecodePath::Minirtc)],
                )
            })?
            .unwrap_or_default(),
        decoder: fields
            .optional("decoder", |fields, name| {
                let words = [
                    ("auto", DecoderPreference::Auto),
                    ("software", DecoderPreference::Software),
                ];
                fields.word(name, &words)
            })?
            .unwrap_or_default(),
    })
}

fn display(fields: &mut Fields, name: &'static str) -> Result<u8, Bad> {
    let index = fields.integer(name, 0..=63)?;
    u8::try_from(index).map_err(|_| Bad::argument(name))
}

fn image(fields: &mut Fields, max_edge: u64, region: bool) -> Result<Screenshot, Bad> {
    let image = Screenshot {
        region: if region {
            fields.optional("region", Fields::region)?
        } else {
            None
        },
        max_edge: fields.optional("max_edge", |fields, name| fields.small(name, 64..=max_edge))?,
        after_frame_id: fields.optional("after_frame_id", |fields, name| {
            fields.integer(name, 0..=u64::MAX)
        })?,
        generation: fields.optional("generation", |fields, name| {
            fields.small(name, 1..=u64::from(u32::MAX))
        })?,
        timeout_ms: fields.optional("timeout_ms", |fields, name| {
            fields.small(name, 0..=MAX_TIMEOUT_MS)
        })?,
    };
    if image.after_frame_id.is_some() && image.generation.is_none() {
        return Err(Bad::argument("generation"));
    }
    Ok(image)
}

fn video_open(fields: &mut Fields) -> Result<VideoOpen, Bad> {
    Ok(VideoOpen {
        ticket: fields.token("ticket")?,
        view: fields.token("view")?,
        view_generation: fields.integer("view_generation", 1..=u64::MAX)?,
        session: fields.token("session")?,
        origin: origin(fields)?,
        apps: fields.boolean("apps")?,
    })
}

/// Exactly `http://127.0.0.1:PORT`, as a browser writes the origin of a page served there.
fn origin(fields: &mut Fields) -> Result<String, Bad> {
    let origin = fields.text("origin")?;
    let port = origin.strip_prefix("http://127.0.0.1:").unwrap_or("");
    let plain = !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit());
    if plain && port.parse::<u16>().is_ok() {
        Ok(origin)
    } else {
        Err(Bad::argument("origin"))
    }
}

fn viewer_operation(fields: &mut Fields) -> Result<ViewerOperation, Bad> {
    let words = [
        ("pause", ViewerOperation::Pause),
        ("resume", ViewerOperation::Resume),
        ("disconnect", ViewerOperation::Disconnect),
    ];
    fields.word("operation", &words)
}

fn action(fields: &mut Fields) -> Result<Method, Bad> {
    Ok(Method::Action {
        operation_id: fields.name("operation_id", MAX_OPERATION_ID)?,
        observation_id: fields.name("observation_id", MAX_OBSERVATION_ID)?,
        action: parse_action::action(&mut fields.object("action")?)?,
    })
}

impl Fields {
    /// A 32-character base64url member.
    fn token(&mut self, name: &'static str) -> Result<Token, Bad> {
        Token::parse(&self.text(name)?).ok_or(Bad::argument(name))
    }
}

#[cfg(test)]
mod tests;
