//! Bits over words: set, get, count. No hashing, no formulas.

/// How many bits of `words` are set.
pub fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Sets in `dst` what is set in `src` and tells how many bits of `dst` are set afterwards.
/// Words that only the longer slice has are neither changed nor counted.
pub fn or_count(dst: &mut [u64], src: &[u64]) -> u64 {
    let mut ones = 0;
    for (d, s) in dst.iter_mut().zip(src) {
        *d |= s;
        ones += u64::from(d.count_ones());
    }
    ones
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count_ones(&[]), 0);
        assert_eq!(count_ones(&[1, u64::MAX, 0, 1 << 63]), 66);
    }

    #[test]
    fn or_counts_what_is_set_after() {
        let mut dst = [0b0011, 0, u64::MAX];
        assert_eq!(or_count(&mut dst, &[0b0110, 1, 5]), 3 + 1 + 64);
        assert_eq!(dst, [0b0111, 1, u64::MAX]);
    }
}
