//! The fuzz target `ignore_files`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_servers::fuzzing::ignore_files::check(data));
