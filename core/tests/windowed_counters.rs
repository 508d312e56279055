//! Tests the headers of windowed counters, and the memory of one.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time, Window};

fn params(error_rate: f64, exact_limit: u32) -> Params {
    Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 }
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
