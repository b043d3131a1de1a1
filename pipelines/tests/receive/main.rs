//! The receive graph from outside: real streams, real GStreamer, fake hardware.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![expect(clippy::print_stdout, reason = "which stream a failing test was at")]

mod change;
mod conformance;
mod delay;
mod failover;
mod fakes;
mod overload;
mod support;
