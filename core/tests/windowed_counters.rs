//! Tests the headers of windowed counters, and the memory of one.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::live::Windowed;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::hash::checksum;
use rollcall_core::unstable::persist::Stored;
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::windowed_counter;

fn params(error_rate: f64, exact_limit: u32) -> Params {
    Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 }
}

/// Headers have the layout of the table in docs/persistence.md.
#[test]
fn headers_are_laid_out_as_documented() {
    let mut exact = windowed_counter(params(0.01, 250), 24, ClockSource::Manual, &[2, 1]);
    let before = exact.header();
    exact.rebase(998);
    // The fields of the header: kind and version, representation, rate, exact limit, exact bytes, seed.
    let fields = b"\xd1\0\x02\x01\xfa\x01\x80\x80\x01\x07";
    // The fields of the window: window, slices, clock source, newest slice, and an offset of 252 in base 255.
    let window = b"\x18\x18\x01\xe6\x07\xfc";
    // The tag of a slice is its number modulo 255, plus 1: 236 for slice 1000, and 237 for slice 1001.
    let payload = b"\x01\xec\x09member:0:\xec\x09member:1:\xed\x09member:2:";
    let mut expected = [&fields[..], window, payload].concat();
    expected.extend_from_slice(&(checksum(&expected, 0) as u32).to_le_bytes());
    assert_eq!(exact.header(), expected);
    assert_eq!(before[10..16], *b"\x18\x18\x01\xe9\x07\0");
}

#[test]
fn a_day_by_the_hour_takes_at_most_52_kb() {
    let window = Window::new(86_400, 24, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let mut counter = Counter::new(params(0.01, 250)).unwrap().with_window(window, 0).unwrap();
    let mut largest = counter.size_bytes();
    for hour in 0..30u64 {
        counter.advance(hour);
        for member in 0..50_000u64 {
            counter.live(Time::Reached).add((hour * 50_000 + member).to_le_bytes(), &Unlimited).unwrap();
            largest = largest.max(if member % 500 == 0 { counter.size_bytes() } else { 0 });
        }
    }
    largest = largest.max(counter.size_bytes());
    assert!(largest <= 52_000, "{largest} bytes");
    println!("{largest} bytes");
}
