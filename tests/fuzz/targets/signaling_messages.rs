//! Forwards to the oracle of the same name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crossdesk_core::testing::oracles::signaling_messages(data));
