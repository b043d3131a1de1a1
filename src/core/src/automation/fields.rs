//! Members of an object, taken one by one and checked on the way; what is left over is unknown.

use std::ops::RangeInclusive;

use crate::error::ErrorCode;
use crate::units::PixelRect;

use super::json::Value;

/// What is wrong with a request, and with which member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) code: ErrorCode,
    pub(super) member: &'static str,
}

impl Bad {
    pub(super) const fn new(code: ErrorCode, member: &'static str) -> Self {
        Self { code, member }
    }

    /// `member` is missing, of the wrong type or out of range.
    pub(super) const fn argument(member: &'static str) -> Self {
        Self::new(ErrorCode::InvalidArgument, member)
    }
}

/// The members of an object that were not taken yet.
pub(super) struct Fields(Vec<(String, Value)>);

impl Fields {
    pub(super) fn new(members: Vec<(String, Value)>) -> Self {
        Self(members)
    }

    /// Removes and returns a member.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// `None` when the member is absent, otherwise what `read` makes of it.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Result<T, Bad>,
    ) -> Result<Option<T>, Bad> {
        if self.0.iter().any(|(key, _)| key == name) {
            read(self, name).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A string.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String, Bad> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(Bad::argument(name)),
        }
    }

    /// A string of 1..=`most` bytes without control characters.
    pub(super) fn name(&mut self, name: &'static str, most: usize) -> Result<String, Bad> {
        let text = self.text(name)?;
        let fits = (1..=most).contains(&text.len()) && !text.chars().any(char::is_control);
        fits.then_some(text).ok_or(Bad::argument(name))
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Result<T, Bad> {
        let text = self.text(name)?;
        words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, meaning)| *meaning)
            .ok_or(Bad::argument(name))
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, name: &'static str) -> Result<bool, Bad> {
        match self.take(name) {
            Some(Value::Bool(value)) => Ok(value),
            _ => Err(Bad::argument(name)),
        }
    }

    /// An integer in `range`, written without fraction or exponent.
    pub(super) fn integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Result<u64, Bad> {
        let number = match self.take(name) {
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        number.filter(|n| range.contains(n)).ok_or(Bad::argument(name))
    }

    /// Like [`Self::integer`], for ranges within `u32`.
    pub(super) fn small(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Result<u32, Bad> {
        u32::try_from(self.integer(name, range)?).map_err(|_| Bad::argument(name))
    }

    /// An array.
    pub(super) fn array(&mut self, name: &'static str) -> Result<Vec<Value>, Bad> {
        match self.take(name) {
            Some(Value::Array(items)) => Ok(items),
            _ => Err(Bad::argument(name)),
        }
    }

    /// An object.
    pub(super) fn object(&mut self, name: &'static str) -> Result<Self, Bad> {
        match self.take(name) {
            Some(Value::Object(members)) => Ok(Self(members)),
            _ => Err(Bad::argument(name)),
        }
    }

    /// `{x,y,width,height}` with both edges at least 1.
    pub(super) fn region(&mut self, name: &'static str) -> Result<PixelRect, Bad> {
        let mut members = self.object(name)?;
        let any = u64::from(u32::MAX);
        let rect = PixelRect {
            x: members.small("x", 0..=any)?,
            y: members.small("y", 0..=any)?,
            width: members.small("width", 1..=any)?,
            height: members.small("height", 1..=any)?,
        };
        members.finish()?;
        Ok(rect)
    }

    /// Refuses members nobody asked for.
    pub(super) fn finish(&self) -> Result<(), Bad> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Bad::argument("(unknown member)"))
        }
    }
}
