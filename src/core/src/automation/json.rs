//! JSON read strictly: one value, no key twice in an object, bounded nesting.
//!
//! `serde_json` keeps the last of two equal keys in silence and allows 128 levels, so both rules are ours.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::MAX_DEPTH;

/// A JSON value whose objects keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(Number),
    /// A string without its escapes.
    String(String),
    /// An array.
    Array(Vec<Self>),
    /// An object's members; keys may repeat only when [`Document::duplicate_key`] says so.
    Object(Vec<(String, Self)>),
}

/// A whole line.
#[derive(Debug)]
pub(super) struct Document {
    /// What it holds.
    pub(super) value: Value,
    /// True when some object has a key twice.
    pub(super) duplicate_key: bool,
}

/// Why a line could not be read as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not one JSON value in UTF-8.
    Syntax,
    /// It nests too deeply; the id is the one its outermost object names.
    TooDeep(Option<u64>),
    /// It is JSON, but a number is beyond every range or an escape is half a character; the id is the outermost one.
    NoValue(Option<u64>),
}

/// Reads `line`, which holds no newline.
pub(super) fn read(line: &[u8]) -> Result<Document, Unreadable> {
    let text = std::str::from_utf8(line).map_err(|_| Unreadable::Syntax)?;
    if depth(text.as_bytes()) > MAX_DEPTH {
        return Err(Unreadable::TooDeep(outermost_id(text)));
    }
    let duplicate = Cell::new(false);
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict(&duplicate)
        .deserialize(&mut reader)
        .map_err(|_| why_unreadable(text))?;
    reader.end().map_err(|_| Unreadable::Syntax)?;
    Ok(Document {
        value,
        duplicate_key: duplicate.get(),
    })
}

/// The grammar alone decides whether an id can be read: it knows neither ranges nor surrogates.
fn why_unreadable(text: &str) -> Unreadable {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Unreadable::NoValue(outermost_id(text)),
        Err(_) => Unreadable::Syntax,
    }
}

/// Deepest nesting of brackets outside strings.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for token in Structure::of(text) {
        match token.byte {
            b'{' | b'[' => now += 1,
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// The only `"id"` member of the outermost object, read without recursion.
fn outermost_id(text: &str) -> Option<u64> {
    let (mut level, mut member, mut found) = (0_usize, 0, None);
    for token in Structure::of(text.as_bytes()) {
        match token.byte {
            b'{' | b'[' if level == 0 => member = token.at + 1,
            b',' | b'}' if level == 1 => {
                if let Some(id) = member_id(text.get(member..token.at)?)
                    && found.replace(id).is_some()
                {
                    return None;
                }
                member = token.at + 1;
            }
            _ => {}
        }
        match token.byte {
            b'{' | b'[' => level += 1,
            b'}' | b']' => level = level.checked_sub(1)?,
            _ => {}
        }
    }
    found.flatten()
}

/// `Some` when `member` is an `"id"` member; inside it the number, when it is one.
fn member_id(member: &str) -> Option<Option<u64>> {
    let value = member
        .trim()
        .strip_prefix("\"id\"")?
        .trim_start()
        .strip_prefix(':')?;
    Some(serde_json::from_str::<u64>(value).ok())
}

/// Brackets and commas outside strings.
struct Structure<'a> {
    text: &'a [u8],
    at: usize,
    in_string: bool,
}

struct Token {
    byte: u8,
    at: usize,
}

impl<'a> Structure<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            in_string: false,
        }
    }
}

impl Iterator for Structure<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        while let Some(&byte) = self.text.get(self.at) {
            let at = self.at;
            self.at += 1;
            match (byte, self.in_string) {
                (b'\\', true) => self.at += 1,
                (b'"', _) => self.in_string = !self.in_string,
                (b'{' | b'}' | b'[' | b']' | b',', false) => return Some(Token { byte, at }),
                _ => {}
            }
        }
        None
    }
}

