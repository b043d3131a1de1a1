//! H.264 streams for tests: splitting, rewriting parameter sets, seeded damage.

/// The access units of a raw Annex B stream, with or without access unit delimiters.
pub struct AccessUnits<'a> {
    stream: &'a [u8],
}

impl<'a> AccessUnits<'a> {
    /// Splits `stream`.
    pub fn new(stream: &'a [u8]) -> Self {
        Self { stream }
    }
}

impl<'a> Iterator for AccessUnits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        (!self.stream.is_empty()).then(|| std::mem::take(&mut self.stream))
    }
}
