//! Standard errors of rounded numbers.

/// The variance that rounding adds.
const ROUNDING: f64 = 1.0 / 12.0;

/// The standard error of a number after rounding; `error` is its standard error before. The result is at least a half,
/// so that two standard errors reach the next whole number.
pub(crate) fn error_of_whole(error: f64) -> f64 {
    // `max` would ignore NaN and return 0.5.
    if error.is_nan() {
        return f64::INFINITY;
    }
    libm::sqrt(error * error + ROUNDING).max(0.5)
}

#[test]
fn half_a_member_is_the_least_error() {
    assert_eq!([0.1, 0.4].map(error_of_whole), [0.5, 0.5]);
    assert!(error_of_whole(0.5) > 0.57 && error_of_whole(0.5) < 0.58);
    assert!(error_of_whole(100.0) < 100.001);
    assert_eq!(error_of_whole(f64::NAN), f64::INFINITY);
}