/// Builds a [`Value`] and remembers whether a key appeared twice.
#[derive(Clone, Copy)]
struct Strict<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            object.push((key, value));
        }
        if has_duplicate(&object) {
            self.0.set(true);
        }
        Ok(Value::Object(object))
    }
}

/// True when a key appears twice; sorting keeps a line full of tiny members from costing quadratic time.
fn has_duplicate(object: &[(String, Value)]) -> bool {
    let mut keys: Vec<&str> = object.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize, head: &str) -> String {
        let arrays = levels - 1;
        format!("{{{head}\"x\":{}{}}}", "[".repeat(arrays), "]".repeat(arrays))
    }

    #[test]
    fn a_key_twice_is_noticed_at_any_level() {
        assert!(!read(b"{\"a\":{\"b\":1},\"b\":2}").expect("valid").duplicate_key);
        assert!(read(b"{\"a\":1,\"a\":1}").expect("valid").duplicate_key);
        assert!(read(b"{\"a\":[{\"b\":1,\"b\":2}]}").expect("valid").duplicate_key);
        assert!(read(b"{\"a\":1,\"\\u0061\":1}").expect("valid").duplicate_key);
    }

    #[test]
    fn thirty_two_levels_are_enough() {
        assert!(read(nested(32, "").as_bytes()).is_ok());
        let too_deep = read(nested(33, "\"id\":4,").as_bytes()).map(|_| ());
        assert_eq!(too_deep, Err(Unreadable::TooDeep(Some(4))));
        let absurd = read(nested(20_000, "\"id\" : 5 ,").as_bytes()).map(|_| ());
        assert_eq!(absurd, Err(Unreadable::TooDeep(Some(5))));
    }

    #[test]
    fn the_id_of_a_deep_line_must_be_plain_and_single() {
        for head in [
            "\"id\":\"4\",",
            "\"id\":1,\"id\":2,",
            "\"id\":-1,",
            "\"di\":1,",
            "",
        ] {
            let result = read(nested(40, head).as_bytes()).map(|_| ());
            assert_eq!(result, Err(Unreadable::TooDeep(None)), "{head}");
        }
        let inner = format!("{{\"x\":{}{{\"id\":4}}{}}}", "[".repeat(40), "]".repeat(40));
        assert_eq!(read(inner.as_bytes()).map(|_| ()), Err(Unreadable::TooDeep(None)));
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        let text = format!("{{\"x\":\"{}\\\"[\"}}", "[".repeat(100));
        assert!(read(text.as_bytes()).is_ok());
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        let bad: [&[u8]; 9] = [
            b"",
            b" ",
            b"{",
            b"{}{}",
            b"{} x",
            b"{\"a\":1,}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":\"\0\"}",
            b"\xef\xbb\xbf{}",
        ];
        for line in bad {
            assert_eq!(read(line).map(|_| ()), Err(Unreadable::Syntax), "{line:?}");
        }
    }

    #[test]
    fn json_that_stands_for_no_value_keeps_its_id() {
        for value in [
            "1e400",
            "-1e400",
            "\"\\ud800\"",
            "\"\\udc00x\"",
            "[{\"\\ud800\":1}]",
        ] {
            let line = format!("{{\"x\":{value},\"id\":6}}");
            let result = read(line.as_bytes()).map(|_| ());
            assert_eq!(result, Err(Unreadable::NoValue(Some(6))), "{line}");
            let unfinished = read(&line.as_bytes()[..line.len() - 1]).map(|_| ());
            assert_eq!(unfinished, Err(Unreadable::Syntax), "{line}");
        }
        for line in [
            "{\"id\":1e400}",
            "{\"id\":1,\"id\":2,\"x\":1e400}",
            "[\"id\",1e400]",
            "1e400",
        ] {
            let result = read(line.as_bytes()).map(|_| ());
            assert_eq!(result, Err(Unreadable::NoValue(None)), "{line}");
        }
    }

    #[test]
    fn surrounding_white_space_is_json() {
        assert!(read(b"\t {} \r").is_ok());
    }
}
