//! What a Rust program expects of the values: to share them between threads, and to print them.

use rollcall_core::bloom::{BloomFilter, ClassicFilter, LineFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::persist::counting::LoadingCounter;
use rollcall_core::persist::filter::LoadingBloomFilter;
use rollcall_core::size_limit::Unlimited;

const fn is_shared<T: Send + Sync>() {}

const _: () = {
    is_shared::<BloomFilter>();
    is_shared::<LineFilter>();
    is_shared::<ClassicFilter>();
    is_shared::<Counter>();
    is_shared::<LoadingBloomFilter>();
    is_shared::<LoadingCounter>();
    is_shared::<Error>();
};

#[test]
fn threads_read_the_same_values() {
    let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    let mut filter = LineFilter::new(params, &Unlimited).unwrap();
    let params =
        counting::Params { capacity: 10_000, error_rate: 0.01, exact_limit: 100, exact_bytes: 16_384, seed: 0 };
    let mut counter = Counter::new(params).unwrap();
    let items: Vec<_> = (0..5000).map(|i| format!("item {i}")).collect();
    for item in &items {
        filter.add(item.as_bytes(), &Unlimited).unwrap();
        counter.add(item.as_bytes(), &Unlimited).unwrap();
    }
    let count = counter.count();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert!(items.iter().all(|item| filter.may_contain(item.as_bytes())));
                assert_eq!(counter.count(), count);
            });
        }
    });
}

/// Neither in a log nor in a failed assertion has anyone use for a bitmap of many MiB, or for the members.
#[test]
fn debug_prints_parameters_and_no_contents() {
    let params = Params { error_rate: 0.001, capacity: 1_000_000, expansion: 2, seed: 0 };
    let mut filter = LineFilter::new(params, &Unlimited).unwrap();
    filter.add(b"ann", &Unlimited).unwrap();
    let text = format!("{filter:?}");
    assert!(text.contains("0.001") && text.contains("1000000") && text.len() < 1000, "{text}");
    let mut classic = ClassicFilter::new(params, &Unlimited).unwrap();
    classic.add(b"ann", &Unlimited).unwrap();
    let text = format!("{classic:?}");
    assert!(text.contains("1000000") && text.len() < 1000, "{text}");
    for exact_limit in [0, 10] {
        let params =
            counting::Params { capacity: 1_000_000, error_rate: 0.01, exact_limit, exact_bytes: 16_384, seed: 0 };
        let mut counter = Counter::new(params).unwrap();
        counter.add(b"ann", &Unlimited).unwrap();
        let text = format!("{counter:?}");
        assert!(text.contains("1000000") && text.len() < 500, "{text}");
    }
}
