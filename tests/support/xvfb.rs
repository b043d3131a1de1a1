//! A real X server for one test: Xvfb on a display number of its own, ended when the test ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running Xvfb.
pub struct Xvfb {
    server: Child,
    display: String,
}

impl Xvfb {
    /// A server with one screen of `width` by `height` pixels.
    pub fn start(width: u32, height: u32) -> Self {
        Self::start_with(width, height, &[])
    }

    /// The same with further arguments.
    pub fn start_with(width: u32, height: u32, arguments: &[&str]) -> Self {
        // The server picks a free number itself and writes it to standard output once it takes clients.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-noreset", "-screen", "0"])
            .arg(format!("{width}x{height}x24"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed (Debian package xvfb)");
        let mut number = String::new();
        let output = server.stdout.take().expect("standard output is a pipe");
        BufReader::new(output)
            .read_line(&mut number)
            .expect("a pipe can be read");
        let number = number.trim();
        assert!(!number.is_empty(), "Xvfb does not start");
        Self {
            display: format!(":{number}"),
            server,
        }
    }

    /// Its name, for example `:1`.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Ends it at once, as a logout does.
    pub fn end(&mut self) {
        // Both fail only when it ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        self.end();
    }
}
