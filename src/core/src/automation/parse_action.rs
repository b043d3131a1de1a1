//! The `action` object of an `action` request.

use crate::control::{Key, MouseButton, TypedText};

use super::fields::{Bad, Fields};
use super::json::Value;
use super::request::{Action, ImagePoint, ScrollDirection};

/// Longest text in bytes of UTF-8 (protocol, "Actions").
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// How long a drag takes when the caller does not say: slow enough for drop targets to notice.
const DEFAULT_DRAG_MS: u32 = 500;

/// Reads an action and refuses members it does not have.
pub(super) fn action(fields: &mut Fields) -> Result<Action, Bad> {
    let kind = fields.text("type")?;
    let action = match kind.as_str() {
        "move" => Action::Move { at: point(fields)? },
        "click" | "double_click" => Action::Click {
            at: point(fields)?,
            button: fields.optional("button", button)?.unwrap_or(MouseButton::Left),
            double: kind == "double_click",
        },
        "scroll" => Action::Scroll {
            at: point(fields)?,
            direction: direction(fields)?,
            ticks: fields
                .optional("ticks", |fields, name| fields.small(name, 1..=10))?
                .unwrap_or(1),
        },
        "drag" => drag(fields)?,
        "key_press" => Action::Keys(vec![key(fields.take("key"), "key")?]),
        "hotkey" => hotkey(fields)?,
        "type_text" => type_text(fields)?,
        _ => return Err(Bad::argument("type")),
    };
    fields.finish()?;
    Ok(action)
}

fn point(fields: &mut Fields) -> Result<ImagePoint, Bad> {
    let any = u64::from(u32::MAX);
    Ok(ImagePoint {
        x: fields.small("x", 0..=any)?,
        y: fields.small("y", 0..=any)?,
    })
}

fn button(fields: &mut Fields, name: &'static str) -> Result<MouseButton, Bad> {
    let words = [
        ("left", MouseButton::Left),
        ("right", MouseButton::Right),
        ("middle", MouseButton::Middle),
    ];
    fields.word(name, &words)
}

fn direction(fields: &mut Fields) -> Result<ScrollDirection, Bad> {
    let words = [
        ("up", ScrollDirection::Up),
        ("down", ScrollDirection::Down),
        ("left", ScrollDirection::Left),
        ("right", ScrollDirection::Right),
    ];
    fields.word("direction", &words)
}

fn drag(fields: &mut Fields) -> Result<Action, Bad> {
    let items = fields.array("path")?;
    if !(2..=128).contains(&items.len()) {
        return Err(Bad::argument("path"));
    }
    let path = items.into_iter().map(path_point).collect::<Result<_, _>>()?;
    let duration_ms = fields
        .optional("duration_ms", |fields, name| fields.small(name, 100..=2000))?
        .unwrap_or(DEFAULT_DRAG_MS);
    Ok(Action::Drag { path, duration_ms })
}

fn path_point(item: Value) -> Result<ImagePoint, Bad> {
    let Value::Object(members) = item else {
        return Err(Bad::argument("path"));
    };
    let mut fields = Fields::new(members);
    let at = point(&mut fields)?;
    fields.finish()?;
    Ok(at)
}

fn key(value: Option<Value>, member: &'static str) -> Result<Key, Bad> {
    match value {
        Some(Value::String(name)) => Key::named(&name).ok_or(Bad::argument(member)),
        _ => Err(Bad::argument(member)),
    }
}

fn hotkey(fields: &mut Fields) -> Result<Action, Bad> {
    let items = fields.array("keys")?;
    if !(2..=6).contains(&items.len()) {
        return Err(Bad::argument("keys"));
    }
    let mut keys = Vec::with_capacity(items.len());
    for item in items {
        let key = key(Some(item), "keys")?;
        if keys.contains(&key) {
            return Err(Bad::argument("keys"));
        }
        keys.push(key);
    }
    Ok(Action::Keys(keys))
}

fn type_text(fields: &mut Fields) -> Result<Action, Bad> {
    let text = fields.text("text")?;
    if text.is_empty() || text.len() > MAX_TEXT_BYTES || text.contains('\0') {
        return Err(Bad::argument("text"));
    }
    Ok(Action::TypeText(TypedText::new(text)))
}
