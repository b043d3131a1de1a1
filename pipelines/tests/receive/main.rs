//! The receive graph from outside: real streams, real GStreamer, fake hardware.

mod change;
mod conformance;
mod delay;
mod failover;
mod fakes;
mod support;
