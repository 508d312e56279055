//! Tests the number of bytes for which windowed filters ask their size limit.

use super::*;

#[test]
fn memory_of_all_generations_is_asked_for_at_once() {
    let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    let day = Windowing::new(4 * LEN, 4, ClockSource::System, false).unwrap();
    let of_generation = Params { error_rate: 0.01 / 5.0, capacity: 250, ..params };
    let bytes = sizing::sub_filter_geometry(&of_generation, 0).unwrap().num_bytes();
    let of_each = size_of::<SubFilter>() + size_of::<Generation>();
    let needed = (OWN_BYTES as usize + size_of::<Generations>() + 5 * of_each) as u64 + 5 * bytes;
    assert!(BloomFilter::windowed(params, day, 0, &MaxBytes(needed)).is_ok());
    let rejected = Error::TooLarge { needed_bytes: needed, limit_bytes: needed - 1, limit: Limit::Value };
    assert_eq!(BloomFilter::windowed(params, day, 0, &MaxBytes(needed - 1)), Err(rejected));
}

/// The limit is compared with the size of the filter when all slices are full. The filter may reach it exactly.
#[test]
fn limits_are_sizes_with_all_slices_full() {
    for (capacity, windowing) in [
        (1000, Windowing::new(4 * LEN, 4, ClockSource::System, false).unwrap()),
        (20, Windowing::new(60 * LEN, 60, ClockSource::Manual, true).unwrap()),
    ] {
        let params = Params { error_rate: 0.01, capacity, expansion: 2, seed: 0 };
        let full = |limit: &MaxBytes| -> Result<u64, Error> {
            let mut filter = BloomFilter::windowed(params, windowing, 0, limit)?;
            for item in 0..3 * 70u32 {
                filter.advance(u64::from(item / 3));
                filter.add(item.to_le_bytes(), limit)?;
            }
            Ok(filter.size_bytes())
        };
        let size = full(&MaxBytes(u64::MAX)).unwrap();
        assert_eq!(full(&MaxBytes(size)), Ok(size), "{windowing:?}");
        let rejected = BloomFilter::windowed(params, windowing, 0, &MaxBytes(size - 1)).err();
        assert!(matches!(rejected, Some(Error::TooLarge { needed_bytes, .. }) if needed_bytes == size), "{rejected:?}");
    }
}

#[test]
fn admission_asks_for_the_memory_that_it_needs() {
    for refresh in [false, true] {
        let mut filter = filter(1, refresh, 40, 1_000);
        assert!(matches!(admit(&mut filter, &[0], SOME, 1_000, 0), Err(Error::TooLarge { .. })));
        assert_eq!(admit(&mut filter, &[0, 0, 1], SOME, 1_000, u64::MAX).unwrap().len(), 3);
        let dry = Terms { dry_run: true, ..SOME };
        // The new slice has no sub-filter yet, so room in the old slice does not help.
        assert!(matches!(admit(&mut filter, &[2], dry, 1_010, 0), Err(Error::TooLarge { .. })));
        // Known items need no room.
        for terms in [dry, SOME] {
            assert_eq!(admit(&mut filter, &[1, 0], terms, 1_000, 0), Ok(vec![Admission::Known; 2]));
            assert_eq!(
                admit(&mut filter, &(2..40).collect::<Vec<_>>(), terms, 1_000, 0),
                Ok(vec![Admission::Admitted; 38])
            );
        }
        assert_eq!((filter.room(), filter.num_items(), filter.sub_filters().len()), (0, 40, 1));
        assert_eq!(admit(&mut filter, &[1, 0], SOME, 1_000, 0), Ok(vec![Admission::Known; 2]));
        assert!(matches!(admit(&mut filter, &[40], SOME, 1_000, 0), Err(Error::TooLarge { .. })));
    }
}
