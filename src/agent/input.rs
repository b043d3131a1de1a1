//! Standard input as bounded protocol lines.

use std::io::{ErrorKind, Read};

use crossdesk_core::automation::MAX_REQUEST_BYTES;

/// One line read from the parent.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its newline.
    Complete(Vec<u8>),
    /// A line longer than [`MAX_REQUEST_BYTES`]; its bytes were thrown away up to the next newline.
    TooLong,
}

/// Cuts a byte stream into lines without ever holding more than one line.
#[derive(Default)]
pub struct LineCutter {
    line: Vec<u8>,
    overflowed: bool,
}

impl LineCutter {
    /// Takes the next bytes of the stream and hands every line they finish to `emit`.
    pub fn push(&mut self, mut bytes: &[u8], emit: &mut dyn FnMut(Line)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.extend(&bytes[..end]);
            self.finish(emit);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Hands over what stands after the last newline, if anything: the stream has ended.
    pub fn end(&mut self, emit: &mut dyn FnMut(Line)) {
        if self.overflowed || !self.line.is_empty() {
            self.finish(emit);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.overflowed || self.line.len() + bytes.len() >= MAX_REQUEST_BYTES {
            self.overflowed = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self, emit: &mut dyn FnMut(Line)) {
        let line = std::mem::take(&mut self.line);
        emit(if std::mem::take(&mut self.overflowed) {
            Line::TooLong
        } else {
            Line::Complete(line)
        });
    }
}

/// Reads lines until the stream ends or breaks; a broken stdin ends the session exactly like a closed one.
pub fn read_lines(mut reader: impl Read, mut emit: impl FnMut(Line)) {
    let mut cutter = LineCutter::default();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => cutter.push(&buffer[..n], &mut emit),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    cutter.end(&mut emit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<Line> {
        let mut out = Vec::new();
        let mut cutter = LineCutter::default();
        for chunk in chunks {
            cutter.push(chunk, &mut |line| out.push(line));
        }
        cutter.end(&mut |line| out.push(line));
        out
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_lines() {
        let text = b"{\"id\":1}\n\n{\"id\":2}\nrest";
        let whole = lines(&[text]);
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]]), whole);
        }
        assert_eq!(whole.len(), 4);
    }

    #[test]
    fn the_limit_counts_the_newline_and_the_next_line_survives() {
        let fits = vec![b'a'; MAX_REQUEST_BYTES - 1];
        let long = vec![b'a'; MAX_REQUEST_BYTES];
        assert_eq!(lines(&[&fits, b"\n"]), [Line::Complete(fits.clone())]);
        assert_eq!(
            lines(&[&long, b"\nok\n"]),
            [Line::TooLong, Line::Complete(b"ok".to_vec())]
        );
    }

    #[test]
    fn an_endless_line_is_not_stored() {
        let mut cutter = LineCutter::default();
        for _ in 0..100 {
            cutter.push(&[b'x'; 4096], &mut |_| panic!("no line ended"));
        }
        assert!(cutter.line.capacity() <= 2 * MAX_REQUEST_BYTES);
    }
}
