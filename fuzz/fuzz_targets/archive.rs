#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anchorite_fuzz::run("archive", bytes));
